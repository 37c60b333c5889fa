"""The driver that other drivers extend: it implements every contract of a driver and leaves the tools to them.

Knows: how prompts, extraction, the middleware list and the tools come together. Does not know: any concern, and what
the tools do.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, get_args

from interpose.chain.chain import Chain, Serves
from interpose.contracts.drivers import (
    Driver,
    DriverResponse,
    NativeToolContext,
    SupportsNativeTools,
    SupportsStreaming,
    Tool,
    ToolApi,
    ToolDriver,
)
from interpose.contracts.errors import MisuseError
from interpose.contracts.settings import a_flag, a_function, of_kind, refused
from interpose.contracts.sheet import DriverMeta
from interpose.contracts.stopping import stop_of, stopped
from interpose.contracts.tool import named_twice
from interpose.contracts.tools import Arguments, Call, Linked, SupportsToolMiddleware, ToolMiddleware
from interpose.drivers.attempt import Attempt
from interpose.drivers.calls import ProposedCall, is_whole_call, might_be_call
from interpose.drivers.extraction import DEFAULT_EXTRACTION, ExtractionStrategy, Reply
from interpose.drivers.naming import fits_apis, no_native_name
from interpose.drivers.prompts import PromptStrategy
from interpose.drivers.replies import Answered, Reading, Steps, Wording, blame, failed, is_ours, read, steps, succeeded
from interpose.kernel.boundary import guarded
from interpose.secrets.masking import mask_text


class BaseDriver(Driver, ToolDriver, SupportsToolMiddleware, SupportsNativeTools, SupportsStreaming):
    """Everything but the tools: a subclass gives `meta`, `list_tools` and `execute_tool`.

    `middleware` is the list around every call, outermost first. `prompts` are the texts, `extraction` the shapes of
    replies, first claimer wins. `redact` takes secrets out of what a failure tells the model. `late_rewrite` lets a
    middleware inside of the policy change a call without its being judged again. `serves="async"` takes middlewares
    that are async only, and has no sync calls.

    Keeps no history and nothing of a call: any thread may call, many at once. A subclass that does not call
    `super().__init__` has an empty list and the defaults. Raises ConfigError naming the setting for what none can be.
    """

    _chain: Chain | None = None
    _prompts: PromptStrategy | None = None
    _extraction: tuple[ExtractionStrategy, ...] = DEFAULT_EXTRACTION
    _redact: Callable[[str], str] = staticmethod(mask_text)
    _late_rewrite: bool = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if isinstance(getattr(cls, "meta", None), DriverMeta):
            cls.meta = DriverMeta.of(cls)

    _hands_on: ClassVar[bool] = False
    """Whether `_reach` hands the call down to another driver, which then says what ran."""

    def __init__(
        self,
        *,
        middleware: Iterable[ToolMiddleware | Linked] = (),
        prompts: PromptStrategy | None = None,
        extraction: Iterable[ExtractionStrategy] = DEFAULT_EXTRACTION,
        redact: Callable[[str], str] = mask_text,
        late_rewrite: bool = False,
        serves: Serves = "both",
    ) -> None:
        self._chain = Chain(middleware, serves=serves)
        kind = type(self).__name__
        self._prompts = of_kind(f"{kind}(prompts=…)", prompts, PromptStrategy | None, "a PromptStrategy")
        self._extraction = _strategies(f"{kind}(extraction=…)", extraction)
        self._redact = a_function(f"{kind}(redact=…)", redact)
        self._late_rewrite = a_flag(f"{kind}(late_rewrite=…)", late_rewrite)

    @property
    def middleware(self) -> tuple[ToolMiddleware, ...]:
        """The list in the order in which it sees a call."""
        return self._list().middlewares

    @property
    def prompts(self) -> PromptStrategy:
        """The texts in use."""
        return self._prompts or PromptStrategy.default()

    def add_middleware(self, middleware: ToolMiddleware | Linked) -> None:
        """Appends, innermost unless links say otherwise; calls on their way do not see it.

        Raises ValueError when the very instance is already in the list, TypeError when it cannot serve.
        """
        self._list().add(middleware)

    def explain_middleware(self) -> str:
        """The order of the list in words, and the reason for each place."""
        return self._list().explain()

    def leaf_name(self, tool_name: str) -> str:
        """What the driver that has the tool calls it; a driver of other drivers says more. Any other name is itself."""
        return tool_name

    def offered_tools(self) -> Sequence[Tool]:
        """The tools as they come out of the list; what it leaves out cannot be called."""
        tools = self._listed()
        return tuple(self._list().list_tools(lambda: tools))

    def invoke_tool(self, tool_name: str, arguments: Arguments, *, call_id: str = "", call: Call | None = None) -> Any:
        """Runs the list around the tool and returns what the outermost returns; raises what it raises.

        `call` is given by a driver that hands on a call of its own list. An exception that a middleware raised has a
        note that says which. Raises UnknownToolError for a tool that is not offered, or a name rewritten to one that
        there is not.
        """
        attempt = self._attempt(_call(call_id, call))
        try:
            return self._run(attempt, tool_name, arguments)
        except Exception as error:
            blame(attempt, error)
            raise
        finally:
            attempt.forget()

    async def invoke_tool_async(
        self, tool_name: str, arguments: Arguments, *, call_id: str = "", call: Call | None = None
    ) -> Any:
        """As `invoke_tool`, from an event loop."""
        attempt = self._attempt(_call(call_id, call))
        try:
            return await self._run_async(attempt, tool_name, arguments)
        except Exception as error:
            blame(attempt, error)
            raise
        finally:
            attempt.forget()

    def get_function_description(self, model_name: str | None = None) -> str:  # noqa: ARG002 - one text for all
        """The offered tools as one JSON object."""
        return self.prompts.function_description(self.offered_tools())

    def get_driver_system_message(self, model_name: str | None = None) -> str:  # noqa: ARG002 - one text for all
        """The offered tools and how to call them in plain text."""
        return self.prompts.driver_system_message(self.offered_tools())

    def get_native_tool_context(self, model_name: str | None = None, *, api: ToolApi = "openai") -> NativeToolContext:
        """The offered tools in the shape of a provider's API, or in words for a model that has no native tools.

        Raises ValueError for an `api` whose shape is not known, MisuseError for a tool whose name no API takes: an
        Orchestrator offers it under one that they do.
        """
        if api not in get_args(ToolApi):
            raise ValueError(f"api={api!r}: expected {' or '.join(map(repr, get_args(ToolApi)))}")
        if not self.prompts.has_native_tools(model_name):
            return NativeToolContext(self.get_driver_system_message(model_name), None)

        offered = self.offered_tools()
        if unfit := [tool.name for tool in offered if not fits_apis(tool.name)]:
            raise MisuseError(
                f"{type(self).__name__} has {no_native_name(unfit[0])}; "
                'Orchestrator({"label": driver}) offers the tool under one that fits'
            )
        told = _openai_tool if api == "openai" else _anthropic_tool
        return NativeToolContext(self.prompts.native_system_message, tuple(told(tool) for tool in offered))

    def might_be_tool_call(self, partial: str) -> bool:
        """Whether the text so far holds a call or may become one; cheap."""
        return might_be_call(_text_so_far("might_be_tool_call", partial), self.prompts)

    def is_complete_tool_call(self, text: str) -> bool:
        """Whether the text so far is one whole call and nothing else; another may follow until the stream ends."""
        return is_whole_call(_text_so_far("is_complete_tool_call", text), self.prompts)

    def process_llm_response(self, llm_response: Reply | None, *, streaming: bool = False) -> DriverResponse:
        """Runs the calls in a reply, a text or a message, and says what the model is to be told.

        A call that fails, in the tool or in a middleware, is in the response; what is no Exception is raised. With
        `streaming` nothing runs before the reply is whole, which a message tells by its `finish_reason` or
        `stop_reason` and a bare text never: give that without `streaming` once the stream has ended.

        Raises MisuseError for what is neither text nor object.
        """
        running = self._steps(llm_response, streaming=streaming)
        try:
            call = next(running)
            while True:
                call = running.send(self._answer(call))
        except StopIteration as stop:
            return _response_of(stop)

    async def process_llm_response_async(
        self, llm_response: Reply | None, *, streaming: bool = False
    ) -> DriverResponse:
        """As `process_llm_response`, from an event loop."""
        running = self._steps(llm_response, streaming=streaming)
        try:
            call = next(running)
            while True:
                call = running.send(await self._answer_async(call))
        except StopIteration as stop:
            return _response_of(stop)

    @property
    def _wording(self) -> Wording:
        return Wording(self.prompts, self._redact)

    def _list(self) -> Chain:
        chain = self._chain
        if chain is None:  # a subclass did not call super().__init__; the first thread to come makes it
            own: Chain = vars(self).setdefault("_chain", Chain())
            return own
        return chain

    def _listed(self) -> tuple[Tool, ...]:
        return listed_tools(self)

    def _attempt(self, call: Call) -> Attempt:
        call.leaf_of = self.leaf_name
        tools = self._listed()
        offered = self._list().list_tools(lambda: tools)
        return Attempt(
            call,
            known=(tool.name for tool in tools),
            offered=(tool.name for tool in offered),
            late_rewrite=self._late_rewrite,
            hands_on=self._hands_on,
        )

    def _run(self, attempt: Attempt, tool_name: str, arguments: Arguments) -> Any:
        attempt.admit(tool_name)
        return self._list().call(
            tool_name, arguments, lambda name, own: attempt.terminal(name, own, self._reach), attempt.call
        )

    async def _run_async(self, attempt: Attempt, tool_name: str, arguments: Arguments) -> Any:
        attempt.admit(tool_name)
        return await self._list().call_async(
            tool_name, arguments, lambda name, own: attempt.terminal_async(name, own, self._reach_async), attempt.call
        )

    def _reach(self, tool_name: str, arguments: dict[str, Any], _call: Call) -> Any:
        return self.execute_tool(tool_name, arguments)

    async def _reach_async(self, tool_name: str, arguments: dict[str, Any], _call: Call) -> Any:
        return await self.execute_tool_async(tool_name, arguments)

    def _steps(self, reply: Reply | None, *, streaming: bool) -> Steps:
        reading = self._reading(reply, streaming=streaming)
        if reading is None:
            return DriverResponse()
        return (yield from steps(reading, self._wording))

    def _reading(self, reply: Any, *, streaming: bool) -> Reading | None:
        if reply is None:
            return None
        if not isinstance(reply, str | Mapping):
            raise MisuseError(_no_reply(reply))

        reading = read(reply, self._extraction, self.prompts, streaming=streaming)
        if reading is None or not is_ours(reading, self._offered_or(reading), self.prompts):
            return None
        return reading

    def _offered_or(self, reading: Reading) -> frozenset[str]:
        """The names of the offered tools; when they cannot be had, the reply's own, so that its calls tell why."""
        return guarded(
            lambda: frozenset(tool.name for tool in self.offered_tools()),
            failure=lambda _: frozenset(call.tool_name for call in reading.calls),
        )

    def _answer(self, call: ProposedCall) -> Answered:
        started = time.monotonic()
        attempt: Attempt | None = None
        try:
            attempt = self._attempt(Call(call.call_id or ""))
            result = self._run(attempt, call.tool_name, call.arguments)
            return succeeded(call, attempt, result, _ms_since(started))
        except Exception as error:  # noqa: BLE001 - tools and middlewares are foreign; the call counts as failed
            return failed(call, attempt, error, _ms_since(started), self._wording)
        finally:
            if attempt is not None:
                attempt.forget()

    async def _answer_async(self, call: ProposedCall) -> Answered:
        started = time.monotonic()
        attempt: Attempt | None = None
        try:
            attempt = self._attempt(Call(call.call_id or ""))
            result = await self._run_async(attempt, call.tool_name, call.arguments)
            return succeeded(call, attempt, result, _ms_since(started))
        except Exception as error:  # noqa: BLE001 - tools and middlewares are foreign; the call counts as failed
            return failed(call, attempt, error, _ms_since(started), self._wording)
        finally:
            if attempt is not None:
                attempt.forget()


