"""How one driver reaches another: always through the other's own middleware list.

Knows: who has a list and who has none. Does not know: orchestrators, names, labels. For drivers that hand calls on.
"""

from collections.abc import Sequence
from typing import Any

from interpose.contracts.arguments import owned
from interpose.contracts.drivers import Tool, ToolDriver
from interpose.contracts.tools import Arguments, Call, SupportsToolMiddleware
from interpose.drivers.attempt import called_inside, demand_name
from interpose.drivers.driver import BaseDriver, listed_tools


def tools_of(driver: ToolDriver) -> Sequence[Tool]:
    """The tools as the driver's list offers them; all of them where it has none."""
    return driver.offered_tools() if isinstance(driver, SupportsToolMiddleware) else listed_tools(driver)


def leaf_of(driver: ToolDriver, tool_name: str) -> str:
    """What the innermost driver known of calls the tool."""
    return driver.leaf_name(tool_name) if isinstance(driver, BaseDriver) else tool_name


def invoke(driver: ToolDriver, tool_name: str, arguments: Arguments, *, call: Call | None = None) -> Any:
    """Runs the driver's tool inside its list, or as it is where it has none; raises what it raises.

    With `call` the list sees it as the same call that another list has seen: `Call.handed_down` makes it. Without, it
    is a call of its own; inside of a running tool what the list makes of it is still judged by those around that tool.
    """
    if isinstance(driver, BaseDriver):
        inside = called_inside(tool_name, arguments) if call is None else call
        return driver.invoke_tool(tool_name, arguments, call=inside)
    _running(call, tool_name, arguments)
    if isinstance(driver, SupportsToolMiddleware):
        return _returned(call, driver.invoke_tool(tool_name, arguments))
    demand_name(tool_name)
    return _returned(call, driver.execute_tool(tool_name, owned(arguments, "the caller")))


async def invoke_async(driver: ToolDriver, tool_name: str, arguments: Arguments, *, call: Call | None = None) -> Any:
    """As `invoke`, from an event loop."""
    if isinstance(driver, BaseDriver):
        inside = called_inside(tool_name, arguments) if call is None else call
        return await driver.invoke_tool_async(tool_name, arguments, call=inside)
    _running(call, tool_name, arguments)
    if isinstance(driver, SupportsToolMiddleware):
        return _returned(call, await driver.invoke_tool_async(tool_name, arguments))
    demand_name(tool_name)
    return _returned(call, await driver.execute_tool_async(tool_name, owned(arguments, "the caller")))


def _running(call: Call | None, tool_name: str, arguments: Arguments) -> None:
    """A driver of a foreign kind does not say what it runs: it counts as what it was given."""
    if call is not None:
        call.ran(tool_name, owned(arguments, "the caller"))


def _returned(call: Call | None, result: Any) -> Any:
    if call is not None:
        call.came_back()
    return result
