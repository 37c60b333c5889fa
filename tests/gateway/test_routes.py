"""gateway.routes and gateway.upstream's URLs."""

import time

import pytest

from interpose.gateway.routes import (
    Headers,
    Route,
    agent_of,
    host_name,
    route_of,
    run_unjudged,
    session_of,
    split_launch,
)
from interpose.gateway.upstream import joined_url, passed_on

NONE = Headers(())


@pytest.mark.parametrize(
    ("raw_path", "secret", "rest"),
    [
        (b"/v1/messages", None, b"/v1/messages"),
        (b"/l/abc/v1/messages", "abc", b"/v1/messages"),
        (b"/l/abc", "abc", b"/"),
        (b"/l//v1", "", b"/v1"),
        (b"/logs/x", None, b"/logs/x"),
        (b"/v1/l/abc", None, b"/v1/l/abc"),
    ],
)
def test_the_launch_prefix_is_cut_off(raw_path: bytes, secret: str | None, rest: bytes) -> None:
    """Only a prefix counts; an empty secret is one that nobody knows."""
    assert split_launch(raw_path) == (secret, rest)


@pytest.mark.parametrize(
    ("method", "path", "route"),
    [
        ("POST", "/v1/messages", Route("anthropic", "judged")),
        ("POST", "//v1//messages/", Route("anthropic", "judged")),
        ("POST", "/proxy/v1/messages", Route("anthropic", "judged")),
        ("POST", "/v1/messages/count_tokens", Route("anthropic", "counted")),
        ("POST", "/v1/responses/input_tokens", Route("responses", "counted")),
        ("GET", "/v1/messages", Route("anthropic", "unknown")),
        ("POST", "/v1/messages/batches", Route("anthropic", "unknown")),
        ("GET", "/v1/messages/count_tokens", Route("anthropic", "unknown")),
        ("POST", "/v1/chat/completions", Route("chat", "judged")),
        ("POST", "/chat/completions", Route("chat", "judged")),
        ("POST", "/responses", Route("responses", "judged")),
        ("POST", "/v1/models/g:generateContent", Route("gemini", "judged", "g")),
        ("POST", "/v1beta/models/g:countTokens", Route("gemini", "counted", "g")),
        ("POST", "/v1/embeddings", Route("chat", "unknown")),
        ("POST", "/v1/responses/compact", Route("responses", "unknown")),
        ("GET", "/v1/models", Route("chat", "plain")),
        ("GET", "/v1/models/m-1", Route("chat", "plain", "m-1")),
        ("HEAD", "/", Route("chat", "plain")),
        ("POST", "/", Route("chat", "unknown")),
        ("POST", "/v1/MESSAGES", Route("anthropic", "judged")),
        ("POST", "/v1/messages / ", Route("anthropic", "judged")),
        ("POST", "/v1beta/models/g:GENERATECONTENT", Route("gemini", "judged", "g")),
        ("POST", "/v1beta/models/g:streamGenerateContent", Route("gemini", "judged", "g")),
        ("POST", "/models/g:generateContent", Route("gemini", "judged", "g")),
        ("POST", "/proxy/x/v1/models/owner/g:8b:generateContent", Route("gemini", "judged")),
        ("POST", "/v1beta/models/v1:generateContent", Route("gemini", "judged", "v1")),
        ("POST", "/v1beta/tunedModels/t-1:generateContent", Route("gemini", "judged")),
        ("POST", "/v1beta/tunedModels/v2-bot:generateContent", Route("gemini", "judged")),
        ("POST", "/v1beta/tunedModels/V2:generateContent", Route("gemini", "judged")),
        ("POST", "/tunedModels/v2:generateContent", Route("gemini", "judged")),
        ("POST", "/v1beta/dynamic/v1:streamGenerateContent", Route("gemini", "judged")),
        ("POST", "/v1beta/any/v1:generateContent", Route("gemini", "judged")),
        ("POST", "/v2-bot:generateContent", Route("gemini", "judged")),
        ("POST", "/proxy/v1internal:generateContent", Route("gemini", "unknown")),
        ("POST", "/v1/publishers/google/models/g:generateContent", Route("gemini", "judged", "g")),
        ("POST", "/v1/projects/p/locations/us/endpoints/7:streamGenerateContent", Route("gemini", "judged")),
        ("POST", "/g:generateContent", Route("gemini", "judged")),
        ("POST", "/v1internal:generateContent", Route("gemini", "unknown")),
        ("POST", "/proxy/V1internal:StreamGenerateContent/", Route("gemini", "unknown")),
        ("POST", "/v1beta:generateContent", Route("gemini", "unknown")),
        ("POST", "/v1internal:countTokens", Route("gemini", "unknown")),
        ("POST", "/v1/models", Route("chat", "unknown")),
        ("GET", "/x/models", Route("chat", "unknown")),
        ("POST", "/v1/messages/count_tokens/x", Route("anthropic", "unknown")),
    ],
)
def test_what_a_path_means(method: str, path: str, route: Route) -> None:
    """Prefixes and odd slashes do not lead past the policy."""
    assert route_of(method, path, NONE, None) == route


