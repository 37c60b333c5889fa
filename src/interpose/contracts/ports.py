"""The doors between rooms. A Protocol is the role; the class that plays it says how (`SqliteJournal`)."""

import threading
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from interpose.contracts.journal import Record
from interpose.contracts.json import JsonObject
from interpose.contracts.stages import Point, Stage
from interpose.contracts.verdict import Verdict


@runtime_checkable
class Policy(Protocol):
    """All handlers and settings of one workspace, judged in the one order."""

    def judge(self, point: Point) -> Verdict:
        """The verdict on `point`; never raises for what a handler does.

        May be called from any thread except the runtime's loop thread, by many at once.
        """
        ...

    async def judge_async(self, point: Point) -> Verdict:
        """As `judge`, from an event loop; a handler that blocks is waited for in a worker thread."""
        ...

    @property
    def generation(self) -> int:
        """Which state of the handlers judges now: another number when they were published again. Any thread may ask."""
        ...

    def wants(self, stage: Stage) -> bool:
        """Whether anybody would be asked or told anything at this stage; a mount may skip making the point when not.

        Cheap enough to ask each time. The answer holds until handlers are published again. Any thread may ask.
        """
        ...

    def changes(self, stage: Stage) -> bool:
        """Whether a handler with the right to cancel or patch may be asked there; a mount holds a reply only then.

        As cheap as `wants`.
        """
        ...


class Workspaces(Protocol):
    """Finds the policy of a workspace, built on demand."""

    def policy(self, root: str | None) -> Policy:
        """The policy of the workspace at `root`, always the same one; None means the user's hooks only.

        Any thread may ask.
        """
        ...


@dataclass(frozen=True, slots=True)
class Launch:
    """One agent started or registered through interpose.

    Attributes:
        id: the short public id that journal and logs use.
        workspace: the canonical root whose hooks judge.
        session: the session of requests that name none and tell nothing that was said first.
        agent: which agent it is, or None when unknown.
        cwd: where relative paths start.
        upstream: a base URL that replaces every provider's for this launch, or None.
        created: seconds since the epoch.
    """

    id: str
    workspace: str
    session: str
    agent: str | None
    cwd: str
    upstream: str | None
    created: float


class Launches(Protocol):
    """The registered launches. Several processes may share one store."""

    def register(
        self, *, workspace: str, agent: str | None = None, cwd: str | None = None, upstream: str | None = None
    ) -> tuple[Launch, str]:
        """A new launch and its secret, which is stored only as a digest."""
        ...

    def find(self, secret: str) -> Launch | None:
        """The launch whose secret this is, or None. Any thread may ask."""
        ...


@runtime_checkable
class Journal(Protocol):
    """What happened, for everybody. It decides nothing and returns nothing."""

    def write(self, record: Record) -> None:
        """Takes one record. Never raises and never blocks on the disk; any thread may call it."""
        ...

    def flush(self, timeout_s: float = 5.0) -> bool:
        """Waits until what was written so far is committed; False when that took longer than `timeout_s`."""
        ...


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """One call that waits for a person's yes.

    Attributes:
        tool_name: the tool as it will be called.
        arguments: exactly what it will be called with.
        digest: `call_digest` of the two; a yes is a yes to this digest and to nothing else.
        reason: why a person is asked, or "".
        handler: the id of the handler that wants a person asked first, or "".
        session: the conversation that the call belongs to, or "".
        workspace: the project root whose handlers judged it, or "".
        agent: which agent wants it, or "" when unknown.
        call_id: the call's own id, or "".
    """

    tool_name: str
    arguments: JsonObject
    digest: str
    reason: str = ""
    handler: str = ""
    session: str = ""
    workspace: str = ""
    agent: str = ""
    call_id: str = ""


@runtime_checkable
class Approvals(Protocol):
    """Asks the person. It waits, so an event loop asks in a thread."""

    def ask(
        self, request: ApprovalRequest, *, timeout_s: float, given_up: threading.Event | None = None
    ) -> bool | None:
        """True for yes, False for no, None when nobody answered in `timeout_s`. Any thread may ask, many at once.

        `given_up`, once set, takes the question back: None then, too.
        """
        ...

    def can_ask(self) -> bool:
        """Whether somebody is there to answer now. Cheap enough to ask before each question; any thread may."""
        ...


class Clock(Protocol):
    """Time, as a part that tests can hold."""

    def now(self) -> float:
        """Seconds since the epoch (UTC)."""
        ...

    def monotonic(self) -> float:
        """Seconds that only grow."""
        ...


class Pause(Protocol):
    """Whether judging is switched off for a while (`interpose off`)."""

    def is_off(self, workspace: str) -> bool:
        """True while the workspace, or everything, is switched off. Any thread may ask; cheap enough for each call."""
        ...
