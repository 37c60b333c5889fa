"""Names that every model's API takes, each given once.

Knows: which characters tools and arguments may have. Does not know: where names come from.
"""

import re
from collections.abc import Collection
from typing import Final

NAME_MOST: Final = 64

_UNFIT_TOOL: Final = re.compile(r"[^A-Za-z0-9_-]+")
_UNFIT_ARGUMENT: Final = re.compile(r"[^A-Za-z0-9_.-]+")


def tool_name(wanted: str, taken: Collection[str]) -> str:
    """`wanted` in letters, digits, `_` and `-`, at most 64; numbered when it is taken."""
    return _free(_UNFIT_TOOL.sub("_", wanted).strip("_") or "operation", taken)


def argument_name(wanted: str, taken: Collection[str]) -> str:
    """`wanted` in letters, digits, `_`, `.` and `-`, at most 64; numbered when it is taken."""
    return _free(_UNFIT_ARGUMENT.sub("_", wanted).strip("_") or "argument", taken)


def _free(name: str, taken: Collection[str]) -> str:
    short = name[:NAME_MOST]
    number = 2
    while short in taken:
        ending = f"_{number}"
        short = name[: NAME_MOST - len(ending)] + ending
        number += 1
    return short
