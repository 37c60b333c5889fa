"""Observers: when they are told, what they get, and that they change nothing."""

import asyncio
import logging
import threading
from collections import UserDict
from dataclasses import dataclass
from typing import Any

import pytest

from interpose.chain.chain import Chain
from interpose.concerns.hooks.contract import SupportsHooks
from interpose.concerns.hooks.middleware import HooksMiddleware
from interpose.contracts.errors import MisuseError
from tests.concerns.calls import Run, Tool, both


def noisy(*_: Any) -> None:
    """An observer that fails."""
    raise LookupError("observer broke")


@both
def test_each_phase_is_told_in_list_order(run: Run) -> None:
    """Before with name and arguments, after with the result too; what observers return is ignored."""
    told: list[Any] = []

    def first(*seen: Any) -> str:
        told.append(("first", *seen))
        return "ignored"

    hooks = HooksMiddleware(
        pre=[first, lambda *seen: told.append(("second", *seen))],
        post=[lambda *seen: told.append(("post", *seen))],
        on_failure=[lambda *seen: told.append(("failure", *seen))],
    )
    assert run([hooks], Tool("out")) == "out"
    assert told == [
        ("first", "t", {"x": [1]}),
        ("second", "t", {"x": [1]}),
        ("post", "t", {"x": [1]}, "out"),
    ]


@both
@pytest.mark.parametrize("error", [ValueError("tool broke"), KeyboardInterrupt(), asyncio.CancelledError()])
def test_a_failure_is_told_and_raised_on_unchanged(run: Run, error: BaseException) -> None:
    """The very exception, interruptions too; the post phase is not told."""
    told: list[Any] = []
    hooks = HooksMiddleware(
        post=[lambda *seen: told.append("post")], on_failure=[lambda name, arguments, error: told.append(error)]
    )
    with pytest.raises(type(error)) as caught:
        run([hooks], Tool(error))
    assert told == [error]
    assert str(caught.value) == str(error)
    assert caught.value.__context__ is None


@both
def test_observers_cannot_change_a_call(run: Run) -> None:
    """Each gets its own copy of arguments and result, all the way down."""

    def spoiling(name: str, arguments: dict[str, Any], *result: Any) -> None:
        arguments["x"].append(2)
        arguments["y"] = 3
        for value in result:
            value["deep"][0].append("spoiled")
            value["set"].clear()

    seen: list[Any] = []
    tool = Tool({"deep": ([],), "set": {1}})
    hooks = HooksMiddleware(
        pre=[spoiling, lambda *given: seen.append(given)], post=[spoiling, lambda *given: seen.append(given)]
    )
    assert run([hooks], tool) == {"deep": ([],), "set": {1}}
    assert tool.runs == [("t", {"x": [1]})]
    assert seen == [("t", {"x": [1]}), ("t", {"x": [1]}, {"deep": ([],), "set": {1}})]


