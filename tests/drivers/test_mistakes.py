"""Mistakes in tools, middlewares and drivers: each has an outcome, and a message that names who made it."""

import asyncio
import re
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from interpose.concerns.hooks.middleware import HooksMiddleware
from interpose.concerns.permission.middleware import PermissionMiddleware
from interpose.contracts.drivers import DriverResponse, Health, SupportsHealthcheck, Tool, ToolApi
from interpose.contracts.errors import ConfigError, MisuseError, UnknownToolError
from interpose.contracts.tools import Arguments, CallNext, ToolMiddleware
from interpose.drivers.children import invoke, invoke_async
from interpose.drivers.orchestrator import Orchestrator
from interpose.drivers.prompts import PromptStrategy
from tests.drivers.making import ECHO, BareLeaf, Doing, Leaf, Rewriting, Tracing, call_text

TIMEOUT_S = 10

Process: TypeAlias = Callable[[Leaf], DriverResponse]


def processed(driver: Leaf) -> DriverResponse:
    """Sync."""
    return driver.process_llm_response(call_text("echo", text="x"))


def processed_async(driver: Leaf) -> DriverResponse:
    """On an event loop, bounded in time."""
    return asyncio.run(asyncio.wait_for(driver.process_llm_response_async(call_text("echo", text="x")), TIMEOUT_S))


both = pytest.mark.parametrize("process", [processed, processed_async])


def stopping(tool_name: str, arguments: dict[str, Any]) -> Any:
    """Takes the next of nothing."""
    return next(iter(()))


@both
@pytest.mark.parametrize("around", [[], [Tracing(), Tracing()]])
def test_a_tool_that_raises_stop_iteration_has_failed(process: Process, around: list[ToolMiddleware]) -> None:
    """Nothing waits for ever, and the tool is named, not who stands around it."""
    response = process(Leaf(act=stopping, middleware=around))
    assert response.call_failed
    assert response.call_detail == "Tool 'echo' failed: RuntimeError: the tool 'echo' raised StopIteration()"


@pytest.mark.parametrize("around", [[], [Tracing(), Tracing()]])
def test_an_async_tool_that_raises_stop_iteration_says_the_same(around: list[ToolMiddleware]) -> None:
    """As a sync one, and the tool is the one who failed."""

    class Stopping(Leaf):
        async def execute_tool_async(self, tool_name: str, arguments: dict[str, Any]) -> Any:
            return stopping(tool_name, arguments)

    response = processed_async(Stopping(middleware=around))
    assert response.call_detail == "Tool 'echo' failed: RuntimeError: the tool 'echo' raised StopIteration()"
    with pytest.raises(RuntimeError, match=r"^the tool 'echo' raised StopIteration\(\)$") as caught:
        asyncio.run(Stopping(middleware=around).invoke_tool_async("echo", {}))
    assert not hasattr(caught.value, "__notes__")


@both
def test_an_observer_that_raises_stop_iteration_is_named(process: Process) -> None:
    """Its note outlives the generator that it ended."""
    hooks = HooksMiddleware(pre=[lambda name, arguments: next(iter(()))], on_hook_error="raise")
    detail = str(process(Leaf(middleware=[Tracing(), hooks])).call_detail)
    assert "HooksMiddleware failed: RuntimeError: HooksMiddleware raised StopIteration()" in detail
    assert "raised by the pre hook" in detail


@both
def test_a_driver_whose_list_of_tools_raises_stop_iteration_is_named(process: Process) -> None:
    """By its class."""

    class Ending(Leaf):
        def list_tools(self) -> Any:
            return [next(iter(()))]

    assert "Ending.list_tools raised StopIteration()" in str(process(Ending()).call_detail)


def test_a_bare_driver_that_raises_stop_iteration_does_not_hang() -> None:
    """Also without a list around it."""

    class Stopping(BareLeaf):
        def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> Any:
            return stopping(tool_name, arguments)

    async def run() -> None:
        await asyncio.wait_for(Stopping().execute_tool_async("echo", {}), TIMEOUT_S)

    with pytest.raises(RuntimeError, match=r"the tool 'echo' raised StopIteration\(\)"):
        asyncio.run(run())


@both
def test_a_tool_that_returns_a_coroutine_has_failed(process: Process) -> None:
    """It did not run, and its author reads what to write."""

    async def later() -> None: ...

    response = process(Leaf(act=lambda name, arguments: later()))
    assert "the tool 'echo' returned a coroutine" in str(response.call_detail)
    assert "execute_tool_async" in str(response.call_detail)


