"""The items of a response: which of them are calls that the client runs, and what such a call proposes.

Knows: the types of items, the members of each kind of call. Does not know: events, lists of items.
Source: https://platform.openai.com/docs/api-reference/responses/object.
"""

import shlex
from dataclasses import replace
from typing import Any

import msgspec

from interpose.contracts.json import Json, JsonObject
from interpose.gateway.api import ProposedCall, Unreadable
from interpose.gateway.bodies import RawObject, open_object, value_of
from interpose.gateway.proposed import name_in, unknown_call, with_name
from interpose.wire.jsonbytes import write_json
from interpose.wire.strictjson import read_arguments, read_object

CODE_MODE = "exec"
"""The freeform tool that runs a program of the model's, in which tools are called."""

PROGRAM = "a program that calls tools, which interpose cannot read"
"""What is wrong with a call of it."""

_PASSING = frozenset(
    {
        "message",
        "reasoning",
        "compaction",
        "compaction_summary",
        "context_compaction",
        "additional_tools",
        "program",
        "program_output",
        "tool_search_output",
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "mcp_call",
        "mcp_list_tools",
        "mcp_approval_request",
        "mcp_approval_response",
        "function_call_output",
        "custom_tool_call_output",
        "local_shell_call_output",
        "shell_call_output",
        "apply_patch_call_output",
        "computer_call_output",
    }
)
"""What the model says, and what the provider runs by itself. All other items are calls, also of types not known yet."""

_PATCH_HEADS = {"create_file": "*** Add File: ", "update_file": "*** Update File: ", "delete_file": "*** Delete File: "}


def is_call(item: Json) -> bool:
    """Whether the client is to run something for this item, as far as its type tells."""
    if not isinstance(item, dict):
        return True
    match item.get("type"):
        case "tool_search_call":
            return item.get("execution") != "server"
        case "shell_call":
            environment = item.get("environment")
            return not isinstance(environment, dict) or environment.get("type") == "local"
        case kind:
            return not isinstance(kind, str) or kind not in _PASSING


def text_of_call(item: Json) -> str | None:
    """The text that the deltas of a call's input add up to; None for a kind whose input is no one text."""
    if not isinstance(item, dict):
        return None
    text = item.get("input" if item.get("type") == "custom_tool_call" else "arguments")
    return text if isinstance(text, str) else None


def commands_of_call(item: Json) -> list[str] | None:
    """The commands of a shell call, which may be streamed one by one; None for other kinds."""
    action = item.get("action") if isinstance(item, dict) and item.get("type") == "shell_call" else None
    commands = action.get("commands") if isinstance(action, dict) else None
    return commands if isinstance(commands, list) and all(isinstance(one, str) for one in commands) else None


def read_call(raw: msgspec.Raw) -> ProposedCall:
    """The call that one complete item proposes; what cannot be read is a problem of the call."""
    try:
        fields = open_object(raw)
        item = value_of(raw)
    except Unreadable as error:
        return unknown_call("", None, str(error))
    call_id = str(item.get("call_id") or item.get("id") or "")
    match item.get("type"):
        case "function_call":
            return _function(call_id, item)
        case "custom_tool_call":
            return _custom(call_id, item)
        case "local_shell_call":
            return _local_shell(call_id, fields)
        case "shell_call":
            return _shell(call_id, fields)
        case "apply_patch_call":
            return _patch(call_id, fields)
        case "tool_search_call":
            return _of_object(call_id, "tool_search", fields.get("arguments"))
        case "computer_call":
            action = {key: item[key] for key in ("action", "actions") if key in item}
            arguments, problem = read_object(action)
            return ProposedCall(call_id, "computer", arguments or {}, problem)
        case kind:
            return unknown_call(call_id, kind, f"an output item of the type {kind!r}, which interpose cannot read")


def with_arguments(raw: msgspec.Raw, arguments: JsonObject) -> msgspec.Raw | None:
    """The item with other arguments, all its other members as they were; None for a kind that cannot be rewritten."""
    fields = open_object(raw)
    match value_of(fields.get("type")):
        case "function_call":
            return _with(fields, "arguments", write_json(arguments).decode())
        case "custom_tool_call" if isinstance(arguments.get("input"), str) and len(arguments) == 1:
            return _with(fields, "input", arguments["input"])
        case "local_shell_call":
            kind = value_of(open_object(fields["action"]).get("type"))
            return _with(fields, "action", {"type": kind, **arguments})
        case "shell_call" if isinstance(arguments.get("command"), str):
            rest = {key: value for key, value in arguments.items() if key != "command"}
            return _with(fields, "action", {"commands": [arguments["command"]], **rest})
        case "tool_search_call":
            return _with(fields, "arguments", arguments)
        case _:
            return None


