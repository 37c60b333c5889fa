"""Requests that only count tokens: their history is to be the one that the model would be sent.

Knows: where the request stands in such a body. Does not know: sessions, what is edited.
"""

from dataclasses import dataclass

import msgspec

from interpose.gateway.api import Codec, Edits, RequestView, Unreadable
from interpose.gateway.bodies import RawObject, open_body
from interpose.wire.jsonbytes import write_json

_INNER = ("generateContentRequest", "generate_content_request")
"""Gemini counts the contents of a body, or a whole request in one member of it."""


@dataclass(frozen=True, slots=True)
class Counted:
    """A body whose tokens are counted, and the request in it."""

    body: bytes
    request: RequestView
    _top: RawObject
    _key: str | None

    def rewritten(self, edits: Edits) -> bytes:
        """The body with all edits of the session; its own bytes when there is none."""
        body = self.request.rewritten(edits, None).body
        if self._key is None or body is self.request.body:
            return body if self._key is None else self.body
        return write_json({**self._top, self._key: msgspec.Raw(body)})


def read_count(codec: Codec, body: bytes) -> Counted | None:
    """The body, read; None where it cannot be, and nobody needs to judge it."""
    try:
        top = open_body(body, arguments="args") if codec.api == "gemini" else {}
        key = next((name for name in _INNER if name in top), None)
        return Counted(body, codec.read(body if key is None else bytes(top[key])), top, key)
    except Unreadable:
        return None
