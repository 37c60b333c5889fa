"""Names that every model's API takes, each given once.

Knows: which characters tools and arguments may have. Does not know: where names come from.
"""

import re
from collections.abc import Collection
from typing import Final

NAME_MOST: Final = 64

_FITS: Final = re.compile(rf"[A-Za-z0-9_-]{{1,{NAME_MOST}}}")
_UNFIT_TOOL: Final = re.compile(r"[^A-Za-z0-9_-]+")
_UNFIT_ARGUMENT: Final = re.compile(r"[^A-Za-z0-9_.-]+")


def fits_apis(name: str) -> bool:
    """Whether every model's API takes it as a tool's name."""
    return _FITS.fullmatch(name) is not None


def no_native_name(name: str) -> str:
    """In words, that an API would refuse it."""
    return f"the tool name {name!r:.80}, which APIs refuse: they take 1 to {NAME_MOST} letters, digits, '_' and '-'"


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
