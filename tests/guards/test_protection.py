"""guards.protection: the stores of protected artifacts."""

import stat
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from interpose.contracts.errors import StorageError
from interpose.guards.protection import (
    MEMORY_SESSIONS,
    Artifact,
    MemoryProtectionStore,
    ProtectionStore,
    SqliteProtectionStore,
)

ONE = Artifact("/house/a", 1.5, "kept", "middleware", "npm test", 0)
TWO = Artifact("/house/b", 2.0, "kept too", "user")


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ProtectionStore]:
    """Each store in turn, empty."""
    made: ProtectionStore = (
        MemoryProtectionStore() if request.param == "memory" else SqliteProtectionStore(tmp_path / "state" / "state.db")
    )
    with closing(made):
        yield made


def test_what_was_saved_is_loaded_by_session_and_path(store: ProtectionStore) -> None:
    """Every field comes back, ordered by path; other sessions are other."""
    store.save("s1", [TWO, ONE])
    store.save("s2", [TWO])
    assert store.load("s1") == (ONE, TWO)
    assert store.load("s2") == (TWO,)
    assert store.load("s3") == ()


def test_saving_a_known_path_replaces_its_record(store: ProtectionStore) -> None:
    """The newest record of a path is the one that counts."""
    again = Artifact("/house/a", 9.0, "other reason", "session")
    store.save("s1", [ONE, TWO])
    store.save("s1", [again])
    store.save("s1", [])
    assert store.load("s1") == (again, TWO)


def test_replacing_forgets_the_rest(store: ProtectionStore) -> None:
    """Only what was given is left; nothing given leaves nothing."""
    store.save("s1", [ONE])
    store.save("s2", [ONE])
    store.replace("s1", [TWO])
    assert store.load("s1") == (TWO,)
    store.replace("s1", [])
    assert store.load("s1") == ()
    assert store.load("s2") == (ONE,)


def test_what_was_saved_outlives_the_process_and_others_see_that_it_changed(tmp_path: Path) -> None:
    """A second opener finds it, and the first one's number changes when the second one writes."""
    path = tmp_path / "state.db"
    with closing(SqliteProtectionStore(path)) as first, closing(SqliteProtectionStore(path)) as second:
        first.save("s1", [ONE])
        assert second.load("s1") == (ONE,)
        before = first.revision()
        assert first.revision() == before
        second.save("s1", [TWO])
        assert first.revision() != before
        assert first.load("s1") == (ONE, TWO)
    with closing(SqliteProtectionStore(path)) as third:
        assert third.load("s1") == (ONE, TWO)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    """The error names the file and the way out."""
    path = tmp_path / "state.db"
    path.write_bytes(b"no database, but long enough to be looked at" * 40)
    with pytest.raises(StorageError, match=r"state\.db"):
        SqliteProtectionStore(path)


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    """After the end what is asked raises the one storage error."""
    made = SqliteProtectionStore(tmp_path / "state.db")
    made.close()
    made.close()
    for use in (lambda: made.load("s"), made.revision):
        with pytest.raises(StorageError):
            use()


def test_many_threads_may_save(tmp_path: Path) -> None:
    """Nothing is lost."""
    with closing(SqliteProtectionStore(tmp_path / "state.db")) as made:
        threads = [
            threading.Thread(target=made.save, args=("s1", [Artifact(f"/house/{number}", 1.0, "kept", "user")]))
            for number in range(16)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(made.load("s1")) == 16


def test_memory_refuses_what_it_would_have_to_forget() -> None:
    """A protection is never dropped in silence."""
    made = MemoryProtectionStore()
    for number in range(MEMORY_SESSIONS):
        made.replace(str(number), [ONE])
    made.save("0", [TWO])
    with pytest.raises(StorageError, match="use a state database"):
        made.save("one more", [ONE])
