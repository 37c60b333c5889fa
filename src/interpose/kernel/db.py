"""SQLite files that several threads and processes share: opening, schemas, transactions, and errors for people.

Knows: one connection, numbered migrations, file modes, what each failure of SQLite means for a person.
Does not know: any table. A room hands in its `Schema` and its SQL, says `?` for a value, and sees `StorageError` only,
so that a second dialect can stand behind the same names.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeAlias

from interpose.contracts.errors import MisuseError, StorageError

Row: TypeAlias = tuple[Any, ...]

_VARIABLES_MAX: Final = 999
"""So many `?` one statement may have in every SQLite (https://sqlite.org/limits.html; newer ones allow more)."""

_TOGETHER: Final = (128, 64, 32, 16, 8, 4, 2, 1)
"""So many rows are added by one statement: few statements, of which SQLite keeps each one made ready."""

_WAY_OUT = {
    "SQLITE_ERROR": "its tables are not those that interpose made: move the file away, and a new one is started",
    "SQLITE_FULL": "the disk is full: free some space there",
    "SQLITE_CORRUPT": "the file is damaged: move it away, and a new one is started",
    "SQLITE_NOTADB": "this is not a database, or it is damaged: move it away, and a new one is started",
    "SQLITE_READONLY": "the file cannot be written: change its owner or mode, or name another folder",
    "SQLITE_CANTOPEN": "the file cannot be opened: look at the folder's owner and mode, or name another folder",
    "SQLITE_BUSY": "another process keeps the file locked: stop that process, or try again",
    "SQLITE_IOERR": "reading or writing failed: look at the disk and at the space left on it",
    "SQLITE_PERM": "the file cannot be accessed: change its owner or mode, or name another folder",
}


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of a schema. `number` counts from 1; a step that has been released never changes."""

    number: int
    statements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Schema:
    """A room's tables, as the steps that lead to them. Several schemas with different names may share one file."""

    name: str
    migrations: tuple[Migration, ...]

    def __post_init__(self) -> None:
        """Raises MisuseError when the numbers are not 1, 2, 3, …."""
        numbers = [migration.number for migration in self.migrations]
        if numbers != list(range(1, len(numbers) + 1)):
            raise MisuseError(f"schema {self.name!r}: migrations must be numbered 1, 2, 3, …, not {numbers}")

    @property
    def version(self) -> int:
        """The number of the newest step."""
        return len(self.migrations)


class Database:
    """One connection to one SQLite file. Made by `open_database`.

    Any thread may call any method; a lock lets one in at a time, and a transaction holds it until it ends. Every
    failure of SQLite leaves as StorageError, which names the file and the way out.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._lock = threading.RLock()

    def execute(self, sql: str, values: Sequence[object] = ()) -> int:
        """Runs one statement; returns how many rows it changed. Outside a transaction it is its own."""
        with self._lock, _explained(self.path):
            return self._connection.execute(sql, values).rowcount

    def execute_many(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        """Runs one statement for each row, all or none."""
        with self.transaction(), _explained(self.path):
            self._connection.executemany(sql, rows)

    def append(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Adds rows in their order, all or none; one that cannot be added ends a transaction around this too.

        As few statements as may be: at each one other threads are let in and waited for, which costs more than a row.
        """
        with self.transaction(), _explained(self.path):
            start = 0
            for size in _TOGETHER:
                end = len(rows) - (len(rows) - start) % size
                if size * len(columns) <= _VARIABLES_MAX and start < end:
                    together = [[*chain.from_iterable(rows[at : at + size])] for at in range(start, end, size)]
                    self._connection.executemany(_appending(table, columns, size), together)
                    start = end

    def query(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        """All rows that the statement selects."""
        with self._lock, _explained(self.path):
            return self._connection.execute(sql, values).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All statements inside take effect together, or none does when the block raises. May be nested.

        Takes the write lock at once, so that what is read inside stays true until the end.
        """
        with self._lock:
            if self._connection.in_transaction:
                yield
                return

            with _explained(self.path):
                self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                with _explained(self.path):
                    self._connection.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise

    def changes_by_others(self) -> int:
        """A number that changes when another connection has committed; cheap enough to poll."""
        return int(self.query("PRAGMA data_version")[0][0])

    def close(self) -> None:
        """Closes the connection; later calls raise StorageError. May be called twice."""
        with self._lock, suppress(sqlite3.Error):
            self._connection.close()

    def _roll_back(self) -> None:
        # SQLite has already rolled back after some failures (a full disk), and a broken file may refuse.
        with suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")


def _appending(table: str, columns: Sequence[str], rows: int) -> str:
    """A statement that adds so many rows.

    Where some may fail alone SQLite copies each page before it is changed; `OR ROLLBACK` spares that.
    """
    marks = f"({', '.join('?' * len(columns))})"
    return f"INSERT OR ROLLBACK INTO {table} ({', '.join(columns)}) VALUES {', '.join([marks] * rows)}"  # noqa: S608 - our own names


def open_database(path: Path, schema: Schema, *, durable: bool = False, busy_timeout_s: float = 5.0) -> Database:
    """The database at `path` with `schema` in its newest form; folder (0700) and file (0600) are made where missing.

    `durable` waits for the disk at every commit (`synchronous = FULL`); else a commit survives the death of the
    process, and a power cut may take the last ones. Many processes may call this at the same moment. Raises
    StorageError when the folder cannot be written, the file is damaged, or its schema is newer than this program knows.
    """
    _make_file(path)
    with _explained(path):
        connection = _connect(path.absolute().as_uri(), busy_timeout_s)
        try:
            _use_wal(connection, busy_timeout_s)
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            database = Database(path, connection)
            _migrate(database, schema)
        except BaseException:
            connection.close()
            raise
    return database


def open_reader(path: Path, schema: Schema, *, busy_timeout_s: float = 5.0) -> Database | None:
    """The database at `path` for reading alone, or None while there is no such file or it has no such tables yet.

    Raises StorageError as `open_database` does; it writes nothing and migrates nothing.
    """
    if not path.exists():
        return None

    with _explained(path):
        connection = _connect(path.absolute().as_uri() + "?mode=ro", busy_timeout_s)
        try:
            database = Database(path, connection)
            version = _version(database, schema)
        except BaseException:
            connection.close()
            raise
    if version == schema.version:
        return database
    database.close()
    if version == 0:
        return None
    raise StorageError(f"{path}: the {schema.name} tables are of an older form: run `interpose up` once to renew them")


def _make_file(path: Path) -> None:
    try:
        path.parent.parent.mkdir(parents=True, exist_ok=True)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        # Only the process that makes the file opens it by hand: closing a second handle would drop SQLite's locks.
        os.close(os.open(str(path), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError as error:
        if error.filename != str(path):
            raise StorageError(f"{path}: {error.filename} is not a folder: move it away, or name another") from error
        if path.is_dir():
            raise StorageError(f"{path}: this is a folder, not a file: move it away, or name another one") from error
        _close_to_others(path)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StorageError(
            f"{path}: cannot be made ({reason}): look at the folder's owner and mode, or name another folder"
        ) from error


def _close_to_others(path: Path) -> None:
    # A file that somebody else owns keeps its mode; whether it can be used, SQLite will say.
    with suppress(OSError):
        if path.stat().st_mode & 0o077:
            path.chmod(0o600)


def _connect(uri: str, busy_timeout_s: float) -> sqlite3.Connection:
    return sqlite3.connect(uri, uri=True, timeout=busy_timeout_s, isolation_level=None, check_same_thread=False)


def _use_wal(connection: sqlite3.Connection, busy_timeout_s: float) -> None:
    # The change of the mode does not honour the busy timeout: two processes that open a new file at the same moment
    # would fail each other.
    deadline = time.monotonic() + busy_timeout_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if _name(error) != "SQLITE_BUSY" or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _migrate(database: Database, schema: Schema) -> None:
    if _version(database, schema) == schema.version:
        return

    with database.transaction():
        database.execute("CREATE TABLE IF NOT EXISTS schemas (name TEXT PRIMARY KEY, version INTEGER NOT NULL)")
        present = _version(database, schema)
        for migration in schema.migrations[present:]:
            for statement in migration.statements:
                database.execute(statement)
        database.execute("INSERT OR REPLACE INTO schemas (name, version) VALUES (?, ?)", (schema.name, schema.version))


def _version(database: Database, schema: Schema) -> int:
    if not database.query("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schemas'"):
        return 0
    rows = database.query("SELECT version FROM schemas WHERE name = ?", (schema.name,))
    version = int(rows[0][0]) if rows else 0
    if version > schema.version:
        raise StorageError(
            f"{database.path}: the {schema.name} tables are of form {version}, and this interpose knows forms up to "
            f"{schema.version}: upgrade interpose, or name another folder"
        )
    return version


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        text = _WAY_OUT.get(_name(error), "the database says no")
        raise StorageError(f"{path}: {text} ({error})") from error


def _name(error: sqlite3.Error) -> str:
    # An extended name such as SQLITE_IOERR_WRITE means the same to a person as its first two words.
    name = getattr(error, "sqlite_errorname", None) or ""
    return "_".join(name.split("_")[:2])
