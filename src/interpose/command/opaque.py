"""Programs that are known by name only: what they do inside is not read.

Knows: the programs whose words are understood, and shells that run a script file. Does not know: what an opaque
program does.
"""

import posixpath
from typing import Final

from interpose.command.files import TOOLS
from interpose.command.launchers import launch
from interpose.command.reading import SimpleCommand
from interpose.command.wrappers import SHELLS, WRAPPERS

_BUILTINS: Final = (
    ": [ alias bg bind break cd continue declare dirs echo enable eval exec exit export false fg getopts hash jobs "
    "kill let local logout popd printf pushd pwd read readarray readonly return set shift shopt test times trap true "
    "type typeset ulimit umask unalias unset wait"
)
_FILE_TOOLS: Final = (
    "awk bsdtar cp curl dd fd find gawk gcp git gsed gtar install ln ls mawk mv parallel patch rsync scp sed tar tmux "
    "tree uniq unzip wget which xargs xxd zip"
)
_TELLERS: Final = (
    "basename cal date df dirname du expr factor groups hostname id locale logname nproc printenv ps realpath readlink "
    "seq sleep stat tput tr tty uname uptime users vmstat whereis who whoami yes"
)
_UNDERSTOOD: Final = frozenset(f"{_BUILTINS} {_FILE_TOOLS} {_TELLERS}".split()) | TOOLS.keys() | WRAPPERS.keys()
_INCLUDES: Final = frozenset({"source", "."})


def opaque_name(command: SimpleCommand) -> str | None:
    """The name of a program whose doings are not read, as it was written; None for one that is understood.

    A shell that runs a script, and `source`, are named with it. A program word that is not known before it runs has
    no name; whoever asks about such a command gets `unknown`. Pure; any thread may call it.
    """
    name = command.name
    if not name:
        return None
    if name in SHELLS or name in _INCLUDES:
        return _script(command)
    if "/" in command.program.text and not _is_system(command.program.text):
        return command.program.text
    launched = launch(name, command.words)
    understood = name in _UNDERSTOOD or (launched is not None and not launched.script)
    return None if understood else name


def _script(command: SimpleCommand) -> str | None:
    words = [word.text for word in command.words]
    if any(word.startswith("-") and not word.startswith("--") and "c" in word for word in words):
        return None
    script = next((word for word in words if not word.startswith("-")), None)
    return f"{command.name} {script}" if script else None


def _is_system(program: str) -> bool:
    return posixpath.dirname(program) in ("/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin")
