"""An MCP server on stdio with two tools, in the standard library only: started by agents, not imported by tests."""

import json
import sys
from typing import Any

TOOLS = ("read", "remove")


def answer(message: dict[str, Any]) -> dict[str, Any]:
    """What the server says to one request."""
    match message["method"]:
        case "initialize":
            version = message["params"]["protocolVersion"]
            about = {"name": "notes", "version": "1"}
            return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}}
        case "tools/list":
            schema = {"type": "object", "properties": {"name": {"type": "string"}}}
            return {"result": {"tools": [{"name": name, "description": name, "inputSchema": schema} for name in TOOLS]}}
        case "tools/call":
            done = f"the note was {message['params']['name']}"
            return {"result": {"content": [{"type": "text", "text": done}]}}
        case method:
            return {"error": {"code": -32601, "message": f"no such method: {method}"}}


def main() -> None:
    """Answers line by line until the agent closes its end."""
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"]} | answer(message)) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
