"""A whole reply: its calls judged, refused ones told as text in their place.

Knows: the body around the candidates. Does not know: verdicts' reasons, sockets.
"""

import msgspec

from interpose.contracts.json import Json
from interpose.gateway.api import Onward, Steps, steps_of
from interpose.gateway.bodies import RawObject, object_of, open_body, open_object, value_of
from interpose.gateway.gemini.candidates import Candidates, items_of, judged_chunk
from interpose.gateway.gemini.earlier import Earlier, parts_of
from interpose.gateway.gemini.message import BLANK
from interpose.gateway.gemini.stream import GeminiStream
from interpose.gateway.shapes import refuse_foreign
from interpose.gateway.wholes import WholeReply
from interpose.wire.jsonbytes import read_json, write_json


class GeminiReply(WholeReply):
    """The port `ReplyStream` for replies that come whole; the client's body is its last step."""

    def __init__(self) -> None:
        super().__init__()
        self._candidates = Candidates()
        self._array = GeminiStream()
        """For a body that is an array, which some proxies make of a stream."""
        self._parts: list[msgspec.Raw] = []
        """The parts that the client is told of earlier replies of the model."""
        self._earlier: Earlier | None = None

    def finish(self, fault: str | None = None) -> Steps:
        """As for other APIs; raises Unreadable too when an item of an array is no object."""
        body = self._taken()
        if not body.lstrip(BLANK).startswith(b"["):
            yield from self._judged_body(body)
            return
        yield from steps_of(self._array.feed(body))
        yield from self._array.finish(fault)

    def _judged_body(self, body: bytes) -> Steps:
        top = open_body(body, arguments="args")
        if "candidates" not in top:
            refuse_foreign("gemini", object_of(body))
        changed = yield from judged_chunk(top, self._candidates, is_whole=True)
        judged = top if changed is None else changed
        if items_of(top):
            answer = yield self._candidates.over(body, _reason(top))
            if isinstance(answer, Onward):
                self._keep(body, judged, answer.note)
                return
        if changed is None and self._earlier is None:
            yield body
            return
        yield write_json(judged if self._earlier is None else self._told(judged, self._earlier))

    def _keep(self, body: bytes, judged: RawObject, note: str) -> None:
        self._parts += parts_of(open_object(items_of(judged)[0]))
        self._earlier = (self._earlier or Earlier()).after([read_json(body)])
        self._candidates.begin_next()
        if note:
            self._parts.append(msgspec.Raw(write_json({"text": self._candidates.at(0).tell(note)})))

    def _told(self, judged: RawObject, earlier: Earlier) -> RawObject:
        items = items_of(judged)
        first = open_object(items[0]) if items else {"finishReason": msgspec.Raw(b'"STOP"')}
        content: Json = value_of(first.get("content"))
        members = content if isinstance(content, dict) else {"role": "model"}
        parts = msgspec.Raw(write_json([*self._parts, *parts_of(first)]))
        first["content"] = msgspec.Raw(write_json({**members, "parts": parts}))
        return earlier.told({**judged, "candidates": msgspec.Raw(write_json([first, *items[1:]]))})


def _reason(top: RawObject) -> str | None:
    candidate = value_of(items_of(top)[0])
    reason = candidate.get("finishReason") if isinstance(candidate, dict) else None
    return reason if isinstance(reason, str) else None