@pytest.mark.parametrize(
    ("method", "path", "told"),
    [
        ("POST", "/v1/responses/compact", "a model runs at /responses/compact"),
        ("POST", "/V1/Responses/Compact/", "a model runs at /responses/compact"),
        ("POST", "/v1/messages/batches", "a model runs at /messages/batches"),
        ("POST", "/v1/batches", "a model runs at /batches"),
        ("POST", "/v1/completions", "a model runs at /completions"),
        ("POST", "/v1/complete", "a model runs at /complete"),
        ("POST", "/v1/threads/t_1/runs", "a model runs at /threads/…/runs"),
        ("POST", "/v1beta/models/g:batchGenerateContent", "a model runs at :batchGenerateContent"),
        ("POST", "/v1internal:generateContent", "a model runs at /v1internal:generateContent"),
        ("POST", "/v1internal:streamGenerateContent", "a model runs at /v1internal:generateContent"),
        ("POST", "/v1beta/models/g:generateAnswer", "a model runs at :generateAnswer"),
        ("POST", "/v1/models/c:streamRawPredict", "a model runs at :rawPredict"),
        ("POST", "/model/c/invoke-with-response-stream", "a model runs at /invoke and /converse"),
        ("POST", "/api/chat", "a model runs at /api/chat and /api/generate"),
        ("GET", "/v1/responses/resp_1", "a model's reply is fetched at /responses/…"),
        ("GET", "/v1/chat/completions/c_1", "a model's reply is fetched at /chat/completions/…"),
        ("GET", "/v1/messages/batches/b_1/results", "a model's reply is fetched at /batches/…/results"),
        ("POST", "/v1/embeddings", None),
        ("POST", "/v1/responses/resp_1/cancel", None),
        ("GET", "/v1/responses/resp_1/input_items", None),
        ("GET", "/v1/files", None),
        ("DELETE", "/v1/responses/resp_1", None),
    ],
)
def test_unknown_paths_at_which_a_model_speaks(method: str, path: str, told: str | None) -> None:
    """They are named: what a model says there nobody has judged."""
    assert route_of(method, path, NONE, None).kind == "unknown"
    assert run_unjudged(method, path) == told


@pytest.mark.parametrize(
    ("headers", "agent", "api"),
    [
        ([(b"anthropic-version", b"2023-06-01")], None, "anthropic"),
        ([(b"x-api-key", b"k")], None, "anthropic"),
        ([(b"x-goog-api-key", b"k")], None, "gemini"),
        ([], "claude-code", "anthropic"),
        ([], "gemini-cli", "gemini"),
        ([], "codex", "chat"),
    ],
)
def test_shared_paths_are_told_apart(headers: list[tuple[bytes, bytes]], agent: str | None, api: str) -> None:
    """By the client's headers, else by the agent."""
    assert route_of("GET", "/v1/models", Headers.of(headers), agent).api == api