@both
@pytest.mark.parametrize("name", [None, 5, ["echo"], {"a": 1}])
def test_a_rename_to_no_name_is_a_failed_call(process: Process, name: Any) -> None:
    """The middleware is named, the model is not told to try again."""
    driver = Leaf(middleware=[Tracing(), Rewriting(lambda _, arguments: (name, arguments))])
    response = process(driver)
    assert str(response.call_detail).startswith("Rewriting failed: Rewriting called on with the tool name")
    assert (response.tool_calls[0].outcome, driver.runs) == ("failed", [])
    assert "try again" not in str(response.retry_prompt)


@both
def test_a_model_is_not_told_to_repair_what_only_a_person_can(process: Process) -> None:
    """Wrong arguments by a middleware, no consent handler, a failing one."""

    def failing(tool_name: str, arguments: dict[str, Any]) -> bool:
        raise OSError("no terminal")

    wrong: list[ToolMiddleware] = [
        Rewriting(lambda name, _: (name, "text")),  # type: ignore[arg-type,return-value]
        PermissionMiddleware(),
        PermissionMiddleware(consent_handler=failing),
    ]
    for middleware in wrong:
        response = process(Leaf(middleware=[middleware]))
        assert response.call_failed
        assert type(middleware).__name__ in str(response.call_detail)
        assert response.retry_prompt == (
            "The tool echo is not available here. Do not call it again; answer without it."
        )


@both
def test_a_raising_observer_is_named_in_the_failure(process: Process) -> None:
    """Its phase too."""

    def observer(tool_name: str, arguments: dict[str, Any]) -> None:
        raise OSError("disk full")

    response = process(Leaf(middleware=[HooksMiddleware(pre=[observer], on_hook_error="raise")]))
    assert "HooksMiddleware failed: OSError: disk full" in str(response.call_detail)
    assert "observer at echo" in str(response.call_detail)
    assert "raised by the pre hook" in str(response.call_detail)


