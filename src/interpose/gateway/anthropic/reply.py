"""A whole messages reply: its calls judged, refused ones told as text.

Knows: content blocks and stop reasons. Does not know: verdicts' reasons, sockets.
"""

import msgspec

from interpose.gateway.api import ProposedCall, Steps, answered
from interpose.gateway.bodies import RawObject, open_array, open_body, open_object, value_of
from interpose.gateway.wording import refused_line
from interpose.wire.jsonbytes import write_json
from interpose.wire.strictjson import read_arguments


def judged_reply(body: bytes) -> Steps:
    """Asks for each call in order, then yields the body: the upstream's bytes when nothing was changed.

    Raises Unreadable when the body is not a JSON object, or can be read in two ways.
    """
    top = open_body(body, arguments="input")
    content = top.get("content")
    if content is None or not bytes(content).startswith(b"["):
        yield body
        return

    blocks = open_array(content)
    judged: list[msgspec.Raw] = []
    released = 0
    for raw in blocks:
        fields = _call_fields(raw)
        if fields is None:
            judged.append(raw)
            continue
        call = _call(fields)
        verdict = answered((yield call))
        if not verdict.allowed:
            judged.append(msgspec.Raw(write_json({"type": "text", "text": refused_line(call.name, verdict)})))
            continue
        released += 1
        judged.append(raw if verdict.arguments is None else _with_input(fields, verdict.arguments))

    if all(new is old for new, old in zip(judged, blocks, strict=True)):
        yield body
        return
    top["content"] = msgspec.Raw(write_json(judged))
    if not released and value_of(top.get("stop_reason")) == "tool_use":
        top["stop_reason"] = msgspec.Raw(b'"end_turn"')
    yield write_json(top)


def _call_fields(raw: msgspec.Raw) -> RawObject | None:
    value = value_of(raw)
    if not isinstance(value, dict) or value.get("type") != "tool_use":
        return None
    return open_object(raw)


def _call(fields: RawObject) -> ProposedCall:
    arguments, problem = read_arguments(bytes(fields.get("input") or b""))
    return ProposedCall(
        call_id=str(value_of(fields.get("id")) or ""),
        name=str(value_of(fields.get("name")) or ""),
        arguments=arguments or {},
        problem=problem,
    )


def _with_input(fields: RawObject, arguments: object) -> msgspec.Raw:
    return msgspec.Raw(write_json({**fields, "input": arguments}))
