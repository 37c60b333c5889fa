"""The guard `guard.protected-artifacts`: what was protected in this session is not read, written, removed or moved.

Knows: the protected paths of each session, the files that a call names. Does not know: who asked for a protection, or
why; user hooks ask with the effect `protect_path`, which is taken up here.

State, per session (the 1,024 used last, the others are loaded again when they come back): at most 1,000 artifacts.
Any thread may evaluate; one lock is held for the bookkeeping, and the files are looked at without it. The guard fails
closed. When a protection cannot be stored or loaded it stays in force and the session is *degraded*: calls that do
more than read are refused until the store works again, which is tried every five seconds.
"""

import re
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final, assert_never

from interpose.command.matching import CommandPattern, match_paths
from interpose.command.paths import PathPatterns, canonical_path, is_case_blind
from interpose.command.reading import ACCESSES, Found, NotFound, Reading
from interpose.contracts.decisions import Unknown
from interpose.contracts.effects import (
    BlockTool,
    Evaluated,
    EvaluationContext,
    HookInput,
    ProtectPath,
    Registration,
)
from interpose.contracts.errors import StorageError
from interpose.contracts.ports import Clock
from interpose.guards.calls import CallReader
from interpose.guards.given import number_of, session_of, text_of
from interpose.guards.protection import Artifact, ArtifactSource, ProtectionStore
from interpose.guards.state import SESSIONS_KEPT, Recent
from interpose.kernel.boundary import guarded

PROTECTED_ARTIFACTS_ID: Final = "guard.protected-artifacts"
ARTIFACTS_MOST: Final = 1_000
RETRY_S: Final = 5.0

_UNSPELLABLE: Final = re.compile(r"[*?\[\]\\\n\0]| (?= *$)")


@dataclass(frozen=True, slots=True)
class Health:
    """Whether a session's protection is stored. `reason` and `since` (seconds since the epoch) say why it is not."""

    degraded: bool = False
    reason: str | None = None
    since: float | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """What is protected, and the same compiled for matching."""

    artifacts: tuple[Artifact, ...] = ()
    patterns: PathPatterns | None = None


@dataclass(slots=True)
class _Session:
    held: Held = Held()
    unsaved: dict[str, Artifact] = field(default_factory=dict)
    revision: int | None = None
    full: str | None = None
    broken: str | None = None
    tried: float = 0.0
    health: Health = Health()


