"""guards.protected_artifacts: what is taken up, what is refused, and what happens when it cannot be stored."""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from interpose.contracts.decisions import Unknown
from interpose.contracts.effects import BlockTool, EvaluationContext, HookInput, InjectReminder, ProtectPath
from interpose.contracts.errors import StorageError
from interpose.effects.contract import create_middleware
from interpose.guards.calls import CallReader
from interpose.guards.protected_artifacts import ARTIFACTS_MOST, Health, ProtectedArtifacts
from interpose.guards.protection import Artifact, MemoryProtectionStore, ProtectionStore, SqliteProtectionStore
from tests.guards.making import NOTHING, HeldClock, call, evaluated, reader, reason, result

PATCH = "*** Begin Patch\n*** {} File: {}\n+x\n*** End Patch"


class BreakableStore(MemoryProtectionStore):
    """A store that fails while it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.broken = False
        self.calls = 0
        self.number = 0

    def _use(self) -> None:
        self.calls += 1
        if self.broken:
            raise StorageError("state.db: the disk is full: free some space there")

    def load(self, session: str) -> tuple[Artifact, ...]:
        """As the port says, or fails."""
        self._use()
        return super().load(session)

    def save(self, session: str, artifacts: Sequence[Artifact]) -> None:
        """As the port says, or fails."""
        self._use()
        super().save(session, artifacts)

    def revision(self) -> int:
        """As the port says, or fails."""
        self._use()
        return self.number


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace with a few files."""
    work = tmp_path.resolve() / "work"
    (work / "dist" / "deep").mkdir(parents=True)
    for name in ("dist/app.js", "dist/deep/x.js", "kept.txt", "free.txt"):
        (work / name).write_text(name)
    return work


@pytest.fixture
def guard(root: Path) -> ProtectedArtifacts:
    """A guard of that workspace, with `kept.txt` and the folder `dist` protected in session s1."""
    made = ProtectedArtifacts(reader=reader(str(root)), store=MemoryProtectionStore(), clock=HeldClock())
    made.protect("s1", "kept.txt", "it is kept")
    made.protect("s1", "dist", "it is built")
    return made


def said(guard: ProtectedArtifacts, given: HookInput) -> str:
    """`refused`, `unknown` or `passed`."""
    answer = guard.evaluate(given, NOTHING)
    if isinstance(answer, Unknown):
        return "unknown"
    return "refused" if any(isinstance(effect, BlockTool) for effect in answer) else "passed"


