"""What an API answered, and what a model reads of it.

Knows: status, kinds of content, how much is shown. Does not know: requests, sockets.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from interpose.contracts.errors import ToolError


@dataclass(frozen=True, slots=True)
class ApiResponse:
    """An answer with at most the allowed number of bytes; `cut` says that there were more.

    `request` is method and path for people, without the query, which may hold a key. Names of `headers` are lower case.
    """

    operation: str
    request: str
    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes
    cut: bool
    charset: str = "utf-8"

    @property
    def content_type(self) -> str:
        """The content type in lower case, without its parameters; "" when there is none."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def text(self) -> str:
        """The body as text; what is not in its charset becomes U+FFFD."""
        try:
            return self.body.decode(self.charset, "replace")
        except LookupError:
            return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body as JSON; ValueError when it is none or was cut."""
        return json.loads(self.body)


def told(response: ApiResponse) -> str:
    """The body for a model: JSON without white space, text as it is, a line about anything else.

    Raises ToolError with the status and the body for every status outside of 200 to 299.
    """
    words = f"HTTP {response.status} {response.reason}".rstrip()
    if 200 <= response.status < 300:
        return _body(response) or words
    location = response.headers.get("location")
    forward = f" to {location}, which was not followed" if location else ""
    body = _body(response)
    raise ToolError(f"{response.request}: {words}{forward}" + (f"\n{body}" if body else ""))


def _body(response: ApiResponse) -> str:
    if not response.body:
        return ""
    kind = response.content_type
    if kind and not _is_text(kind):
        return f"[{kind}, {'more than ' if response.cut else ''}{len(response.body):,} bytes, not shown]"
    if response.cut:
        return f"{response.text()}\n[cut here: the answer has more than {len(response.body):,} bytes]"
    if kind.endswith("json"):
        try:
            return json.dumps(response.json(), ensure_ascii=False, separators=(",", ":"))
        except (ValueError, RecursionError):
            return response.text()
    return response.text()


def _is_text(kind: str) -> bool:
    return kind.startswith("text/") or kind.endswith(("json", "xml", "yaml", "javascript", "x-www-form-urlencoded"))
