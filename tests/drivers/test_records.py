"""The record of a call whose tool is in a driver further in: what ran, and whether it did."""

import asyncio
from typing import Any

import pytest

from interpose.contracts.drivers import DriverResponse
from interpose.contracts.sheet import DriverMeta
from interpose.contracts.tools import Arguments, CallNext
from interpose.drivers.children import invoke
from interpose.drivers.driver import BaseDriver
from interpose.drivers.hosted import HostedDriver
from interpose.drivers.orchestrator import Orchestrator
from tests.drivers.making import BareLeaf, Denying, Doing, Leaf, Rewriting, Tracing, call_text

ASKED = {"text": "hi"}


class Hosting(HostedDriver):
    """Whatever it is given."""

    meta = DriverMeta("test.hosting", "Hosting", "1")


def nests(leaf: BaseDriver) -> list[BaseDriver]:
    """Drivers around a driver, all of whose tools have one name."""
    return [
        leaf,
        Orchestrator({"a": leaf}),
        Orchestrator({"a": Orchestrator({"b": leaf})}, middleware=[Tracing()]),
        Hosting(leaf, {"middleware": [Tracing()]}),
        Orchestrator({"a": Hosting(Orchestrator({"b": leaf}), {})}),
    ]


def responses(driver: BaseDriver, name: str = "echo") -> list[DriverResponse]:
    """What comes of one call, sync and async."""
    ask = call_text(name, **ASKED)
    return [driver.process_llm_response(ask), asyncio.run(driver.process_llm_response_async(ask))]


@pytest.mark.parametrize("number", range(5))
def test_a_call_that_a_list_further_in_answers_did_not_run(number: int) -> None:
    """The record says so, whichever list it was."""
    leaf = Leaf(middleware=[Denying()])
    for response in responses(nests(leaf)[number]):
        record = response.tool_calls[0]
        assert (record.outcome, record.result) == ("short_circuited", "denied")
        assert (record.executed_name, record.executed_arguments) == (None, None)
    assert leaf.runs == []


@pytest.mark.parametrize("number", range(5))
def test_the_record_says_what_the_tool_ran_with(number: int) -> None:
    """What every list has made of it, and not what the tool makes of its arguments."""

    def filling(tool_name: str, arguments: dict[str, Any]) -> str:
        arguments["more"] = arguments.pop("text")
        return "done"

    leaf = Leaf(act=filling, middleware=[Rewriting(lambda name, arguments: (name, {**arguments, "text": "changed"}))])
    for response in responses(nests(leaf)[number]):
        record = response.tool_calls[0]
        assert (record.outcome, record.executed_name) == ("executed", "echo")
        assert record.executed_arguments == {"text": "changed"}


def test_the_record_has_the_name_that_the_asked_driver_knows() -> None:
    """Also of a tool that a list further in has put in the place of another."""
    leaf = Leaf(middleware=[Rewriting(lambda name, arguments: ("echo", arguments))])
    host = Orchestrator({"a": Orchestrator({"b": leaf, "c": BareLeaf()}), "d": BareLeaf()})
    for name, ran in (("a__b__fail", "a__b__echo"), ("a__c__echo", "a__c__echo"), ("d__echo", "d__echo")):
        for response in responses(host, name):
            record = response.tool_calls[0]
            assert (record.outcome, record.executed_name, record.executed_arguments) == ("executed", ran, ASKED)


def test_of_a_call_that_fails_before_the_tool_nothing_ran() -> None:
    """In a list further in as in the own one; of a tool that fails the record says what it ran with."""

    def broken(tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        raise LookupError("no quota")

    for driver in nests(Leaf(middleware=[Doing(broken)])):
        for response in responses(driver):
            record = response.tool_calls[0]
            assert (record.outcome, record.executed_name, record.executed_arguments) == ("failed", None, None)
    for driver in nests(Leaf()):
        for response in responses(driver, "fail"):
            record = response.tool_calls[0]
            assert (record.outcome, record.executed_name, record.executed_arguments) == ("failed", "fail", ASKED)


def test_what_a_tool_calls_by_itself_is_no_run_of_it() -> None:
    """A tool that asks another driver has run, whatever that one's list says."""
    denied = Leaf(middleware=[Denying()])
    driver = Leaf(act=lambda name, arguments: invoke(denied, "echo", arguments))
    for response in responses(Orchestrator({"a": driver})):
        record = response.tool_calls[0]
        assert (record.outcome, record.result, record.executed_arguments) == ("executed", "denied", ASKED)