@pytest.mark.parametrize(
    ("tool", "args", "expected"),
    [
        ("read", {"path": "kept.txt"}, "refused"),
        ("read", {"path": "./dist/../kept.txt"}, "refused"),
        ("read", {"path": "dist/deep/x.js"}, "refused"),
        ("read", {"paths": ["free.txt", "kept.txt"]}, "refused"),
        ("read", {"include": ["*.txt"]}, "refused"),
        ("read", {"include": ["*.md"]}, "passed"),
        ("read", {"path": "free.txt"}, "passed"),
        ("read", {"path": "kept.txt.bak"}, "passed"),
        ("read", {"path": ["nested", ["no text"]]}, "unknown"),
        ("write", {"path": "kept.txt", "content": "x"}, "refused"),
        ("write", {"path": "dist/new.js", "content": "x"}, "refused"),
        ("write", {"path": "distant/new.js", "content": "kept.txt"}, "passed"),
        ("edit", {"path": "dist/app.js", "old": "a", "new": "b"}, "refused"),
        ("search", {"pattern": "kept.txt"}, "passed"),
        ("search", {"pattern": "x", "path": "dist"}, "refused"),
        ("search", {"pattern": "x", "path": ".", "glob": "kept.*"}, "refused"),
        ("search", {"pattern": "x", "path": "."}, "passed"),
        ("patch", {"patch": PATCH.format("Update", "kept.txt")}, "refused"),
        ("patch", {"patch": PATCH.format("Delete", "dist/app.js")}, "refused"),
        ("patch", {"patch": PATCH.format("Add", "free2.txt")}, "passed"),
        ("patch", {"patch": "no patch at all"}, "unknown"),
        ("patch", {"patch": 3}, "unknown"),
        ("shell", {"command": "cat kept.txt"}, "refused"),
        ("shell", {"command": "cat free.txt"}, "passed"),
        ("shell", {"command": "echo x > kept.txt"}, "refused"),
        ("shell", {"command": "echo x >> kept.txt"}, "refused"),
        ("shell", {"command": "cd dist && rm app.js"}, "refused"),
        ("shell", {"command": "rm -rf ."}, "refused"),
        ("shell", {"command": "mv free.txt dist/"}, "refused"),
        ("shell", {"command": "mv dist elsewhere"}, "refused"),
        ("shell", {"command": "cp free.txt kept.txt"}, "refused"),
        ("shell", {"command": "truncate -s0 kept.txt"}, "refused"),
        ("shell", {"command": "git checkout -- kept.txt"}, "refused"),
        ("shell", {"command": "git restore dist/app.js"}, "refused"),
        ("shell", {"command": "git reset --hard"}, "refused"),
        ("shell", {"command": "git -C sub reset --hard origin/main"}, "refused"),
        ("shell", {"command": "git reset --soft HEAD~1"}, "passed"),
        ("shell", {"command": "find . -name '*.js' -delete"}, "refused"),
        ("shell", {"command": "rm *.txt"}, "refused"),
        ("shell", {"command": "sudo sh -c 'rm kept.txt'"}, "refused"),
        ("shell", {"command": "grep kept.txt free.txt"}, "passed"),
        ("shell", {"command": "echo rm kept.txt"}, "passed"),
        ("shell", {"command": "npm test"}, "passed"),
        ("shell", {"command": "cat $FILE"}, "unknown"),
        ("shell", {"command": "cat 'free.txt"}, "unknown"),
        ("shell", {"command": 5}, "unknown"),
        ("shell", {"command": "Get-Content kept.txt", "shell": "/usr/bin/pwsh"}, "unknown"),
        ("shell", {"command": "cat kept.txt", "shell": "/bin/bash"}, "refused"),
        ("shell", {"command": "cat app.js", "cwd": "dist"}, "refused"),
        ("fetch", {"url": "https://example.com/kept.txt"}, "passed"),
        ("mcp:files/read", {"filePath": "kept.txt"}, "refused"),
        ("mcp:files/move", {"source": "free.txt", "destination": "dist/free.txt"}, "refused"),
        ("mcp:box/run", {"command": "rm kept.txt"}, "refused"),
        ("mcp:box/edit", {"command": "view", "path": "kept.txt"}, "refused"),
        ("mcp:box/run", {"command": "view 'this is no shell"}, "passed"),
        ("mcp:files/list", {"source": 3}, "unknown"),
        ("todo", {"text": "kept.txt"}, "passed"),
    ],
)
def test_every_use_of_a_protected_path_is_refused(
    guard: ProtectedArtifacts, tool: str, args: Mapping[str, Any], expected: str
) -> None:
    """Reads, writes, deletes and moves, by whatever tool; what cannot be read is unknown; the rest passes."""
    assert said(guard, call(tool, args)) == expected


def test_the_refusal_names_the_path_and_why(guard: ProtectedArtifacts, root: Path) -> None:
    """The model learns which path it was, the reason given, and what it tried."""
    text = reason(evaluated(guard.registration(), call("shell", {"command": "cat free.txt; rm dist/app.js"})))
    assert text == f"{root}/dist is protected in this session (it is built); this would change it: rm dist/app.js"


