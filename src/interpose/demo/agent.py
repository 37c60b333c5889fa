"""A small coding agent on the official anthropic SDK: a shell, a file reader, and a way to say that it is done.

Its own tools stand behind the same policy as its model traffic, through `PolicyMiddleware`.
"""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anthropic

from interpose.chain.chain import Chain
from interpose.contracts.json import JsonObject
from interpose.contracts.tools import Call

MOST_ROUNDS = 8
SHELL_TIMEOUT_S = 10

TOOLS: list[dict[str, Any]] = [
    {
        "name": "shell",
        "description": "Runs a command in the project folder.",
        "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    },
    {
        "name": "read",
        "description": "Reads a file of the project.",
        "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
    {
        "name": "finish",
        "description": "Says that the work is done.",
        "input_schema": {"type": "object", "properties": {"summary": {"type": "string"}}, "required": ["summary"]},
    },
]


@dataclass(frozen=True, slots=True)
class Step:
    """Something the agent did or saw: `who` is person, model, tool or done."""

    who: str
    text: str


class Agent:
    """Asks the model, runs the tools it calls, and goes on until it calls `finish`. For one thread."""

    def __init__(
        self, client: anthropic.Anthropic, chain: Chain, folder: Path, *, report: Callable[[Step], None]
    ) -> None:
        self._client = client
        self._chain = chain
        self._folder = folder
        self._report = report
        self._messages: list[dict[str, Any]] = []

    def work(self, prompt: str) -> str | None:
        """Works on `prompt`; the summary that the model finished with, or None when it never did."""
        self._report(Step("person", prompt))
        self._messages.append({"role": "user", "content": prompt})
        for _ in range(MOST_ROUNDS):
            reply = self._ask()
            results = []
            for block in reply.content:
                if block.type == "text":
                    for said in block.text.split("\n\n"):
                        self._report(Step("model", said))
                if block.type != "tool_use":
                    continue
                if block.name == "finish":
                    summary = str(block.input.get("summary", ""))
                    self._report(Step("done", summary))
                    return summary
                results.append(self._run(block.id, block.name, block.input))
            self._messages.append({"role": "user", "content": results or "Go on, or call finish."})
        return None

    def _ask(self) -> anthropic.types.Message:
        with self._client.messages.stream(
            model="scripted",
            max_tokens=1024,
            messages=self._messages,  # type: ignore[arg-type]
            tools=TOOLS,  # type: ignore[arg-type]
        ) as stream:
            reply = stream.get_final_message()
        self._messages.append({"role": "assistant", "content": reply.to_dict()["content"]})
        return reply

    def _run(self, call_id: str, name: str, arguments: JsonObject) -> dict[str, Any]:
        terminals: dict[str, Callable[[JsonObject], str]] = {"shell": self._shell, "read": self._read}

        def terminal(tool: str, given: dict[str, Any]) -> str:
            run = terminals.get(tool)
            return run(given) if run is not None else f"there is no tool {tool!r}"

        self._report(Step("tool", f"{name} {' '.join(str(value) for value in arguments.values())}"))
        try:
            output = self._chain.call(name, dict(arguments), terminal, call=Call(call_id))
        except (OSError, KeyError, subprocess.SubprocessError) as error:
            return {"type": "tool_result", "tool_use_id": call_id, "content": str(error), "is_error": True}
        return {"type": "tool_result", "tool_use_id": call_id, "content": str(output)}

    def _shell(self, arguments: JsonObject) -> str:
        done = subprocess.run(  # noqa: S603 - the demonstration's own shell tool, in its temporary folder
            ["/bin/sh", "-c", arguments["command"]],
            cwd=self._folder,
            capture_output=True,
            text=True,
            timeout=SHELL_TIMEOUT_S,
            check=False,
        )
        return str(done.stdout + done.stderr).strip() or f"(no output, exit code {done.returncode})"

    def _read(self, arguments: JsonObject) -> str:
        return (self._folder / str(arguments["path"])).read_text(encoding="utf-8")
