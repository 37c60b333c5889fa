"""What every API's codec offers, and the values that it exchanges with the rest of the gateway.

A codec does no I/O. Where it needs a verdict it is a generator: it yields a `ProposedCall` and is sent the verdict;
it yields bytes as soon as they may leave.
Knows: the common vocabulary. Does not know: any API's shape.
"""

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from interpose.contracts.errors import MisuseError
from interpose.contracts.json import Json, JsonObject
from interpose.contracts.verdict import ToolChoice, Verdict
from interpose.contracts.wording import framed

ApiName: TypeAlias = Literal["anthropic", "chat", "responses", "gemini"]

HELD_BYTES_MAX = 256 * 1024 * 1024
"""A reply that holds more than this of proposed calls is broken off."""

CUT_SHORT = "the reply ended before the call was complete"
CUT_SHORT_TOLD = f"interpose: {CUT_SHORT}"
"""As the client is told it."""

UNENDED_TOLD = "interpose: the reply ended before it was complete"
BEHIND_ARRAY = "something stands behind the end of its array"


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


@dataclass(frozen=True, slots=True)
class RefusedCall:
    """A call that was refused: the line that was told in its place, and the call as the API's history has it.

    `item_id` is the id of what has the line, where the API lets a client name it by that alone.
    """

    call: ProposedCall
    line: str
    entry: Json
    item_id: str = ""


@dataclass(frozen=True, slots=True)
class RoundOver:
    """One reply of the model is complete, and its end has not left yet.

    Attributes:
        raw: the bytes as the upstream sent them, calls that were refused among them; "" when they were too many.
        refused: the calls that were refused, in order.
        released: how many calls the agent is going to run.
        stop_reason: the API's word for why the model stopped, or None.
        hindrance: why the model's history cannot go on from here as far as was noticed while it passed, "" for nothing.
        ends: looks through `raw` for ends of it that were not noticed; False where there are any.
        parts: `raw` once more, with the texts that were read while they passed in the place of their bytes; none where
            nothing was.
    """

    raw: bytes
    refused: tuple[RefusedCall, ...]
    released: int
    stop_reason: str | None
    hindrance: str
    ends: Callable[[bytes], bool] | None = None
    parts: tuple[bytes | str, ...] = ()

    @property
    def is_natural(self) -> bool:
        """Whether the model stopped by itself, behind its last refused call where there is one, so that its history
        can go on from here. Takes time; most never ask.
        """
        return not self.why_not

    @property
    def why_not(self) -> str:
        """What keeps the model's history from going on from here, "" for nothing. Takes time; most never ask."""
        if self.hindrance or self.ends is None or self.ends(self.raw):
            return self.hindrance
        return "it was finished more than once"


@dataclass(frozen=True, slots=True)
class Onward:
    """Another reply of the model follows within the client's one.

    `note` is told to the client ahead of it, under the id `note_id` where the API has one for it.
    """

    note: str = ""
    note_id: str = ""


Step: TypeAlias = bytes | ProposedCall | Dropped | RoundOver
Answer: TypeAlias = Verdict | Onward | None
Steps: TypeAlias = Generator[Step, Answer, None]
"""Bytes leave at once; a ProposedCall is answered with its verdict; a Dropped is for the journal.

A RoundOver is answered with Onward, and then the next bytes are those of another reply, or with None: the end leaves.
"""


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

    `front` stands before the output or what replaces it, `addition` below. `keeps_rest` says that the replacement
    stands for the texts alone: pictures and the like stay; an output that is withheld goes as a whole.
    """

    addition: str = ""
    replacement: str | None = None
    tool_choice: ToolChoice | None = None
    front: str = ""
    keeps_rest: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether the result stays as it is."""
        return not self.addition and not self.front and self.replacement is None

    def applied(self, output: str) -> str:
        """The output as the model is to see it."""
        return framed(self.front, output if self.replacement is None else self.replacement, self.addition)


