"""What the history has of a call that was refused: the call as the model made it, and its error.

Knows: which output answers which kind of call. Does not know: lists of items, who is told.
"""

from typing import Any

import msgspec

from interpose.contracts.json import Json, JsonObject
from interpose.gateway.api import ProposedCall
from interpose.gateway.bodies import value_of
from interpose.gateway.responses.items import PROGRAM
from interpose.gateway.responses.outputs import input_text

_TEXTS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
}
"""Kinds of calls that any text answers."""


def entry_of(raw: msgspec.Raw, call: ProposedCall) -> Json:
    """The item as the history has it; None for a call that cannot be told, or whose output cannot be an error."""
    item = value_of(raw)
    is_told = call.problem is None or (call.problem == PROGRAM and item.get("type") == "custom_tool_call")
    is_answered = answer_of(item, "") is not None
    return item if is_told and is_answered and item.get("call_id") else None


def answer_of(entry: JsonObject, text: str) -> dict[str, Any] | None:
    """The output of a refused call, as the model is told it; None for a kind whose output cannot be a text."""
    call_id = entry.get("call_id")
    match entry.get("type"):
        case "function_call" | "custom_tool_call" as kind:
            return {"type": _TEXTS[kind], "call_id": call_id, "output": text}
        case "local_shell_call":
            return {"type": "local_shell_call_output", "id": call_id, "output": text}
        case "shell_call":
            printed = {"stdout": "", "stderr": text, "outcome": {"type": "exit", "exit_code": 1}}
            return {"type": "shell_call_output", "call_id": call_id, "output": [printed], **_limit(entry)}
        case "apply_patch_call":
            return {"type": "apply_patch_call_output", "call_id": call_id, "status": "failed", "output": text}
        case _:
            return None


def nudged(text: str) -> dict[str, Any]:
    """A message of ours, in the place of the person's."""
    return {"type": "message", "role": "user", "content": [input_text(text)]}


def _limit(entry: JsonObject) -> dict[str, Any]:
    """A shell call that limits its output has the limit told back."""
    action = entry.get("action")
    limit = action.get("max_output_length") if isinstance(action, dict) else None
    return {} if limit is None else {"max_output_length": limit}
