"""A judged reply on its way to the client: held where a verdict is wanted, let go everywhere else.

Knows: streamed, whole and unlabelled replies, signs of life. Does not know: any API's shape, the HTTP libraries.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeVar

from interpose.contracts.verdict import Verdict
from interpose.gateway.api import (
    Answer,
    Codec,
    Dropped,
    ProposedCall,
    ReplyStream,
    RoundOver,
    Steps,
    Unreadable,
    steps_of,
)
from interpose.gateway.asgi import HeaderList
from interpose.gateway.faults import keep_alive
from interpose.gateway.judging import Judging
from interpose.gateway.rounds import Rounds
from interpose.gateway.settings import Target
from interpose.gateway.shaping import Shaping
from interpose.gateway.upstream import UpstreamDown, UpstreamReply
from interpose.gateway.visit import Teller
from interpose.wire.sse import EventTooLong

T = TypeVar("T")
Write: TypeAlias = Callable[[bytes], Awaitable[None]]

_BOM = b"\xef\xbb\xbf"
_BLANK_BYTES_MAX = 64 * 1024
"""So many blanks are nothing."""

_UNENDED = "the upstream's stream ended without the event that tells its end"
_SSE_STARTS = (b"event:", b"data:", b"id:", b"retry:", b":")


@dataclass(slots=True)
class Replying:
    """One reply for the client, made of one or more of the model's; `run` it once."""

    teller: Teller
    codec: Codec
    judging: Judging
    target: Target
    reply: UpstreamReply
    rounds: Rounds
    shaping: Shaping
    _written: float = 0.0
    _is_streaming: bool = False
    _is_cut: bool = False
    _has_dropped: bool = False
    _untold: list[tuple[ProposedCall, Verdict]] = field(default_factory=list)

    async def run(self) -> None:
        """Sends the reply on. What is neither JSON nor events is not let through."""
        kind = self.rounds.content_type = self.reply.content_type
        if kind == "text/event-stream":
            await self._streamed(self.reply.chunks())
            return
        if kind.endswith("json") and not self.codec.streams_arrays:
            await self._whole(self.reply.chunks())
            return
        await self._sniffed()

    async def _sniffed(self) -> None:
        """A reply whose type does not say what it is: judged as what it looks like, and else not let through."""
        chunks = self.reply.chunks()
        first = await _beginning(chunks)
        if isinstance(first, UpstreamDown):
            await self.teller.upstream_down(self.target, first)
            return
        kind = self.reply.content_type or "something without a type"
        start = first.removeprefix(_BOM).lstrip()
        if not start and not kind.endswith("json"):
            await self._send_whole(first)
            return
        if start.startswith(_SSE_STARTS) or (self.codec.streams_arrays and start.startswith(b"[")):
            await self._streamed(_put_back(first, chunks))
            return
        if start.startswith(b"{"):
            await self._whole(_put_back(first, chunks))
            return
        who = f"the upstream {self.target.name} at {self.target.address}"
        await self.teller.fail(502, f"{who} answered {_odd(kind, start)}; is its URL right?")

    async def _streamed(self, chunks: AsyncIterator[bytes | UpstreamDown]) -> None:
        await self.teller.outgoing.start(self.reply.status, _without_length(self.reply.headers), self.reply.phrase)
        self._is_streaming = self.rounds.is_streamed = True
        self._written = self._now()
        stream = self.codec.stream()
        fault = await self._one_stream(stream, chunks, self.reply.status)
        while fault is None and (following := self._following()) is not None:
            fault = await self._one_stream(stream, following.chunks(), following.status)
        if fault is not None:
            self.teller.record("failed", outcome="failed" if self._is_cut else "upstream_died", reason=fault)
            await self._drive(stream.finish(f"interpose: {fault}"), self._write)
        elif not stream.is_ended and not self._has_dropped:  # which says so already
            self.teller.record("failed", outcome="cut_short", reason=_UNENDED)
        await self.teller.outgoing.end()

    async def _one_stream(
        self, stream: ReplyStream, chunks: AsyncIterator[bytes | UpstreamDown], status: int
    ) -> str | None:
        """One reply of the model, to its end; what it broke off for."""
        chunks = self.shaping.streamed(chunks, status)
        if self.shaping.holds:
            chunks = self._lively(chunks)
        try:
            async for chunk in chunks:
                if isinstance(chunk, UpstreamDown):
                    self._is_cut = chunk.is_cut
                    return (
                        f"this reply was {chunk.reason}" if chunk.is_cut else f"the upstream broke off: {chunk.reason}"
                    )
                steps = stream.feed(chunk)
                if isinstance(steps, bytes):
                    await (self._write(steps) if steps else self._show_life())
                    continue
                await self._drive(steps, self._write)
                if self.rounds.reply is not None:
                    return None
                await self._show_life()
            await self._drive(stream.finish(), self._write)
        except (EventTooLong, Unreadable) as error:
            return f"the upstream's stream cannot be read: {error}"
        return None

    async def _lively(self, chunks: AsyncIterator[bytes | UpstreamDown]) -> AsyncIterator[bytes | UpstreamDown]:
        """The chunks of a reply that is held for long; the client is shown life meanwhile."""
        while (chunk := await self._alive(_next(chunks))) is not None:
            yield chunk

    async def _whole(self, chunks: AsyncIterator[bytes | UpstreamDown]) -> None:
        reader = self.codec.whole()
        written: list[bytes] = []

        async def keep(data: bytes) -> None:
            written.append(data)

        following: UpstreamReply | None = self.reply
        while following is not None:
            body = await self._collected(self.shaping.whole(chunks, following.status))
            if body is None:
                return
            try:
                await self._drive(steps_of(reader.feed(body)), keep)
                await self._drive(reader.finish(), keep)
            except Unreadable as error:
                await self.teller.fail(502, f"the upstream's reply cannot be read: {error}")
                return
            following = self._following()
            if following is not None:
                chunks = following.chunks()
        await self._send_whole(b"".join(written))
        self._tell()

    async def _send_whole(self, body: bytes) -> None:
        headers = _without_length(self.reply.headers)
        await self.teller.outgoing.whole(self.reply.status, headers, body, self.reply.phrase)

    def _following(self) -> UpstreamReply | None:
        """The model's next reply within the client's one, or None."""
        following, self.rounds.reply = self.rounds.reply, None
        if following is not None:
            # A call of this reply is another one, also where the provider counts its ids anew.
            self.judging = replace(self.judging, place=f"{self.judging.place}+")
        return following

    async def _drive(self, steps: Steps, write: Write) -> None:
        """Writes what may leave, asks what must be asked, until the steps end."""
        answer: Answer = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration:
                return
            answer = None
            match step:
                case bytes():
                    await write(step)
                case ProposedCall():
                    answer = await self._verdict(step)
                case RoundOver():
                    answer = await self._alive(self.rounds.over(step))
                case Dropped():
                    self._has_dropped = True
                    self.judging.dropped(step)

    async def _write(self, data: bytes) -> None:
        await self.teller.outgoing.write(data)
        self._written = self._now()
        if self._untold:
            self._tell()

    async def _verdict(self, call: ProposedCall) -> Verdict:
        verdict = await self._alive(self.judging.call(call))
        handler = verdict.refusal.handler if verdict.refusal else ""
        self.teller.visit.span.judged(call.name, call.call_id, verdict.outcome, handler)
        self._untold.append((call, verdict))
        return verdict

    async def _alive(self, work: Awaitable[T]) -> T:
        """What `work` comes to; the client is shown life while it waits."""
        life = _Life()
        self._show_later(life)  # cheaper than a task for the work, which mostly does not wait
        try:
            return await work
        finally:
            if life.timer is not None:
                life.timer.cancel()
            if life.showing is not None:
                await life.showing

    def _show_later(self, life: "_Life") -> None:
        """No function that knows itself: what it holds would stay in memory."""
        interval_s = self.teller.parts.settings.keep_alive_s
        life.timer = asyncio.get_running_loop().call_later(interval_s, self._show, life)

    def _show(self, life: "_Life") -> None:
        life.showing = asyncio.get_running_loop().create_task(self._show_life())
        self._show_later(life)

    async def _show_life(self) -> None:
        """A sign of life, where nothing was written for long and the client bears it. All that was written is whole."""
        if not self._is_streaming or self._now() - self._written < self.teller.parts.settings.keep_alive_s:
            return
        sign = keep_alive(self.codec.api)
        if sign is not None:
            await self.teller.outgoing.write(sign)
            self._written = self._now()

    def _tell(self) -> None:
        for call, verdict in self._untold:
            self.judging.told(call, verdict)
        self._untold.clear()

    async def _collected(self, chunks: AsyncIterator[bytes | UpstreamDown]) -> bytes | None:
        """The whole reply; None when the client has been told why there is none."""
        limit = self.teller.parts.settings.reply_bytes
        pieces: list[bytes] = []
        size = 0
        async for chunk in chunks:
            if isinstance(chunk, UpstreamDown):
                await self.teller.upstream_down(self.target, chunk)
                return None
            pieces.append(chunk)
            size += len(chunk)
            if size > limit:
                message = f"the upstream's reply is larger than the {limit} bytes that interpose judges"
                await self.teller.fail(502, message)
                return None
        return b"".join(pieces)

    def _now(self) -> float:
        return self.teller.parts.clock.monotonic()


