"""What a request is, told from its path and headers.

Knows: the APIs' paths, clients' headers. Does not know: bodies, upstream addresses.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from interpose.gateway.api import ApiName

Kind: TypeAlias = Literal["judged", "counted", "plain", "unknown"]

SESSION_HEADERS = (b"x-interpose-session", b"x-claude-code-session-id", b"session-id", b"thread-id", b"x-session-id")
"""Headers that name a session, the most telling first."""

_LAUNCH = re.compile(rb"/l/([^/?#]*)")
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^:\[\]]*)(?::[0-9]*)?")
_CODE_ASSIST = re.compile(
    r"^(?!.*/(?:v\d\w*|\w*models|dynamic|corpora|endpoints)/)(?:/[^/:]*)*/v\d\w*:(?:stream)?generatecontent$"
)
"""Its paths, in lower case, name a version, where Gemini's name a model, whose name may look like one."""

_JUDGED: tuple[tuple[re.Pattern[str], ApiName], ...] = (
    (re.compile(r"/v1/messages$"), "anthropic"),
    (re.compile(r"/chat/completions$"), "chat"),
    (re.compile(r"/responses$"), "responses"),
    (re.compile(r":(stream)?generatecontent$"), "gemini"),
)
"""The ends of the judged paths, in lower case.

Code Assist, which has the request and the reply in objects of its own, is left out.
Source: https://github.com/google-gemini/gemini-cli, packages/core/src/code_assist.
"""

_COUNTS = re.compile(
    r"(/v1)?/messages/count_tokens|(/v1)?/responses/input_tokens|(/v1|/v1alpha|/v1beta)?/models/[^/:]+:countTokens"
)
_RUNS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"/responses/compact$"), "/responses/compact"),
    (re.compile(r"/messages/batches$"), "/messages/batches"),
    (re.compile(r"/batches$"), "/batches"),
    (re.compile(r"(?<!/chat)/completions$"), "/completions"),
    (re.compile(r"/complete$"), "/complete"),
    (re.compile(r"/threads(/[^/]+)?/runs$"), "/threads/…/runs"),
    (re.compile(r"/interactions$"), "/interactions"),
    (re.compile(r"/realtime(/[^/]+)?$"), "/realtime"),
    (re.compile(r":batchgeneratecontent$"), ":batchGenerateContent"),
    (_CODE_ASSIST, "/v1internal:generateContent"),
    (re.compile(r":generate(answer|message|text)$"), ":generateAnswer"),
    (re.compile(r":(stream)?rawpredict$"), ":rawPredict"),
    (re.compile(r"/(invoke|converse)(-with-response-stream|-stream)?$"), "/invoke and /converse"),
    (re.compile(r"/api/(chat|generate)$"), "/api/chat and /api/generate"),
)
"""Paths, in lower case, at which a model runs over what it is sent, in APIs that nobody judges; and their names."""

_FETCHED: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"/responses/[^/]+$"), "/responses/…"),
    (re.compile(r"/chat/completions/[^/]+$"), "/chat/completions/…"),
    (re.compile(r"/interactions/[^/]+$"), "/interactions/…"),
    (re.compile(r"/batches/[^/]+/results$"), "/batches/…/results"),
    (re.compile(r"/conversations/[^/]+/items(/[^/]+)?$"), "/conversations/…/items"),
    (re.compile(r"/threads/[^/]+/(messages|runs)(/.+)?$"), "/threads/…"),
)
"""Paths, in lower case, at which a client may read later what a model said, such as a response in the background."""

_GEMINI = re.compile(r"/v1beta|/v1internal|^.*?/models/.*:|:(stream)?generatecontent$", re.IGNORECASE)
"""In paths that are Gemini's, whatever their headers say."""

_GOOGLE_KEY = re.compile(rb"(?:^|&)key=[^&]")
"""In a query string: where Gemini's clients may put their key, and no others do."""

_MODELS = re.compile(r"(/v1|/v1alpha|/v1beta)?/models(/[^/:]+)?")
_VERB = re.compile(r":[A-Za-z]+\Z")
_AGENTS = (
    ("claude-cli/", "claude-code"),
    ("codex", "codex"),
    ("geminicli", "gemini-cli"),
    ("opencode/", "opencode"),
)
_AGENT_APIS: Mapping[str, ApiName] = {"claude-code": "anthropic", "gemini-cli": "gemini"}


