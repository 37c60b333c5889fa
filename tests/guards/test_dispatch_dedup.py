"""guards.dispatch_dedup: one task, once a turn."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from interpose.contracts.effects import Registration
from interpose.guards.dispatch_dedup import DispatchDedup, exited_well
from tests.guards.making import call, evaluated, reason, result

DONE = {"exitCode": 0}


@pytest.fixture
def guard() -> Registration:
    """A fresh guard."""
    return DispatchDedup().registration()


def done(guard: Registration, args: Mapping[str, Any], **more: Any) -> None:
    """Tells the guard that the task has been done."""
    assert evaluated(guard, result("agent", args, **({"details": DONE} | more))) == ()


def refused(guard: Registration, args: Mapping[str, Any], **more: Any) -> bool:
    """Whether the guard refuses the task."""
    return bool(reason(evaluated(guard, call("agent", args, **more))))


def test_a_task_that_was_done_is_refused_in_the_same_turn(guard: Registration) -> None:
    """The existing result is to be used; another turn, session or task is free."""
    task = {"task": "count lines"}
    assert not refused(guard, task)
    done(guard, task)
    assert refused(guard, task)
    assert not refused(guard, task, turn="t2")
    assert not refused(guard, task, session="s2")
    assert not refused(guard, {"task": "count words"})


@pytest.mark.parametrize(
    "same",
    [
        {"task": "  count lines "},
        {"task": "count lines", "agent": "coder"},
        {"task": "count lines", "agent_id": " coder "},
        {"task": "count lines", "agentId": "coder"},
        {"task": "count lines", "kind": "coder"},
        {"task": "count lines", "model": "  "},
        {"task": "count lines", "description": "any words"},
        {"task": "count lines", "requiredCapabilities": []},
    ],
)
def test_spelling_makes_no_other_task(guard: Registration, same: Mapping[str, Any]) -> None:
    """Blanks, aliases and the default agent are the same task."""
    done(guard, {"task": "count lines"})
    assert refused(guard, same)


@pytest.mark.parametrize(
    "field",
    [
        "agent",
        "target",
        "model",
        "profile",
        "runtime",
        "toolProfile",
        "tool_profile",
        "thinkingLevel",
        "thinking_level",
        "cwd",
        "memorySection",
        "memory_section",
    ],
)
def test_every_field_that_matters_makes_another_task(guard: Registration, field: str) -> None:
    """A different value is a different task, and the same value the same one."""
    done(guard, {"task": "x", field: "one"})
    assert refused(guard, {"task": "x", field: "one"})
    assert not refused(guard, {"task": "x", field: "two"})
    assert not refused(guard, {"task": "x"})


def test_both_spellings_of_a_field_and_any_order_of_capabilities_are_one(guard: Registration) -> None:
    """Snake and camel case mean the same; capabilities are a set."""
    done(guard, {"task": "x", "toolProfile": "small", "requiredCapabilities": ["b", " a "]})
    assert refused(guard, {"task": "x", "tool_profile": "small", "required_capabilities": ["a", "b"]})
    assert not refused(guard, {"task": "x", "tool_profile": "small", "required_capabilities": ["a"]})


@pytest.mark.parametrize(
    "more",
    [
        {"ok": False},
        {"details": None},
        {"details": {"exitCode": 1}},
        {"details": {"exitCode": "0"}},
        {"details": {"exitCode": False}},
    ],
)
def test_failures_are_never_remembered(guard: Registration, more: Mapping[str, Any]) -> None:
    """Only a good result with exit code 0 is done."""
    done(guard, {"task": "x"}, **more)
    assert not refused(guard, {"task": "x"})


@pytest.mark.parametrize("args", [{}, {"task": " "}, {"task": 5}, {"tasks": [{"task": "x"}]}])
def test_what_names_no_task_is_not_compared(guard: Registration, args: Mapping[str, Any]) -> None:
    """Batches and unreadable tasks pass."""
    done(guard, args)
    assert not refused(guard, args)


def test_without_a_turn_nothing_is_remembered(guard: Registration) -> None:
    """A memory that no turn ends would refuse for ever."""
    done(guard, {"task": "x"}, turn=None)
    assert not refused(guard, {"task": "x"}, turn=None)


def test_the_oldest_of_very_many_is_forgotten(guard: Registration) -> None:
    """Tasks and turns are bounded."""
    for number in range(300):
        done(guard, {"task": str(number)})
    assert not refused(guard, {"task": "0"})
    assert refused(guard, {"task": "299"})
    for number in range(40):
        done(guard, {"task": "x"}, turn=f"n{number}")
    assert not refused(guard, {"task": "299"})


def test_many_threads_may_ask(guard: Registration) -> None:
    """Each task that was done is refused to whoever asks later."""

    def work(number: int) -> bool:
        done(guard, {"task": str(number)})
        return refused(guard, {"task": str(number)})

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(100)))


def test_it_is_asked_for_delegations_alone(guard: Registration) -> None:
    """The scope is one canonical tool."""
    assert guard.tool_names == ("agent",)
    assert exited_well({"exitCode": 0})