@dataclass(frozen=True, slots=True)
class TurnEdit:
    """What is written into one prompt, in every request that carries it; `refusal` stops the turn instead.

    `replacement` stands in the place of the prompt, `reminder` before either. In later requests it stands in the place
    of a refused prompt too, with all that the person sent with it.
    """

    reminder: str = ""
    refusal: str | None = None
    tool_choice: ToolChoice | None = None
    replacement: str | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the prompt stays as it is."""
        return not self.reminder and self.replacement is None


@dataclass(frozen=True, slots=True)
class Mark:
    """What the model's history has where the client's has a line of ours.

    Attributes:
        entry: the call that was refused, in the form of the API's history; None for a nudge.
        answer: the call's result as the model is told it, or the nudge.
        ends_round: whether the model's reply ended here, and another one follows in the same reply of the client's.
    """

    entry: Json
    answer: str
    ends_round: bool


@dataclass(frozen=True, slots=True)
class Resumed:
    """How a conversation goes on that the provider keeps under a response's id.

    `response_id` is the provider's last one within the client's reply, "" when it has none; `owed` are refused calls
    that it still waits for the results of, and as marks without an answer items that it was never sent.
    """

    response_id: str
    owed: tuple[Mark, ...] = ()


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

    def result_edit(self, call_id: str, digest: str, nth: int = 0) -> ResultEdit | None:
        """The edit of this very result, or None; of equal ones in a history it is the `nth`, counted from 0."""
        ...

    def turn_edit(self, position: int, digest: str) -> TurnEdit | None:
        """The edit of this very prompt, or None."""
        ...

    @property
    def restores(self) -> bool:
        """Whether anything of the model's history may differ from what the client has of it."""
        ...

    def lines(self, root: str) -> Collection[str]:
        """Our lines that stand for something in the conversation `root`, longest first."""
        ...

    def mark(self, root: str, line: str, nth: int) -> Mark | None:
        """What the `nth` such line in the conversation stands for (counted from 0), or None."""
        ...

    def original(self, call_id: str, arguments: JsonObject) -> JsonObject | None:
        """The arguments that the model gave a call which the agent was given with these, or None."""
        ...

    @property
    def changed_calls(self) -> Collection[str]:
        """The ids of calls whose arguments were changed for the agent."""
        ...

    def resumed(self, response_id: str) -> Resumed | None:
        """What a response's id, as the client knows it, leads to at the provider; None when it is just that."""
        ...


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A request ready for the upstream: the client's own bytes when nothing was edited."""

    body: bytes
    choice_applied: bool = False


class RequestView(Protocol):
    """A request body that has been read."""

    @property
    def body(self) -> bytes:
        """The bytes that were read."""
        ...

    @property
    def model(self) -> str | None:
        """The model's name as the agent gave it."""
        ...

    @property
    def is_streamed(self) -> bool:
        """Whether the body asks for a stream; Gemini asks by its path."""
        ...

    @property
    def session(self) -> str | None:
        """The session that the client's own metadata name, or None."""
        ...

    @property
    def hint(self) -> str:
        """What the client says that its conversations have in common, "" for nothing."""
        ...

    @property
    def follows(self) -> tuple[str, ...]:
        """The ids of replies, and of their items, that the request goes on from without telling what they are."""
        ...

    @property
    def is_stored(self) -> bool:
        """Whether the provider keeps the history, so that a later request need not tell what the model said."""
        ...

    @property
    def root(self) -> str:
        """The same for all requests of one conversation, however long; several may share a session."""
        ...

    @property
    def length(self) -> int:
        """How many messages or items the history has."""
        ...

    def occurrences(self, line: str) -> int:
        """How often the model's part of the history, as the client tells it, has this line."""
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

    def nth(self, result: NewResult) -> int:
        """How many results before this one of `results` have its call's id and its output; reads all of the history."""
        ...

    @property
    def tools(self) -> Sequence[Json]:
        """The tools that the model is offered, as the API writes them; none where they cannot be read."""
        ...

    def tool_names(self) -> tuple[str, ...]:
        """The tools that the model is offered, as the agent calls them; those that cannot be read are left out."""
        ...

    def rewritten(self, edits: Edits, tool_choice: ToolChoice | None) -> Rewritten:
        """The body with all edits of the session; the same edits give the same bytes."""
        ...

    def unsent(self, edits: Edits, reply: JsonObject) -> Mapping[str, Resumed]:
        """What ids lead to from now on, since we gave this `reply` and the provider knows nothing of the request."""
        ...


