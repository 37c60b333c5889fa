"""An MCP server written by hand, for tests: what it does beside answering is in its arguments."""

import json
import signal
import subprocess
import sys
import time
from typing import Any

GOOD = {"name": "good", "inputSchema": {"type": "object"}}
ODD_TOOLS: list[Any] = [
    {"name": "", "inputSchema": {"type": "object"}},
    {"name": "no_schema"},
    {"name": "list_schema", "inputSchema": {"type": "array"}},
    {"name": 5, "inputSchema": {"type": "object"}},
    {"name": "odd_note", "inputSchema": {"type": "object"}, "annotations": 5},
    5,
    None,
]


def answer(message: dict[str, Any]) -> dict[str, Any]:
    """The result of a request, or an error for a method that it does not know."""
    match message["method"]:
        case "initialize":
            version = message["params"]["protocolVersion"]
            info = {"name": "odd", "version": "1"}
            result: dict[str, Any] = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            result = {"tools": [*ODD_TOOLS[:3], GOOD, *ODD_TOOLS[3:]] if "odd" in sys.argv else [GOOD]}
        case "tools/call":
            result = {"content": [{"type": "text", "text": "done well"}], "tools": [5]}
        case _:
            return {"error": {"code": -32601, "message": "no such method"}}
    return {"result": result}


def main() -> None:
    """Answers until its input ends."""
    if "stubborn" in sys.argv:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "parent" in sys.argv:
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        sys.stderr.write(f"{child.pid}\n")
        with open(sys.argv[-1], "w", encoding="utf-8") as file:  # noqa: PTH123 - a script of few imports
            file.write(f"{child.pid}\n")
    if "mute" in sys.argv:
        time.sleep(600)
    for line in sys.stdin:
        if "junk" in sys.argv:
            sys.stdout.write("starting up...\n\n{\n" * 50)
        message = json.loads(line)
        if "id" in message:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer(message)}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
