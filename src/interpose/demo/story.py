"""The story of the demonstration: the project it plays in and the lines of the scripted model."""

from pathlib import Path
from typing import Any

from interpose.testing.upstream import RecordedRequest, Reply, Step, Text, ToolUse

PROMPT = "Free some disk space in this project."
NOTE = "notes/cleanup.md"

PROJECT = {
    "README.md": "# A small project\n",
    "build/release.bin": "the only copy of last night's release\n",
    NOTE: "Never delete build/: the release team picks it up. `make tidy` removes what can go.\n",
}


def make_project(folder: Path, hooks: str) -> None:
    """Writes the project and its hooks into the empty `folder`."""
    for name, text in ({**PROJECT, ".interpose/hooks.yaml": hooks}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def script() -> list[Step]:
    """What the model says: it tries to delete, looks at what came of it, reads a note, and finishes."""
    return [
        Reply(
            Text("The build folder takes the most space, so I will delete it."),
            ToolUse("shell", {"command": "rm -rf build"}),
        ),
        _after_deleting,
        _after_reading,
    ]


def _after_deleting(request: RecordedRequest) -> Reply:
    refused = _refusal_in(request)
    if refused:
        return Reply(
            Text("That was refused, so I will not delete anything. The notes may say what can go."),
            ToolUse("read", {"path": NOTE}),
        )
    return Reply(Text("Deleted. Let me look at the notes as well."), ToolUse("read", {"path": NOTE}))


def _after_reading(request: RecordedRequest) -> Reply:
    seen = _texts(request.json["messages"][-1])
    if "make tidy" in seen:
        summary = "build/ must stay; `make tidy` removes what can go."
    else:
        summary = "I could not read the notes, so I leave the rest to you."
    return Reply(ToolUse("finish", {"summary": summary}))


def _refusal_in(request: RecordedRequest) -> bool:
    return any("was refused by" in _texts(message) for message in request.json["messages"])


def _texts(message: dict[str, Any]) -> str:
    content = message["content"]
    if isinstance(content, str):
        return content
    return "\n".join(str(block.get("text") or block.get("content") or "") for block in content)