@pytest.mark.parametrize(
    ("query", "api"),
    [
        (b"key=AIza", "gemini"),
        (b"pageSize=5&key=AIza", "gemini"),
        (b"", "chat"),
        (b"key=", "chat"),
        (b"monkey=1&api_key=x", "chat"),
    ],
)
def test_a_key_in_the_query_is_googles(query: bytes, api: str) -> None:
    """It goes to no other provider."""
    assert route_of("GET", "/v1/models", NONE, None, query).api == api
    assert route_of("GET", "/v1/models", Headers.of([(b"anthropic-version", b"1")]), None, query).api == "anthropic"


@pytest.mark.parametrize(
    ("said", "agent"),
    [
        (b"claude-cli/2.1.332 (external, sdk-cli)", "claude-code"),
        (b"codex_exec/0.171.0", "codex"),
        (b"GeminiCLI-tui/0.61.0/gemini-2.5-pro", "gemini-cli"),
        (b"opencode/1.18.33 ai-sdk/5", "opencode"),
        (b"OpenAI/Python 3.57.0", None),
    ],
)
def test_agents_by_what_they_say(said: bytes, agent: str | None) -> None:
    """Known user agents name their agent; others name none."""
    assert agent_of(Headers.of([(b"user-agent", said)])) == agent


def test_sessions_by_header() -> None:
    """The gateway's own header comes first, then those of the clients."""
    both = Headers.of([(b"thread-id", b"t"), (b"session-id", b"s")])

    assert session_of(both) == "s"
    assert session_of(Headers.of([*both.raw, (b"x-interpose-session", b"mine")])) == "mine"
    assert session_of(NONE) is None


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("LocalHost:80", "localhost"),
        ("[::1]:80", "[::1]"),
        ("127.0.0.1", "127.0.0.1"),
        ("", ""),
        ("a.b:1", "a.b"),
        ("[::1]evil.com", "[::1]evil.com"),
        ("localhost:1:evil.com", "localhost:1:evil.com"),
    ],
)
def test_host_names(host: str, name: str) -> None:
    """Ports and case do not count."""
    assert host_name(host) == name


@pytest.mark.parametrize(
    ("base", "path", "query", "url"),
    [
        ("https://h", b"/v1/x", b"", "https://h/v1/x"),
        ("https://h/", b"/v1/x", b"a=1&b", "https://h/v1/x?a=1&b"),
        ("https://h/api", b"/v1/x", b"", "https://h/api/v1/x"),
        ("https://h/api/v1", b"/v1/x", b"", "https://h/api/v1/x"),
        ("https://h/v1beta/", b"/v1beta/m:g", b"", "https://h/v1beta/m:g"),
        ("https://h", b"/a%2Fb", b"", "https://h/a%2Fb"),
    ],
)
def test_upstream_urls(base: str, path: bytes, query: bytes, url: str) -> None:
    """The base's path stays, a version stands once, escapes stay escapes."""
    assert joined_url(base, path, query) == url


def test_hop_by_hop_headers_stay_here() -> None:
    """Headers of the connection, those it names, and our own are not passed on; repeats are."""
    headers = [
        (b"host", b"h"),
        (b"connection", b"keep-alive, X-Hop"),
        (b"x-hop", b"1"),
        (b"te", b"trailers"),
        (b"x-interpose-session", b"s"),
        (b"a", b"1"),
        (b"a", b"2"),
    ]

    assert passed_on(headers) == [(b"a", b"1"), (b"a", b"2")]
    assert passed_on(headers, drop=[b"a"]) == []


@pytest.mark.parametrize(
    "path",
    ["/models/" * 7_000 + "x:y", "/models" * 7_000 + ":" * 5_000, "/v1" * 18_000, "/v1x:" * 12_000, "/v1/" * 15_000],
)
def test_a_long_path_takes_no_longer_than_it_is(path: str) -> None:
    """Nobody holds the gateway up with a path; the bound is a hundred times what it takes."""
    started = time.process_time()
    for end in ("", ":generateContent"):
        route_of("POST", path + end, Headers.of([]), None)
        run_unjudged("POST", path + end)

    assert time.process_time() - started < 1.5
