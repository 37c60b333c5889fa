"""Variables whose value the shell or a program runs: prompts, start files, editors, pagers.

Knows: their names and which values are harmless. Does not know: who reads them, and whether anybody does.
"""

import re

from interpose.command.state import State, Value
from interpose.command.words import Scope, known

_PROMPTS = frozenset({"PS0", "PS1", "PS2", "PS3", "PS4"})
_START_FILES = frozenset({"BASH_ENV", "ENV"})
_COMMANDS = frozenset(
    {
        "PROMPT_COMMAND", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_PAGER", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS",
        "GIT_EXTERNAL_DIFF", "GIT_PROXY_COMMAND", "SSH_ASKPASS", "SUDO_ASKPASS", "SUDO_EDITOR", "SYSTEMD_EDITOR",
        "SYSTEMD_PAGER", "EDITOR", "VISUAL", "FCEDIT", "PAGER", "MANPAGER", "BROWSER", "RSYNC_RSH", "HGEDITOR",
        "KUBE_EDITOR", "SVN_EDITOR", "SVN_SSH", "CVS_RSH",
    }
)  # fmt: skip
_UNREAD = re.compile(r"GIT_CONFIG_(?:PARAMETERS|COUNT|KEY_\d+|VALUE_\d+)|TAR_OPTIONS|LESSOPEN|LESSCLOSE|BASH_FUNC_.*")
_CODE = re.compile(r"\$[({]|`|[<>]\(")


def check_variable(name: str, value: Value | None, state: State, scope: Scope) -> None:
    """Reads the value of a variable that is run, and notes why where that cannot be done; None is not known."""
    text = None if value is None else known(value)
    if name in _COMMANDS:
        if text is None:
            scope.doubt(f"the value of {name} is run, and is not known")
            return
        scope.branch()
        scope.substitute_text(text, state)
        return
    if name in _PROMPTS and (text is None or _CODE.search(text)):
        scope.doubt(f"the value of {name} may run code whenever the shell shows it")
    if name in _START_FILES and (text is None or _CODE.search(text) or text.startswith(("/dev/", "/proc/"))):
        scope.doubt(f"{name} names a text that shells run first, and it is not known")
    if _UNREAD.fullmatch(name) and text != "0":
        scope.doubt(f"the value of {name} may name a program to run")