def test_another_session_is_not_protected(guard: ProtectedArtifacts) -> None:
    """Protection belongs to a session; unreadable calls of an unprotected one pass."""
    assert said(guard, call("write", {"path": "kept.txt"}, session="s2")) == "passed"
    assert said(guard, call("shell", {}, session="s2", unreadable="broken")) == "passed"
    assert said(guard, call("shell", {}, unreadable="broken")) == "unknown"
    assert said(guard, call("write", {"path": "kept.txt"}, session=None)) == "passed"


def test_links_of_both_kinds_lead_to_the_same_file(guard: ProtectedArtifacts, root: Path) -> None:
    """A symbolic or hard link made later is the file itself."""
    (root / "soft").symlink_to("kept.txt")
    os.link(root / "kept.txt", root / "hard")
    assert said(guard, call("write", {"path": "soft"})) == "refused"
    assert said(guard, call("write", {"path": "hard"})) == "refused"


def test_home_and_the_agents_folder_are_understood(root: Path, tmp_path: Path) -> None:
    """`~` is the person's home, and relative paths start where the agent is."""
    home = tmp_path.resolve() / "home"
    home.mkdir()
    guard = ProtectedArtifacts(reader=reader(str(root), str(home)), store=MemoryProtectionStore(), clock=HeldClock())
    guard.protect("s1", "~/.ssh", "keys")
    assert said(guard, call("shell", {"command": "cat ~/.ssh/id"})) == "refused"
    assert said(guard, call("read", {"path": ".ssh/id"}, cwd=str(home))) == "refused"
    assert said(guard, call("read", {"path": ".ssh/id"})) == "passed"


@pytest.mark.parametrize(
    "name", ["a[b].txt", "a[b.txt", "a]b", "star*", "what?", "end ", "back\\slash", "new\nline", "!no", "#no"]
)
def test_names_that_patterns_would_read_otherwise_are_protected(root: Path, name: str) -> None:
    """The path is meant to the letter, whatever characters it has."""
    guard = ProtectedArtifacts(reader=reader(str(root)), store=MemoryProtectionStore(), clock=HeldClock())
    guard.protect("s1", name, "kept")
    assert said(guard, call("write", {"path": name})) == "refused"
    assert said(guard, call("write", {"path": f"{name}/below"})) == "refused"
    assert said(guard, call("write", {"path": "other.txt"})) == "passed"


def test_the_root_protects_everything(root: Path) -> None:
    """Protecting `/` leaves no file out, and works."""
    guard = ProtectedArtifacts(reader=reader(str(root)), store=MemoryProtectionStore(), clock=HeldClock())
    guard.protect("s1", "/", "all")
    assert said(guard, call("read", {"path": "free.txt"})) == "refused"
    assert said(guard, call("fetch", {"url": "https://example.com"})) == "passed"


def test_the_call_whose_hook_protects_a_path_is_itself_refused(guard: ProtectedArtifacts, root: Path) -> None:
    """A `protect_path` of this run is taken up before the call is judged."""
    prior = (InjectReminder("x"), ProtectPath("free.txt", "from now on"))
    assert "from now on" in reason(evaluated(guard.registration(), call("write", {"path": "free.txt"}), *prior))
    assert said(guard, call("read", {"path": "free.txt"})) == "refused"
    assert [one.path for one in guard.state("s1")] == [f"{root}/dist", f"{root}/free.txt", f"{root}/kept.txt"]


@pytest.mark.parametrize(("code", "kept"), [(0, 0), (1, None), ("0", None), (None, None), (False, None)])
def test_a_result_is_only_taken_up_from(
    guard: ProtectedArtifacts, root: Path, code: int | str | None, kept: int | None
) -> None:
    """After a tool nothing is refused; the record holds what validated it, and an exit code only when it is 0."""
    given = result("shell", {"command": "rm kept.txt"}, validationCommand="npm test", validationExitCode=code)
    assert evaluated(guard.registration(), given, ProtectPath("free.txt", "tested")) == ()
    one = next(one for one in guard.state("s1") if one.path == f"{root}/free.txt")
    assert one == Artifact(f"{root}/free.txt", 1_000.0, "tested", "middleware", "npm test", kept)


