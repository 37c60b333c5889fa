"""What every API's codec offers, and the values that it exchanges with the rest of the gateway.

A codec does no I/O. Where it needs a verdict it is a generator: it yields a `ProposedCall` and is sent the verdict;
it yields bytes as soon as they may leave.
Knows: the common vocabulary. Does not know: any API's shape.
"""

from collections.abc import Collection, Generator
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from interpose.contracts.errors import MisuseError
from interpose.contracts.json import JsonObject
from interpose.contracts.verdict import ToolChoice, Verdict
from interpose.contracts.wording import framed

ApiName: TypeAlias = Literal["anthropic", "chat", "responses", "gemini"]

HELD_BYTES_MAX = 256 * 1024 * 1024
"""A reply that holds more than this of proposed calls is broken off."""

CUT_SHORT = "the reply ended before the call was complete"


class Unreadable(ValueError):  # noqa: N818 - says what is wrong with a body
    """A body that is not what its API says; the text is made for the person."""


@dataclass(frozen=True, slots=True)
class ProposedCall:
    """A complete call in a reply. `problem` says why its arguments cannot be trusted; they are then empty."""

    call_id: str
    name: str
    arguments: JsonObject
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Dropped:
    """A call that was held and will never reach the agent, and why."""

    call_id: str
    name: str
    reason: str


Step: TypeAlias = bytes | ProposedCall | Dropped
Steps: TypeAlias = Generator[Step, Verdict | None, None]
"""Bytes leave at once; a ProposedCall is answered with its verdict; a Dropped is for the journal."""


@dataclass(frozen=True, slots=True)
class NewTurn:
    """The person's newest message, standing behind everything the model said.

    `earlier` counts the messages of the person and the model before it.
    """

    position: int
    digest: str
    prompt: str
    earlier: int = 0


@dataclass(frozen=True, slots=True)
class NewResult:
    """A tool result behind everything the model said, with the call it belongs to as the history tells it."""

    call_id: str
    digest: str
    name: str
    arguments: JsonObject
    output: str
    is_error: bool = False
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class ResultEdit:
    """What is written into one tool result, in every request that carries it.

    `front` stands before the output or what replaces it, `addition` below.
    """

    addition: str = ""
    replacement: str | None = None
    tool_choice: ToolChoice | None = None
    front: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether the result stays as it is."""
        return not self.addition and not self.front and self.replacement is None

    def applied(self, output: str) -> str:
        """The output as the model is to see it."""
        return framed(self.front, output if self.replacement is None else self.replacement, self.addition)


@dataclass(frozen=True, slots=True)
class TurnEdit:
    """What is written before one prompt, in every request that carries it; `refusal` stops the turn instead."""

    reminder: str = ""
    refusal: str | None = None
    tool_choice: ToolChoice | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the prompt stays as it is."""
        return not self.reminder


class Edits(Protocol):
    """What a session's requests carry beyond what the client sent."""

    @property
    def edited_calls(self) -> Collection[str]:
        """The ids of calls whose result is edited."""
        ...

    @property
    def edited_positions(self) -> Collection[int]:
        """The positions of prompts that are edited."""
        ...

    def result_edit(self, call_id: str, digest: str) -> ResultEdit | None:
        """The edit of this very result, or None."""
        ...

    def turn_edit(self, position: int, digest: str) -> TurnEdit | None:
        """The edit of this very prompt, or None."""
        ...


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A request ready for the upstream: the client's own bytes when nothing was edited."""

    body: bytes
    choice_applied: bool = False


class RequestView(Protocol):
    """A request body that has been read."""

    @property
    def model(self) -> str | None:
        """The model's name as the agent gave it."""
        ...

    @property
    def turn(self) -> NewTurn | None:
        """The newest message of the person, or None when the request only goes on with a turn."""
        ...

    @property
    def turn_key(self) -> str | None:
        """The same for all requests of one turn of a session; None when there is no prompt."""
        ...

    @property
    def results(self) -> tuple[NewResult, ...]:
        """The tool results that the model has not seen."""
        ...

    def tool_names(self) -> tuple[str, ...]:
        """The tools that the model is offered, as the agent calls them; those that cannot be read are left out."""
        ...

    def rewritten(self, edits: Edits, tool_choice: ToolChoice | None) -> Rewritten:
        """The body with all edits of the session; the same edits give the same bytes."""
        ...


class ReplyStream(Protocol):
    """A streamed reply, event by event. Not for several threads."""

    def feed(self, data: bytes) -> Steps:
        """What `data` makes possible. Raises EventTooLong when an event does not end, and Unreadable when one that
        matters can be read in two ways; what stood before it has been yielded.
        """
        ...

    def finish(self, fault: str | None = None) -> Steps:
        """The end of the stream; `fault` is what the upstream died of. Held calls are dropped, the client is told."""
        ...


class Codec(Protocol):
    """One API. Keeps no state: any thread may use it."""

    @property
    def api(self) -> ApiName:
        """Which API this is."""
        ...

    @property
    def streams_arrays(self) -> bool:
        """Whether a streamed reply may also come as one JSON array."""
        ...

    def read(self, body: bytes) -> RequestView:
        """The request. Raises Unreadable when it is not JSON or not of this API."""
        ...

    def reply(self, body: bytes) -> Steps:
        """A whole reply; its last step is the body for the client. Raises Unreadable when it is not JSON."""
        ...

    def stream(self) -> ReplyStream:
        """A reader for one streamed reply."""
        ...


def answered(verdict: Verdict | None) -> Verdict:
    """The verdict that a generator was sent. Raises MisuseError when it was driven without one."""
    if verdict is None:
        raise MisuseError("a proposed call must be answered with a verdict: use generator.send(verdict)")
    return verdict
