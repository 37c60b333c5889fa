"""One request's story: read, judge, forward, judge the reply, send it on.

Knows: the order of the steps and what each fault is told as. Does not know: any API's shape, the HTTP libraries.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from interpose.contracts.journal import Record, Step
from interpose.contracts.ports import Clock, Journal, Launch, Workspaces
from interpose.contracts.stages import Context
from interpose.contracts.verdict import ToolChoice, Verdict
from interpose.gateway.api import Codec, Dropped, ProposedCall, RequestView, Steps, Unreadable
from interpose.gateway.asgi import HeaderList, Incoming, Outgoing, unless_gone
from interpose.gateway.encodings import UndecodableError, decoded
from interpose.gateway.faults import error_body
from interpose.gateway.judging import Judging
from interpose.gateway.ledger import Ledger
from interpose.gateway.routes import Headers, Route
from interpose.gateway.settings import GatewaySettings
from interpose.gateway.upstream import Question, Upstream, UpstreamDown, UpstreamReply, joined_url, passed_on
from interpose.kernel.boundary import fault_line
from interpose.kernel.ids import derived_id
from interpose.wire.sse import EventTooLong

CLIENT_GONE = 499
"""The status in the journal of a request whose client hung up before it got one."""

_JSON = (b"content-type", b"application/json")
_SSE_STARTS = (b"event:", b"data:", b"id:", b"retry:", b":")


@dataclass(frozen=True, slots=True)
class Parts:
    """What all exchanges of one gateway share."""

    settings: GatewaySettings
    workspaces: Workspaces
    journal: Journal
    clock: Clock
    upstream: Upstream
    ledger: Ledger
    codecs: Mapping[str, Codec]


@dataclass(frozen=True, slots=True)
class Visit:
    """One request, as far as its head tells. `raw_path` is without the launch prefix; `action` is its journal id."""

    action: str
    route: Route
    method: str
    raw_path: bytes
    query: bytes
    headers: Headers
    session: str
    launch: Launch | None
    agent: str | None

    @property
    def workspace(self) -> str | None:
        """The root whose hooks judge; None for the user's only."""
        return self.launch.workspace if self.launch else None


