"""kernel.db."""

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from interpose.contracts.errors import MisuseError, StorageError
from interpose.kernel.db import Database, Migration, Schema, open_database, open_reader

ONE = Schema("numbers", (Migration(1, ("CREATE TABLE numbers (n INTEGER PRIMARY KEY)",)),))
TWO = Schema("numbers", (*ONE.migrations, Migration(2, ("ALTER TABLE numbers ADD COLUMN word TEXT",))))
OTHER = Schema("words", (Migration(1, ("CREATE TABLE words (w TEXT)",)),))


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_database_is_closed_to_others(tmp_path: Path) -> None:
    """The folder is 0700, the file and SQLite's two side files are 0600."""
    path = tmp_path / "deep" / "state" / "x.db"

    database = open_database(path, ONE)
    database.execute("INSERT INTO numbers VALUES (1)")

    names = sorted(entry.name for entry in path.parent.iterdir())
    assert names == ["x.db", "x.db-shm", "x.db-wal"]
    assert {_mode(entry) for entry in path.parent.iterdir()} == {0o600}
    assert _mode(path.parent) == 0o700
    database.close()


def test_a_file_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    """An older file with a wider mode is narrowed when it is opened."""
    path = tmp_path / "x.db"
    open_database(path, ONE).close()
    path.chmod(0o644)

    open_database(path, ONE).close()

    assert _mode(path) == 0o600


def test_migrations_run_once_and_in_order_and_schemas_share_a_file(tmp_path: Path) -> None:
    """Opening again changes nothing, a newer schema adds its step and keeps rows, another room's tables stay apart."""
    path = tmp_path / "x.db"
    first = open_database(path, ONE)
    first.execute("INSERT INTO numbers VALUES (7)")
    first.close()

    second = open_database(path, TWO)
    third = open_database(path, OTHER)

    assert second.query("SELECT n, word FROM numbers") == [(7, None)]
    assert third.query("SELECT name, version FROM schemas ORDER BY name") == [("numbers", 2), ("words", 1)]
    second.close()
    third.close()


def test_a_failed_migration_leaves_nothing_behind(tmp_path: Path) -> None:
    """A step that fails in its middle is rolled back whole."""
    broken = Schema("numbers", (*ONE.migrations, Migration(2, ("CREATE TABLE extra (x)", "CREATE NONSENSE"))))
    path = tmp_path / "x.db"

    with pytest.raises(StorageError, match=r"x\.db: .*NONSENSE"):
        open_database(path, broken)

    database = open_database(path, OTHER)
    assert database.query("SELECT name FROM sqlite_master WHERE name IN ('numbers', 'extra')") == []
    database.close()


def test_numbers_of_migrations_have_no_holes() -> None:
    """A schema with a hole is a mistake of its author and says so."""
    with pytest.raises(MisuseError, match=r"'numbers'.*not \[2\]"):
        Schema("numbers", (Migration(2, ()),))


def test_a_newer_schema_is_refused_with_a_way_out(tmp_path: Path) -> None:
    """An older program does not touch tables it does not know."""
    path = tmp_path / "x.db"
    open_database(path, TWO).close()

    with pytest.raises(StorageError, match=r"x\.db: .*form 2.*up to 1: upgrade interpose"):
        open_database(path, ONE)
    with pytest.raises(StorageError, match="upgrade interpose"):
        open_reader(path, ONE)


def test_a_file_that_is_no_database_is_named_with_a_way_out(tmp_path: Path) -> None:
    """Garbage in place of the file is not overwritten."""
    path = tmp_path / "x.db"
    path.write_bytes(b"these are not the bytes of a database" * 100)

    with pytest.raises(StorageError, match=r"x\.db: .*move it away"):
        open_database(path, ONE)
    assert path.read_bytes().startswith(b"these")