def test_protecting_again_replaces_the_record_and_saying_the_same_stores_nothing(root: Path) -> None:
    """A rule that speaks at every call costs no write."""
    store, clock = BreakableStore(), HeldClock()
    guard = ProtectedArtifacts(reader=reader(str(root)), store=store, clock=clock)
    guard.protect("s1", "a", "one")
    before, clock.seconds = store.calls, 2_000.0
    guard.protect("s1", "a", "one")
    assert store.calls == before + 1
    assert guard.state("s1")[0].protected_at == 1_000.0
    guard.protect("s1", "./a", "two", source="session")
    assert guard.state("s1") == (Artifact(f"{root}/a", 2_000.0, "two", "session"),)
    assert store.load("s1") == guard.state("s1")


def test_protection_outlives_the_guard(root: Path, tmp_path: Path) -> None:
    """Another process finds it in the state database, and sees what is added while it runs."""
    path = tmp_path / "state" / "state.db"
    with closing(SqliteProtectionStore(path)) as store, closing(SqliteProtectionStore(path)) as other_store:
        guard = ProtectedArtifacts(reader=reader(str(root)), store=store, clock=HeldClock())
        other = ProtectedArtifacts(reader=reader(str(root)), store=other_store, clock=HeldClock())
        guard.protect("s1", "kept.txt", "kept")
        assert said(other, call("write", {"path": "kept.txt"})) == "refused"
        assert said(other, call("write", {"path": "free.txt"})) == "passed"
        guard.protect("s1", "free.txt", "kept too")
        assert said(other, call("write", {"path": "free.txt"})) == "refused"
        assert other.state("s1") == guard.state("s1")


def test_a_broken_store_keeps_the_protection_and_allows_reading_only(root: Path) -> None:
    """The session is degraded, told once, tried again after five seconds, and well when the store is."""
    store, clock, told = BreakableStore(), HeldClock(), list[tuple[str, Health]]()
    guard = ProtectedArtifacts(
        reader=reader(str(root)),
        store=store,
        clock=clock,
        on_degraded=lambda session, health: told.append((session, health)),
    )
    assert said(guard, call("write", {"path": "free.txt"})) == "passed"
    store.broken = True
    guard.protect("s1", "kept.txt", "kept")
    assert told == [("s1", Health(True, "state.db: the disk is full: free some space there", 1_000.0))]
    assert said(guard, call("read", {"path": "free.txt"})) == "passed"
    assert said(guard, call("read", {"path": "kept.txt"})) == "refused"
    text = reason(evaluated(guard.registration(), call("write", {"path": "free.txt"})))
    assert "the disk is full" in text
    assert said(guard, call("agent", {"task": "x"})) == "refused"

    store.broken, calls = False, store.calls
    assert said(guard, call("write", {"path": "free.txt"})) == "refused"
    assert store.calls == calls
    clock.seconds += 5
    assert said(guard, call("write", {"path": "free.txt"})) == "passed"
    assert guard.health("s1") == Health()
    assert [one.path for one in store.load("s1")] == [f"{root}/kept.txt"]
    assert len(told) == 1


def test_a_store_that_cannot_be_loaded_leaves_the_last_state_and_degrades(root: Path) -> None:
    """What was known stays in force."""
    store, clock = BreakableStore(), HeldClock()
    guard = ProtectedArtifacts(reader=reader(str(root)), store=store, clock=clock)
    guard.protect("s1", "kept.txt", "kept")
    store.broken = True
    clock.seconds += 10
    store.number = 1
    assert guard.health("s1") == Health(True, "state.db: the disk is full: free some space there", 1_010.0)
    clock.seconds += 10
    assert guard.health("s1").since == 1_010.0
    assert said(guard, call("read", {"path": "kept.txt"})) == "refused"


