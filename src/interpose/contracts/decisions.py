"""What one handler may decide about an action."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from interpose.contracts.json import Json

OnUnknown: TypeAlias = Literal["ask", "refuse", "pass"]
"""What a handler's `Unknown` leads to; `ask` refuses where nobody can be asked."""


@dataclass(frozen=True, slots=True)
class Continue:
    """Let the action pass as it is."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """Do not let the action happen. `reason` is shown to the model and written to the journal."""

    reason: str


@dataclass(frozen=True, slots=True)
class Patch:
    """Let the action pass with `payload` in place of the present one; what must stay equal is the stage's to say.

    The payload of `turn.start` is `{"prompt": …}`, of `tool.call` the tool's arguments in their hook form, of
    `tool.result` `{"output": …}`, of the `llm.*` stages the body or the event's data itself. The whole point, made
    with `dataclasses.replace`, will do as well.
    """

    payload: Json


@dataclass(frozen=True, slots=True)
class Unknown:
    """The handler cannot tell. `reason` names what could not be read; never silently allowed."""

    reason: str


Decision: TypeAlias = Continue | Cancel | Patch | Unknown