class ReplyStream(Protocol):
    """One reply for the client, made of one or more replies of the model. Not for several threads."""

    def feed(self, data: bytes) -> bytes | Steps:
        """What `data` makes possible: bytes where nothing is to be asked, as with most of a stream, else its steps.

        Raises EventTooLong when an event does not end, and as a step Unreadable when one that matters can be read in
        two ways; what stood before it has been yielded.

        After a RoundOver that was answered with Onward the rest of `data` is the former reply's, and nobody's.
        """
        ...

    def finish(self, fault: str | None = None) -> Steps:
        """The end of the model's bytes; `fault` is what the upstream died of. Held calls are dropped, the client is
        told. Raises Unreadable for a whole reply that cannot be read.
        """
        ...

    @property
    def is_ended(self) -> bool:
        """Once it is finished: whether the model's last reply told its end, which a stream may break off before."""
        ...


class GoneOn(Protocol):
    """How a history goes on within one reply of the client's. Keeps no state."""

    def __call__(
        self, sent: bytes, reply: JsonObject, answers: Sequence[tuple[RefusedCall, str]], nudge: str | None
    ) -> bytes | None:
        """The next request: the body that was `sent`, the model's `reply`, and then the result of each refused call,
        or a message of the person's with the nudge.

        None when no history can be made of them that the API takes. The same in each later request, see `Edits.mark`.
        """
        ...


class Spoken(Protocol):
    """What a streamed reply tells the person. Quick, since every final answer is asked for."""

    def __call__(self, raw: bytes, parts: Sequence[bytes | str] = ()) -> str:
        """The text of the events; `parts` as a RoundOver has them."""
        ...


@dataclass(frozen=True, slots=True)
class Codec:
    """One API. Keeps no state: any thread may use it.

    Attributes:
        api: which API this is.
        read: the request. Raises Unreadable when it is not JSON or not of this API.
        whole: a reader for one reply that is not streamed: the client's body leaves when it has finished.
        stream: a reader for one streamed reply.
        collected: the whole reply that a stream's bytes add up to; None when that cannot be told for sure.
        shown: the same for a handler, who need not have it exactly: what nobody knows to join is there as it came last.
        spoken: what a streamed reply tells the person.
        as_stream: a whole reply as the API streams it.
        said: a whole reply in which the model, of this name, says a text and is done.
        final_text: what a whole reply tells the person.
        onward: the next request within one reply of the client's.
        closes: whether an event of a stream tells that it is over, and must reach the client.
        streams_arrays: whether a streamed reply may also come as one JSON array.
    """

    api: ApiName
    read: Callable[[bytes], RequestView]
    whole: Callable[[], ReplyStream]
    stream: Callable[[], ReplyStream]
    collected: Callable[[bytes], JsonObject | None]
    shown: Callable[[bytes], JsonObject | None]
    spoken: Spoken
    as_stream: Callable[[JsonObject], bytes]
    said: Callable[[str, str | None], JsonObject]
    final_text: Callable[[JsonObject], str]
    onward: GoneOn
    closes: Callable[[JsonObject], bool]
    streams_arrays: bool = False


def answered(answer: Answer) -> Verdict:
    """The verdict that a generator was sent. Raises MisuseError when it was driven without one."""
    if not isinstance(answer, Verdict):
        raise MisuseError("a proposed call must be answered with a verdict: use generator.send(verdict)")
    return answer


def hindrance(reason: Json, *, is_natural: bool, is_last: bool, is_lost: bool = False, is_several: bool = False) -> str:
    """Why a history cannot go on behind a reply, "" for nothing.

    `is_natural` says whether `reason` is one for which models stop by themselves, `is_last` whether nothing stands
    behind the last refused call, `is_lost` whether another call was left out, `is_several` whether there are several
    replies.
    """
    if not is_natural:
        return f"it did not stop by itself ({reason or 'no reason given'})"
    if is_several:
        return "it gave several replies at once"
    if is_lost:
        return "a call of it was left out"
    return "" if is_last else "it said more behind the call"


def steps_of(fed: bytes | Steps) -> Steps:
    """What `ReplyStream.feed` gave, as steps."""
    if not isinstance(fed, bytes):
        yield from fed
    elif fed:
        yield fed
