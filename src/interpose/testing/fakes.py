"""A fake for each port that a test needs to hold in its hand.

Knows: the ports of `contracts`. Does not know: how the real ones work. `MemoryJournal` is in `testing.journal`.
"""

import itertools
import threading
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType

from interpose.contracts.ports import ApprovalRequest, Launch, Policy
from interpose.contracts.stages import LLM_STAGES, STAGES, Point, Stage
from interpose.contracts.verdict import Refusal, Verdict


def allow(point: Point, action: str = "a-test") -> Verdict:
    """The verdict of a policy without handlers; a result keeps the annotations it came with."""
    return Verdict(action, point.stage, "allowed", annotations=getattr(point, "annotations", ()))


def refuse(point: Point, reason: str = "no", handler: str = "fake", action: str = "a-test") -> Verdict:
    """A refusal by one handler."""
    annotations = getattr(point, "annotations", ())
    return Verdict(action, point.stage, "refused", Refusal(handler, reason), annotations=annotations)


def nobody(_request: ApprovalRequest) -> None:
    """The answer of a person who is not there."""


class FakePolicy:
    """The port `Policy`: answers with a function, allows everything without one, and records the points.

    It wants every stage but `llm.*` and changes none, unless told which. Any thread may use it. What the function
    raises is raised, so that a broken policy can be played.
    """

    def __init__(
        self,
        answer: Callable[[Point], Verdict] = allow,
        *,
        wants: Collection[Stage] = frozenset(STAGES) - frozenset(LLM_STAGES),
        changes: Collection[Stage] = (),
    ) -> None:
        self._answer = answer
        self._wants = frozenset(wants)
        self._changes = frozenset(changes)
        self.generation = 0
        """As the port says; set it to play handlers that are published again."""
        self._lock = threading.Lock()
        self._points: list[Point] = []

    @property
    def points(self) -> tuple[Point, ...]:
        """Everything that was judged, in order."""
        with self._lock:
            return tuple(self._points)

    def judge(self, point: Point) -> Verdict:
        """What the function answers."""
        with self._lock:
            self._points.append(point)
        return self._answer(point)

    async def judge_async(self, point: Point) -> Verdict:
        """What the function answers."""
        return self.judge(point)

    def wants(self, stage: Stage) -> bool:
        """Whether `stage` is one of those given."""
        return stage in self._wants

    def changes(self, stage: Stage) -> bool:
        """Whether `stage` is one of those given."""
        return stage in self._changes


class FakeClock:
    """The port `Clock`: stands still until `advance`."""

    def __init__(self, now_s: float = 1_760_000_000.0) -> None:
        self._start_s = now_s
        self._elapsed_s = 0.0

    def now(self) -> float:
        """Seconds since the epoch (UTC)."""
        return self._start_s + self._elapsed_s

    def monotonic(self) -> float:
        """Seconds since this clock was made."""
        return self._elapsed_s

    def advance(self, seconds: float) -> None:
        """Moves both readings onward. Raises ValueError for a negative step."""
        if seconds < 0:
            raise ValueError(f"a clock does not go back: {seconds} s")
        self._elapsed_s += seconds


class FakeLaunches:
    """The port `Launches` in memory, with ids and secrets that are counted up: `l1`, `secret-1`."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._by_secret: dict[str, Launch] = {}

    @property
    def launches(self) -> Mapping[str, Launch]:
        """The registered launches by their secret."""
        return MappingProxyType(self._by_secret)

    def register(
        self, *, workspace: str, agent: str | None = None, cwd: str | None = None, upstream: str | None = None
    ) -> tuple[Launch, str]:
        """A new launch and its secret; `cwd` is the workspace unless given."""
        number = next(self._numbers)
        secret = f"secret-{number}"
        launch = Launch(f"l{number}", workspace, f"s{number}", agent, cwd or workspace, upstream, float(number))
        self._by_secret = {**self._by_secret, secret: launch}
        return launch, secret

    def find(self, secret: str) -> Launch | None:
        """The launch whose secret this is, or None."""
        return self._by_secret.get(secret)


class FakeWorkspaces:
    """The port `Workspaces`: the given policies by root, and one for every root that is not named (None too)."""

    def __init__(self, policies: Mapping[str | None, Policy] | None = None, *, default: Policy | None = None) -> None:
        self._policies = dict(policies or {})
        self._default = default or FakePolicy()

    def policy(self, root: str | None) -> Policy:
        """The policy of `root`."""
        return self._policies.get(root, self._default)


class FakeApprovals:
    """The port `Approvals`: answers at once with a function; without one nobody answers. Any thread may ask.

    `present` says whether somebody is there to answer; asking works either way.
    """

    def __init__(self, answer: Callable[[ApprovalRequest], bool | None] = nobody, *, present: bool = True) -> None:
        self._answer = answer
        self._present = present
        self._lock = threading.Lock()
        self._requests: list[ApprovalRequest] = []

    @property
    def requests(self) -> tuple[ApprovalRequest, ...]:
        """Everything that was asked, in order."""
        with self._lock:
            return tuple(self._requests)

    def ask(
        self,
        request: ApprovalRequest,
        *,
        timeout_s: float,  # noqa: ARG002 - the port's
        given_up: threading.Event | None = None,  # noqa: ARG002 - the port's
    ) -> bool | None:
        """What the function answers; `timeout_s` is not waited for."""
        with self._lock:
            self._requests.append(request)
        return self._answer(request)

    def can_ask(self) -> bool:
        """Whether somebody is present."""
        return self._present

    def leave(self) -> None:
        """Nobody is there any more."""
        self._present = False


class FakePause:
    """The port `Pause`: off for the roots that are in `off`."""

    def __init__(self) -> None:
        self.off: set[str] = set()

    def is_off(self, workspace: str) -> bool:
        """Whether `workspace` is in `off`."""
        return workspace in self.off
