"""A model's reply from end to end: several calls, failures, odd results, retry texts, sync and async."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.contracts.drivers import DriverResponse, Tool
from interpose.contracts.errors import ConfigError, MisuseError
from interpose.contracts.tools import Arguments, CallNext
from interpose.drivers.driver import BaseDriver
from interpose.drivers.prompts import PromptStrategy
from tests.drivers.making import (
    ECHO,
    AsyncOnly,
    Denying,
    Doing,
    Hiding,
    Leaf,
    Rewriting,
    anthropic_message,
    call_text,
    openai_message,
)

Process = Callable[..., DriverResponse]


def process_sync(driver: BaseDriver, reply: Any, **options: Any) -> DriverResponse:
    """The sync way."""
    return driver.process_llm_response(reply, **options)


def process_async(driver: BaseDriver, reply: Any, **options: Any) -> DriverResponse:
    """The async way."""
    return asyncio.run(driver.process_llm_response_async(reply, **options))


both = pytest.mark.parametrize("process", [process_sync, process_async])


def outcomes(response: DriverResponse) -> list[str]:
    """Of each call."""
    return [record.outcome for record in response.tool_calls]


@both
@pytest.mark.parametrize("reply", ["The answer is 42.", "", None, {"role": "assistant", "content": "42"}])
def test_an_answer_is_left_to_the_client(process: Process, reply: Any) -> None:
    """Neither executed nor failed, and nothing for the history."""
    assert process(Leaf(), reply) == DriverResponse()


@both
def test_a_call_runs_and_its_record_tells_all(process: Process) -> None:
    """Asked for, run, returned, and how long it took."""
    driver = Leaf(middleware=[Rewriting(lambda name, arguments: ("echo", {"text": "changed"}))])
    response = process(driver, openai_message(("c1", "fail", '{"x": 1}')))
    (record,) = response.tool_calls
    assert (record.call_id, record.tool_name, record.arguments) == ("c1", "fail", {"x": 1})
    assert (record.executed_name, record.executed_arguments) == ("echo", {"text": "changed"})
    assert (record.result, record.result_text, record.error, record.outcome) == ("changed", "changed", None, "executed")
    assert record.duration_ms > 0
    assert response.call_executed
    assert not response.call_failed
    assert response.tool_call_result == "changed"


@both
def test_several_calls_run_in_order_each_with_a_record(process: Process) -> None:
    """And each is answered under its own id."""
    driver = Leaf()
    reply = openai_message(("a", "echo", '{"text": "1"}'), ("b", "echo", '{"text": "2"}'))
    response = process(driver, reply)
    assert [arguments["text"] for _, arguments in driver.runs] == ["1", "2"]
    assert [(record.call_id, record.result) for record in response.tool_calls] == [("a", "1"), ("b", "2")]
    assert response.tool_call_result == "echo: 1\n\necho: 2"
    assert response.messages == (
        reply,
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "b", "content": "2"},
    )


@both
def test_the_first_failure_skips_the_rest(process: Process) -> None:
    """What ran before counts; the model is told about all; the response is a failure."""
    driver = Leaf()
    reply = anthropic_message(("a", "echo", {"text": "1"}), ("b", "fail", {}), ("c", "echo", {"text": "3"}))
    response = process(driver, reply)
    assert outcomes(response) == ["executed", "failed", "skipped"]
    assert [name for name, _ in driver.runs] == ["echo", "fail"]
    assert (response.call_executed, response.call_failed) == (False, True)
    assert response.tool_call_result == "1"
    assistant, user = response.messages
    assert assistant["role"] == "assistant"
    assert [(block["tool_use_id"], block["is_error"]) for block in user["content"]] == [
        ("a", False),
        ("b", True),
        ("c", True),
    ]
    assert "Not run" in user["content"][2]["content"]
    assert response.retry_prompt is not None
    assert response.retry_prompt.startswith("echo: 1\n\nfail: The tool fail failed: LookupError")


@both
def test_a_denial_is_a_result(process: Process) -> None:
    """Executed for the client, short-circuited for the host: the tool did not run."""
    driver = Leaf(middleware=[Denying()])
    response = process(driver, call_text("echo", text="hi"))
    assert response.call_executed
    assert outcomes(response) == ["short_circuited"]
    assert response.tool_calls[0].executed_name is None
    assert response.tool_call_result == "denied"
    assert driver.runs == []


def test_a_caught_failure_is_short_circuited_and_says_what_was_tried() -> None:
    """As with a challenge: the tool was reached and no result of it came back."""

    def catching(tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        try:
            return call_next(tool_name, arguments)
        except LookupError:
            return "log in first"

    (record,) = process_sync(Leaf(middleware=[Doing(catching)]), call_text("fail")).tool_calls
    assert (record.outcome, record.executed_name, record.error) == ("short_circuited", "fail", None)
    assert record.result == "log in first"


MALFORMED = [
    '{"text": ',
    '{"text": 1, "text": 2}',
    '{"text": NaN}',
    "[1]",
    "3",
    "null",
    '{"text": 1} {"text": 2}',
    None,
    7,
    ["text"],
]


@both
@pytest.mark.parametrize("arguments", MALFORMED)
def test_malformed_arguments_never_run(process: Process, arguments: Any) -> None:
    """Not with {} and not with a guess; the model is told what is wrong."""
    driver = Leaf()
    response = process(driver, openai_message(("a", "echo", arguments)))
    assert driver.runs == []
    assert outcomes(response) == ["failed"]
    assert response.tool_calls[0].arguments == {}
    assert response.retry_prompt is not None
    assert response.retry_prompt.startswith("The call of echo did not run: the arguments ")
    assert response.call_detail == response.tool_calls[0].error


@pytest.mark.parametrize(
    "entry", [3, {}, {"id": "a"}, {"id": "a", "function": {"arguments": "{}"}}, {"id": "a", "function": {"name": 7}}]
)
def test_a_call_without_a_name_fails(entry: Any) -> None:
    """It is not taken for an answer to the person."""
    response = process_sync(Leaf(), {"role": "assistant", "tool_calls": [entry]})
    assert outcomes(response) == ["failed"]
    assert outcomes(process_sync(Leaf(), {"role": "assistant", "tool_calls": {"a": 1}})) == ["failed"]


@both
def test_an_unknown_tool_is_another_drivers(process: Process) -> None:
    """Silence, so that the next driver may be asked; among known calls it fails and is told."""
    assert process(Leaf(), call_text("nobody")) == DriverResponse()
    reply = openai_message(("a", "echo", '{"text": "1"}'), ("b", "nobody", "{}"))
    response = process(Leaf(), reply)
    assert outcomes(response) == ["executed", "failed"]
    assert "There is no tool named nobody. There are: echo, fail." in str(response.retry_prompt)


def test_an_unknown_tool_can_be_told_at_once() -> None:
    """With the list of the tools that there are, hidden ones left out."""
    asking = replace(PromptStrategy.default(), unknown_tool="retry_with_list")
    response = process_sync(Leaf(prompts=asking, middleware=[Hiding("fail")]), call_text("nobody"))
    assert response.call_failed
    assert response.retry_prompt is not None
    assert "There are: echo." in response.retry_prompt


@both
def test_a_name_rewritten_to_one_that_there_is_not_fails(process: Process) -> None:
    """The final name is checked after the list, against what the driver has."""
    driver = Leaf(middleware=[Rewriting(lambda name, arguments: ("nobody", arguments))])
    response = process(driver, call_text("echo"))
    assert outcomes(response) == ["failed"]
    assert "There is no tool named nobody" in str(response.retry_prompt)
    assert driver.runs == []


class Odd:
    """Says nothing about itself."""

    def __repr__(self) -> str:
        raise OSError("no")


def circle() -> dict[str, Any]:
    """Holds itself."""
    value: dict[str, Any] = {}
    value["self"] = value
    return value


@both
@pytest.mark.parametrize(
    ("result", "text"),
    [
        (None, "null"),
        ({"a": ["ü", None]}, '{"a": ["ü", null]}'),
        ({1, 2}, '"{1, 2}"'),
        ({"when": Odd()}, '{"when": "a Odd that cannot be shown"}'),
        ({(1, 2): 3}, "{(1, 2): 3}"),
        (circle(), "{'self': {...}}"),
        (b"\xff", "\"b'\\\\xff'\""),
    ],
)
def test_a_result_of_any_kind_is_a_success(process: Process, result: Any, text: str) -> None:
    """The side effect has happened: what JSON cannot say is said some other way."""
    driver = Leaf(act=lambda name, arguments: result)
    response = process(driver, call_text("echo"))
    assert outcomes(response) == ["executed"]
    assert response.tool_call_result == text
    assert response.tool_calls[0].result is result


def test_secrets_do_not_reach_the_prompt() -> None:
    """What a failure says goes through the redactor, for the model and in the record; a failing redactor withholds."""
    response = process_sync(Leaf(), call_text("fail"))
    told = (response.retry_prompt, response.call_detail, response.tool_calls[0].error, response.messages[1]["content"])
    assert all("a" * 20 not in str(text) and "gone with sk-" in str(text) for text in told)

    def broken(text: str) -> str:
        raise ValueError(text)

    withheld = process_sync(Leaf(redact=broken), call_text("fail"))
    assert withheld.retry_prompt == withheld.call_detail == "the text of the failure is withheld: it may hold secrets"


def test_braces_in_an_error_stay_as_they_are() -> None:
    """A text is filled once."""

    def failing(name: str, arguments: dict[str, Any]) -> Any:
        raise ValueError("{tool} {error} {x}")

    response = process_sync(Leaf(act=failing), call_text("echo"))
    assert "The tool echo failed: ValueError: {tool} {error} {x}." in str(response.retry_prompt)


def test_an_error_without_a_text_is_named_by_its_type() -> None:
    """Also one whose text cannot be read."""

    class MuteError(Exception):
        """Raises when it is asked."""

        def __str__(self) -> str:
            raise OSError("no")

    for error, text in ((ValueError(), "ValueError."), (MuteError(), "MuteError: its text cannot be read.")):

        def failing(name: str, arguments: dict[str, Any], raised: Exception = error) -> Any:
            raise raised

        assert f"failed: {text}" in str(process_sync(Leaf(act=failing), call_text("echo")).retry_prompt)


@both
def test_a_wrong_configuration_is_named_to_the_operator_alone(process: Process) -> None:
    """The model is told not to try again."""

    def misconfigured(tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        raise ConfigError("SomeMiddleware", "has no handler", "give it one")

    response = process(Leaf(middleware=[Doing(misconfigured)]), call_text("echo"))
    assert response.call_detail == "Doing failed: SomeMiddleware: has no handler (give it one)"
    assert response.retry_prompt == "The tool echo is not available here. Do not call it again; answer without it."


@both
def test_a_list_of_tools_that_cannot_be_had_is_a_failed_call(process: Process) -> None:
    """Nothing runs, and the culprit is named."""

    class Broken(Hiding):
        """Returns nothing."""

        def on_list_tools(self, call_next: Any) -> Any:
            """None."""

    driver = Leaf(middleware=[Broken()])
    response = process(driver, call_text("echo"))
    assert response.call_detail is not None
    assert "Broken.on_list_tools returned NoneType: expected a sequence of Tool values" in response.call_detail
    assert driver.runs == []


@both
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_is_meant_for_the_process_passes(process: Process, error: type[BaseException]) -> None:
    """It is no failure of a call."""

    def stopping(name: str, arguments: dict[str, Any]) -> Any:
        raise error

    with pytest.raises(error):
        process(Leaf(act=stopping), call_text("echo"))


@pytest.mark.parametrize("reply", [3, ["echo"], b"echo"])
def test_a_reply_of_another_kind_is_misuse(reply: Any) -> None:
    """It says what was expected."""
    with pytest.raises(MisuseError, match="expected the reply's text, or its message as a JSON object"):
        process_sync(Leaf(), reply)


def test_arguments_that_are_no_object_are_misuse_of_a_direct_call() -> None:
    """The caller is named, and nothing runs."""
    driver, wrong = Leaf(), ["text"]
    arguments: Any = wrong
    with pytest.raises(MisuseError, match="the caller gave arguments of type list"):
        driver.invoke_tool("echo", arguments)
    assert driver.runs == []


def test_a_subclass_that_forgets_its_parent_still_works() -> None:
    """An empty list, the defaults, and a list of its own when something is added."""

    class Forgetful(Leaf):
        """Does not call super().__init__."""

        def __init__(self) -> None:
            self.tools = (ECHO,)
            self.act = lambda name, arguments: "hi"
            self.runs = []

    first, second = Forgetful(), Forgetful()
    assert first.process_llm_response(call_text("echo")).tool_call_result == "hi"
    first.add_middleware(Denying())
    assert first.invoke_tool("echo", {}) == "denied"
    assert (len(first.middleware), second.middleware) == (1, ())
    assert second.invoke_tool("echo", {}) == "hi"


def test_an_async_only_middleware_needs_an_async_driver() -> None:
    """Refused when added to a driver that serves both; one that serves async takes it and has no sync calls."""
    with pytest.raises(TypeError, match="AsyncOnly has only on_execute_tool_async"):
        Leaf(middleware=[AsyncOnly()])
    driver = Leaf(middleware=[AsyncOnly()], serves="async")
    assert process_async(driver, call_text("echo", text="hi")).tool_call_result == "async hi"
    with pytest.raises(MisuseError, match="serves async calls only"):
        driver.invoke_tool("echo", {})
    assert driver.runs == [("echo", {"text": "hi"})]


@given(st.lists(st.sampled_from(["echo", "fail", "nobody"]), max_size=6))
def test_records_follow_the_reply(names: list[str]) -> None:
    """One record for each call in order; executed up to the first failure, skipped behind it; side effects agree."""
    driver = Leaf()
    reply = anthropic_message(*((f"c{i}", name, {"text": "x"}) for i, name in enumerate(names)))
    response = driver.process_llm_response(reply)
    if not set(names) & {"echo", "fail"}:
        assert response == DriverResponse()
        return
    good = next((i for i, name in enumerate(names) if name != "echo"), len(names))
    expected = [*["executed"] * good, *["failed"] * (len(names) > good), *["skipped"] * (len(names) - good - 1)]
    assert outcomes(response) == expected
    assert [record.call_id for record in response.tool_calls] == [f"c{i}" for i in range(len(names))]
    assert len(driver.runs) == good + (names[good : good + 1] == ["fail"])
    assert response.call_executed is (good == len(names))
    assert len(response.messages[1]["content"]) == len(names)


def test_texts_of_their_own_and_native_tools() -> None:
    """Given texts stand in place of made ones; both APIs' shapes; a model without native tools is told in words."""
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}}
    tools = [ECHO, Tool("count", "Count", schema=schema)]
    prompts = replace(PromptStrategy.default(), models_without_native=("old-*",))
    driver = Leaf(tools=tools, prompts=prompts)
    openai, anthropic = driver.get_native_tool_context("gpt"), driver.get_native_tool_context("claude", api="anthropic")
    echo_schema = {
        "type": "object",
        "properties": {"text": {"description": "what to say", "type": "string"}},
        "required": ["text"],
    }
    assert openai.tools is not None
    assert anthropic.tools is not None
    assert openai.tools[0] == {
        "type": "function",
        "function": {"name": "echo", "description": "Says it again.", "parameters": echo_schema},
    }
    assert anthropic.tools[1] == {"name": "count", "description": "Count", "input_schema": schema}
    old = driver.get_native_tool_context("old-1")
    assert old.tools is None
    assert old.system_message == driver.get_driver_system_message()
    described = json.loads(driver.get_function_description())["tools"]
    assert [tool["name"] for tool in described] == ["echo", "count"]
    assert driver.get_function_description() in driver.get_driver_system_message()
    custom = Leaf(prompts=replace(prompts, tool_description="my tools", system_message="my words"))
    assert (custom.get_function_description(), custom.get_driver_system_message()) == ("my tools", "my words")
