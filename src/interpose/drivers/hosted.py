"""Tools made elsewhere behind a whole driver: prompts, extraction and the middleware list around them.

Knows: how calls reach the tools. Does not know: what tools they are.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypedDict, TypeVar

from interpose.chain.chain import Serves
from interpose.contracts.drivers import Tool, ToolDriver
from interpose.contracts.settings import of_kind
from interpose.contracts.tools import Call, Linked, ToolMiddleware
from interpose.drivers.children import invoke, invoke_async, leaf_of, tools_of
from interpose.drivers.driver import BaseDriver
from interpose.drivers.extraction import ExtractionStrategy
from interpose.drivers.prompts import PromptStrategy


class DriverOptions(TypedDict, total=False):
    """What every driver takes beside its own parameters; see `BaseDriver`."""

    middleware: Iterable[ToolMiddleware | Linked]
    prompts: PromptStrategy | None
    extraction: Iterable[ExtractionStrategy]
    redact: Callable[[str], str]
    late_rewrite: bool
    serves: Serves


Limits = TypeVar("Limits")


def limits_of(owner: str, given: Limits | None, kind: type[Limits], name: str = "limits") -> Limits:
    """The given ones, or the defaults of their kind. Raises ConfigError naming the owner's setting for any other."""
    if given is None:
        return kind()
    return of_kind(f"{owner}({name}=…)", given, kind, f"{kind.__name__}(…)")


class HostedDriver(BaseDriver):
    """A driver whose tools are those of a `ToolDriver`; a call goes through the list and then to it.

    A subclass gives `meta` and builds the tools. Raises TypeError for an option that no driver takes.
    """

    _hands_on = True

    def __init__(self, tools: ToolDriver, options: DriverOptions) -> None:
        super().__init__(**options)
        self._tools = tools

    @property
    def tools(self) -> ToolDriver:
        """The tools themselves, which know nothing of the list."""
        return self._tools

    def list_tools(self) -> Sequence[Tool]:
        """What the tools offer, through their own list where they have one."""
        return tools_of(self._tools)

    def leaf_name(self, tool_name: str) -> str:
        """As the tools say."""
        return leaf_of(self._tools, tool_name)

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> Any:
        """Reaches the tools without this driver's list, and through their own where they have one."""
        return invoke(self._tools, tool_name, arguments)

    async def execute_tool_async(self, tool_name: str, arguments: dict[str, Any]) -> Any:
        """As `execute_tool`, the tools' own way from an event loop."""
        return await invoke_async(self._tools, tool_name, arguments)

    def _reach(self, tool_name: str, arguments: dict[str, Any], call: Call) -> Any:
        return invoke(self._tools, tool_name, arguments, call=_handed_down(call, tool_name))

    async def _reach_async(self, tool_name: str, arguments: dict[str, Any], call: Call) -> Any:
        return await invoke_async(self._tools, tool_name, arguments, call=_handed_down(call, tool_name))


def _handed_down(call: Call, tool_name: str) -> Call:
    return call.handed_down(tool_name, tool_name, named_here=str)
