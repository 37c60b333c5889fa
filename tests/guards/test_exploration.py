"""guards.exploration: a round that only looks around."""

from collections.abc import Mapping
from typing import Any

import pytest

from interpose.contracts.effects import InjectReminder, Registration
from interpose.guards.exploration import LOOKS, ExplorationNudge
from tests.guards.making import call, ended, evaluated, reader, result

READ = {"path": "a"}
SCOUT = {"task": "look", "kind": "scout"}


@pytest.fixture
def nudge() -> Registration:
    """A fresh nudge."""
    return ExplorationNudge(reader=reader()).registration()


def look(nudge: Registration, times: int = LOOKS, **more: Any) -> None:
    """Looks around so many times."""
    for _ in range(times):
        assert evaluated(nudge, call("read", READ, **more)) == ()


def advised(nudge: Registration, **more: Any) -> bool:
    """Whether the end of a round brings the advice."""
    effects = evaluated(nudge, ended("ok", **({"activeToolNames": "read,agent"} | more)))
    assert all(isinstance(effect, InjectReminder) and effect.severity == "info" for effect in effects)
    return bool(effects)


def test_nine_looks_in_a_round_are_worth_a_word(nudge: Registration) -> None:
    """Eight are not; the advice comes once in a turn."""
    look(nudge, 8)
    assert not advised(nudge)
    look(nudge, 8)
    assert not advised(nudge)
    look(nudge, 9)
    assert advised(nudge)
    look(nudge, 9)
    assert not advised(nudge)
    look(nudge, 9, turn="t2")
    assert advised(nudge, turn="t2")


@pytest.mark.parametrize(
    ("tool", "args", "counts"),
    [
        ("read", READ, True),
        ("search", {"pattern": "x"}, True),
        ("grep", {}, True),
        ("find", {}, True),
        ("ls", {}, True),
        ("code_nav", {}, True),
        ("git", {}, True),
        ("context", {}, True),
        ("context", {"scope": "workspace"}, True),
        ("context", {"scope": "session"}, False),
        ("shell", {"command": "cat a | grep b"}, True),
        ("shell", {"command": "git log"}, True),
        ("shell", {"command": "wc -l a"}, True),
        ("shell", {"command": "/usr/bin/rg x"}, True),
        ("shell", {"command": "npm test"}, False),
        ("shell", {"command": "$X a"}, False),
        ("shell", {"command": "echo cat"}, False),
        ("shell", {"command": "cat 'a"}, False),
        ("shell", {}, False),
        ("write", {"path": "a"}, False),
        ("agent", SCOUT, False),
    ],
)
def test_which_calls_only_look(nudge: Registration, tool: str, args: Mapping[str, Any], counts: bool) -> None:
    """Reading tools, and commands that start with a program that reads."""
    for _ in range(LOOKS):
        evaluated(nudge, call(tool, args))
    assert advised(nudge) is counts


@pytest.mark.parametrize("more", [{"activeToolNames": "read"}, {"activeToolNames": None}, {"stopReason": "length"}])
def test_it_is_silent_where_nothing_can_be_delegated_or_the_turn_was_cut(
    nudge: Registration, more: dict[str, Any]
) -> None:
    """The mount must say that tasks can be given away."""
    look(nudge)
    assert not advised(nudge, **more)
    assert not advised(nudge)


@pytest.mark.parametrize(
    ("args", "silences"),
    [
        (SCOUT, True),
        ({"task": "x", "agent": " Scout "}, True),
        ({"task": "x", "agent_id": "scout"}, True),
        ({"task": "x"}, False),
        ({"task": "x", "kind": "coder"}, False),
        ({"tasks": [{"agent": "coder"}, {"agent": "scout"}]}, True),
        ({"tasks": [{"task": "x"}], "agent": "scout"}, True),
        ({"tasks": ["x"], "agent": "scout"}, True),
        ({"tasks": [{"task": "x"}]}, False),
        ({"tasks": '[{"agent": "scout"}]'}, True),
        ({"tasks": '{"agent": "scout"}'}, True),
        ({"tasks": {"agent": "scout"}}, True),
        ({"tasks": "no json", "agent": "scout"}, True),
        ({"tasks": 5}, False),
        ({"tasks": "[" * 100_000}, False),
        (SCOUT | {"mode": "compete"}, False),
        (SCOUT | {"mode": "review"}, False),
        (SCOUT | {"list": True}, False),
        (SCOUT | {"apply_winner": "1"}, False),
        (SCOUT | {"mode": "single"}, True),
    ],
)
def test_a_scout_that_went_well_silences_it(nudge: Registration, args: Mapping[str, Any], silences: bool) -> None:
    """Whoever gave a task to a scout in this turn needs no advice."""
    look(nudge)
    evaluated(nudge, result("agent", args))
    assert advised(nudge) is not silences


def test_a_scout_that_failed_does_not(nudge: Registration) -> None:
    """Only success counts, and only of a delegation."""
    look(nudge)
    evaluated(nudge, result("agent", SCOUT, ok=False))
    evaluated(nudge, result("read", SCOUT))
    assert advised(nudge)


def test_the_turn_of_the_end_is_the_users_turn(nudge: Registration) -> None:
    """At the end of a turn the key of its tool hooks may stand in the metadata."""
    look(nudge)
    assert not advised(nudge, turn="ledger-7")
    assert advised(nudge, turn="ledger-7", userTurnId="t1")


def test_sessions_are_apart_and_a_call_at_two_mounts_counts_once(nudge: Registration) -> None:
    """Neither another session nor an echo is a look."""
    look(nudge, session="s2")
    for number in range(8):
        for _ in range(2):
            evaluated(nudge, call("read", READ, call_id=f"c{number}"))
    assert not advised(nudge)
    assert advised(nudge, session="s2")