@both
def test_by_default_a_failing_observer_is_logged_and_the_call_goes_on(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    """The next observer is told too, and the log names phase, observer and tool."""
    told: list[str] = []
    hooks = HooksMiddleware(
        pre=[noisy, lambda *seen: told.append("pre")], post=[noisy, lambda *seen: told.append("post")]
    )
    assert run([hooks], Tool()) == "out"
    assert told == ["pre", "post"]
    assert [record.getMessage() for record in caplog.records] == [
        "the pre hook noisy failed at t; the call goes on",
        "the post hook noisy failed at t; the call goes on",
    ]
    assert {record.levelno for record in caplog.records} == {logging.ERROR}


@both
def test_with_raise_a_failing_observer_stops_the_call(run: Run) -> None:
    """Before: the tool does not run. After: the result is a failure. The failure phase hears of neither."""
    told: list[Any] = []
    before = HooksMiddleware(pre=[noisy], on_failure=[lambda *seen: told.append(seen)], on_hook_error="raise")
    after = HooksMiddleware(post=[noisy], on_failure=[lambda *seen: told.append(seen)], on_hook_error="raise")
    stopped, ran = Tool(), Tool()
    with pytest.raises(LookupError, match="observer broke") as first:
        run([before], stopped)
    with pytest.raises(LookupError, match="observer broke") as second:
        run([after], ran)
    assert "raised by the pre hook noisy at t" in first.value.__notes__
    assert "raised by the post hook noisy at t" in second.value.__notes__
    assert (stopped.runs, len(ran.runs), told) == ([], 1, [])


@both
@pytest.mark.parametrize("on_hook_error", ["log", "raise"])
def test_a_failing_failure_hook_never_replaces_the_error(
    run: Run, on_hook_error: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The tool's own exception goes on in both settings."""
    told: list[Any] = []
    hooks = HooksMiddleware(on_failure=[noisy, lambda *seen: told.append(seen)], on_hook_error=on_hook_error)
    with pytest.raises(ValueError, match="tool broke"):
        run([hooks], Tool(ValueError("tool broke")))
    assert len(told) == 1
    assert "the failure hook noisy failed at t" in caplog.text


def test_observers_come_and_go_at_run_time() -> None:
    """Added ones are told last; a call on its way keeps those it began with."""
    told: list[str] = []
    hooks = HooksMiddleware()

    def late(*_: Any) -> None:
        told.append("late")

    def adding(*_: Any) -> None:
        told.append("adding")
        hooks.add_pre_hook(late)

    hooks.add_pre_hook(adding)
    hooks.add_post_hook(late)
    hooks.add_failure_hook(late)
    chain = Chain([hooks])
    chain.call("t", {}, Tool())
    assert told == ["adding", "late"]

    hooks.remove_pre_hook(adding)
    hooks.remove_post_hook(late)
    hooks.remove_failure_hook(late)
    chain.call("t", {}, Tool())
    assert told == ["adding", "late", "late"]
    hooks.remove_pre_hook(late)
    chain.call("t", {}, Tool())
    assert told == ["adding", "late", "late"]


def test_misuse_is_named() -> None:
    """A coroutine function, what cannot be called, an unknown setting, and taking out what is not there."""

    async def never_awaited(*_: Any) -> None:
        """Would never run."""

    one: Any = noisy
    with pytest.raises(MisuseError, match=r"the post hooks are <function noisy.*expected a list of functions"):
        HooksMiddleware(post=one)
    with pytest.raises(MisuseError, match=r"the pre hook .*never_awaited is a coroutine function"):
        HooksMiddleware(pre=[never_awaited])
    with pytest.raises(MisuseError, match="'no function' is no post hook"):
        HooksMiddleware().add_post_hook("no function")  # type: ignore[arg-type]
    with pytest.raises(MisuseError, match='expected "log" or "raise"'):
        HooksMiddleware(on_hook_error="ignore")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="noisy is not among the failure hooks"):
        HooksMiddleware().remove_failure_hook(noisy)


def test_a_call_that_is_thrown_away_is_no_failure() -> None:
    """A coroutine that is closed before its end tells nobody."""
    told: list[Any] = []
    hooks = HooksMiddleware(on_failure=[lambda *seen: told.append(seen)])
    flow = hooks.flow("t", {})
    next(flow)
    flow.close()
    assert told == []


def test_it_is_found_by_its_contract() -> None:
    """An isinstance check answers, and the flag is the contract's."""
    assert isinstance(HooksMiddleware(), SupportsHooks)
    assert SupportsHooks.CAPABILITY == "hooks"


def test_one_instance_serves_many_threads_while_it_changes() -> None:
    """32 threads call and add at once: nothing is lost, and each call tells a whole list."""
    hooks = HooksMiddleware()
    chain = Chain([hooks])
    seen: list[int] = []
    barrier = threading.Barrier(32)

    def work(number: int) -> None:
        barrier.wait(10)
        hooks.add_post_hook(lambda name, arguments, result: seen.append(number))
        assert chain.call("t", {"n": number}, lambda name, arguments: arguments["n"]) == number

    threads = [threading.Thread(target=work, args=(number,)) for number in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seen.clear()
    chain.call("t", {}, Tool())
    assert sorted(seen) == list(range(32))


@dataclass
class Note:
    """Data of an application's own."""

    text: str


@both
def test_an_observer_that_edits_data_changes_nothing(run: Run) -> None:
    """Neither what the tool and the next observer get, nor the result; whatever kind of data it is."""
    seen: list[Any] = []

    def editing(tool_name: str, arguments: dict[str, Any], *result: Any) -> None:
        seen.append((arguments["note"].text, *(each.text for each in result)))
        for note in (arguments["note"], *result):
            note.text = "spoilt"
        arguments["user"]["a"].append(2)

    tool = Tool(result=Note("result"))
    hooks = HooksMiddleware(pre=[editing, editing], post=[editing, editing], on_hook_error="raise")
    result = run([hooks], tool, {"note": Note("mine"), "user": UserDict(a=[1])})
    assert seen == [("mine",), ("mine",), ("mine", "result"), ("mine", "result")]
    assert result == Note("result")
    assert tool.runs == [("t", {"note": Note("mine"), "user": UserDict(a=[1])})]
