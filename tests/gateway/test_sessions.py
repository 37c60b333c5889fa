"""gateway.sessions, and the ledger on it."""

import asyncio
import sqlite3
from pathlib import Path

import pytest

from interpose.contracts.errors import StorageError
from interpose.contracts.verdict import Reminder, Verdict
from interpose.gateway.api import Mark, NewResult, NewTurn, ProposedCall, ResultEdit, Resumed, TurnEdit
from interpose.gateway.ledger import Ledger, SessionLedger
from interpose.gateway.sessions import KEPT_S, LOOK_EVERY_S, PARTS_KEPT, SCHEMA, SESSIONS_KEPT, SqliteLedgers
from interpose.kernel.db import Schema, open_database
from interpose.testing.fakes import FakeClock

MARK = Mark({"type": "tool_use", "id": "t1", "name": "Bash", "input": {"b": 1.5, "a": "ü"}}, "no", ends_round=True)

REMINDER = Reminder("r", "info", "remember this")


def open_store(folder: Path, clock: FakeClock | None = None, told: list[str] | None = None) -> SqliteLedgers:
    """A store in `folder`; what it loses is told to `told`."""
    lost = (told if told is not None else []).append
    return SqliteLedgers(folder / "state.db", clock=clock or FakeClock(), lost=lost)


async def filled(ledger: SessionLedger) -> None:
    """One part of every kind, and parts that edit nothing."""

    async def edit() -> ResultEdit:
        return ResultEdit("below", front="above")

    async def no_edit() -> ResultEdit:
        return ResultEdit()

    async def turn() -> TurnEdit:
        return TurnEdit("reminder", replacement="other words")

    await ledger.result_once(NewResult("t1", "d1", "Bash", {}, "out"), edit)
    await ledger.result_once(NewResult("t2", "d2", "Bash", {}, "out"), no_edit)
    await ledger.turn_once(NewTurn(3, "d3", "hi"), turn)
    ledger.keep_mark("root", "[interpose] line", 1, MARK)
    ledger.keep_resumed("resp_1", Resumed("resp_2", (MARK,)))
    ledger.remember_call(
        ProposedCall("t4", "Bash", {"command": "ls"}), Verdict("a", "tool.call", "patched", arguments={"command": "x"})
    )
    ledger.remember_call(ProposedCall("t5", "Bash", {"command": "ls"}), Verdict("a", "tool.call", "allowed"))
    ledger.wait_for_turn([REMINDER])


def test_a_new_process_knows_every_edit(tmp_path: Path) -> None:
    """All that edits a history is there again, and nothing else."""
    store = open_store(tmp_path)
    ledger = Ledger(store)
    asyncio.run(filled(asyncio.run(ledger.session("l1", "s1"))))
    store.close()

    again = open_store(tmp_path)
    restored = asyncio.run(Ledger(again).session("l1", "s1"))
    other = asyncio.run(Ledger(again).session("l1", "s2"))
    again.close()

    assert restored.result_edit("t1", "d1") == ResultEdit("below", front="above")
    assert restored.result_edit("t2", "d2") is None
    assert list(restored.edited_calls) == ["t1"]
    assert restored.turn_edit(3, "d3") == TurnEdit("reminder", replacement="other words")
    assert restored.mark("root", "[interpose] line", 1) == MARK
    assert list(restored.lines("root")) == ["[interpose] line"]
    assert restored.resumed("resp_1") == Resumed("resp_2", (MARK,))
    assert restored.original("t4", {"command": "x"}) == {"command": "ls"}
    assert restored.released_call("t4") == (
        ProposedCall("t4", "Bash", {"command": "ls"}),
        Verdict("a", "tool.call", "patched", arguments={"command": "x"}),
    )
    assert restored.released_call("t5") is None
    assert restored.waiting() == (REMINDER,)
    assert restored.restored == 7
    assert (other.restores, other.restored) == (False, 0)


def test_the_same_process_finds_a_session_that_it_forgot(tmp_path: Path) -> None:
    """Memory is bounded; what fell out of it is read again, also when it has just been kept."""
    store = open_store(tmp_path)
    ledger = Ledger(store, sessions=1)

    async def story() -> SessionLedger:
        first = await ledger.session("", "s1")
        first.keep_mark("root", "line", 0, MARK)
        await ledger.session("", "s2")
        return await ledger.session("", "s1")

    assert asyncio.run(story()).mark("root", "line", 0) == MARK
    store.close()


def test_old_and_many_sessions_are_forgotten(tmp_path: Path) -> None:
    """The file does not grow without end."""
    clock = FakeClock()
    store = open_store(tmp_path, clock)
    store.keep("l", "old", "mark", "[]", b"{}")
    clock.advance(KEPT_S + 1)
    for number in range(SESSIONS_KEPT + 2):
        store.keep("l", f"s{number}", "mark", "[]", b"{}")
        clock.advance(0.001)
    store.close()

    again = open_store(tmp_path, clock)
    assert [list(again.load("l", name)) for name in ("old", "s0", "s1")] == [[], [], []]
    assert list(again.load("l", "s2")) == [("mark", "[]", b"{}")]
    again.close()


