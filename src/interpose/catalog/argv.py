"""A command given as an argument list, read as the text of a shell command, and back.

Knows: `sh -c` and quoting. Does not know: what the command does.
"""

import re
import shlex
from collections.abc import Sequence

_SHELL_FLAG = re.compile(r"-[aefilmuxv]*c")
_SHELLS = frozenset({"sh", "bash"})


def text_of(argv: Sequence[str]) -> str:
    """The inner text of `sh -c TEXT`, and any other list quoted word by word."""
    if _is_wrapped(argv):
        return argv[2]
    return shlex.join(argv)


def argv_of(text: str, like: Sequence[str]) -> list[str]:
    """An argument list that `text_of` reads as `text`: in the wrapper of `like` when that had one.

    Text that is not a plain list of quoted words needs a shell, so it gets one.
    """
    if _is_wrapped(like):
        return [like[0], like[1], text]
    words = _plain_words(text)
    if words is None or _is_wrapped(words):
        return ["bash", "-c", text]
    return words


def _is_wrapped(argv: Sequence[str]) -> bool:
    return len(argv) == 3 and argv[0].rpartition("/")[2] in _SHELLS and _SHELL_FLAG.fullmatch(argv[1]) is not None


def _plain_words(text: str) -> list[str] | None:
    try:
        words = shlex.split(text)
    except ValueError:
        return None
    return words if words and shlex.join(words) == text else None
