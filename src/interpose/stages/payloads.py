"""What a handler is shown of a point, and what its patch makes of it.

Knows: the hook form of calls and back, which fields must stay equal, what changed. Does not know: who patches, or
what follows. Everything here is a pure function.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final, TypeVar, cast

from interpose.catalog.reading import HookForm, read_call, write_call
from interpose.contracts.errors import InterposeError
from interpose.contracts.json import Json, JsonObject
from interpose.contracts.stages import (
    LlmChunk,
    LlmRequest,
    LlmResponse,
    Point,
    ToolCall,
    ToolResult,
    TurnStart,
)
from interpose.kernel.frozen import FrozenDict, freeze
from interpose.stages.registry import STAGE_RULES

_P = TypeVar("_P", bound=ToolCall | ToolResult)

_IDENTITY: Final[Mapping[str, Mapping[str, str]]] = {
    "turn.start": {},
    "tool.result": {"call_id": "call_id", "name": "tool_name", "input": "arguments", "duration_ms": "duration_ms"},
}
"""What a payload may repeat beside its one field, and the point's name for it: there it must be equal."""


class PatchError(InterposeError):
    """A patch that cannot be taken. Its text says what it did, and what is possible."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A point on its way through the handlers.

    Attributes:
        point: in the agent's own words, with every patch so far.
        seen: the same as handlers see it: tools in their hook form, everything frozen.
        form: the hook form of a tool point; None for the others.
    """

    point: Point
    seen: Point
    form: HookForm | None = None


def subject_of(point: Point, form: HookForm | None = None) -> Subject:
    """The point as it is proposed; `form` is the hook form of a tool point.

    Raises ValueError for a payload that nests too deep to be shown.
    """
    match point:
        case ToolCall() | ToolResult() if form is not None:
            return Subject(point, _tool_view(point, form), form)
        case LlmRequest() | LlmResponse():
            return Subject(point, replace(point, body=freeze(dict(point.body))))
        case LlmChunk():
            return Subject(point, replace(point, data=freeze(point.data)))
        case ToolCall() | ToolResult():
            raise AssertionError("a tool point always comes with its hook form")
        case _:
            return Subject(point, replace(point, metadata=FrozenDict(point.metadata)))


def patched(subject: Subject, payload: Any) -> Subject:
    """The subject with the patch in place. Raises PatchError when the patch cannot be taken."""
    name = STAGE_RULES[subject.seen.stage].patchable
    if name is None:
        raise PatchError(f"nothing can be patched at {subject.seen.stage}")

    value = _value(subject.seen, name, payload)
    try:
        return _with_value(subject, value)
    except ValueError as error:
        raise PatchError(f"its patch is {error}") from error


def patched_value(point: Point) -> Json:
    """What a patch may change of the point, as it is now; None where it may not."""
    name = STAGE_RULES[point.stage].patchable
    return None if name is None else getattr(point, name)


def changes_of(before: Subject, after: Subject) -> JsonObject:
    """For each field that a patch changed, `before` and `after`; None stands for a field that is not there."""
    name = str(STAGE_RULES[before.seen.stage].patchable)
    old, new = patched_value(before.seen), patched_value(after.seen)
    if not isinstance(old, dict) or not isinstance(new, dict):
        return {name: {"before": old, "after": new}}
    return {
        key: {"before": old.get(key), "after": new.get(key)}
        for key in dict.fromkeys((*old, *new))
        if (key in old) != (key in new) or old.get(key) != new.get(key)
    }


def _tool_view(point: _P, form: HookForm) -> _P:
    problem = point.problem or form.problem
    arguments: JsonObject = FrozenDict()
    try:
        arguments = freeze(dict(form.input))
    except ValueError as error:
        problem = problem or f"the arguments are {error}"
    metadata = FrozenDict(point.metadata)
    view = replace(
        point, tool_name=form.name, aliases=form.aliases, arguments=arguments, problem=problem, metadata=metadata
    )
    if isinstance(view, ToolResult) and view.details is not None:
        return replace(view, details=freeze(dict(view.details)))
    return view


def _value(seen: Point, name: str, payload: Any) -> Json:
    """The new value of the patchable field."""
    if type(payload) is type(seen):
        _demand_equal(seen, payload, name)
        return getattr(payload, name)
    if seen.stage == "llm.chunk":
        return payload
    if not isinstance(payload, Mapping) or not all(isinstance(key, str) for key in payload):
        raise PatchError(f"its patch is {type(payload).__name__}, expected an object ({_expected(seen, name)})")

    identity = _IDENTITY.get(seen.stage)
    if identity is None:
        return payload
    for key, content in payload.items():
        if key == name:
            continue
        if key not in identity:
            raise PatchError(f"its patch has {key!r}, which {seen.stage} does not know ({_expected(seen, name)})")
        if content != getattr(seen, identity[key]):
            raise PatchError(f"its patch changes {key!r}, which must stay as it is")
    return payload.get(name)


def _demand_equal(seen: Point, payload: Any, name: str) -> None:
    for field in fields(seen):
        if field.name != name and getattr(payload, field.name) != getattr(seen, field.name):
            raise PatchError(f"its patch changes {field.name!r}, which must stay as it is")


def _expected(seen: Point, name: str) -> str:
    match seen:
        case ToolCall():
            return "the tool's arguments in their hook form"
        case LlmRequest() | LlmResponse():
            return "the whole body"
        case _:
            return f'{{"{name}": …}}'


def _with_value(subject: Subject, value: Any) -> Subject:
    point, seen = subject.point, subject.seen
    match point:
        case ToolCall():
            return _call_patched(subject, cast("ToolCall", seen), point, value)
        case ToolResult():
            output = _text(seen, "output", value)
            return Subject(
                replace(point, output=output), replace(cast("ToolResult", seen), output=output), subject.form
            )
        case TurnStart():
            prompt = _text(seen, "prompt", value)
            return Subject(replace(point, prompt=prompt), replace(cast("TurnStart", seen), prompt=prompt))
        case LlmChunk():
            data = freeze(value)
            return Subject(replace(point, data=data), replace(cast("LlmChunk", seen), data=data))
        case LlmRequest() | LlmResponse():
            body = freeze(dict(value))
            return Subject(replace(point, body=body), replace(cast("LlmRequest | LlmResponse", seen), body=body))
        case _:
            raise PatchError(f"nothing can be patched at {seen.stage}")


def _call_patched(subject: Subject, seen: ToolCall, point: ToolCall, value: JsonObject) -> Subject:
    """The call rebuilt in the agent's words and read again: what handlers see next is what will run."""
    form = subject.form
    if form is None or seen.problem is not None:
        raise PatchError(f"arguments that could not be read cannot be rewritten: {seen.problem}")

    wanted = freeze(dict(value))
    arguments = write_call(form, wanted)
    again = read_call(point.context.agent, point.tool_name, arguments, point.leaf)
    if again.problem is not None:
        raise PatchError(f"its patch cannot be read: {again.problem}")
    view = replace(seen, arguments=freeze(dict(again.input)))
    return Subject(replace(point, arguments=arguments), view, again)


def _text(seen: Point, name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise PatchError(
            f"its patch says {name} is {type(value).__name__}, expected {_expected(seen, name)} with a text"
        )
    return value