def test_of_a_part_that_is_kept_anew_the_newest_is_there(tmp_path: Path) -> None:
    """It stands behind those kept before it, in this process and the next one; the earlier ones are forgotten."""
    store = open_store(tmp_path)
    for name, value in [("[1]", b"a"), ("[2]", b"b"), ("[1]", b"c"), ("[3]", b"d"), ("[1]", b"e")]:
        store.keep("l", "s", "mark", name, value)
    store.keep("l", "t", "mark", "[2]", b"of another session")
    now = list(store.load("l", "s"))
    store.close()

    again = open_store(tmp_path)
    later = list(again.load("l", "s"))
    again.close()

    assert now == later == [("mark", "[2]", b"b"), ("mark", "[3]", b"d"), ("mark", "[1]", b"e")]
    with sqlite3.connect(tmp_path / "state.db") as connection:
        assert connection.execute("SELECT count(*) FROM session_parts").fetchone() == (4,)


def test_of_too_many_parts_those_kept_last_are_there(tmp_path: Path) -> None:
    """A session does not grow without end."""
    store = open_store(tmp_path)
    for number in range(PARTS_KEPT + 2):
        store.keep("l", "s", "mark", f"[{number}]", b"{}")
    found = list(store.load("l", "s"))
    store.close()

    assert len(found) == PARTS_KEPT
    assert (found[0][1], found[-1][1]) == ("[2]", f"[{PARTS_KEPT + 1}]")


def test_a_table_of_the_form_before_keeps_its_parts(tmp_path: Path) -> None:
    """What an earlier version wrote is known, in the order of its changes."""
    former, now = Schema("gateway", SCHEMA.migrations[:2]), FakeClock().now()
    database = open_database(tmp_path / "state.db", former)
    for at, key in enumerate(["[1]", "[2]", "[1]"]):
        database.execute(
            "INSERT OR REPLACE INTO session_parts VALUES ('l', 's', 'mark', ?, ?, ?)", (key, b"%d" % at, now + at)
        )
    database.close()

    store = open_store(tmp_path)
    found = list(store.load("l", "s"))
    store.close()

    assert found == [("mark", "[2]", b"1"), ("mark", "[1]", b"2")]


def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    """A part of a later version, or a damaged one, takes nothing else along."""
    store = open_store(tmp_path)
    for kind, key, value in [
        ("mark", "[1]", b"{}"),
        ("mark", "no json", b"{}"),
        ("result", '["t","d"]', b'{"addition": 5}'),
        ("new kind", "[]", b"{}"),
        ("original", '["t"]', b"[]"),
        ("turn", '["x","d"]', b"{}"),
        ("call", '["t"]', b'{"call": {"call_id": "t"}}'),
        ("call", "[]", b"{}"),
        ("waiting", "[]", b'[{"handler": 5}]'),
    ]:
        store.keep("l", "s", kind, key, value)
    ledger = asyncio.run(Ledger(store).session("l", "s"))
    store.close()

    assert (ledger.restores, list(ledger.edited_calls), list(ledger.edited_positions)) == (False, [], [])
    assert (ledger.released_call("t"), ledger.waiting(), ledger.restored) == (None, (), 0)


def test_a_file_that_is_damaged_later_stops_nothing(tmp_path: Path) -> None:
    """What cannot be kept is told, and the session goes on in memory."""
    told: list[str] = []
    clock = FakeClock()
    store = open_store(tmp_path, clock, told)
    with sqlite3.connect(tmp_path / "state.db") as connection:
        connection.execute("DROP TABLE session_parts")
    clock.advance(LOOK_EVERY_S)
    ledger = asyncio.run(Ledger(store).session("l", "s"))
    ledger.keep_mark("root", "line", 0, MARK)
    store.flush()
    store.close()

    assert ledger.mark("root", "line", 0) == MARK
    assert [text.split(":")[0] for text in told] == [
        "what a session was told before cannot be read",
        "1 parts of sessions are not kept for the next process",
    ]


def test_a_folder_that_cannot_be_used_is_said_at_once(tmp_path: Path) -> None:
    """The error names the file."""
    (tmp_path / "state.db").write_bytes(b"no database, and long enough to be seen as none" * 20)
    with pytest.raises(StorageError, match=r"state\.db"):
        open_store(tmp_path)


