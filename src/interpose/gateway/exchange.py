"""One request's story: read, judge, forward, judge the reply, send it on.

Knows: the order of the steps and what each fault is told as. Does not know: any API's shape, the HTTP libraries.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from interpose.contracts.stages import Context
from interpose.contracts.verdict import Refusal, ToolChoice
from interpose.gateway.api import Codec, RequestView, Unreadable
from interpose.gateway.asgi import BodyTooSlow, HeaderList, Incoming, Outgoing, unless_gone
from interpose.gateway.blind import hosted_tools
from interpose.gateway.bodies import model_of
from interpose.gateway.conversations import Begun, Place
from interpose.gateway.counting import Counted, read_count
from interpose.gateway.credentials import with_key
from interpose.gateway.encodings import UndecodableError, decoded
from interpose.gateway.identity import identity_of, unnamed
from interpose.gateway.judging import Judging
from interpose.gateway.ledger import SessionLedger
from interpose.gateway.load import Share, TooMuchAtOnce
from interpose.gateway.paths import decoded_path
from interpose.gateway.replying import Replying
from interpose.gateway.rounds import Rounds
from interpose.gateway.routes import run_unjudged
from interpose.gateway.settings import PROVIDERS, Target
from interpose.gateway.shaping import Shaping
from interpose.gateway.upstream import Asked, Question, UpstreamDown, UpstreamReply, joined_url, passed_on
from interpose.gateway.visit import Parts, Teller, Visit
from interpose.gateway.wording import refusal_line
from interpose.kernel.ids import derived_id
from interpose.wire.jsonbytes import write_json

CLIENT_GONE = 499
"""The status in the journal of a request whose client hung up before it got one."""

THREAD_BYTES = 1024 * 1024
"""A body that is larger is read in a worker thread, so that other requests need not wait."""

_OF_THE_BODY = (b"content-length", b"content-encoding", b"accept-encoding")


@dataclass(slots=True)
class Exchange:
    """The story of one visit; `run` it once."""

    parts: Parts
    visit: Visit
    incoming: Incoming
    outgoing: Outgoing
    _begun: Begun | None = None
    _replied_at: Callable[[float], None] | None = None
    _share: Share = field(init=False)
    _teller: Teller = field(init=False)
    _codec: Codec = field(init=False)

    def __post_init__(self) -> None:
        """Holds nothing yet."""
        self._share = Share(self.parts.load)
        self._teller = Teller(self.parts, self.visit, self.outgoing)
        self._codec = self.parts.codecs[self.visit.route.api]

    async def run(self) -> None:
        """Answers the visit and journals it; never raises for what client, policy or upstream do."""
        started = self.parts.clock.monotonic()
        outcome = "cancelled"
        try:
            outcome = "" if await unless_gone(self.incoming, self._story()) else "client_gone"
        except asyncio.CancelledError:  # by the server, which was stopped
            await self._teller.cut_off()
            raise
        except BodyTooSlow as error:
            outcome = "failed"
            if self.outgoing.status is None:
                await self._teller.fail(408, str(error), closes=True)
        except TooMuchAtOnce as error:
            outcome = "failed"
            await self._teller.fail(503, str(error), closes=True)
        except Exception as error:  # noqa: BLE001 - one request's boundary: it fails closed, the gateway stays up
            outcome = "failed"
            await self._teller.broken(error)
        finally:
            self._share.end()
            ended = self.parts.clock.monotonic()
            if self._replied_at is not None:
                self._replied_at(ended)
            elapsed_ms = (ended - started) * 1000
            status = self.outgoing.status or CLIENT_GONE
            self.visit.span.ended(status, outcome)
            self._teller.record(
                "request", outcome=outcome, duration_ms=elapsed_ms, status=status, ms=round(elapsed_ms, 1)
            )

    def _story(self) -> Coroutine[Any, Any, None]:
        match self.visit.route.kind:
            case "judged":
                return self._judged()
            case "counted":
                return self._counted()
            case _:
                return self._passed()

    async def _passed(self) -> None:
        """Traffic that nobody judges: bytes as they come, both ways, where the settings let it pass."""
        if not await self._may_pass():
            return
        body: bytes | AsyncIterator[bytes] | None = None
        if not self.visit.headers.has(b"content-length", b"transfer-encoding"):
            await self.incoming.whole(0)
        elif self._asks_model:
            body = await self._body()
            if body is None:
                return
        else:
            body = self.incoming.chunks()
        await self._forwarded(body, passed_on(self.visit.headers.raw))

    async def _counted(self) -> None:
        """Tokens are counted of the history that the model would be sent; nothing is judged for it, nothing kept."""
        declared = self.visit.headers.get(b"content-length") or ""
        if not declared.isdigit() or int(declared) > self.parts.settings.body_bytes:
            await self._passed()
            return
        raw = await self._body()
        if raw is None:
            return
        counted = await self._read_count(raw)
        if counted is None:
            await self._forwarded(raw, passed_on(self.visit.headers.raw))
            return
        await self._find_session(counted.request)
        visit = self.visit
        ledger = await self._opened_ledger()
        body = counted.rewritten(ledger)
        if body is counted.body:
            await self._forwarded(raw, passed_on(visit.headers.raw))
            return
        await self._forwarded(body, passed_on(visit.headers.raw, drop=(b"content-length", b"content-encoding")))

    async def _read_count(self, raw: bytes) -> Counted | None:
        limit = self.parts.settings.body_bytes

        def read() -> Counted | None:
            return read_count(self._codec, decoded(raw, self._encoding, limit, self._share.add))

        try:
            return await asyncio.to_thread(read) if self._encoding or len(raw) > THREAD_BYTES else read()
        except UndecodableError:
            return None

    async def _forwarded(self, body: bytes | AsyncIterator[bytes] | None, headers: HeaderList) -> None:
        """Asks the upstream and sends its answer on, whatever either is."""
        target = self._target(model_of(body) if isinstance(body, bytes) else None)
        question = await self._question(target, body, headers)
        if question is None:
            return
        async with self.parts.upstream.ask(question) as reply:
            if self.incoming.was_slow:
                raise self.incoming.too_slow()
            if isinstance(reply, UpstreamDown):
                await self._teller.upstream_down(target, reply)
                return
            await self._send_as_is(reply)

    async def _may_pass(self) -> bool:
        """Journals what passes unjudged, or refuses it."""
        visit = self.visit
        kind = visit.route.kind
        if kind == "unknown" and self.parts.settings.unjudged_paths == "refuse":
            path = visit.raw_path.decode("latin-1")
            message = f"interpose does not judge {path} and refuses what it does not judge (gateway.unjudged_paths)"
            await self._teller.fail(403, message, outcome="refused", closes=True)
            return False
        if kind == "unknown":
            run = run_unjudged(visit.method, decoded_path(visit.raw_path))
            reason = "interpose does not know this path" if run is None else f"{run}, unjudged"
            self._teller.record("skipped", outcome="unjudged", reason=reason)
        return True

    @property
    def _asks_model(self) -> bool:
        """Whether a body that nobody judges must be read all the same, since the model in it decides where it goes."""
        visit = self.visit
        if visit.route.model or visit.headers.get(b"content-encoding") or (visit.launch and visit.launch.upstream):
            return False
        return self.parts.settings.upstreams.asks_model(visit.route.api)

    async def _judged(self) -> None:
        raw = await self._body()
        if raw is None:
            return
        request = await self._read(raw)
        if request is None:
            return
        await self._find_session(request)
        judging = await self._judging(request)
        if judging.policy.wants("llm.request"):
            shaped = await self._shaped(request, judging)
            if shaped is None:
                return
            request, judging = shaped, await self._judging(shaped)
        turn, wanted = await judging.news(request)
        if request.turn is not None:
            self._note_hosted(request, judging)
        if turn.refusal is not None:
            await self._say(request, turn.refusal, judging.ledger)
            return
        target = self._target(request.model)
        question = await self._question(target, self._rewritten(request, judging, wanted), self._judged_headers())
        if question is None:
            return
        asked = Asked(self.parts.upstream)
        try:
            reply = await asked.ask(question)
            if isinstance(reply, UpstreamDown):
                await self._teller.upstream_down(target, reply)
                return
            if not 200 <= reply.status < 300:
                await self._send_as_is(reply)
                return
            if not reply.is_readable:
                message = f"interpose cannot read the upstream's reply: its content-encoding is {reply.encoding!r}"
                await self._teller.fail(502, message)
                return
            rounds = self._rounds(request, judging, question, asked)
            shaping = Shaping(self._codec, judging)
            await Replying(self._teller, self._codec, judging, target, reply, rounds, shaping).run()
        finally:
            asked.leave()

    async def _shaped(self, request: RequestView, judging: Judging) -> RequestView | None:
        """The request as handlers leave it; None when the client has been told why it is not sent."""
        body = await Shaping(self._codec, judging).request(request.body)
        if isinstance(body, Refusal):
            await self._teller.fail(400, refusal_line("the request", body), outcome="refused")
            return None
        if body is request.body:
            return request
        try:
            return self._codec.read(body)
        except Unreadable as error:
            await self._teller.fail(500, f"a handler made a request of it that cannot be read: {error}")
            return None

    def _rounds(self, request: RequestView, judging: Judging, question: Question, asked: Asked) -> Rounds:
        async def ask(body: bytes) -> UpstreamReply | UpstreamDown:
            return await asked.ask(question._replace(body=body))

        sent = question.body
        return Rounds(
            teller=self._teller,
            codec=self._codec,
            judging=judging,
            request=request,
            sent=sent if isinstance(sent, bytes) else b"",
            ask=ask,
            on_refusal=self.parts.settings.on_refusal,
            replied=self._replied,
        )

    async def _replied(self, response_id: str) -> None:
        """Keeps whose reply or item it is, for a client that goes on from it by its name alone."""
        if not self.visit.names_session:
            (await self._replies()).keep_followed(response_id, self.visit.identity.parent or self.visit.session)

    async def _say(self, request: RequestView, text: str, ledger: SessionLedger) -> None:
        """Tells the person in the model's place, in a reply like any other, since no client shows every error once."""
        said = self._codec.said(text, request.model or self.visit.route.model)
        for name, resumed in request.unsent(ledger, said).items():
            ledger.keep_resumed(name, resumed)
            await self._replied(name)
        self._teller.record("failed", outcome="refused", reason=text, status=200)
        is_streamed = request.is_streamed or b"streamGenerateContent" in self.visit.raw_path
        if not is_streamed:
            await self.outgoing.whole(200, [(b"content-type", b"application/json")], write_json(said))
            return
        if self._codec.streams_arrays and b"alt=sse" not in self.visit.query:
            await self.outgoing.whole(200, [(b"content-type", b"application/json")], write_json([said]))
            return
        await self.outgoing.start(200, [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")])
        await self.outgoing.write(self._codec.as_stream(said))
        await self.outgoing.end()

    async def _body(self) -> bytes | None:
        """The request's body as it came; None when the client has been told why it is not taken."""
        limit = self.parts.settings.body_bytes
        declared = self.visit.headers.get(b"content-length") or ""
        too_large = declared.isdigit() and int(declared) > limit
        body = None if too_large else await self.incoming.whole(limit, self._share.add)
        if body is None:
            message = f"interpose judges request bodies of at most {limit} bytes; this one is larger"
            await self._teller.fail(413, message)
        return body

    async def _read(self, raw: bytes) -> RequestView | None:
        """The request, decompressed and read; None when the client has been told why it cannot be."""
        encoding = self._encoding
        limit = self.parts.settings.body_bytes

        def unpacked() -> RequestView:
            return self._codec.read(decoded(raw, encoding, limit, self._share.add))

        try:
            return await asyncio.to_thread(unpacked) if encoding or len(raw) > THREAD_BYTES else self._codec.read(raw)
        except UndecodableError as error:
            await self._teller.fail(error.status, f"interpose cannot read this request: {error}")
        except Unreadable as error:
            await self._teller.fail(400, f"interpose cannot read this request: {error}")
        return None

    @property
    def _encoding(self) -> str:
        headers = self.visit.headers
        if not headers.has(b"content-encoding"):
            return ""
        return ",".join([value.decode("latin-1") for name, value in headers.raw if name == b"content-encoding"])

    async def _find_session(self, request: RequestView) -> None:
        """Where no header names the session its metadata do, else what it goes on from, else what was said first.

        A launch of one agent has sessions of its own; an address that programs share lives shorter than they do.
        """
        visit = self.visit
        if visit.names_session:
            return
        named, follows = request.session, request.follows
        if named is None and follows:
            replies = await self._replies()
            named = next((session for name in follows if (session := replies.followed(name))), None)
        conversation = request.root or "".join(follows[:1])
        if named is None and conversation:
            launch = visit.launch
            of_one_agent = (launch.session,) if launch is not None and launch.agent else ()
            named = unnamed(visit.workspace or "", *of_one_agent, request.hint, conversation)
        if named:
            visit.identity = identity_of(visit.headers, visit.launch, named)

    async def _replies(self) -> SessionLedger:
        """Whose the replies are that this workspace's clients go on from by name."""
        return await self.parts.ledger.session(self.visit.workspace or "", "")

    async def _judging(self, request: RequestView) -> Judging:
        visit = self.visit
        policy = await self.parts.policies.of(visit.workspace)
        launch = visit.launch
        identity = visit.identity
        ledger = await self._ledger()
        begun = self._begun = self._begun or _begun(request, ledger, policy.generation, self.parts.clock.monotonic())
        self._replied_at = partial(ledger.conversations.replied, request.root)
        turn = identity.turn or request.turn_key
        again = (str(begun.number),) if begun.number and not identity.turn else ()
        context = Context(
            mount="wire",
            session=visit.session,
            workspace=launch.workspace if launch else "",
            cwd=launch.cwd if launch else "",
            agent=visit.agent,
            launch=launch.id if launch else None,
            turn=derived_id("t", visit.session, turn, *again) if turn else None,
            model=request.model or visit.route.model,
            parent=identity.parent,
            subagent=identity.subagent,
        )
        return Judging(
            policy=policy,
            context=context,
            ledger=ledger,
            journal=self.parts.journal,
            clock=self.parts.clock,
            place=_place(request, f"{begun.number}:{policy.generation}"),
            is_aside=identity.is_compaction,
            is_anew=begun.is_anew,
            is_stored=request.is_stored,
        )

    async def _opened_ledger(self) -> SessionLedger:
        """What is known of the session; where no header names it, it may share what it withholds with others."""
        visit = self.visit
        wider = None if visit.names_session else await self._replies()
        return await self.parts.ledger.session(visit.workspace or "", visit.session, wider=wider)

    async def _ledger(self) -> SessionLedger:
        ledger = await self._opened_ledger()
        if ledger.restored:
            reason = f"{ledger.restored} parts of this session's history are known from another process"
            self._teller.record("applied", outcome="restored", reason=reason)
            ledger.restored = 0
        return ledger

    def _note_hosted(self, request: RequestView, judging: Judging) -> None:
        for name in hosted_tools(self.visit.route.api, request.tools):
            if judging.ledger.is_new(name):
                reason = f"was offered {name}, which runs at the provider and is not judged"
                self._teller.record("skipped", outcome="unseen", reason=reason)

    def _rewritten(self, request: RequestView, judging: Judging, wanted: ToolChoice | None) -> bytes:
        rewritten = request.rewritten(judging.ledger, wanted)
        if wanted is None or rewritten.choice_applied:
            return rewritten.body
        reason = f"the request cannot be told to use tools so: {wanted.mode} {wanted.tool_name or ''}".rstrip()
        self._teller.record("skipped", outcome="not_applicable", reason=reason)
        if judging.reminded_of_tool(request, wanted):
            rewritten = request.rewritten(judging.ledger, wanted)
        return rewritten.body

    def _judged_headers(self) -> HeaderList:
        """Replies are asked for uncompressed: events then leave the upstream as they are made."""
        headers = passed_on(self.visit.headers.raw, drop=_OF_THE_BODY)
        headers.append((b"accept-encoding", b"identity"))
        return headers

    def _target(self, model: str | None) -> Target:
        launch = self.visit.launch
        api = self.visit.route.api
        model = model or self.visit.route.model
        target = self.parts.settings.upstreams.chosen(api, model)
        if launch is not None and launch.upstream:
            target = Target(f"launch {launch.id}", PROVIDERS[api], launch.upstream)
        self.visit.span.asked(target, model)
        return target

    async def _question(
        self, target: Target, body: bytes | AsyncIterator[bytes] | None, headers: HeaderList
    ) -> Question | None:
        """What is sent to the upstream; None when the client has been told that it may not use the gateway's key."""
        visit = self.visit
        if target.key is not None and visit.launch is None:
            message = f"interpose adds a key of its own for {target.name}, so it wants to know who asks"
            way_out = "start the agent with: interpose run -- COMMAND, or send a client's token"
            await self._teller.fail(401, f"{message}; {way_out}", closes=True)
            return None
        headers, query = with_key(headers, visit.query, target)
        return Question(
            method=visit.method,
            target=target,
            url=joined_url(target.base_url, visit.raw_path, query),
            headers=headers,
            body=body,
            is_judged=visit.route.kind == "judged",
        )

    async def _send_as_is(self, reply: UpstreamReply) -> None:
        await self.outgoing.start(reply.status, reply.headers, reply.phrase)
        async for chunk in reply.chunks():
            if isinstance(chunk, UpstreamDown):
                # The head has left: a body that never ends is the only way left to say so.
                if chunk.is_cut:
                    await self._teller.cut_off()
                    return
                self._teller.record("failed", outcome="upstream_died", reason=chunk.reason)
                return
            await self.outgoing.write(chunk)
        await self.outgoing.end()


def _begun(request: RequestView, ledger: SessionLedger, generation: int, now_s: float) -> Begun:
    """Whether the request begins its conversation anew."""
    if request.turn_key is None:
        return Begun()
    position, _, _ = request.turn_key.partition(":")
    return ledger.conversations.request(request.root, Place(int(position), request.turn is None, generation), now_s)


def _place(request: RequestView, begun: str) -> str:
    """Where in its conversation the reply will stand: what the model has not seen yet tells it from others."""
    new = (text for result in request.results for text in (result.call_id, result.digest))
    return derived_id("p", request.root, begun, str(request.turn_key), str(request.length), *new, length=26)
