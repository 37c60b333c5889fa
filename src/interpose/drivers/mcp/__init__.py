"""The tools of any MCP server, over stdio or streamable HTTP, through the official SDK.

Knows: connections, and results as a model reads them. Does not know: who may call; that is a middleware's work.
"""

try:
    import mcp as _mcp  # noqa: F401 - looked for here, so that one error names the extra
except ModuleNotFoundError as missing:
    if missing.name != "mcp":
        raise
    raise ImportError("interpose.drivers.mcp needs mcp: pip install 'interpose[mcp]'") from missing

from interpose.drivers.mcp.driver import McpDriver, McpLimits, McpTools
from interpose.drivers.mcp.servers import HttpServer, StdioServer

__all__ = ["HttpServer", "McpDriver", "McpLimits", "McpTools", "StdioServer"]
