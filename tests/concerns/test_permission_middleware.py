"""Consent: what counts as a yes, what it is bound to, and what a no looks like."""

import asyncio
import contextvars
import json
import threading
from collections import UserDict
from dataclasses import dataclass
from typing import Any

import pytest

from interpose.chain.chain import Chain
from interpose.concerns.permission.approvals import ApprovalsConsent
from interpose.concerns.permission.contract import ConsentError, SupportsConsent
from interpose.concerns.permission.middleware import PermissionMiddleware
from interpose.contracts.digest import call_digest
from interpose.contracts.errors import ConfigError, MisuseError
from interpose.contracts.ports import ApprovalRequest
from interpose.contracts.tools import Arguments, Call, Flow, FlowMiddleware
from interpose.testing.fakes import FakeApprovals
from tests.concerns.calls import Run, Tool, both, run_async, run_sync


class Person:
    """A consent handler that writes down what it was asked and gives one answer."""

    def __init__(self, answer: Any = True) -> None:
        self.answer = answer
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, tool_name: str, arguments: dict[str, Any]) -> Any:
        """The answer, or the exception."""
        self.asked.append((tool_name, arguments))
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


@both
def test_a_yes_runs_the_tool(run: Run) -> None:
    """The handler is asked with name and arguments before the tool runs."""
    person, tool = Person(), Tool()
    assert run([PermissionMiddleware(consent=person)], tool) == "out"
    assert person.asked == tool.runs == [("t", {"x": [1]})]


