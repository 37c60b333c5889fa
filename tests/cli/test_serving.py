"""cli.serving: what `up` shows of the journal that several processes write."""

import io
import sqlite3
from contextlib import closing
from pathlib import Path
from queue import SimpleQueue

from rich.console import Console

from interpose.assembly.folders import Folders
from interpose.assembly.runtime import Runtime
from interpose.cli.feed import Feed
from interpose.cli.output import THEME
from interpose.cli.serving import followed
from interpose.contracts.journal import Record


class Screen(io.StringIO):
    """A terminal whose lines are waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: SimpleQueue[str] = SimpleQueue()

    def write(self, text: str) -> int:
        """Keeps what is printed, but for line ends alone."""
        if text.strip():
            self.texts.put(text)
        return len(text)

    def next(self) -> str:
        """What is printed next, waited for."""
        return self.texts.get(timeout=10)


def put_in_place(path: Path, content: Path) -> None:
    """Another file stands where the journal was, and nothing else of it is left."""
    for end in ("-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)
    content.replace(path)


def test_a_journal_that_can_be_read_again_is_followed_on(folders: Folders, tmp_path: Path) -> None:
    """Damage is told once; then a new file's lines come, and, from a copy of what was shown, only what is new."""
    screen = Screen()
    feed = Feed(Console(file=screen, theme=THEME, width=1_000))
    feed.start("http://127.0.0.1:1", "http://127.0.0.1:1", "/w", "http://127.0.0.1:1/l/x")
    journal, copy = folders.journal_db, tmp_path / "copy.db"
    with Runtime.open(folders, asks=False) as runtime:

        def write(reason: str) -> None:
            at = runtime.clock.now()
            runtime.journal.write(Record(at, "a1", "verdict", outcome="refused", reason=reason))

        write("before")
        assert runtime.journal.flush()
        with followed(runtime, feed):
            write("first")
            assert "first" in screen.next()

            damaged = tmp_path / "damaged.db"
            damaged.write_bytes(b"no database " * 1_000)
            put_in_place(journal, damaged)
            write("second")
            assert f"cannot be shown until the journal can be read again: {journal}: " in screen.next()

            journal.unlink()
            write("third")
            lines = screen.next() + (screen.next() if screen.texts.qsize() else "")
            assert "second" in lines
            assert "third" in lines or "third" in screen.next()

            runtime.journal.flush()
            with closing(sqlite3.connect(journal)) as database:
                database.execute("VACUUM INTO ?", (str(copy),))
            put_in_place(journal, copy)
            write("fourth")
            lines = screen.next()
            while "fourth" not in lines:  # between two files it may say again that there is none
                assert "cannot be shown" in lines
                lines = screen.next()
        assert screen.texts.empty()