def failing(tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
    """A middleware's own failure."""
    raise LookupError("no table")


def test_a_middlewares_exception_says_who_raised_it() -> None:
    """In a note; its type and text stay. A tool's exception has none, and a child's middleware is the one named."""
    leaf = Leaf(middleware=[Doing(failing)])
    for driver, name in ((leaf, "echo"), (Orchestrator({"a": leaf, "b": Leaf()}, middleware=[Tracing()]), "a__echo")):
        with pytest.raises(LookupError, match="no table") as caught:
            driver.invoke_tool(name, {})
        assert caught.value.__notes__ == ["raised by the middleware Doing"]
        with pytest.raises(LookupError) as caught:
            asyncio.run(driver.invoke_tool_async(name, {}))
        assert caught.value.__notes__ == ["raised by the middleware Doing"]
    with pytest.raises(LookupError) as caught:
        Leaf(middleware=[Tracing()]).invoke_tool("fail", {})
    assert not hasattr(caught.value, "__notes__")


def test_a_driver_that_lists_nonsense_is_named() -> None:
    """None, what are no tools, and two tools of one name."""
    for listed, said in (
        (None, r"Leaf.list_tools returned None: expected a sequence of Tool values"),
        (["echo"], r"Leaf.list_tools returned \['echo'\]: expected a sequence of Tool values"),
        ([ECHO, ECHO], r"Leaf.list_tools names 'echo' more than once"),
    ):
        driver = Leaf()
        driver.tools = listed  # type: ignore[assignment]
        for ask in (driver.offered_tools, driver.get_native_tool_context, lambda d=driver: d.invoke_tool("echo", {})):
            with pytest.raises(MisuseError, match=said):
                ask()


def test_an_unknown_api_is_refused() -> None:
    """With those that there are."""
    api: ToolApi = "gemini"  # type: ignore[assignment]
    with pytest.raises(ValueError, match="api='gemini': expected 'openai' or 'anthropic'"):
        Leaf().get_native_tool_context(api=api)


def test_a_healthcheck_that_answers_nonsense_is_an_error_of_that_child() -> None:
    """The orchestrator's own does not raise."""

    class Odd(BareLeaf, SupportsHealthcheck):
        def healthcheck(self) -> Health:
            return {"status": "ok"}  # type: ignore[return-value]

    health = Orchestrator({"odd": Odd()}).healthcheck()
    assert (health.status, "not a Health" in health.detail) == ("error", True)


def test_consent_has_two_names_and_takes_one() -> None:
    """Both at once would leave one of them unheard."""
    with pytest.raises(MisuseError, match="they are one parameter, give one"):
        PermissionMiddleware(consent=lambda name, arguments: True, consent_handler=lambda name, arguments: True)


@both
def test_a_tool_that_returns_a_task_has_failed(process: Process) -> None:
    """As one that returns a coroutine; it is ended."""
    begun: list[asyncio.Future[Any]] = []

    def starting(tool_name: str, arguments: dict[str, Any]) -> Any:
        loop = asyncio.new_event_loop()
        begun.append(loop.create_future())
        loop.close()
        return begun[0]

    response = process(Leaf(act=starting))
    assert "the tool 'echo' returned a Future" in str(response.call_detail)
    assert begun[0].cancelled()


@both
def test_who_cannot_list_tools_is_named(process: Process) -> None:
    """The middleware, and not the tool that was called."""

    class Failing(ToolMiddleware):
        """Cannot say."""

        def on_list_tools(self, call_next: Any) -> Any:
            """Raises."""
            raise LookupError("no table")

    response = process(Leaf(middleware=[Tracing(), Failing()]))
    assert response.call_detail == "the list of tools failed: LookupError: no table\nraised by Failing.on_list_tools"


def test_children_that_are_no_drivers_by_label_are_refused() -> None:
    """A list of drivers, and a class that only looks like one."""

    class Duck:
        """Has the methods."""

        def list_tools(self) -> Any:
            """None."""

        def execute_tool(self, tool_name: str, arguments: Any) -> Any:
            """None."""

    children: Any = [Leaf()]
    with pytest.raises(TypeError, match=r'^Orchestrator\(\[.*expected drivers by label, {"label": driver}'):
        Orchestrator(children)
    duck: Any = Duck()
    with pytest.raises(TypeError, match="is no tool driver: expected an instance of a class that extends BaseDriver"):
        Orchestrator({"duck": duck})


def test_a_child_without_a_list_gets_arguments_of_its_own() -> None:
    """All the way down: what its tool does to them nobody else sees."""
    given = {"text": "x", "deep": {"list": [1]}}
    spoiling = BareLeaf()
    invoke(spoiling, "echo", given)
    spoiling.runs[0][1]["deep"]["list"].append(2)
    asyncio.run(invoke_async(spoiling, "echo", given))
    spoiling.runs[1][1]["deep"]["list"].append(3)
    assert given == {"text": "x", "deep": {"list": [1]}}


NO_NAMES: list[Any] = [
    "",
    None,
    5,
    ["echo"],
    {"a": 1},
    b"echo",
    "a\nb",
    "\ud800",
    "x" * 257,
    " echo",
    "echo ",
    "\t",
    "x\0",
]


NO_NAME = r"^the caller gave the tool name .*: expected 1 to 256 printable characters without a space at either end$"


@pytest.mark.parametrize("name", NO_NAMES)
@pytest.mark.parametrize("middleware", [[], [Tracing()]])
def test_what_can_be_no_name_is_told_in_the_same_words_everywhere(name: Any, middleware: list[ToolMiddleware]) -> None:
    """A direct call, one by a host, one that a driver hands on, with and without a list, sync and async."""
    leaf = Leaf(middleware=middleware)
    one, two = (Orchestrator({"a": Leaf(), **more}, middleware=middleware) for more in ({}, {"b": Leaf()}))
    for driver in (leaf, one, two, BareLeaf()):
        with pytest.raises(UnknownToolError, match=NO_NAME):
            invoke(driver, name, {})
        with pytest.raises(UnknownToolError, match=NO_NAME):
            asyncio.run(invoke_async(driver, name, {}))
    with pytest.raises(UnknownToolError, match=NO_NAME):
        two.execute_tool(name, {})
    assert (leaf.runs, two.leaf_name(name)) == ([], name)
    with pytest.raises(ValueError, match=r"^a Tool has the tool name .*: expected 1 to 256 printable characters"):
        Tool(name, "A tool")


@pytest.mark.parametrize("name", [name for name in NO_NAMES if name is not None])
def test_a_model_reads_the_same_words(name: Any) -> None:
    """Of a call in the shape of an API; the name itself is not said again at length."""
    for reply in (
        {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": name, "arguments": "{}"}}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": name, "input": {}}]},
        {"type": "function_call", "call_id": "c1", "name": name, "arguments": "{}"},
    ):
        response = Leaf().process_llm_response(reply)
        assert re.match(
            r"a call did not run: the call has the tool name .*: expected 1 to 256", str(response.call_detail)
        )
        assert len(str(response.retry_prompt)) < 500
        assert (response.tool_calls[0].tool_name, response.tool_calls[0].outcome) == ("", "failed")


