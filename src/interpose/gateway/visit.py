"""One request as far as its head tells, and what its client and the journal are told of it.

Knows: error replies, journal lines, signs of life. Does not know: the order of the steps.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from interpose.contracts.journal import Record, Step
from interpose.contracts.ports import Clock, Journal, Launch
from interpose.gateway.api import Codec
from interpose.gateway.asgi import Outgoing
from interpose.gateway.client import CUT_OFF
from interpose.gateway.faults import error_body
from interpose.gateway.identity import Identity
from interpose.gateway.ledger import Ledger
from interpose.gateway.load import Load
from interpose.gateway.policies import Policies
from interpose.gateway.routes import Headers, Route
from interpose.gateway.settings import GatewaySettings, Target
from interpose.gateway.tracing import RequestSpan, Tracing
from interpose.gateway.upstream import Upstream, UpstreamDown
from interpose.kernel.boundary import fault_line

_JSON = (b"content-type", b"application/json")


@dataclass(frozen=True, slots=True)
class Parts:
    """What all exchanges of one gateway share."""

    settings: GatewaySettings
    policies: Policies
    journal: Journal
    clock: Clock
    upstream: Upstream
    ledger: Ledger
    codecs: Mapping[str, Codec]
    tracing: Tracing
    load: Load


@dataclass(slots=True)
class Visit:
    """One request, as far as its head tells, and whose it is by what is known so far. Used by its own task only.

    `raw_path` is without the launch prefix; `action` is its journal id. `names_session` says whether a header does.
    """

    action: str
    route: Route
    method: str
    raw_path: bytes
    query: bytes
    headers: Headers
    identity: Identity
    launch: Launch | None
    agent: str | None
    span: RequestSpan
    names_session: bool

    @property
    def session(self) -> str:
        """The session that it belongs to."""
        return self.identity.session

    @property
    def workspace(self) -> str | None:
        """The root whose hooks judge; None for the user's only."""
        return (self.launch.workspace or None) if self.launch else None


@dataclass(slots=True)
class Teller:
    """What the client and the journal are told of one visit. Used by that visit's task only."""

    parts: Parts
    visit: Visit
    outgoing: Outgoing

    async def fail(self, status: int, message: str, *, outcome: str = "failed", closes: bool = False) -> None:
        """Tells the client and the journal, once each; `closes` ends the connection too."""
        self.record("failed", outcome=outcome, reason=message, status=status)
        headers = [_JSON, (b"connection", b"close")] if closes else [_JSON]
        if status == 503:
            headers.append((b"retry-after", b"1"))
        await self.outgoing.whole(status, headers, error_body(self.visit.route.api, status, message))

    async def upstream_down(self, target: Target, down: UpstreamDown) -> None:
        """Tells that there is no answer, and whose fault it is."""
        if down.is_cut:
            await self.cut_off()
            return
        problem = "got no usable answer from" if down.was_reached else "cannot reach"
        await self.fail(504 if down.is_timeout else 502, f"interpose {problem} {target.address}: {down.reason}")

    async def cut_off(self) -> None:
        """Tells that interpose was stopped before the reply was whole; of what has begun to leave only the journal."""
        if self.outgoing.status is None:
            await self.fail(503, f"this request was {CUT_OFF}, before it was answered; send it again", closes=True)
            return
        self.record("failed", outcome="failed", reason=f"this reply was {CUT_OFF}")

    async def broken(self, error: Exception) -> None:
        """A fault of our own. What has begun to leave is cut off, so that nobody takes it for the whole."""
        message = f"interpose failed at this request: {fault_line(error)}"
        if self.outgoing.status is None:
            await self.fail(500, message)
            return
        self.record("failed", outcome="failed", reason=message)

    def record(self, step: Step, *, outcome: str = "", reason: str = "", duration_ms: float = 0.0, **data: Any) -> None:
        """One line of the journal."""
        visit = self.visit
        launch = visit.launch
        family = {"parent": visit.identity.parent, "subagent": visit.identity.subagent} if visit.identity.parent else {}
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
                data={"api": visit.route.api, "method": visit.method, "path": path, **family, **data},
            )
        )
