"""What a session's memory keeps for the next process, as bytes.

Knows: how a part is written and read, what is asked of a store, what of a released call's verdict matters later. Does
not know: where parts are kept.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import msgspec

from interpose.contracts.json import JsonObject
from interpose.contracts.stages import Annotation
from interpose.contracts.verdict import Reminder, ToolChoice, Verdict
from interpose.gateway.api import ProposedCall
from interpose.wire.jsonbytes import read_json, write_json

T = TypeVar("T")


class LedgerStore(Protocol):
    """Keeps what edits histories, for the next process. Any thread may use it.

    A part is named by its `kind` and `key` within one session of one workspace ("" for none): an agent that is started
    anew goes on with a session of its own.
    """

    def may_know(self, workspace: str, session: str) -> bool:
        """Whether `load` may find anything. Quick enough for an event loop; never raises, True where it cannot tell."""
        ...

    def load(self, workspace: str, session: str) -> Iterable[tuple[str, str, bytes]]:
        """The parts of a session as kind, key and value, longest unused first; none for one that is not known.

        Waits for the disk. Never raises: what cannot be read is not there.
        """
        ...

    def has_news(self, workspace: str, session: str) -> bool:
        """Whether others have kept parts of a session since it was loaded. As quick as `may_know`; never raises, False
        where it cannot tell.
        """
        ...

    def keep(self, workspace: str, session: str, kind: str, key: str, value: bytes) -> None:
        """Remembers a part, in the place of an earlier one of the same name. Never raises, never waits."""
        ...


@dataclass(frozen=True, slots=True)
class Released:
    """A released call with what its verdict says of its result. Fields as `Verdict` has them."""

    call: ProposedCall
    action: str
    arguments: JsonObject | None = None
    annotations: tuple[Annotation, ...] = ()
    reminders: tuple[Reminder, ...] = ()
    tool_choice: ToolChoice | None = None

    @classmethod
    def of(cls, call: ProposedCall, verdict: Verdict) -> "Released":
        """What of both a later process needs."""
        return cls(call, verdict.action, verdict.arguments, verdict.annotations, verdict.reminders, verdict.tool_choice)

    def known(self) -> tuple[ProposedCall, Verdict]:
        """The call, and its verdict as far as it matters to the result."""
        verdict = Verdict(
            self.action,
            "tool.call",
            "allowed" if self.arguments is None else "patched",
            arguments=self.arguments,
            annotations=self.annotations,
            reminders=self.reminders,
            tool_choice=self.tool_choice,
        )
        return self.call, verdict


def says_something(verdict: Verdict) -> bool:
    """Whether the verdict on a call is still to be heard when its result comes."""
    return bool(
        verdict.arguments is not None or verdict.annotations or verdict.reminders or verdict.tool_choice is not None
    )


def encoded(value: object) -> bytes:
    """A part as JSON, also one with half surrogate pairs. Raises RecursionError when it is nested too deep."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return write_json(msgspec.to_builtins(value))


def decoded(data: bytes, kind: type[T]) -> T:
    """The part that `encoded` wrote. Raises ValueError when it is none of this kind."""
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.DecodeError:
        return msgspec.convert(read_json(data), kind)