def test_a_call_written_as_text_has_the_same_check() -> None:
    """Also where the arguments are missing; a name that there could be and is not is another driver's."""
    for text in ('{"tool": "a\\nb", "arguments": {}}', '{"tool": " echo"}', f'{{"tool": "{"x" * 300}", "text": "a"}}'):
        response = Leaf().process_llm_response(text)
        assert "the call has the tool name" in str(response.call_detail)
    assert Leaf().process_llm_response('{"tool": "other", "arguments": {}}').call_failed is False


@pytest.mark.parametrize("name", ["a b", "mail.send", "é", "x" * 65])
def test_native_tools_have_names_that_apis_take(name: str) -> None:
    """Else the tool is named, with the way out, which works; described in words it works as it is."""
    leaf = Leaf(tools=[ECHO, Tool(name, "Odd")], act=lambda name, arguments: name)
    with pytest.raises(MisuseError, match=r"^Leaf has the tool name .*, which APIs refuse: .*; Orchestrator\(\{"):
        leaf.get_native_tool_context()
    assert name in leaf.get_driver_system_message()
    tools = Orchestrator({"label": leaf}).get_native_tool_context().tools
    assert tools is not None
    fitting = tools[1]["function"]["name"]
    assert Orchestrator({"label": leaf}).invoke_tool(fitting, {}) == leaf.invoke_tool(name, {}) == name


@both
@pytest.mark.parametrize("inside", [[], [Tracing(), Tracing()]])
def test_who_made_up_the_name_of_a_tool_is_named(process: Process, inside: list[ToolMiddleware]) -> None:
    """And not the last in the list."""
    driver = Leaf(middleware=[Tracing(), Rewriting(lambda _, arguments: ("nobody", arguments)), *inside])
    assert str(process(driver).call_detail).startswith("Rewriting failed: there is no tool 'nobody'")


@pytest.mark.parametrize("given", [None, 5, b"{", ["{"]])
def test_what_is_no_text_so_far_is_misuse(given: Any) -> None:
    """With what was expected."""
    with pytest.raises(
        MisuseError, match=r"^might_be_tool_call was given a value of type .*: expected the text so far"
    ):
        Leaf().might_be_tool_call(given)
    with pytest.raises(
        MisuseError, match=r"^is_complete_tool_call was given a value of type .*: expected the text so fa"
    ):
        Leaf().is_complete_tool_call(given)


def test_a_reply_that_nests_too_deep_is_answered_all_the_same() -> None:
    """Its call ran; the history holds what can be said of the reply."""
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    call = {"function": {"name": "echo", "arguments": '{"text": "x"}'}}
    response = Leaf().process_llm_response({"role": "assistant", "tool_calls": [call], "content": deep})
    assert (response.call_executed, response.tool_call_result) == (True, "x")
    assert "cannot be shown" in response.messages[0]["content"]
    assert (
        Leaf().process_llm_response({"object": "response", "status": [], "output": []}, streaming=True).messages == ()
    )


def test_a_call_that_is_none_is_misuse() -> None:
    """So is an id that is no text; both are told before anything runs."""
    leaf = Leaf()
    wrong: Any = 5
    for given, said in (
        ({"call": wrong}, "call=5: expected a Call"),
        ({"call_id": wrong}, "call_id=5: expected a text"),
    ):
        with pytest.raises(MisuseError, match=said):
            leaf.invoke_tool("echo", {}, **given)
        with pytest.raises(MisuseError, match=said):
            asyncio.run(leaf.invoke_tool_async("echo", {}, **given))
    assert leaf.runs == []
    unhashable: Any = []
    assert Orchestrator().remove_driver(unhashable) is None


@both
@pytest.mark.parametrize("redact", [lambda text: None, lambda text: 5, lambda: "", lambda text: text[1000]])
def test_a_redactor_that_gives_no_text_withholds_it(process: Process, redact: Any) -> None:
    """In what the model reads and in what the operator does."""
    driver = Leaf(act=stopping, redact=redact)
    response = process(driver)
    assert response.call_detail == response.retry_prompt == "the text of the failure is withheld: it may hold secrets"


@pytest.mark.parametrize("path", [None, 5, "", "a\0b"])
def test_a_file_of_prompts_that_is_no_path_is_named(path: Any) -> None:
    """As a setting."""
    with pytest.raises(ConfigError, match=r"^PromptStrategy\.from_toml\(path\): is .* \(expected the path of a file\)"):
        PromptStrategy.from_toml(path)