def _strategies(where: str, given: Any) -> tuple[ExtractionStrategy, ...]:
    strategies = tuple(given) if isinstance(given, Iterable) else (given,)
    if not strategies or not all(isinstance(each, ExtractionStrategy) for each in strategies):
        raise refused(where, given, "ExtractionStrategy values, first claimer first")
    return strategies


def listed_tools(driver: ToolDriver) -> tuple[Tool, ...]:
    """What the driver lists; raises MisuseError naming it when these are no tools, or two have one name."""
    kind = type(driver).__name__
    try:
        listed: Any = driver.list_tools()
        tools = tuple(listed) if isinstance(listed, Iterable) else (listed,)
    except (StopIteration, RuntimeError) as error:
        if (stop := stop_of(error)) is not None:
            raise stopped(f"{kind}.list_tools", stop) from stop
        raise
    if not all(isinstance(tool, Tool) for tool in tools):
        raise MisuseError(f"{kind}.list_tools returned {listed!r:.200}: expected a sequence of Tool values")
    if twice := named_twice(tools):
        raise MisuseError(f"{kind}.list_tools names {twice} more than once: a name is one tool's")
    return tools


def _call(call_id: Any, call: Any) -> Call:
    if call is None and isinstance(call_id, str):
        return Call(call_id)
    if isinstance(call, Call):
        return call
    wrong, given, expected = ("call_id", call_id, "a text") if call is None else ("call", call, "a Call")
    raise MisuseError(f"{wrong}={given!r:.80}: expected {expected}")


def _text_so_far(asked: str, given: Any) -> str:
    if not isinstance(given, str):
        raise MisuseError(f"{asked} was given a value of type {type(given).__name__}: expected the text so far")
    return given


def _no_reply(reply: object) -> str:
    way_out = ", which its .model_dump() gives" if hasattr(reply, "model_dump") else ""
    kind = type(reply).__name__
    return f"a reply of type {kind}: expected the reply's text, or its message as a JSON object{way_out}"


def _ms_since(started: float) -> float:
    return (time.monotonic() - started) * 1000


def _response_of(stop: StopIteration) -> DriverResponse:
    response: DriverResponse = stop.value
    return response


def _openai_tool(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.input_schema()}
    return {"type": "function", "function": function}


def _anthropic_tool(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema()}
