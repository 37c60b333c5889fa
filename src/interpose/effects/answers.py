"""Reading what a registration returned: effects, `Unknown`, or a failure with a clear text.

Knows: which values are answers. Does not know: which registration gave them, or at which hook.
"""

import inspect
from typing import get_args

from interpose.contracts.decisions import Unknown
from interpose.contracts.effects import Effect
from interpose.effects.fields import EFFECT_FIELDS

MESSAGE_MAX_CHARS = 2000
"""A failure's text is cut to this; the exception of a handler may quote anything."""

_SILENCE: tuple[tuple[Effect, ...], None] = ((), None)
_EFFECT_CLASSES = frozenset(get_args(Effect))


def read_answer(answer: object) -> tuple[tuple[Effect, ...], Unknown | None]:
    """The effects and the `Unknown` in an answer. Raises TypeError, saying what was expected, for anything else.

    A list or tuple of the eight effect classes is an answer, and so is an `Unknown`. Effects are data: a field that
    is not text is refused, so that nothing changeable travels with an effect.
    """
    if type(answer) is tuple or type(answer) is list:
        if not answer:
            return _SILENCE
        effects = tuple(answer)
        for effect in effects:
            _check_effect(effect)
        return effects, None

    if isinstance(answer, Unknown):
        if not isinstance(answer.reason, str):
            raise TypeError(f"returned Unknown with a reason that is {_sort(answer.reason)}; expected text")
        return (), answer

    if isinstance(answer, list | tuple):
        return read_answer(tuple(answer))

    _close(answer)
    raise TypeError(f"returned {_sort(answer)}; expected a list or tuple of effects (it may be empty), or Unknown")


def failure_text(error: BaseException) -> str:
    """One text for an exception: its type and what it says, cut to 2,000 characters. Never raises."""
    name = type(error).__name__
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - a handler's exception class; open: its type says enough
        text = ""
    return f"{name}: {text}"[:MESSAGE_MAX_CHARS] if text else name


def _check_effect(effect: Effect) -> None:
    if type(effect) not in _EFFECT_CLASSES:
        raise TypeError(f"returned {_sort(effect)} among its effects; expected one of the eight effect classes")

    fields = EFFECT_FIELDS[effect.kind]
    for name in fields.texts.values():
        text = getattr(effect, name)
        if not isinstance(text, str):
            raise TypeError(f"returned {type(effect).__name__}.{name} as {_sort(text)}; expected text")

    severity = getattr(effect, "severity", None)
    if severity not in fields.severities and (severity is not None or fields.severity_required):
        expected = ", ".join(fields.severities)
        raise TypeError(f"returned {type(effect).__name__}.severity {severity!r}; expected one of {expected}")


def _close(answer: object) -> None:
    """A coroutine or generator nobody will run is closed, so that it does not warn later."""
    if inspect.iscoroutine(answer) or inspect.isgenerator(answer):
        answer.close()


def _sort(value: object) -> str:
    match value:
        case None:
            return "None"
        case str():
            return "a text"
        case type():
            return f"the class {value.__name__}"
        case _:
            return f"a value of type {type(value).__name__}"
