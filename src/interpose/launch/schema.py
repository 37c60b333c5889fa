"""The tables of this room in `state.db`.

Knows: columns. A launch is found by the digest of its secret; the secret itself is nowhere.
Does not know: who asks.
"""

from interpose.kernel.db import Migration, Schema

LAUNCH_SCHEMA = Schema(
    "launch",
    (
        Migration(
            1,
            (
                """
                CREATE TABLE launches (
                    digest TEXT PRIMARY KEY,
                    id TEXT NOT NULL UNIQUE,
                    workspace TEXT NOT NULL,
                    session TEXT NOT NULL,
                    agent TEXT,
                    cwd TEXT NOT NULL,
                    upstream TEXT,
                    created REAL NOT NULL
                )
                """,
                "CREATE INDEX launches_by_age ON launches (created)",
                "CREATE TABLE pauses (workspace TEXT PRIMARY KEY, until REAL NOT NULL)",
            ),
        ),
    ),
)
