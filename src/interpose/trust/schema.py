"""The tables of this room in `state.db`.

Knows: columns. Arguments are stored as people may see them, with secrets masked; the digest is over the real ones.
Does not know: who asks or answers.
"""

from interpose.kernel.db import Migration, Schema

TRUST_SCHEMA = Schema(
    "trust",
    (
        Migration(
            1,
            (
                """
                CREATE TABLE questions (
                    id TEXT PRIMARY KEY,
                    digest TEXT NOT NULL,
                    tool_name TEXT NOT NULL,
                    arguments TEXT NOT NULL,
                    is_whole INTEGER NOT NULL,
                    reason TEXT NOT NULL,
                    handler TEXT NOT NULL,
                    agent TEXT NOT NULL,
                    session TEXT NOT NULL,
                    workspace TEXT NOT NULL,
                    call_id TEXT NOT NULL,
                    pid INTEGER NOT NULL,
                    mark TEXT NOT NULL,
                    asked_at REAL NOT NULL,
                    expires_at REAL NOT NULL,
                    state TEXT NOT NULL DEFAULT 'waiting',
                    who TEXT NOT NULL DEFAULT '',
                    settled_at REAL
                )
                """,
                "CREATE INDEX questions_by_state ON questions (state, asked_at)",
                """
                CREATE TABLE watchers (
                    pid INTEGER NOT NULL,
                    mark TEXT NOT NULL,
                    place TEXT NOT NULL,
                    seen_at REAL NOT NULL,
                    PRIMARY KEY (pid, mark, place)
                ) WITHOUT ROWID
                """,
            ),
        ),
    ),
)
