"""What a scripted model answers: values only.

Knows: the parts of a reply and the ways in which an upstream fails. Does not know: any API's shape, any socket.
"""

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from interpose.contracts.json import Json

PIECE_CHARS = 12
"""Texts and arguments are streamed in pieces of this length."""


@dataclass(frozen=True, slots=True)
class Text:
    """Words of the model."""

    text: str


@dataclass(frozen=True, slots=True)
class Thinking:
    """Thoughts of the model, shown by every API but chat completions, which leaves them out."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A call that the model proposes.

    `input` as a str is put on the wire as it is, so that a model that writes broken JSON can be played. Without an
    `id` the upstream counts one up.
    """

    name: str
    input: Mapping[str, Any] | str
    id: str | None = None

    @property
    def arguments(self) -> str:
        """The input as the model writes it."""
        return self.input if isinstance(self.input, str) else json.dumps(self.input)


Part: TypeAlias = Text | Thinking | ToolUse


@dataclass(frozen=True, slots=True, init=False)
class Reply:
    """A turn of the model: its parts in order, in the shape of whichever API asks, streamed if the request says so.

    Without a `stop_reason` it is the API's word for "calls tools" when a call is among the parts, else for "done";
    a given one is written as it is.
    """

    parts: tuple[Part, ...]
    stop_reason: str | None
    status: int

    def __init__(self, *parts: Part, stop_reason: str | None = None, status: int = 200) -> None:
        object.__setattr__(self, "parts", parts)
        object.__setattr__(self, "stop_reason", stop_reason)
        object.__setattr__(self, "status", status)


@dataclass(frozen=True, slots=True)
class Failure:
    """An error answer. A str `body` of JSON's content type becomes the message of an error in the API's shape."""

    status: int
    body: str | bytes = "scripted failure"
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class RawBody:
    """A whole answer of fixed bytes, such as a proxy's HTML page."""

    body: bytes
    content_type: str = "text/html"
    status: int = 200


@dataclass(frozen=True, slots=True)
class RawStream:
    """Raw bytes, written chunk by chunk, each in a write of its own.

    An Event among the chunks is waited for before the next one is written. `cut` drops the connection at the end
    instead of ending the body.
    """

    chunks: Sequence[bytes | threading.Event]
    cut: bool = False
    content_type: str = "text/event-stream"


@dataclass(frozen=True, slots=True)
class Slow:
    """Nothing is sent before `gate` is set; then `reply`."""

    reply: "Answer"
    gate: threading.Event


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A request as it arrived.

    Attributes:
        method: in capitals.
        path: with the query string, as it was sent.
        headers: looked up in any case.
        body: the bytes as they were sent.
        json: the parsed body, or None when it is not JSON.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    json: Json


Answer: TypeAlias = Reply | Failure | RawBody | RawStream | Slow
Step: TypeAlias = Answer | Callable[[RecordedRequest], Answer]
"""One entry of a script; a function is given the request, so that a scripted model can see what it was told."""


def pieces(text: str) -> list[str]:
    """The text as it is streamed, piece by piece."""
    return [text[start : start + PIECE_CHARS] for start in range(0, len(text), PIECE_CHARS)]
