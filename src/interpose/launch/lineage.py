"""Whether a process descends from an agent that interpose started.

Knows: the mark in the environment of a launched agent, here and in the processes above. Does not know: what is refused
to whom. It is a tripwire: a process that gives up its parents on purpose is not found.
"""

import os
from collections.abc import Mapping

from interpose.kernel.processes import ancestors, environment_of

LAUNCH_VARIABLE = "INTERPOSE_LAUNCH"
"""`interpose run` gives it to the agent; it holds the launch's public id."""


def launch_above(environ: Mapping[str, str] = os.environ, pid: int | None = None) -> str | None:
    """The launch that the process (default: this one) descends from, or None.

    Its own `environ` is asked first; then that of each process above it, as it was started, where there is a `/proc`:
    a variable that was taken out on the way is found there.
    """
    if environ.get(LAUNCH_VARIABLE):
        return environ[LAUNCH_VARIABLE]
    marks = (environment_of(above).get(LAUNCH_VARIABLE) for above in ancestors(pid or os.getpid()))
    return next((mark for mark in marks if mark), None)
