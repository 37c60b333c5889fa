"""A judged reply on its way to the client: held where a verdict is wanted, let go everywhere else.

Knows: streamed, whole and unlabelled replies, signs of life. Does not know: any API's shape, the HTTP libraries.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from interpose.contracts.verdict import Verdict
from interpose.gateway.api import Codec, Dropped, ProposedCall, Steps, Unreadable
from interpose.gateway.asgi import HeaderList
from interpose.gateway.faults import keep_alive
from interpose.gateway.judging import Judging
from interpose.gateway.settings import Target
from interpose.gateway.upstream import UpstreamDown, UpstreamReply
from interpose.gateway.visit import Teller
from interpose.wire.sse import EventTooLong

_SSE_STARTS = (b"event:", b"data:", b"id:", b"retry:", b":")


@dataclass(slots=True)
class Replying:
    """One reply that is judged; `run` it once."""

    teller: Teller
    codec: Codec
    judging: Judging
    target: Target
    reply: UpstreamReply
    _written: float = 0.0
    _untold: list[tuple[ProposedCall, Verdict]] = field(default_factory=list)

    async def run(self) -> None:
        """Sends the reply on. What is neither JSON nor events is not let through."""
        kind = self.reply.content_type
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
        first = await anext(chunks, b"")
        if isinstance(first, UpstreamDown):
            await self.teller.upstream_down(self.target, first)
            return
        start = first.removeprefix(b"\xef\xbb\xbf").lstrip()
        if not start:
            await self.teller.outgoing.whole(self.reply.status, _without_length(self.reply.headers), b"")
            return
        if start.startswith(_SSE_STARTS) or (self.codec.streams_arrays and start.startswith(b"[")):
            await self._streamed(_put_back(first, chunks))
            return
        if start.startswith(b"{"):
            await self._whole(_put_back(first, chunks))
            return
        kind = self.reply.content_type or "something without a type"
        await self.teller.fail(
            502, f"the upstream answered {kind} where the API answers JSON or events; is its URL right?"
        )

    async def _streamed(self, chunks: AsyncIterator[bytes | UpstreamDown]) -> None:
        await self.teller.outgoing.start(self.reply.status, _without_length(self.reply.headers))
        stream = self.codec.stream()
        self._written = self._now()
        fault: str | None = None
        try:
            async for chunk in chunks:
                if isinstance(chunk, UpstreamDown):
                    fault = f"the upstream broke off: {chunk.reason}"
                    break
                await self._drive(stream.feed(chunk))
                await self._show_life()
            if fault is None:
                await self._drive(stream.finish())
        except (EventTooLong, Unreadable) as error:
            fault = f"the upstream's stream cannot be read: {error}"
        if fault is not None:
            self.teller.record("failed", outcome="upstream_died", reason=fault)
            await self._drive(stream.finish(f"interpose: {fault}"))
        await self.teller.outgoing.end()

    async def _drive(self, steps: Steps) -> None:
        """Writes what may leave, asks what must be asked, until the steps end."""
        answer: Verdict | None = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration:
                return
            answer = None
            match step:
                case bytes():
                    await self.teller.outgoing.write(step)
                    self._written = self._now()
                    if self._untold:
                        self._tell()
                case ProposedCall():
                    answer = await self._verdict(step)
                    self._note(step, answer)
                case Dropped():
                    self.judging.dropped(step)

    async def _verdict(self, call: ProposedCall) -> Verdict:
        """The verdict on `call`; the client is shown life while it waits."""
        interval_s = self.teller.parts.settings.keep_alive_s
        work = asyncio.ensure_future(self.judging.call(call))
        try:
            while not (await asyncio.wait((work,), timeout=interval_s))[0]:
                await self._show_life()
            return work.result()
        finally:
            work.cancel()

    async def _show_life(self) -> None:
        """A sign of life, where nothing was written for long and the client bears it. All that was written is whole."""
        if self._now() - self._written < self.teller.parts.settings.keep_alive_s:
            return
        sign = keep_alive(self.codec.api)
        if sign is not None:
            await self.teller.outgoing.write(sign)
            self._written = self._now()

    def _note(self, call: ProposedCall, verdict: Verdict) -> None:
        handler = verdict.refusal.handler if verdict.refusal else ""
        self.teller.visit.span.judged(call.name, call.call_id, verdict.outcome, handler)
        self._untold.append((call, verdict))

    def _tell(self) -> None:
        for call, verdict in self._untold:
            self.judging.told(call, verdict)
        self._untold.clear()

    async def _whole(self, chunks: AsyncIterator[bytes | UpstreamDown]) -> None:
        body = await self._collected(chunks)
        if body is None:
            return
        steps = self.codec.reply(body)
        judged = body
        answer: Verdict | None = None
        try:
            while True:
                step = steps.send(answer)
                answer = None
                if isinstance(step, ProposedCall):
                    answer = await self.judging.call(step)
                    self._note(step, answer)
                elif isinstance(step, bytes):
                    judged = step
        except StopIteration:
            pass
        except Unreadable as error:
            await self.teller.fail(502, f"the upstream's reply cannot be read: {error}")
            return
        await self.teller.outgoing.whole(self.reply.status, _without_length(self.reply.headers), judged)
        self._tell()

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


def _without_length(headers: HeaderList) -> HeaderList:
    return [(name, value) for name, value in headers if name != b"content-length"]


async def _put_back(first: bytes, rest: AsyncIterator[bytes | UpstreamDown]) -> AsyncIterator[bytes | UpstreamDown]:
    yield first
    async for chunk in rest:
        yield chunk