def test_a_listener_that_fails_changes_nothing(root: Path) -> None:
    """The guard goes on."""

    def fail(_session: str, _health: Health) -> None:
        raise RuntimeError("no")

    store = BreakableStore()
    store.broken = True
    guard = ProtectedArtifacts(reader=reader(str(root)), store=store, clock=HeldClock(), on_degraded=fail)
    assert said(guard, call("write", {"path": "a"})) == "refused"


def test_replacing_the_state_ends_a_degraded_one(root: Path) -> None:
    """The new set is the whole set, stored and in force."""
    store = BreakableStore()
    guard = ProtectedArtifacts(reader=reader(str(root)), store=store, clock=HeldClock())
    store.broken = True
    guard.protect("s1", "kept.txt", "kept")
    with pytest.raises(StorageError):
        guard.replace_state("s1", [])
    assert said(guard, call("read", {"path": "kept.txt"})) == "refused"
    store.broken = False
    guard.replace_state("s1", [Artifact(f"{root}/free.txt", 1.0, "now this", "session")])
    assert guard.health("s1") == Health()
    assert said(guard, call("read", {"path": "kept.txt"})) == "passed"
    assert said(guard, call("write", {"path": "free.txt"})) == "refused"


def test_too_many_paths_degrade_the_session(root: Path) -> None:
    """Nothing is forgotten in silence: what is over the bound leaves reading only, until the set is replaced."""
    guard = ProtectedArtifacts(reader=reader(str(root)), store=MemoryProtectionStore(), clock=HeldClock())
    guard.replace_state("s1", [Artifact(f"/w/{number}", 1.0, "kept", "user") for number in range(ARTIFACTS_MOST)])
    assert not guard.health("s1").degraded
    guard.protect("s1", "/w/1", "again")
    assert not guard.health("s1").degraded
    guard.protect("s1", "/w/one-more", "kept")
    assert guard.health("s1").degraded
    assert len(guard.state("s1")) == ARTIFACTS_MOST
    assert said(guard, call("write", {"path": "free.txt"})) == "refused"
    guard.replace_state("s1", [])
    assert said(guard, call("write", {"path": "free.txt"})) == "passed"


def test_a_session_that_was_forgotten_is_loaded_again(root: Path) -> None:
    """The bound on sessions costs a look at the store, never a protection."""
    store: ProtectionStore = MemoryProtectionStore()
    guard = ProtectedArtifacts(reader=reader(str(root)), store=store, clock=HeldClock())
    guard.protect("s1", "kept.txt", "kept")
    for number in range(1_100):
        guard.health(f"n{number}")
    assert len(guard._sessions) == 1_024
    assert said(guard, call("read", {"path": "kept.txt"})) == "refused"


def test_many_threads_protect_and_ask(root: Path) -> None:
    """No protection is lost, and each is in force for whoever asks after it was made."""
    guard = ProtectedArtifacts(reader=reader(str(root)), store=MemoryProtectionStore(), clock=HeldClock())

    def protect_and_ask(number: int) -> str:
        guard.protect("s1", f"f{number}", "kept")
        return said(guard, call("write", {"path": f"f{number}"}))

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(protect_and_ask, range(60))) == {"refused"}
    assert len(guard.state("s1")) == 60


def test_in_the_engine_it_fails_closed(root: Path) -> None:
    """A failure of the guard itself is a refusal that names it."""

    class Failing(CallReader):
        def read(self, given: HookInput) -> Any:
            raise RuntimeError("a fault of ours")

    whole = reader(str(root))
    guard = ProtectedArtifacts(
        reader=Failing(whole.commands, whole.root, whole.home), store=MemoryProtectionStore(), clock=HeldClock()
    )
    guard.protect("s1", "kept.txt", "kept")
    engine = create_middleware(registrations=[guard.registration()], on_diagnostic=lambda _: None)
    effects = engine.run_hook(call("read", {"path": "free.txt"})).effects
    assert "guard.protected-artifacts" in reason(effects)
    assert guard.evaluate(call("read", {"path": "a"}, session="s2"), EvaluationContext()) == ()
