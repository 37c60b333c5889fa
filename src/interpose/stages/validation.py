"""What is wrong with a shape handler, told where it is written.

Knows: what a handler may say of itself. Does not know: other handlers; whether its links hold is told by the table.
"""

import math
from collections.abc import Iterator
from typing import Any, Final, get_args

from interpose.contracts.decisions import OnUnknown
from interpose.contracts.effects import HandlerKind, Mode
from interpose.contracts.errors import MisuseError
from interpose.contracts.handlers import ShapeHandler
from interpose.contracts.stages import LLM_PROTOCOLS
from interpose.stages.registry import STAGE_RULES

_TUPLES: Final = ("stages", "tools", "agents", "protocols", "before", "after")
_CHOICES: Final = {"on_unknown": get_args(OnUnknown), "mode": get_args(Mode), "kind": get_args(HandlerKind)}


def checked(handler: object) -> ShapeHandler:
    """The handler itself; raises MisuseError that names the handler, the field, and what is possible."""
    if not isinstance(handler, ShapeHandler):
        raise MisuseError(f"expected a ShapeHandler, as `@on(…)` makes one, got {type(handler).__name__}")
    fault = next(_faults(handler), None)
    if fault is not None:
        raise MisuseError(f"shape handler {handler.id!r}: {fault}")
    return handler


def _faults(handler: Any) -> Iterator[str]:
    if not isinstance(handler.id, str) or not handler.id.strip():
        yield "id must be a text that is not empty"
    if not callable(handler.run):
        yield f"run must be a function of one point, not {handler.run!r}"
    for name in _TUPLES:
        yield from _not_texts(name, getattr(handler, name))
    yield from _not_among("stages", handler.stages, tuple(STAGE_RULES))
    yield from _not_among("protocols", handler.protocols or (), LLM_PROTOCOLS)
    for name, possible in _CHOICES.items():
        yield from _not_among(name, (getattr(handler, name),), possible)
    if not handler.stages:
        yield f"stages names none; possible: {', '.join(STAGE_RULES)}"
    yield from _contradictions(handler)


def _contradictions(handler: Any) -> Iterator[str]:
    limit = handler.timeout_s
    if limit is not None and (not isinstance(limit, int | float) or not math.isfinite(limit) or limit <= 0):
        yield f"timeout_s must be a number of seconds above 0, not {limit!r}"
    if handler.fail_closed and not handler.can_change:
        yield "fail_closed cancels, and can_change=False says that it never does; choose one"
    if handler.id in (*handler.before, *handler.after):
        yield "it cannot come before or after itself"


def _not_texts(name: str, value: Any) -> Iterator[str]:
    if value is None and name in ("tools", "agents", "protocols"):
        return
    if not isinstance(value, tuple) or not all(isinstance(item, str) for item in value):
        yield f"{name} must be a tuple of texts, not {value!r}"


def _not_among(name: str, values: tuple[Any, ...], possible: tuple[str, ...]) -> Iterator[str]:
    for value in values:
        if value not in possible:
            yield f"{name}: {value!r} is not possible; expected one of {', '.join(possible)}"
