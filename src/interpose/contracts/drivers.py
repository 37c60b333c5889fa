"""What a driver is: a set of tools behind one object, and what it tells a client, after the second source document.

Knows: the interfaces and the values they exchange. Does not know: prompts, how a model's reply is read,
middleware.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, TypeAlias

from interpose.contracts.json import JsonObject
from interpose.contracts.sheet import DriverMeta
from interpose.contracts.stopping import stopped
from interpose.contracts.tool import Tool, ToolParameter

__all__ = [
    "CallOutcome",
    "Driver",
    "DriverResponse",
    "Health",
    "HealthStatus",
    "NativeToolContext",
    "SupportsHealthcheck",
    "SupportsNativeTools",
    "SupportsStreaming",
    "Tool",
    "ToolApi",
    "ToolCallRecord",
    "ToolDriver",
    "ToolParameter",
]

ToolApi: TypeAlias = Literal["openai", "anthropic"]
"""In which provider's shape native tools are written."""

CallOutcome: TypeAlias = Literal["executed", "short_circuited", "failed", "skipped"]
"""`executed`: the tool ran and a result came back. `short_circuited`: a middleware answered, here or in the list of a
driver further in, and no run of the tool came back.
`skipped`: an earlier call of the same message failed."""


@dataclass(frozen=True, slots=True)
class ToolCallRecord:
    """What became of one call that a model asked for.

    Attributes:
        call_id: the model's own id, or None where its protocol has none.
        tool_name: as asked for.
        arguments: as asked for; empty when they could not be read.
        executed_name: what ran, after every middleware, as the driver that was asked calls it; None when nothing ran.
        executed_arguments: what the tool ran with, in whatever driver inside it is; None when nothing ran.
        result: what came back, of any type.
        result_text: the same as the model sees it.
        error: why it failed, in words that hold no secret; None otherwise.
        outcome: executed, short_circuited, failed or skipped.
        duration_ms: the whole call, middlewares included.
    """

    call_id: str | None
    tool_name: str
    arguments: JsonObject
    outcome: CallOutcome
    executed_name: str | None = None
    executed_arguments: JsonObject | None = None
    result: Any = None
    result_text: str | None = None
    error: str | None = None
    duration_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class DriverResponse:
    """What a driver made of a model's reply. Neither executed nor failed: the reply is the answer for the person.

    Attributes:
        call_executed: every call came back with a result, be it a refusal or a challenge.
        call_failed: a call failed; `retry_prompt` tells the model, `call_detail` the operator.
        tool_call_result: the text of the result; of several calls one text each, a blank line between.
        messages: to append to the history, in the shape of the API that the reply came from; then ask the model again.
        tool_calls: one record for each call, in the order of the reply.
    """

    call_executed: bool = False
    call_failed: bool = False
    tool_call_result: str | None = None
    call_detail: str | None = None
    retry_prompt: str | None = None
    messages: tuple[dict[str, Any], ...] = ()
    tool_calls: tuple[ToolCallRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class NativeToolContext:
    """What a request with native tools needs; `tools` None means that the system message describes them instead."""

    system_message: str
    tools: tuple[dict[str, Any], ...] | None


class HealthStatus(StrEnum):
    """How a driver is; `severity` grows from ok to error."""

    OK = "ok"
    UNKNOWN = "unknown"
    WARNING = "warning"
    ERROR = "error"

    @property
    def severity(self) -> int:
        """0 for ok, up to 3 for error."""
        return list(HealthStatus).index(self)


@dataclass(frozen=True, slots=True)
class Health:
    """The answer of a healthcheck; `parts` are the children's, by label."""

    status: HealthStatus
    detail: str = ""
    parts: Mapping[str, "Health"] = field(default_factory=dict)


class ToolDriver(ABC):
    """Tools behind one object. `execute_tool` is the raw terminal: who wants the middlewares calls `invoke_tool`."""

    CAPABILITY = "orchestratable"
    meta: DriverMeta

    @abstractmethod
    def list_tools(self) -> Sequence[Tool]:
        """The tools, at once and from memory; any thread may ask, and it is asked for each call."""

    @abstractmethod
    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> Any:
        """Runs a tool and returns its raw result; raises what the tool raises, ValueError for an unknown name."""

    async def execute_tool_async(self, tool_name: str, arguments: dict[str, Any]) -> Any:
        """As `execute_tool`, from an event loop; this one runs it in a worker thread."""

        def execute() -> Any:
            try:
                return self.execute_tool(tool_name, arguments)
            except StopIteration as error:  # a future does not take it, and would never be done
                raise stopped(f"the tool {tool_name!r}", error) from error

        return await asyncio.to_thread(execute)


class Driver(ABC):
    """What a client talks to: it describes tools to a model and acts on the model's replies. Keeps no history."""

    CAPABILITY = "standalone"
    meta: DriverMeta

    @abstractmethod
    def get_function_description(self, model_name: str | None = None) -> str:
        """The tools in words for the model."""

    @abstractmethod
    def get_driver_system_message(self, model_name: str | None = None) -> str:
        """A whole system message: the tools and how to call them."""

    @abstractmethod
    def process_llm_response(self, llm_response: str | JsonObject, *, streaming: bool = False) -> DriverResponse:
        """Runs the calls in a reply. Errors of tools and middlewares are in the response, not raised.

        With `streaming` the reply may be a prefix: nothing runs unless it says itself that it is complete, so no call
        of a reply runs twice. Any thread, many at once.
        """


class SupportsStreaming(ABC):
    """Tells from the text so far whether a call is coming. Pure functions of the text."""

    CAPABILITY = "streaming"

    @abstractmethod
    def might_be_tool_call(self, partial: str) -> bool:
        """A cheap guess, so that a client holds the text back; False is certain until more text arrives."""

    @abstractmethod
    def is_complete_tool_call(self, text: str) -> bool:
        """Whether the text so far is a whole call, so that it can be told that one is coming.

        Another call may follow until the stream ends, so nobody acts on it before.
        """


class SupportsNativeTools(ABC):
    """Describes its tools in the shape of a provider's API."""

    CAPABILITY = "native_tools"

    @abstractmethod
    def get_native_tool_context(self, model_name: str | None = None, *, api: ToolApi = "openai") -> NativeToolContext:
        """System message and tools for a request to a model."""


class SupportsHealthcheck(ABC):
    """Says how it is."""

    CAPABILITY = "healthcheck"

    @abstractmethod
    def healthcheck(self) -> Health:
        """The state now, bounded in time; failures are a status, not raised."""