class ProtectedArtifacts:
    """The guard of one workspace. `on_degraded` is told once for each time a session becomes degraded."""

    def __init__(
        self,
        *,
        reader: CallReader,
        store: ProtectionStore,
        clock: Clock,
        on_degraded: Callable[[str, Health], None] | None = None,
    ) -> None:
        self._reader = reader
        self._store = store
        self._clock = clock
        self._on_degraded = on_degraded
        self._hard_reset = CommandPattern.parse("git reset --hard")
        self._lock = threading.Lock()
        self._sessions: Recent[str, _Session] = Recent(SESSIONS_KEPT)

    def registration(self) -> Registration:
        """The guard's entry in the table; it must stand after everything that may emit `protect_path`."""
        return Registration(
            id=PROTECTED_ARTIFACTS_ID,
            description="keeps the paths that were protected in this session from every use",
            hooks=("before_tool", "after_tool"),
            evaluate=self.evaluate,
            fail_closed=True,
            reads=("actionClass",),
        )

    def evaluate(self, given: HookInput, context: EvaluationContext) -> Evaluated:
        """Takes up each `protect_path` of this run, then judges the call that this very run is about."""
        asked = [effect for effect in context.prior_effects if isinstance(effect, ProtectPath)]
        if not asked and given.hook != "before_tool":
            return ()
        held, health = self._take_up(session_of(given), [self._artifact(given, effect) for effect in asked])
        if given.hook != "before_tool":
            return ()
        if health.degraded and given.metadata.get("actionClass") != "read":
            return (_degraded(health),)
        return self._judge(given, held)

    def protect(self, session: str, path: str, reason: str, *, source: ArtifactSource = "user") -> Artifact:
        """Protects one more path of the session, relative to the workspace.

        Protecting it again replaces the record when it says something new.
        """
        artifact = Artifact(self._canonical(path), self._clock.now(), reason, source)
        self._take_up(session, [artifact])
        return artifact

    def replace_state(self, session: str, artifacts: Iterable[Artifact]) -> None:
        """Makes `artifacts` all that is protected in the session, and ends a degraded state.

        Raises StorageError, and changes nothing, when that cannot be stored.
        """
        complete = tuple(artifacts)
        with self._lock:
            self._store.replace(session, complete)
            self._sessions.put(session, _Session(self._hold(complete), revision=self._store.revision()))

    def state(self, session: str) -> tuple[Artifact, ...]:
        """What is protected in the session now, by path."""
        held, _ = self._take_up(session, [])
        return held.artifacts

    def health(self, session: str) -> Health:
        """Whether the session's protection is stored."""
        _, health = self._take_up(session, [])
        return health

    def _take_up(self, session: str, artifacts: list[Artifact]) -> tuple[Held, Health]:
        with self._lock:
            state = self._sessions.get_or_make(session, _Session)
            was = state.health
            self._protect(state, artifacts)
            self._synchronise(session, state)
            state.health = self._health_of(state)
            held, health = state.held, state.health
        callback = self._on_degraded
        if health.degraded and not was.degraded and callback is not None:
            guarded(lambda: callback(session, health), failure=lambda _: None)
        return held, health

    def _protect(self, state: _Session, artifacts: list[Artifact]) -> None:
        known = {one.path: one for one in state.held.artifacts}
        # A rule that speaks at every call says the same each time: nothing to store then.
        new = [one for one in artifacts if one.path not in known or not _says_the_same(one, known[one.path])]
        fitting = [one for one in new if one.path in known or len(known) < ARTIFACTS_MOST]
        if len(fitting) < len(new):
            state.full = f"it is more than {ARTIFACTS_MOST} paths; protect a folder instead of its files"
        if fitting:
            state.unsaved |= {one.path: one for one in fitting}
            state.held = self._hold((*state.held.artifacts, *fitting))

    def _synchronise(self, session: str, state: _Session) -> None:
        """Stores what is not stored and loads what another process stored; asks a broken store seldom."""
        now = self._clock.monotonic()
        if state.broken is not None and now - state.tried < RETRY_S:
            return
        state.tried = now
        try:
            if state.unsaved:
                self._store.save(session, tuple(state.unsaved.values()))
                state.unsaved = {}
            revision = self._store.revision()
            if revision != state.revision:
                state.held = self._hold((*state.held.artifacts, *self._store.load(session)))
                state.revision = revision
            state.broken = None
        except StorageError as error:
            state.broken = str(error)

    def _health_of(self, state: _Session) -> Health:
        reason = state.broken or state.full
        if reason is None:
            return Health()
        return Health(True, reason, state.health.since if state.health.degraded else self._clock.now())

    def _judge(self, given: HookInput, held: Held) -> Evaluated:
        if held.patterns is None:
            return ()
        reading = self._reader.read(given)
        if isinstance(reading, Unknown):
            return reading
        answer = match_paths(reading, held.patterns, ACCESSES)
        match answer:
            case Found():
                return (self._refusal(reading, held, answer),)
            case Unknown():
                return answer
            case NotFound():
                return self._reset(reading, held)
            case _:
                assert_never(answer)

    def _reset(self, reading: Reading, held: Held) -> Evaluated:
        """A hard reset may write any path, also over files that git does not track, whichever folder it starts in."""
        answer = self._hard_reset.match(reading)
        if not isinstance(answer, Found):
            return ()
        named = held.artifacts[0]
        return (_refused(named, answer),)

    def _refusal(self, reading: Reading, held: Held, found: Found) -> BlockTool:
        certain = replace(reading, unknown=())
        named = next(
            (
                one
                for one in held.artifacts
                if isinstance(match_paths(certain, self._patterns((one,)), ACCESSES), Found)
            ),
            held.artifacts[0],
        )
        return _refused(named, found)

    def _artifact(self, given: HookInput, effect: ProtectPath) -> Artifact:
        command = text_of(given, "validationCommand")
        proven = command is not None and number_of(given, "validationExitCode") == 0
        return Artifact(
            path=self._canonical(effect.path),
            protected_at=self._clock.now(),
            reason=effect.reason,
            source="middleware",
            validation_command=command,
            validation_exit_code=0 if proven else None,
        )

    def _canonical(self, path: str) -> str:
        return canonical_path(path, cwd=self._reader.root or "/", home=self._reader.home)

    def _hold(self, artifacts: Iterable[Artifact]) -> Held:
        by_path = {one.path: one for one in artifacts}
        if not by_path:
            return Held()
        ordered = tuple(by_path[path] for path in sorted(by_path))
        return Held(ordered, self._patterns(ordered))

    def _patterns(self, artifacts: tuple[Artifact, ...]) -> PathPatterns:
        """Absolute patterns that mean these paths to the letter, and whatever is below them."""
        blind = is_case_blind(self._reader.root or "/")
        return PathPatterns([_literal(one.path) for one in artifacts], root="/", home=self._reader.home, blind=blind)


def _refused(named: Artifact, found: Found) -> BlockTool:
    words = f"{named.path} is protected in this session ({named.reason}); this would change it: {found.command}"
    return BlockTool(words)


def _says_the_same(left: Artifact, right: Artifact) -> bool:
    return replace(left, protected_at=right.protected_at) == right


def _literal(path: str) -> str:
    """A pattern that means `path` and no other, but for characters that patterns cannot spell: those match any one."""
    if path == "/":
        return "**"
    return _UNSPELLABLE.sub("?", path)


def _degraded(health: Health) -> BlockTool:
    return BlockTool(
        "what is protected in this session cannot be stored, so nothing but reading is possible until it can: "
        f"{health.reason}"
    )