@dataclass(slots=True)
class Exchange:
    """The story of one visit; `run` it once."""

    parts: Parts
    visit: Visit
    incoming: Incoming
    outgoing: Outgoing
    _untold: list[tuple[ProposedCall, Verdict]] = field(default_factory=list)

    async def run(self) -> None:
        """Answers the visit and journals it; never raises for what client, policy or upstream do."""
        started = self.parts.clock.monotonic()
        story = self._judged if self.visit.route.kind == "judged" else self._passed
        outcome = "cancelled"
        try:
            outcome = "" if await unless_gone(self.incoming, story()) else "client_gone"
        except Exception as error:  # noqa: BLE001 - one request's boundary: it fails closed, the gateway stays up
            outcome = "failed"
            await self._broken(error)
        finally:
            elapsed_ms = (self.parts.clock.monotonic() - started) * 1000
            status = self.outgoing.status or CLIENT_GONE
            self._record("request", outcome=outcome, duration_ms=elapsed_ms, status=status, ms=round(elapsed_ms, 1))

    async def _passed(self) -> None:
        """Traffic that nobody judges: bytes as they come, both ways."""
        if self.visit.route.kind == "not_judged_yet":
            self._record("not_judged_yet", outcome="not judged yet")
        has_body = any(name in (b"content-length", b"transfer-encoding") for name, _ in self.visit.headers.raw)
        if not has_body:
            await self.incoming.whole(0)
        body = self.incoming.chunks() if has_body else None
        question = self._question(body, passed_on(self.visit.headers.raw))
        async with self.parts.upstream.ask(question) as reply:
            if isinstance(reply, UpstreamDown):
                await self._upstream_down(reply)
                return
            await self._send_as_is(reply)

    async def _judged(self) -> None:
        body = await self._body()
        if body is None:
            return
        try:
            request = self._codec.read(body)
        except Unreadable as error:
            await self._fail(400, f"interpose cannot read this request: {error}")
            return

        judging = await self._judging(request)
        turn, wanted = await judging.news(request)
        if turn.refusal is not None:
            await self._fail(400, turn.refusal, outcome="refused")
            return
        question = self._question(self._rewritten(request, judging, wanted), self._judged_headers())
        async with self.parts.upstream.ask(question) as reply:
            if isinstance(reply, UpstreamDown):
                await self._upstream_down(reply)
                return
            await self._judged_reply(reply, judging)

    @property
    def _codec(self) -> Codec:
        return self.parts.codecs[self.visit.route.api]

    async def _body(self) -> bytes | None:
        """The request's body, decompressed; None when the client has been told why not."""
        limit = self.parts.settings.body_bytes
        declared = self.visit.headers.get(b"content-length") or ""
        too_large = declared.isdigit() and int(declared) > limit
        body = None if too_large else await self.incoming.whole(limit)
        if body is None:
            await self._fail(413, f"interpose judges request bodies of at most {limit} bytes; this one is larger")
            return None
        try:
            return decoded(body, self.visit.headers.get(b"content-encoding"), limit)
        except UndecodableError as error:
            await self._fail(error.status, f"interpose cannot read this request: {error}")
            return None

    async def _judging(self, request: RequestView) -> Judging:
        visit = self.visit
        # Building a workspace's policy reads files, which a loop must not wait for.
        policy = await asyncio.to_thread(self.parts.workspaces.policy, visit.workspace)
        launch = visit.launch
        context = Context(
            mount="wire",
            session=visit.session,
            workspace=launch.workspace if launch else "",
            cwd=launch.cwd if launch else "",
            agent=visit.agent,
            launch=launch.id if launch else None,
            turn=derived_id("t", visit.session, request.turn_key) if request.turn_key else None,
            model=request.model,
        )
        ledger = self.parts.ledger.session(context.launch, visit.session)
        return Judging(policy, context, ledger, self.parts.journal, self.parts.clock)

    def _rewritten(self, request: RequestView, judging: Judging, wanted: ToolChoice | None) -> bytes:
        rewritten = request.rewritten(judging.ledger, wanted)
        if wanted is not None and not rewritten.choice_applied:
            reason = f"the request cannot be told to use tools so: {wanted.mode} {wanted.tool_name or ''}".rstrip()
            self._record("skipped", outcome="not_applicable", reason=reason)
        return rewritten.body

    def _judged_headers(self) -> HeaderList:
        drop = (b"content-length", b"content-encoding", b"accept-encoding")
        return [*passed_on(self.visit.headers.raw, drop=drop), (b"accept-encoding", b"identity")]

    def _question(self, body: bytes | AsyncIterator[bytes] | None, headers: HeaderList) -> Question:
        visit = self.visit
        return Question(
            method=visit.method,
            url=joined_url(self._base_url(), visit.raw_path, visit.query),
            headers=headers,
            body=body,
            is_judged=visit.route.kind == "judged",
        )

    def _base_url(self) -> str:
        if self.visit.launch is not None and self.visit.launch.upstream:
            return self.visit.launch.upstream
        upstreams = self.parts.settings.upstreams
        match self.visit.route.api:
            case "anthropic":
                return upstreams.anthropic
            case "chat" | "responses":
                return upstreams.openai
            case "gemini":
                return upstreams.gemini

    async def _judged_reply(self, reply: UpstreamReply, judging: Judging) -> None:
        if not 200 <= reply.status < 300:
            await self._send_as_is(reply)
            return
        if reply.content_type == "text/event-stream":
            await self._streamed(reply, reply.chunks(), judging)
            return
        if reply.content_type.endswith("json"):
            await self._whole(reply, reply.chunks(), judging)
            return
        await self._sniffed(reply, judging)

    async def _sniffed(self, reply: UpstreamReply, judging: Judging) -> None:
        """A reply that does not say what it is: judged as what it looks like, and else not let through."""
        chunks = reply.chunks()
        first = await anext(chunks, b"")
        if isinstance(first, UpstreamDown):
            await self._upstream_down(first)
            return
        start = first.removeprefix(b"\xef\xbb\xbf").lstrip()
        if not start:
            await self.outgoing.whole(reply.status, _without_length(reply.headers), b"")
            return
        if start.startswith(_SSE_STARTS):
            await self._streamed(reply, _put_back(first, chunks), judging)
            return
        if start.startswith(b"{"):
            await self._whole(reply, _put_back(first, chunks), judging)
            return
        kind = reply.content_type or "something without a type"
        await self._fail(502, f"the upstream answered {kind} where the API answers JSON or events; is its URL right?")

    async def _streamed(
        self, reply: UpstreamReply, chunks: AsyncIterator[bytes | UpstreamDown], judging: Judging
    ) -> None:
        await self.outgoing.start(reply.status, _without_length(reply.headers))
        stream = self._codec.stream()
        fault: str | None = None
        try:
            async for chunk in chunks:
                if isinstance(chunk, UpstreamDown):
                    fault = f"the upstream broke off: {chunk.reason}"
                    break
                await self._drive(stream.feed(chunk), judging)
        except EventTooLong as error:
            fault = f"the upstream's stream cannot be read: {error}"
        if fault is not None:
            self._record("failed", outcome="upstream_died", reason=fault)
        await self._drive(stream.finish(f"interpose: {fault}" if fault else None), judging)
        await self.outgoing.end()

    async def _drive(self, steps: Steps, judging: Judging) -> None:
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
                    await self.outgoing.write(step)
                    self._tell(judging)
                case ProposedCall():
                    answer = await judging.call(step)
                    self._untold.append((step, answer))
                case Dropped():
                    judging.dropped(step)

    def _tell(self, judging: Judging) -> None:
        for call, verdict in self._untold:
            judging.told(call, verdict)
        self._untold.clear()

    async def _whole(self, reply: UpstreamReply, chunks: AsyncIterator[bytes | UpstreamDown], judging: Judging) -> None:
        body = await self._collected(chunks)
        if body is None:
            return
        steps = self._codec.reply(body)
        judged = body
        answer: Verdict | None = None
        try:
            while True:
                step = steps.send(answer)
                answer = None
                if isinstance(step, ProposedCall):
                    answer = await judging.call(step)
                    self._untold.append((step, answer))
                elif isinstance(step, bytes):
                    judged = step
        except StopIteration:
            pass
        except Unreadable as error:
            await self._fail(502, f"the upstream's reply cannot be read: {error}")
            return
        await self.outgoing.whole(reply.status, _without_length(reply.headers), judged)
        self._tell(judging)

    async def _collected(self, chunks: AsyncIterator[bytes | UpstreamDown]) -> bytes | None:
        """The whole reply; None when the client has been told why there is none."""
        limit = self.parts.settings.reply_bytes
        pieces: list[bytes] = []
        size = 0
        async for chunk in chunks:
            if isinstance(chunk, UpstreamDown):
                await self._upstream_down(chunk)
                return None
            pieces.append(chunk)
            size += len(chunk)
            if size > limit:
                await self._fail(502, f"the upstream's reply is larger than the {limit} bytes that interpose judges")
                return None
        return b"".join(pieces)

    async def _send_as_is(self, reply: UpstreamReply) -> None:
        await self.outgoing.start(reply.status, reply.headers)
        async for chunk in reply.chunks():
            if isinstance(chunk, UpstreamDown):
                # The head has left: a body that never ends is the only way left to say so.
                self._record("failed", outcome="upstream_died", reason=chunk.reason)
                return
            await self.outgoing.write(chunk)
        await self.outgoing.end()

    async def _broken(self, error: Exception) -> None:
        """A fault of our own. What has begun to leave is cut off, so that nobody takes it for the whole."""
        message = f"interpose failed at this request: {fault_line(error)}"
        if self.outgoing.status is None:
            await self._fail(500, message)
            return
        self._record("failed", outcome="failed", reason=message)

    async def _upstream_down(self, down: UpstreamDown) -> None:
        problem = "got no usable answer from" if down.was_reached else "cannot reach"
        await self._fail(502, f"interpose {problem} {self._base_url()}: {down.reason}")

    async def _fail(self, status: int, message: str, *, outcome: str = "failed") -> None:
        """Tells the client and the journal, once each."""
        self._record("failed", outcome=outcome, reason=message, status=status)
        await self.outgoing.whole(status, [_JSON], error_body(self.visit.route.api, status, message))

    def _record(
        self, step: Step, *, outcome: str = "", reason: str = "", duration_ms: float = 0.0, **data: Any
    ) -> None:
        visit = self.visit
        launch = visit.launch
        path = visit.raw_path.decode("latin-1")
        self.parts.journal.write(
            Record(
                at=self.parts.clock.now(),
                action=visit.action,
                step=step,
                mount="wire",
                workspace=launch.workspace if launch else "",
                session=visit.session,
                launch=launch.id if launch else "",
                agent=visit.agent or "",
                outcome=outcome,
                reason=reason,
                duration_ms=duration_ms,
                data={"api": visit.route.api, "method": visit.method, "path": path, **data},
            )
        )


def _without_length(headers: HeaderList) -> HeaderList:
    return [(name, value) for name, value in headers if name != b"content-length"]


async def _put_back(first: bytes, rest: AsyncIterator[bytes | UpstreamDown]) -> AsyncIterator[bytes | UpstreamDown]:
    yield first
    async for chunk in rest:
        yield chunk