class Headers:
    """The headers of one request, names in lower case as ASGI gives them. Nobody changes them."""

    __slots__ = ("_first", "raw")

    def __init__(self, raw: tuple[tuple[bytes, bytes], ...]) -> None:
        self.raw = raw
        self._first = dict(reversed(raw))

    @classmethod
    def of(cls, raw: Iterable[tuple[bytes, bytes]]) -> "Headers":
        """From ASGI's list."""
        return cls(tuple([(bytes(name), bytes(value)) for name, value in raw]))

    def get(self, name: bytes) -> str | None:
        """The first value of the header `name`, or None."""
        value = self._first.get(name)
        return None if value is None else value.decode("latin-1")

    def has(self, *names: bytes) -> bool:
        """Whether there is any of these."""
        return not self._first.keys().isdisjoint(names)


@dataclass(frozen=True, slots=True)
class Route:
    """Which API a request speaks, and whether its content is judged; `model` is the one that its path names.

    `counted` has a history of which only the tokens are counted; `plain` is what else cannot carry a call, such as
    listing models.
    """

    api: ApiName
    kind: Kind
    model: str | None = None


def split_launch(raw_path: bytes) -> tuple[str | None, bytes]:
    """The secret of the launch prefix, or None, and the path without it."""
    found = _LAUNCH.match(raw_path)
    if found is None:
        return None, raw_path
    rest = raw_path[found.end() :]
    return found.group(1).decode("latin-1"), rest if rest.startswith(b"/") else b"/" + rest


def route_of(method: str, path: str, headers: Headers, agent: str | None, query: bytes = b"") -> Route:
    """What a request is. `path` is decoded and has no launch prefix, `query` is as it came.

    Case, doubled slashes, and slashes and spaces at the end do not lead past the policy; what is let through as plain
    is spelled exactly.
    """
    path = "/" + "/".join(part for part in path.rstrip(" /").split("/") if part)
    if method == "POST":
        folded = path.casefold()
        for end, judged in _JUDGED:
            if end.search(folded) and _CODE_ASSIST.match(folded) is None:
                return Route(judged, "judged", _model_in(path) if judged == "gemini" else None)
    if method == "POST" and _COUNTS.fullmatch(path):
        is_of_items = path.endswith("/responses/input_tokens")
        api = "responses" if is_of_items else _api_of(path, headers, agent, query)
        return Route(api, "counted", _model_in(path))
    kind: Kind = "plain" if _is_plain(method, path) else "unknown"
    return Route(_api_of(path, headers, agent, query), kind, _model_in(path))


def run_unjudged(method: str, path: str) -> str | None:
    """What happens at an unknown path where a model's words come to the client, as far as it is known; else None."""
    ended = path.rstrip(" /").casefold()
    match method:
        case "POST":
            return next((f"a model runs at {name}" for end, name in _RUNS if end.search(ended)), None)
        case "GET":
            return next((f"a model's reply is fetched at {name}" for end, name in _FETCHED if end.search(ended)), None)
        case _:
            return None


def session_of(headers: Headers) -> str | None:
    """The session that the client names, or None."""
    if not headers.has(*SESSION_HEADERS):
        return None
    return next((value for name in SESSION_HEADERS if (value := headers.get(name))), None)


def agent_of(headers: Headers) -> str | None:
    """The agent that the client says it is, or None."""
    said = (headers.get(b"user-agent") or "").lower()
    for mark, agent in _AGENTS:
        if said.startswith(mark):
            return agent
    return None


def host_name(host: str) -> str:
    """The name in a Host header, without its port, in lower case; all of it where that is not how it is built."""
    name = host.strip().lower()
    found = _HOST.fullmatch(name)
    return found.group(1) if found else name


def _is_plain(method: str, path: str) -> bool:
    match method:
        case "GET":
            return path == "/" or _MODELS.fullmatch(path) is not None
        case "HEAD":
            return path == "/"
        case _:
            return False


def _model_in(path: str) -> str | None:
    """What stands behind `/models/`, without a colon in it, up to the end or to a last word behind a colon."""
    verb = _VERB.search(path, path.rfind(":")) if ":" in path else None
    named = path if verb is None else path[: verb.start()]
    _, found, model = named[named.rfind(":") + 1 :].partition("/models/")
    return model if found and model else None


def _api_of(path: str, headers: Headers, agent: str | None, query: bytes) -> ApiName:
    """Three APIs share some paths, such as the list of models; their headers tell them apart, and where the key is."""
    if headers.get(b"anthropic-version") or "/v1/messages" in path or "/v1/complete" in path:
        return "anthropic"
    if re.search(r"/responses(/|$)", path):
        return "responses"
    if headers.get(b"x-goog-api-key") or _GEMINI.search(path) or _GOOGLE_KEY.search(query):
        return "gemini"
    if headers.get(b"x-api-key"):
        return "anthropic"
    return _AGENT_APIS.get(agent or "", "chat")
