"""Launches in `state.db`, shared by every process of the same user.

Knows: making, finding and forgetting launches.
Does not know: what a launch is used for.
"""

import threading
from collections import OrderedDict
from pathlib import Path

from interpose.contracts.ports import Clock, Launch
from interpose.kernel.db import open_database
from interpose.kernel.ids import digest_of_secret, random_id, secret_token
from interpose.launch.schema import LAUNCH_SCHEMA

LAUNCH_DAYS = 30
"""How long a launch is known after it was registered."""

_CACHED = 1_024
_FIELDS = "id, workspace, session, agent, cwd, upstream, created"


class SqliteLaunches:
    """The port `Launches` on a table that any number of processes share.

    Any thread may call any method. Raises StorageError when it is made and the file cannot be opened, and from
    `register` and `find` when it cannot be used later: a request whose launch cannot be looked up is not served.
    """

    def __init__(self, path: Path, *, clock: Clock) -> None:
        self._clock = clock
        self._database = open_database(path, LAUNCH_SCHEMA)
        self._lock = threading.Lock()
        self._cache: OrderedDict[str, Launch] = OrderedDict()

    def register(
        self, *, workspace: str, agent: str | None = None, cwd: str | None = None, upstream: str | None = None
    ) -> tuple[Launch, str]:
        """A new launch and its secret, which is stored only as a digest; `cwd` is the workspace unless given."""
        secret = secret_token()
        launch = Launch(
            id=random_id("l"),
            workspace=workspace,
            session=random_id("s", 12),
            agent=agent,
            cwd=cwd or workspace,
            upstream=upstream,
            created=self._clock.now(),
        )
        digest = digest_of_secret(secret)
        with self._database.transaction():
            self._database.execute("DELETE FROM launches WHERE created < ?", (self._oldest(),))
            self._database.execute(
                f"INSERT INTO launches (digest, {_FIELDS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - our own names
                (
                    digest,
                    launch.id,
                    launch.workspace,
                    launch.session,
                    launch.agent,
                    launch.cwd,
                    launch.upstream,
                    launch.created,
                ),
            )
        self._remember(digest, launch)
        return launch, secret

    def find(self, secret: str) -> Launch | None:
        """The launch whose secret this is; None when nobody registered it, or longer than 30 days ago."""
        digest = digest_of_secret(secret)
        with self._lock:
            launch = self._cache.get(digest)
        if launch is None:
            rows = self._database.query(f"SELECT {_FIELDS} FROM launches WHERE digest = ?", (digest,))  # noqa: S608 - our own names
            if not rows:
                return None
            launch = Launch(*rows[0])
            self._remember(digest, launch)
        return launch if launch.created >= self._oldest() else None

    def close(self) -> None:
        """Lets the file go; later calls that need it raise StorageError."""
        self._database.close()

    def _oldest(self) -> float:
        return self._clock.now() - LAUNCH_DAYS * 86_400

    def _remember(self, digest: str, launch: Launch) -> None:
        with self._lock:
            self._cache[digest] = launch
            self._cache.move_to_end(digest)
            if len(self._cache) > _CACHED:
                self._cache.popitem(last=False)