@both
@pytest.mark.parametrize("answer", [False, None, "yes", 1, "", object()])
def test_anything_but_true_denies(run: Run, answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    """The tool does not run, the result is JSON text, and an answer that is no bool is logged with the handler."""
    tool = Tool()
    denied = run([PermissionMiddleware(consent=Person(answer))], tool)
    assert json.loads(denied) == {
        "permission_denied": True,
        "tool": "t",
        "message": "t was not run: permission was not given.",
    }
    assert tool.runs == []
    assert ("the consent handler Person answered t with" in caplog.text) == (answer is not False)


@both
def test_a_handler_that_raises_denies_by_an_error_that_names_it(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    """The tool does not run; the text names handler and kind of error, and not what the error held."""
    tool = Tool()
    with pytest.raises(ConsentError) as caught:
        run([PermissionMiddleware(consent=Person(LookupError("a secret")))], tool)
    assert str(caught.value) == "t was not run: its consent handler Person failed with LookupError"
    assert isinstance(caught.value.__cause__, LookupError)
    assert tool.runs == []
    assert "the consent handler Person failed at t" in caplog.text


@both
def test_an_interruption_at_the_question_goes_through(run: Run) -> None:
    """Ctrl-C stops the program, and nothing runs."""
    tool = Tool()
    with pytest.raises(KeyboardInterrupt):
        run([PermissionMiddleware(consent=Person(KeyboardInterrupt()))], tool)
    assert tool.runs == []


@both
def test_a_handler_that_raises_stopiteration_denies_too(run: Run) -> None:
    """Neither generators nor event loops are confused by it."""
    tool = Tool()
    with pytest.raises(ConsentError, match=r"Person failed with StopIteration$"):
        run([PermissionMiddleware(consent=Person(StopIteration()))], tool)
    assert tool.runs == []


@both
def test_without_a_handler_each_call_is_a_configuration_error(run: Run) -> None:
    """It names itself and the way out; the handler may be set, replaced and taken away later."""
    permission, tool = PermissionMiddleware(), Tool()
    with pytest.raises(ConfigError, match=r"^PermissionMiddleware: no consent handler is set, so t was not run \(.*"):
        run([permission], tool)
    permission.set_consent_handler(Person())
    assert run([permission], tool) == "out"
    permission.set_consent_handler(Person(False))
    assert "permission_denied" in run([permission], tool)
    permission.set_consent_handler(None)
    with pytest.raises(ConfigError):
        run([permission], tool)
    assert len(tool.runs) == 1


def test_a_handler_that_cannot_be_called_is_refused_when_set() -> None:
    """At construction and later."""
    with pytest.raises(MisuseError, match="'yes' is no consent handler"):
        PermissionMiddleware(consent="yes")  # type: ignore[arg-type]


@both
def test_what_was_asked_about_is_what_runs(run: Run) -> None:
    """A handler that edits what it was shown changes nothing."""

    def editing(tool_name: str, arguments: dict[str, Any]) -> bool:
        arguments["x"].append("more")
        return True

    tool = Tool()
    run([PermissionMiddleware(consent=editing)], tool)
    assert tool.runs == [("t", {"x": [1]})]


class Rewriting(FlowMiddleware):
    """Counts its calls into the arguments, and goes on as often as it is told to."""

    def __init__(self, *values: int) -> None:
        self.values = values

    def flow(self, tool_name: str, arguments: Arguments) -> Flow:
        """One call for each value."""
        result = None
        for value in self.values:
            result = yield tool_name, {"x": value}
        return result


@both
def test_consent_is_asked_about_the_rewritten_form(run: Run) -> None:
    """Inside of a middleware that rewrites, the person sees what will run."""
    person, tool = Person(), Tool()
    run([Rewriting(5), PermissionMiddleware(consent=person)], tool)
    assert person.asked == tool.runs == [("t", {"x": 5})]


@both
def test_a_yes_holds_for_one_digest_within_one_call(run: Run) -> None:
    """The same again is not asked twice; other arguments are; the next call is."""
    person, tool = Person(), Tool()
    run([Rewriting(5, 5, 6), PermissionMiddleware(consent=person)], tool)
    assert person.asked == [("t", {"x": 5}), ("t", {"x": 6})]
    assert len(tool.runs) == 3
    run([Rewriting(5), PermissionMiddleware(consent=person)], tool)
    assert len(person.asked) == 3


@both
def test_two_layers_with_one_handler_ask_once_and_with_two_ask_both(run: Run) -> None:
    """The yes of one handler is not the yes of another."""
    person, other, tool = Person(), Person(False), Tool()
    assert run([PermissionMiddleware(consent=person), PermissionMiddleware(consent=person)], tool) == "out"
    assert len(person.asked) == 1
    denied = run([PermissionMiddleware(consent=person), PermissionMiddleware(consent=other)], tool)
    assert "permission_denied" in denied
    assert (len(person.asked), len(other.asked), len(tool.runs)) == (2, 1, 1)


def test_a_no_is_not_remembered() -> None:
    """A person who is asked again may change their mind."""
    answers = iter([False, True])
    tool, call = Tool(), Call("")
    permission = PermissionMiddleware(consent=lambda name, arguments: next(answers))
    assert "permission_denied" in run_sync([permission], tool, call=call)
    assert run_sync([permission], tool, call=call) == "out"


@both
def test_what_the_tool_raises_goes_on_unchanged(run: Run) -> None:
    """Permission is about before, not after."""
    error = ValueError("mine")
    with pytest.raises(ValueError, match="mine") as caught:
        run([PermissionMiddleware(consent=Person())], Tool(error))
    assert caught.value is error


def test_an_async_handler_serves_async_lists_alone() -> None:
    """It is awaited there; in a sync list the error names it and the tool does not run."""

    async def later(tool_name: str, arguments: dict[str, Any]) -> bool:
        await asyncio.sleep(0)
        return True

    class Later:
        async def __call__(self, tool_name: str, arguments: dict[str, Any]) -> bool:
            return await later(tool_name, arguments)

    for handler in (later, Later()):
        tool = Tool()
        assert run_async([PermissionMiddleware(consent=handler)], tool) == "out"
        with pytest.raises(ConfigError, match=r"consent handler .*[lL]ater is async and t was called in a sync list"):
            run_sync([PermissionMiddleware(consent=handler)], tool)
        assert len(tool.runs) == 1


def test_the_loop_goes_on_while_a_person_thinks() -> None:
    """A plain handler is asked in a thread of its own, with the caller's context variables."""
    asked, answer = threading.Event(), threading.Event()
    user = contextvars.ContextVar[str]("user")
    seen: list[str] = []

    def thinking(tool_name: str, arguments: dict[str, Any]) -> bool:
        seen.append(user.get())
        asked.set()
        return answer.wait(10)

    async def work() -> Any:
        user.set("ada")
        chain = Chain([PermissionMiddleware(consent=thinking)])

        async def terminal(tool_name: str, arguments: dict[str, Any]) -> str:
            return "out"

        task = asyncio.ensure_future(chain.call_async("t", {}, terminal))
        assert await asyncio.to_thread(asked.wait, 10)
        assert not task.done()
        answer.set()
        return await task

    assert asyncio.run(work()) == "out"
    assert seen == ["ada"]


def test_cancelling_while_a_person_thinks_runs_nothing() -> None:
    """The late yes is a yes to nobody."""
    asked, answer, answered = threading.Event(), threading.Event(), threading.Event()
    tool = Tool()

    def thinking(tool_name: str, arguments: dict[str, Any]) -> bool:
        asked.set()
        answer.wait(10)
        answered.set()
        return True

    async def work() -> None:
        async def terminal(tool_name: str, arguments: dict[str, Any]) -> Any:
            return tool(tool_name, arguments)

        task = asyncio.ensure_future(Chain([PermissionMiddleware(consent=thinking)]).call_async("t", {}, terminal))
        assert await asyncio.to_thread(asked.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        answer.set()
        assert await asyncio.to_thread(answered.wait, 10)

    asyncio.run(work())
    assert tool.runs == []


def test_one_instance_serves_many_threads() -> None:
    """64 threads: each gets the answer to its own arguments."""
    permission = PermissionMiddleware(consent=lambda name, arguments: arguments["n"] % 2 == 0)
    chains = [Chain([permission]) for _ in range(4)]
    results: dict[int, Any] = {}
    barrier = threading.Barrier(64)

    def work(number: int) -> None:
        barrier.wait(10)
        results[number] = chains[number % 4].call("t", {"n": number}, lambda name, arguments: arguments["n"])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {n for n, result in results.items() if result == n} == set(range(0, 64, 2))
    assert all("permission_denied" in results[n] for n in range(1, 64, 2))


def test_it_is_found_by_its_contract() -> None:
    """An isinstance check answers, and the flag is the contract's."""
    assert isinstance(PermissionMiddleware(), SupportsConsent)
    assert SupportsConsent.CAPABILITY == "consent"


@both
def test_approvals_are_asked_with_the_digest(run: Run) -> None:
    """The request says what, why and its digest; the person's answer is the answer."""
    approvals = FakeApprovals(lambda request: request.arguments == {"x": [1]})
    consent = ApprovalsConsent(approvals, reason="it writes")
    tool = Tool()
    assert run([PermissionMiddleware(consent=consent)], tool) == "out"
    assert "permission_denied" in run([PermissionMiddleware(consent=consent)], tool, {"x": 2})
    digest = call_digest("t", {"x": [1]})
    assert approvals.requests[0] == ApprovalRequest("t", {"x": [1]}, digest, "it writes")
    assert len(tool.runs) == 1


@both
def test_silence_denies(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    """Nobody answered in time: denied, and the log says so."""
    tool = Tool()
    denied = run([PermissionMiddleware(consent=ApprovalsConsent(FakeApprovals(), timeout_s=2))], tool)
    assert "permission_denied" in denied
    assert tool.runs == []
    assert "nobody answered within 2 s whether t may run: denied" in caplog.text


@dataclass
class Note:
    """Data of an application's own, which says nothing of itself."""

    text: str

    __repr__ = object.__repr__


@both
def test_data_that_was_asked_about_is_what_runs(run: Run) -> None:
    """A handler that edits what it is shown edits a copy, whatever it is; nobody is asked twice about a copy."""
    tool, asked = Tool(), list[str]()

    def editing(tool_name: str, arguments: dict[str, Any]) -> bool:
        asked.append(tool_name)
        arguments["note"].text = "other"
        arguments["deep"]["user"]["a"].append(2)
        arguments["tags"].add("other")
        return True

    given = {"note": Note("mine"), "deep": {"user": UserDict(a=[1])}, "tags": {"a"}}
    run([PermissionMiddleware(consent=editing), PermissionMiddleware(consent=editing)], tool, given)
    assert asked == ["t"]
    (_, got) = tool.runs[0]
    assert (got["note"].text, got["deep"]["user"], got["tags"]) == ("mine", UserDict(a=[1]), {"a"})
    assert type(got["deep"]["user"]) is UserDict
