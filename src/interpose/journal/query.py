"""Reading the journal, from any process, while others write.

Knows: filters, order, following new records, the story of one action.
Does not know: how a record looks on a screen; that is `text`.
"""

import time
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal, TypeAlias

from interpose.contracts.journal import StoredRecord
from interpose.journal.codec import FIELDS, from_row
from interpose.journal.schema import JOURNAL_SCHEMA
from interpose.kernel.db import Database, open_reader

Order: TypeAlias = Literal["newest", "oldest"]

_SELECT = f"SELECT seq, {', '.join(FIELDS)} FROM records"  # noqa: S608 - the contract's own field names
_POLL_S = 0.05
_FOLLOW_RECORDS = 1_000


@dataclass(frozen=True, slots=True)
class Filter:
    """Which records are wanted; what is None does not matter. All that is given must be true of a record.

    `since` and `until` are seconds since the epoch: from `since` on, and before `until`. `agent`, `stage` and the
    others are the record's own fields.
    """

    action: str | None = None
    session: str | None = None
    launch: str | None = None
    workspace: str | None = None
    agent: str | None = None
    stage: str | None = None
    tool: str | None = None
    outcome: str | None = None
    step: str | None = None
    call_id: str | None = None
    handler: str | None = None
    since: float | None = None
    until: float | None = None


EVERYTHING = Filter()
"""The filter that leaves nothing out."""


class JournalReader:
    """Reads one journal file. A file that does not exist yet is an empty journal.

    Keeps one connection, opened at the first question; use an instance from one thread at a time. Every method raises
    StorageError, naming the file and the way out, when the file is damaged or of another form.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._database: Database | None = None

    def find(
        self, wanted: Filter = EVERYTHING, *, limit: int = 100, order: Order = "newest"
    ) -> tuple[StoredRecord, ...]:
        """At most `limit` records that pass the filter, in the order asked for; `newest` has the last one first."""
        return self._select(wanted, after_seq=None, limit=limit, order=order)

    def story(self, action: str) -> tuple[StoredRecord, ...]:
        """Every record of one action, in the order in which things happened; empty when nobody knows it."""
        return self._select(Filter(action=action), after_seq=None, limit=-1, order="oldest")

    def tally(self, wanted: Filter, *names: str) -> dict[tuple[str, ...], int]:
        """How many records pass the filter, by what they have in these fields of theirs."""
        database = self._opened()
        if database is None:
            return {}
        where, values = _where(wanted)
        fields = ", ".join(names)
        rows = database.query(f"SELECT {fields}, count(*) FROM records{where} GROUP BY {fields}", values)  # noqa: S608 - our own names
        return {row[:-1]: row[-1] for row in rows}

    def last_seq(self) -> int:
        """The number of the newest record, 0 when there is none: where `follow` starts to see only what is new."""
        database = self._opened()
        return int(database.query("SELECT coalesce(max(seq), 0) FROM records")[0][0]) if database else 0

    def follow(self, after_seq: int, wanted: Filter = EVERYTHING, *, wait_s: float = 1.0) -> tuple[StoredRecord, ...]:
        """The records after `after_seq` that pass the filter, oldest first, at most 1,000.

        Waits up to `wait_s` for the first of them; empty when none came. Call it again with the last number seen. A
        record that is not there yet never gets a smaller number than one that is, whichever process writes it.
        """
        deadline = time.monotonic() + wait_s
        seen: int | None = None
        while True:
            database = self._opened()
            changes = database.changes_by_others() if database else None
            if changes is not None and changes != seen:
                seen = changes
                found = self._select(wanted, after_seq=after_seq, limit=_FOLLOW_RECORDS, order="oldest")
                if found:
                    return found

            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return ()
            time.sleep(min(_POLL_S, left_s))

    def close(self) -> None:
        """Lets the file go. May be called twice; a later question opens it again."""
        if self._database is not None:
            self._database.close()
            self._database = None

    def _opened(self) -> Database | None:
        if self._database is None:
            self._database = open_reader(self._path, JOURNAL_SCHEMA)
        return self._database

    def _select(self, wanted: Filter, *, after_seq: int | None, limit: int, order: Order) -> tuple[StoredRecord, ...]:
        database = self._opened()
        if database is None:
            return ()

        where, values = _where(wanted, after_seq)
        direction = "DESC" if order == "newest" else "ASC"
        rows = database.query(f"{_SELECT}{where} ORDER BY seq {direction} LIMIT ?", [*values, limit])
        return tuple(from_row(row) for row in rows)


def _where(wanted: Filter, after_seq: int | None = None) -> tuple[str, list[object]]:
    conditions, values = _conditions(wanted)
    if after_seq is not None:
        conditions.append("seq > ?")
        values.append(after_seq)
    return f" WHERE {' AND '.join(conditions)}" if conditions else "", values


def _conditions(wanted: Filter) -> tuple[list[str], list[object]]:
    conditions: list[str] = []
    values: list[object] = []
    for field in fields(wanted):
        value = getattr(wanted, field.name)
        if value is None:
            continue
        match field.name:
            case "since":
                conditions.append("at >= ?")
            case "until":
                conditions.append("at < ?")
            case name:
                conditions.append(f"{name} = ?")
        values.append(value)
    return conditions, values
