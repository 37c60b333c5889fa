"""Protected artifacts as values, and where they are kept.

Knows: the record of one protected path, and the store of a session's records. Does not know: what the protection
forbids.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias

from interpose.contracts.errors import StorageError
from interpose.kernel.db import Migration, Schema, open_database

ArtifactSource: TypeAlias = Literal["validation", "middleware", "user", "session"]

MEMORY_SESSIONS: Final = 4_096

SCHEMA: Final = Schema(
    "protected_artifacts",
    (
        Migration(
            1,
            (
                """CREATE TABLE protected_artifacts (
                     session TEXT NOT NULL,
                     path TEXT NOT NULL,
                     protected_at REAL NOT NULL,
                     reason TEXT NOT NULL,
                     source TEXT NOT NULL,
                     validation_command TEXT,
                     validation_exit_code INTEGER,
                     PRIMARY KEY (session, path)
                   ) WITHOUT ROWID""",
            ),
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Artifact:
    """One protected file or folder.

    Attributes:
        path: the canonical path; a folder protects everything below it.
        protected_at: seconds since the epoch.
        reason: why, for the model and for people.
        source: who asked for it.
        validation_command: the command that proved it, if one did.
        validation_exit_code: 0 when that command is known to have succeeded, else None.
    """

    path: str
    protected_at: float
    reason: str
    source: ArtifactSource
    validation_command: str | None = None
    validation_exit_code: int | None = None


class ProtectionStore(Protocol):
    """Keeps what is protected in each session. Any thread may call; a method raises StorageError when it cannot."""

    def load(self, session: str) -> tuple[Artifact, ...]:
        """What is protected in the session, by path."""
        ...

    def save(self, session: str, artifacts: Sequence[Artifact]) -> None:
        """Adds these, all or none; one that is known by its path is replaced. On return they outlive the process."""
        ...

    def replace(self, session: str, artifacts: Sequence[Artifact]) -> None:
        """Makes these the whole of the session's protection, all or none."""
        ...

    def revision(self) -> int:
        """A number that changes when another process may have written; cheap enough to ask at every call."""
        ...

    def close(self) -> None:
        """Lets the files go. Idempotent."""
        ...


class SqliteProtectionStore:
    """The port `ProtectionStore` in one table of the state database at `path`; many processes may share it.

    Raises StorageError when the file cannot be opened.
    """

    def __init__(self, path: Path, *, busy_timeout_s: float = 1.0) -> None:
        self._database = open_database(path, SCHEMA, durable=True, busy_timeout_s=busy_timeout_s)

    def load(self, session: str) -> tuple[Artifact, ...]:
        """As the port says."""
        rows = self._database.query(
            "SELECT path, protected_at, reason, source, validation_command, validation_exit_code"
            " FROM protected_artifacts WHERE session = ? ORDER BY path",
            (session,),
        )
        return tuple(Artifact(*row) for row in rows)

    def save(self, session: str, artifacts: Sequence[Artifact]) -> None:
        """As the port says."""
        rows = [
            (
                session,
                one.path,
                one.protected_at,
                one.reason,
                one.source,
                one.validation_command,
                one.validation_exit_code,
            )
            for one in artifacts
        ]
        self._database.execute_many("INSERT OR REPLACE INTO protected_artifacts VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def replace(self, session: str, artifacts: Sequence[Artifact]) -> None:
        """As the port says."""
        with self._database.transaction():
            self._database.execute("DELETE FROM protected_artifacts WHERE session = ?", (session,))
            self.save(session, artifacts)

    def revision(self) -> int:
        """As the port says."""
        return self._database.changes_by_others()

    def close(self) -> None:
        """As the port says."""
        self._database.close()


class MemoryProtectionStore:
    """The port `ProtectionStore` for as long as the process lives; it keeps 4,096 sessions and refuses more."""

    def __init__(self) -> None:
        self._sessions: dict[str, dict[str, Artifact]] = {}

    def load(self, session: str) -> tuple[Artifact, ...]:
        """As the port says."""
        held = self._sessions.get(session, {})
        return tuple(held[path] for path in sorted(held))

    def save(self, session: str, artifacts: Sequence[Artifact]) -> None:
        """As the port says."""
        self.replace(session, (*self.load(session), *artifacts))

    def replace(self, session: str, artifacts: Sequence[Artifact]) -> None:
        """As the port says."""
        if session not in self._sessions and len(self._sessions) >= MEMORY_SESSIONS:
            raise StorageError(f"{MEMORY_SESSIONS} sessions are protected in memory already: use a state database")
        self._sessions[session] = {one.path: one for one in artifacts}

    def revision(self) -> int:
        """Always 0: no other process can write here."""
        return 0

    def close(self) -> None:
        """Nothing to let go."""