@pytest.fixture
def nobody() -> Iterator[None]:
    """Lets go of root's rights for a while, since root writes everywhere."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    yield
    os.seteuid(user)


@pytest.mark.usefixtures("nobody")
def test_an_unwritable_folder_is_named_with_a_way_out() -> None:
    """The person learns which file, why, and what to do."""
    with pytest.raises(StorageError, match=r"/x\.db: cannot be made \(permission denied\): look at the folder's owner"):
        open_database(Path("/x.db"), ONE)
    with pytest.raises(StorageError, match="cannot be made"):
        open_database(Path("/etc/interpose-test/x.db"), ONE)


@pytest.mark.parametrize("missing", ["schemas", "numbers"])
def test_a_file_without_one_of_its_tables_is_named_with_a_way_out(tmp_path: Path, missing: str) -> None:
    """Whether its form is not known or what it should hold is not there; moved away, it is made anew."""
    path = tmp_path / "x.db"
    database = open_database(path, ONE)
    database.execute(f"DROP TABLE {missing}")
    database.close()

    told = r"x\.db: its tables are not those .*: move the file away.*\(.*numbers"
    with pytest.raises(StorageError, match=told), closing(open_database(path, ONE)) as broken:
        broken.query("SELECT n FROM numbers")

    path.rename(tmp_path / "old.db")
    database = open_database(path, ONE)
    assert database.query("SELECT n FROM numbers") == []
    database.close()


def test_a_folder_that_cannot_be_made_is_named_with_a_way_out(tmp_path: Path) -> None:
    """A file where the folder should be, or a folder where the file should be, is told apart."""
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.db").mkdir()

    with pytest.raises(StorageError, match="file is not a folder: move it away"):
        open_database(tmp_path / "file" / "x.db", ONE)
    with pytest.raises(StorageError, match="file is not a folder: move it away"):
        open_database(tmp_path / "file" / "deeper" / "x.db", ONE)
    with pytest.raises(StorageError, match="cannot be made"):
        open_database(tmp_path / "file" / "much" / "deeper" / "x.db", ONE)
    with pytest.raises(StorageError, match=r"folder\.db: this is a folder"):
        open_database(tmp_path / "folder.db", ONE)


def test_sixteen_processes_open_a_new_file_at_the_same_moment(tmp_path: Path) -> None:
    """Each one succeeds, the steps run once, and every row is there."""
    path = tmp_path / "state" / "x.db"
    code = (
        "import sys; from pathlib import Path\n"
        "from interpose.kernel.db import *\n"
        "two = Schema('numbers', (Migration(1, ('CREATE TABLE numbers (n INTEGER PRIMARY KEY)',)),"
        " Migration(2, ('ALTER TABLE numbers ADD COLUMN word TEXT',))))\n"
        "sys.stdin.read()\n"
        "d = open_database(Path(sys.argv[1]), two, busy_timeout_s=30)\n"
        "d.execute('INSERT INTO numbers VALUES (?, ?)', (int(sys.argv[2]), 'x')); d.close()\n"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(path), str(number)],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PYTHONPATH": "src"},
        )
        for number in range(16)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
    errors = [process.communicate(timeout=50)[1] for process in processes]

    assert errors == [b""] * 16
    database = open_database(path, TWO)
    assert database.query("SELECT count(*) FROM numbers") == [(16,)]
    database.close()


def test_a_transaction_is_all_or_nothing_and_may_be_nested(tmp_path: Path) -> None:
    """A block that raises takes everything inside with it, what an inner block did too."""
    database = open_database(tmp_path / "x.db", ONE)

    def fail_late() -> None:
        with database.transaction():
            database.execute_many("INSERT INTO numbers VALUES (?)", [(1,), (2,)])
            raise KeyError

    with pytest.raises(KeyError):
        fail_late()
    with pytest.raises(StorageError, match="UNIQUE"):
        database.execute_many("INSERT INTO numbers VALUES (?)", [(3,), (3,)])
    database.execute_many("INSERT INTO numbers VALUES (?)", [(4,)])

    assert database.query("SELECT n FROM numbers") == [(4,)]
    database.close()


@pytest.mark.parametrize("count", [0, 1, 7, 200, 1000])
def test_any_number_of_rows_is_appended_in_its_order(tmp_path: Path, count: int) -> None:
    """However many go together, each is there once, behind the one before it."""
    database = open_database(tmp_path / "x.db", OTHER)
    words = [f"word {number}" for number in range(count)]

    database.append("words", ("w",), [(word,) for word in words])

    assert [word for (word,) in database.query("SELECT w FROM words ORDER BY rowid")] == words
    database.close()


def test_a_row_that_cannot_be_appended_takes_its_transaction_along(tmp_path: Path) -> None:
    """Of the rows none is there, nor what was done before them in the same transaction; the database goes on."""
    database = open_database(tmp_path / "x.db", ONE)

    def append_twice() -> None:
        with database.transaction():
            database.execute("INSERT INTO numbers VALUES (1)")
            database.append("numbers", ("n",), [(2,), (3,), (2,), (4,)])

    with pytest.raises(StorageError, match="UNIQUE"):
        append_twice()
    database.append("numbers", ("n",), [(5,)])

    assert database.query("SELECT n FROM numbers") == [(5,)]
    database.close()


def test_a_row_may_have_as_many_columns_as_one_statement_takes(tmp_path: Path) -> None:
    """Wide rows go one by one, or a few at a time."""
    names = [f"c{number}" for number in range(500)]
    wide = Schema("wide", (Migration(1, (f"CREATE TABLE wide ({', '.join(names)})",)),))
    database = open_database(tmp_path / "x.db", wide)

    database.append("wide", names, [range(500), range(500), range(500)])

    assert database.query("SELECT c0, c499 FROM wide") == [(0, 499)] * 3
    database.close()


def test_many_threads_share_one_database(tmp_path: Path) -> None:
    """Transactions of threads do not mix: each reads and adds one, and none is lost."""
    database = open_database(tmp_path / "x.db", ONE)

    def add_one() -> None:
        for _ in range(50):
            with database.transaction():
                highest = database.query("SELECT coalesce(max(n), 0) FROM numbers")[0][0]
                database.execute("INSERT INTO numbers VALUES (?)", (highest + 1,))

    threads = [threading.Thread(target=add_one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    assert database.query("SELECT max(n), count(*) FROM numbers") == [(200, 200)]
    database.close()


def test_a_full_disk_says_so_and_the_database_stays_usable(tmp_path: Path) -> None:
    """The error names the file and the way out; when there is space again, writing works."""
    database = open_database(tmp_path / "x.db", OTHER)
    database.query("PRAGMA max_page_count = 8")

    with pytest.raises(StorageError, match=r"x\.db: the disk is full: free some space"):
        database.execute("INSERT INTO words VALUES (?)", ("x" * 100_000,))
    database.query("PRAGMA max_page_count = 1000")
    database.execute("INSERT INTO words VALUES ('y')")

    assert database.query("SELECT w FROM words") == [("y",)]
    database.close()


def test_a_closed_database_says_so(tmp_path: Path) -> None:
    """Using it after close is a StorageError, and closing twice is fine."""
    database = open_database(tmp_path / "x.db", ONE)
    database.close()
    database.close()

    with pytest.raises(StorageError, match="closed"):
        database.query("SELECT 1")


def test_a_reader_sees_changes_of_others_and_cannot_write(tmp_path: Path) -> None:
    """The number that tells of other connections' commits moves; a write through a reader is refused."""
    path = tmp_path / "x.db"
    assert open_reader(path, ONE) is None
    writer = open_database(path, ONE)
    reader = open_reader(path, ONE)
    assert isinstance(reader, Database)
    assert open_reader(path, OTHER) is None

    before = reader.changes_by_others()
    writer.execute("INSERT INTO numbers VALUES (1)")

    assert reader.changes_by_others() != before
    assert reader.query("SELECT n FROM numbers") == [(1,)]
    with pytest.raises(StorageError, match="cannot be written"):
        reader.execute("INSERT INTO numbers VALUES (2)")
    with pytest.raises(StorageError, match="older form"):
        open_reader(path, TWO)
    reader.close()
    writer.close()