def with_original(raw: msgspec.Raw, arguments: JsonObject) -> msgspec.Raw | None:
    """The item with the arguments that `read_call` gave for it before it was changed."""
    restored = with_arguments(raw, arguments)
    if restored is None or value_of(open_object(raw).get("type")) != "shell_call":
        return restored
    fields = open_object(restored)
    action = value_of(fields["action"])
    return _with(fields, "action", {**action, "commands": _apart(action["commands"][0])})


def told_message(raw: msgspec.Raw, line: str) -> dict[str, Any]:
    """The message that stands in the place of a refused call, with an id made from the call's."""
    item = value_of(raw)
    item_id = str(item.get("id") or item.get("call_id") or "") if isinstance(item, dict) else ""
    return {
        "type": "message",
        "id": f"msg_{item_id.partition('_')[2] or item_id or 'interpose'}",
        "status": "completed",
        "role": "assistant",
        "content": [output_text(line)],
    }


def output_text(text: str) -> dict[str, Any]:
    """A text in a message of the model."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def qualified(namespace: Json, name: Json) -> str:
    """A tool's name with its namespace: `mcp__SERVER` and `TOOL` are `mcp__SERVER__TOOL`, as other agents write it."""
    plain = name_in(name)
    return f"{namespace.removesuffix('__')}__{plain}" if isinstance(namespace, str) and namespace else plain


def _function(call_id: str, item: JsonObject) -> ProposedCall:
    given = item.get("arguments")
    arguments, problem = read_arguments(given or "") if isinstance(given, str | None) else read_object(given)
    name = qualified(item.get("namespace"), item["name"]) if name_in(item.get("name")) else ""
    return with_name(ProposedCall(call_id, name, arguments or {}, problem), "function_call")


def _custom(call_id: str, item: JsonObject) -> ProposedCall:
    name, text = qualified(item.get("namespace"), item.get("name")), item.get("input")
    if not isinstance(text, str):
        return ProposedCall(call_id, name, {}, "the input of a freeform tool is not a text")
    if name == CODE_MODE:
        return ProposedCall(call_id, name, {}, PROGRAM)
    return with_name(ProposedCall(call_id, name, {"input": text}), "custom_tool_call")


def _local_shell(call_id: str, fields: RawObject) -> ProposedCall:
    call = _of_object(call_id, "local_shell", fields.get("action"))
    return replace(call, arguments={key: value for key, value in call.arguments.items() if key != "type"})


def _shell(call_id: str, fields: RawObject) -> ProposedCall:
    """Several commands run one by one: each is a shell of its own, so that none can hide in another's text."""
    call = _of_object(call_id, "shell", fields.get("action"))
    if call.problem is not None:
        return call
    arguments = dict(call.arguments)
    commands = arguments.pop("commands", None)
    if not isinstance(commands, list) or not commands or not all(isinstance(one, str) for one in commands):
        return replace(call, arguments={}, problem="the commands of a shell call are not a list of texts")
    command = commands[0] if len(commands) == 1 else _together(commands)
    return replace(call, arguments={"command": command, **arguments})


def _together(commands: list[str]) -> str:
    return "\n".join(f"sh -c {shlex.quote(one)}" for one in commands)


def _apart(command: str) -> list[str]:
    """The commands that were put `_together`; one that was alone stays so."""
    try:
        words = shlex.split(command)
    except ValueError:
        return [command]
    commands = words[2::3]
    return commands if len(commands) > 1 and _together(commands) == command else [command]


def _patch(call_id: str, fields: RawObject) -> ProposedCall:
    call = _of_object(call_id, "apply_patch", fields.get("operation"))
    if call.problem is not None:
        return call
    kind, path, diff = (call.arguments.get(key) for key in ("type", "path", "diff"))
    head = _PATCH_HEADS.get(kind) if isinstance(kind, str) else None
    if head is None or not isinstance(path, str) or "\n" in path or not isinstance(diff, str | None):
        return replace(call, arguments={}, problem="an operation on files that interpose cannot read")
    lines = ["*** Begin Patch", head + path, *([diff] if diff else []), "*** End Patch"]
    return replace(call, arguments={"input": "\n".join(lines)})


def _of_object(call_id: str, name: str, raw: msgspec.Raw | None) -> ProposedCall:
    """A call whose arguments are an object of the item, read from its bytes, so that repeated keys show."""
    if raw is None:
        return ProposedCall(call_id, name, {}, "the call says nothing of what it runs")
    arguments, problem = read_arguments(bytes(raw))
    return ProposedCall(call_id, name, arguments or {}, problem)


def _with(fields: RawObject, name: str, value: Json) -> msgspec.Raw:
    return msgspec.Raw(write_json({**fields, name: value}))