def test_a_session_may_be_known_from_the_moment_that_a_part_is_kept(tmp_path: Path) -> None:
    """Whether it waits, is written, or was written by another process; one without parts is not known."""
    clock = FakeClock()
    store, other = open_store(tmp_path, clock), open_store(tmp_path)
    before = store.may_know("l", "s1")
    other.keep("l", "s1", "mark", "[]", b"{}")
    waiting = other.may_know("l", "s1")
    other.flush()
    clock.advance(LOOK_EVERY_S)
    written = (store.may_know("l", "s1"), other.may_know("l", "s1"))
    others = (store.may_know("l", "s2"), store.may_know("", "s1"))
    store.close()
    other.close()

    assert (before, waiting, written, others) == (False, True, (True, True), (False, False))


def test_a_session_that_nobody_can_look_for_may_be_known(tmp_path: Path) -> None:
    """Then it is loaded, which tells what is wrong."""
    store = open_store(tmp_path)
    store.close()
    assert store.may_know("l", "s")


def test_a_part_that_is_kept_too_late_is_lost(tmp_path: Path) -> None:
    """Also where nothing was kept before: no thread is started for a file that was let go."""
    store = open_store(tmp_path)
    store.close()
    store.keep("l", "s", "mark", "[]", b"{}")
    assert store.flush()
    store.close()

    again = open_store(tmp_path)
    assert list(again.load("l", "s")) == []
    again.close()


def test_what_others_keep_of_a_session_is_news(tmp_path: Path) -> None:
    """Until it is loaded; what this process keeps itself is none, however often it is kept anew."""
    clock = FakeClock()
    store, other = open_store(tmp_path, clock), open_store(tmp_path)

    def later() -> tuple[bool, bool]:
        store.flush()
        other.flush()
        clock.advance(2 * LOOK_EVERY_S)
        return store.has_news("l", "s"), store.has_news("l", "t")

    seen: dict[str, tuple[bool, bool]] = {}
    for _ in range(3):
        store.keep("l", "s", "mark", "[1]", b"{}")
    seen["own"] = later()
    other.keep("l", "s", "mark", "[2]", b"{}")
    store.keep("l", "s", "mark", "[1]", b"{}")
    seen["both"] = later()
    seen["not loaded"] = later()
    found = sorted(store.load("l", "s"))
    seen["loaded"] = later()
    store.keep("l", "s", "mark", "[1]", b"{}")
    seen["own again"] = later()
    other.keep("l", "t", "mark", "[1]", b"{}")
    seen["another"] = later()
    store.close()
    other.close()

    assert found == [("mark", "[1]", b"{}"), ("mark", "[2]", b"{}")]
    assert seen == {
        "own": (False, False),
        "both": (True, False),
        "not loaded": (True, False),
        "loaded": (False, False),
        "own again": (False, False),
        "another": (False, True),
    }


def test_what_could_not_be_written_hides_nobodys_news(tmp_path: Path) -> None:
    """The parts that are lost are not taken for those that another process writes later."""
    told: list[str] = []
    clock = FakeClock()
    store = open_store(tmp_path, clock, told)
    with sqlite3.connect(tmp_path / "state.db") as connection:
        connection.execute("ALTER TABLE session_parts RENAME TO away")
    store.keep("l", "s", "mark", "[1]", b"{}")
    store.flush()
    with sqlite3.connect(tmp_path / "state.db") as connection:
        connection.execute("ALTER TABLE away RENAME TO session_parts")
    store.load("l", "s")
    other = open_store(tmp_path)
    other.keep("l", "s", "mark", "[2]", b"{}")
    other.close()
    clock.advance(LOOK_EVERY_S)
    has_news = store.has_news("l", "s")
    store.close()

    assert (len(told), has_news) == (1, True)


def test_a_session_that_another_process_served_is_read_again(tmp_path: Path) -> None:
    """Its edits are there, and what was given out there is not given out here; the shared memory is left as it is."""
    clock = FakeClock()
    store, other = open_store(tmp_path, clock), open_store(tmp_path, clock)
    here, there = Ledger(store), Ledger(other)

    async def story() -> tuple[SessionLedger, SessionLedger]:
        first = await here.session("l", "s")
        first.wait_for_turn([REMINDER])
        shared = await here.session("l", "")
        store.flush()
        clock.advance(2 * LOOK_EVERY_S)
        elsewhere = await there.session("l", "s")
        assert elsewhere.waiting() == (REMINDER,)
        elsewhere.keep_mark("root", "line", 0, MARK)
        (await there.session("l", "")).keep_followed("resp_1", "s")
        other.flush()
        clock.advance(2 * LOOK_EVERY_S)
        assert await here.session("l", "s") is first
        assert await here.session("l", "") is shared
        return first, shared

    first, shared = asyncio.run(story())
    store.close()
    other.close()

    assert (first.mark("root", "line", 0), first.waiting()) == (MARK, ())
    assert shared.followed("resp_1") is None
