"""A response as one object: its calls judged, refused ones told as messages in their place.

Knows: the list of output items. Does not know: verdicts' reasons, events, sockets.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import msgspec

from interpose.contracts.json import Json
from interpose.contracts.verdict import Refusal, Verdict
from interpose.gateway.api import ProposedCall, Steps, answered
from interpose.gateway.bodies import RawObject, open_array, open_body, value_of
from interpose.gateway.responses.items import is_call, read_call, told_message, with_arguments
from interpose.gateway.wording import refusal_line, refused_line
from interpose.wire.jsonbytes import write_json


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of one call. `item` is what leaves in its place, None for nothing at all."""

    call: ProposedCall
    item: msgspec.Raw | None
    outcome: Literal["released", "rewritten", "gone"]


Identity: TypeAlias = tuple[str, str]
"""The id of an item and the id of its call."""

Asking: TypeAlias = Generator[ProposedCall, Verdict | None, Settled]


def judged_reply(body: bytes) -> Steps:
    """Asks for each call in order, then yields the body: the upstream's bytes when nothing was changed.

    Raises Unreadable when the body is not a JSON object.
    """
    top = open_body(body)
    changed = yield from judged_response(top, {})
    yield body if changed is None else write_json(changed)


def judged_response(
    response: RawObject, settled: Mapping[Identity, Settled]
) -> Generator[ProposedCall, Verdict | None, RawObject | None]:
    """The response with each call replaced by what became of it; None when it stays as it is.

    A call that was `settled` before is asked for again only when it now says something else.
    """
    raw_output = response.get("output")
    if raw_output is None or not bytes(raw_output).startswith(b"["):
        return None
    items = open_array(raw_output)
    judged: list[msgspec.Raw] = []
    for raw in items:
        if not is_call(value_of(raw)):
            judged.append(raw)
            continue
        item = yield from _in_place(raw, settled)
        if item is not None:
            judged.append(item)

    if len(judged) == len(items) and all(new is old for new, old in zip(judged, items, strict=True)):
        return None
    return {**response, "output": msgspec.Raw(write_json(judged))}


def asked(raw: msgspec.Raw, call: ProposedCall) -> Asking:
    """Asks for one call; what becomes of it."""
    verdict = answered((yield call))
    if not verdict.allowed:
        return Settled(call, _told(raw, refused_line(call.name, verdict)), "gone")
    if verdict.arguments is None:
        return Settled(call, raw, "released")
    rewritten = with_arguments(raw, verdict.arguments)
    if rewritten is not None:
        return Settled(call, rewritten, "rewritten")
    refusal = Refusal("interpose", "it was to be changed, and a call of this kind cannot be")
    return Settled(call, _told(raw, refusal_line(call.name, refusal)), "gone")


def identity(item: Json) -> Identity:
    """Which item this is; the same in the events of a stream and in the response at its end."""
    if not isinstance(item, dict):
        return "", ""
    return str(item.get("id") or ""), str(item.get("call_id") or "")


def _in_place(
    raw: msgspec.Raw, settled: Mapping[Identity, Settled]
) -> Generator[ProposedCall, Verdict | None, msgspec.Raw | None]:
    call = read_call(raw)
    known = settled.get(identity(value_of(raw)))
    if known is None or (known.outcome != "gone" and known.call != call):
        known = yield from asked(raw, call)
    return raw if known.outcome == "released" else known.item


def _told(raw: msgspec.Raw, line: str) -> msgspec.Raw:
    return msgspec.Raw(write_json(told_message(raw, line)))
