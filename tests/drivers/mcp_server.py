"""An MCP server made with the SDK, for tests: run it, and it speaks on its standard streams."""

import asyncio
import os
import sys
from pathlib import Path

import mcp_types as types
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

PNG = "iVBORw=="


def make_server() -> MCPServer:
    """A server with a tool for everything that a client meets."""
    server = MCPServer("desk", log_level="CRITICAL")

    @server.tool(description="Adds two numbers.")
    def add(a: int, b: int) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(text=str(a + b))], structured_content={"sum": a + b})

    @server.tool(name="every.kind/of block")
    def every_kind() -> types.CallToolResult:
        return types.CallToolResult(
            content=[
                types.TextContent(text="words"),
                types.ImageContent(data=PNG, mime_type="image/png"),
                types.AudioContent(data=PNG, mime_type="audio/wav"),
                types.ResourceLink(name="log", uri="file:///log", description="the log"),
                types.EmbeddedResource(resource=types.TextResourceContents(uri="file:///a", text="inside")),
                types.EmbeddedResource(resource=types.BlobResourceContents(uri="file:///b", blob=PNG)),
            ]
        )

    @server.tool()
    def only_structure() -> types.CallToolResult:
        return types.CallToolResult(content=[], structured_content={"a": ["ö"]})

    @server.tool()
    def fails() -> str:
        raise ToolError("the desk is closed")

    @server.tool()
    def environment() -> str:
        return "\n".join(os.environ)

    @server.tool()
    def pid() -> str:
        return str(os.getpid())

    @server.tool()
    def dies(status: int) -> str:
        sys.stderr.write("about to die\n")
        sys.stderr.flush()
        os._exit(status)

    @server.tool()
    async def sleeps(marker: str) -> str:
        mark = Path(marker).write_text  # a few bytes: nothing else waits for this loop
        mark("begun")
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            mark("cancelled")
            raise
        return "woken"

    @server.tool()
    async def grows(ctx: Context) -> str:
        server.add_tool(lambda: "new", name="newcomer", description="Was not there before.")
        await ctx.notify_tools_changed()
        return "grown"

    return server


if __name__ == "__main__":
    if sys.argv[1:] == ["silent"]:
        sys.stdin.read()
    elif sys.argv[1:] == ["broken"]:
        sys.stderr.write("no config found\n")
        sys.exit(3)
    else:
        make_server().run("stdio")
