"""The journal's one table.

Knows: columns, indexes, that rows are only ever added.
Does not know: how a row becomes a record; that is `codec`.
"""

from interpose.kernel.db import Migration, Schema

JOURNAL_SCHEMA = Schema(
    "journal",
    (
        Migration(
            1,
            (
                """
                CREATE TABLE records (
                    seq INTEGER PRIMARY KEY AUTOINCREMENT,
                    writer TEXT NOT NULL,
                    at REAL NOT NULL,
                    action TEXT NOT NULL,
                    step TEXT NOT NULL,
                    stage TEXT NOT NULL,
                    mount TEXT NOT NULL,
                    workspace TEXT NOT NULL,
                    session TEXT NOT NULL,
                    turn TEXT NOT NULL,
                    launch TEXT NOT NULL,
                    agent TEXT NOT NULL,
                    tool TEXT NOT NULL,
                    wire_name TEXT NOT NULL,
                    call_id TEXT NOT NULL,
                    handler TEXT NOT NULL,
                    kind TEXT NOT NULL,
                    phase TEXT NOT NULL,
                    answer TEXT NOT NULL,
                    outcome TEXT NOT NULL,
                    reason TEXT NOT NULL,
                    duration_ms REAL NOT NULL,
                    data TEXT NOT NULL
                )
                """,
                "CREATE INDEX records_by_action ON records (action)",
                "CREATE INDEX records_by_session ON records (session)",
                """
                CREATE TRIGGER records_are_never_changed BEFORE UPDATE ON records
                BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END
                """,
                """
                CREATE TRIGGER records_are_never_removed BEFORE DELETE ON records
                BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END
                """,
            ),
        ),
    ),
)
"""`writer` tells the writing process apart, for order within one and for a later chain of digests."""
