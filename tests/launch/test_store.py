"""launch.store."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from interpose.contracts.errors import StorageError
from interpose.contracts.ports import Launches
from interpose.launch.store import LAUNCH_DAYS, SqliteLaunches

DAY_S = 86_400.0


class _HeldClock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.time = 1_000_000_000.0

    def now(self) -> float:
        """The time as it was set."""
        return self.time

    def monotonic(self) -> float:
        """The same."""
        return self.time


@pytest.fixture
def clock() -> _HeldClock:
    """A clock that the test holds."""
    return _HeldClock()


@pytest.fixture
def launches(tmp_path: Path, clock: _HeldClock) -> Iterator[SqliteLaunches]:
    """An open store."""
    store = SqliteLaunches(tmp_path / "state.db", clock=clock)
    yield store
    store.close()


def test_a_launch_is_found_by_its_secret_alone(launches: SqliteLaunches) -> None:
    """Everything that was registered comes back; the public id and a wrong secret open nothing."""
    port: Launches = launches
    launch, secret = port.register(workspace="/w", agent="codex", cwd="/w/sub", upstream="http://up")

    assert (launch.workspace, launch.agent, launch.cwd, launch.upstream) == ("/w", "codex", "/w/sub", "http://up")
    assert launches.find(secret) == launch
    assert launches.find(launch.id) is None
    assert launches.find("") is None
    assert launches.find("\ud800") is None


def test_each_launch_has_ids_of_its_own(launches: SqliteLaunches) -> None:
    """Public id, session and secret differ, and the cwd is the workspace unless given."""
    first, first_secret = launches.register(workspace="/w")
    second, second_secret = launches.register(workspace="/w")

    assert len({first.id, second.id, first.session, second.session, first_secret, second_secret}) == 6
    assert (first.id[0], len(first.id), first.cwd) == ("l", 9, "/w")


def test_another_process_finds_it(tmp_path: Path) -> None:
    """What one process registers is known to another that was there before."""
    clock = _HeldClock()
    launches = SqliteLaunches(tmp_path / "state.db", clock=clock)
    code = (
        "import sys; from pathlib import Path\n"
        "from interpose.launch.store import SqliteLaunches\n"
        "class Clock:\n    def now(self): return 1e9\n    monotonic = now\n"
        "print(SqliteLaunches(Path(sys.argv[1]), clock=Clock()).register(workspace='/other')[1])\n"
    )

    secret = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "state.db")],
        env={"PYTHONPATH": "src"},
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    ).stdout.strip()

    found = launches.find(secret)
    assert found is not None
    assert found.workspace == "/other"
    launches.close()


def test_the_secret_is_not_in_the_file(tmp_path: Path, launches: SqliteLaunches) -> None:
    """Only its digest is stored."""
    _, secret = launches.register(workspace="/w")

    stored = b"".join(file.read_bytes() for file in tmp_path.iterdir())

    assert b"/w" in stored
    assert secret.encode() not in stored


def test_a_launch_expires(tmp_path: Path, clock: _HeldClock, launches: SqliteLaunches) -> None:
    """After thirty days nobody finds it, whether it is remembered or not, and the next one clears it away."""
    _, secret = launches.register(workspace="/w")
    fresh = SqliteLaunches(tmp_path / "state.db", clock=clock)

    clock.time += LAUNCH_DAYS * DAY_S
    assert launches.find(secret) is not None
    clock.time += 1
    assert launches.find(secret) is None
    assert fresh.find(secret) is None

    launches.register(workspace="/v")
    assert launches._database.query("SELECT workspace FROM launches") == [("/v",)]
    fresh.close()


def test_what_is_remembered_is_bounded(launches: SqliteLaunches) -> None:
    """More launches than the store remembers are all found."""
    secrets = [launches.register(workspace=f"/{number}")[1] for number in range(1_100)]

    assert len(launches._cache) <= 1_024
    first = launches.find(secrets[0])
    assert first is not None
    assert first.workspace == "/0"


def test_many_threads_ask_at_once(launches: SqliteLaunches) -> None:
    """Each thread finds what it registered."""
    wrong = list[str]()

    def work(name: int) -> None:
        for number in range(20):
            launch, secret = launches.register(workspace=f"/{name}/{number}")
            if launches.find(secret) != launch:
                wrong.append(launch.workspace)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    assert wrong == []


def test_a_store_that_cannot_be_read_says_so(launches: SqliteLaunches) -> None:
    """An unknown launch and an unreadable table are not the same."""
    launches.close()

    with pytest.raises(StorageError, match=r"state\.db"):
        launches.find("x")