@dataclass(slots=True)
class _Life:
    """The signs of life while one thing is waited for: the next one, and the last one."""

    timer: asyncio.TimerHandle | None = None
    showing: asyncio.Task[None] | None = None


async def _next(chunks: AsyncIterator[bytes | UpstreamDown]) -> bytes | UpstreamDown | None:
    return await anext(chunks, None)


def _without_length(headers: HeaderList) -> HeaderList:
    return [(name, value) for name, value in headers if name != b"content-length"]


def _odd(kind: str, start: bytes) -> str:
    """What came where the API answers JSON or events."""
    if not start:
        return "nothing where the API answers JSON or events"
    if kind.endswith("json"):
        return f"with the type {kind} what is no JSON"
    return f"{kind} where the API answers JSON or events"


async def _beginning(chunks: AsyncIterator[bytes | UpstreamDown]) -> bytes | UpstreamDown:
    """What came up to the first byte that is not blank; all of it when there is none."""
    first = b""
    async for chunk in chunks:
        if isinstance(chunk, UpstreamDown):
            return chunk
        first += chunk
        if first.removeprefix(_BOM).lstrip() or len(first) > _BLANK_BYTES_MAX:
            break
    return first


async def _put_back(first: bytes, rest: AsyncIterator[bytes | UpstreamDown]) -> AsyncIterator[bytes | UpstreamDown]:
    yield first
    async for chunk in rest:
        yield chunk
