"""A codec driven without a socket: for tests, benchmarks and recorded traffic.

Knows: the protocol of `Steps`. Does not know: where bytes come from.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from interpose.contracts.verdict import Verdict
from interpose.gateway.api import Answer, Codec, Dropped, Onward, ProposedCall, RoundOver, Steps, steps_of


@dataclass(slots=True)
class Driven:
    """What came out, in the order it left, what was asked and dropped, and each reply of the model that was over.

    `onward` tells which of them is followed by another one; none is where it is left out.
    """

    writes: list[bytes] = field(default_factory=list)
    asked: list[ProposedCall] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    over: list[RoundOver] = field(default_factory=list)
    onward: Callable[[RoundOver], Onward | None] | None = None

    @property
    def body(self) -> bytes:
        """All writes joined."""
        return b"".join(self.writes)

    def drive(self, steps: bytes | Steps, judge: Callable[[ProposedCall], Verdict]) -> None:
        """Runs `steps` to their end, asking `judge`."""
        answer: Answer = None
        asked = steps_of(steps)
        while True:
            try:
                step = asked.send(answer)
            except StopIteration:
                return
            answer = None
            match step:
                case bytes():
                    self.writes.append(step)
                case ProposedCall():
                    self.asked.append(step)
                    answer = judge(step)
                case RoundOver():
                    self.over.append(step)
                    answer = self.onward(step) if self.onward is not None else None
                case Dropped():
                    self.dropped.append(step)


def drive_stream(
    codec: Codec, chunks: Iterable[bytes], judge: Callable[[ProposedCall], Verdict], fault: str | None = None
) -> Driven:
    """A whole streamed reply, cut as `chunks` says; `fault` is what its upstream died of."""
    driven = Driven()
    stream = codec.stream()
    for chunk in chunks:
        driven.drive(stream.feed(chunk), judge)
    driven.drive(stream.finish(fault), judge)
    return driven


def drive_reply(codec: Codec, body: bytes, judge: Callable[[ProposedCall], Verdict]) -> Driven:
    """A whole reply. Raises Unreadable when it is not JSON."""
    driven = Driven()
    reader = codec.whole()
    driven.drive(reader.feed(body), judge)
    driven.drive(reader.finish(), judge)
    return driven
