"""What the scripted upstream refuses as the real APIs do, and what it counts as cached."""

import json
from typing import Any

import pytest

from interpose.testing.strict import PromptCache, PromptUse, is_own_token, signature_of, token
from interpose.testing.upstream import Reply, ScriptedUpstream, Text, Thinking, ToolUse
from tests.testing.test_upstream import post

MESSAGES, CHAT, RESPONSES = "/v1/messages", "/v1/chat/completions", "/v1/responses"
GEMINI = "/v1beta/models/m:generateContent"
GO = {"role": "user", "content": "go"}
THOUGHT = {"type": "thinking", "thinking": "Look.", "signature": signature_of("Look.")}
USE = {"type": "tool_use", "id": "t1", "name": "ls", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "out"}
SAID = {"type": "text", "text": "ok"}
THINKING = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
ROUND: list[Any] = [
    {"role": "assistant", "content": [USE]},
    {"role": "user", "content": [RESULT]},
]
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": token(1, 0)}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "ls", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "out"}


def turn(*blocks: Any, role: str = "assistant") -> dict[str, Any]:
    """A message of blocks."""
    return {"role": role, "content": list(blocks)}


def contents(*parts: Any) -> dict[str, Any]:
    """A Gemini history whose model's content has these parts and whose calls are answered."""
    answers: list[Any] = [
        {"functionResponse": {"name": "ls", "response": {}}} for part in parts if "functionCall" in part
    ]
    user: Any = {"role": "user", "parts": [{"text": "go"}]}
    history = [user, {"role": "model", "parts": list(parts)}, {"role": "user", "parts": answers or [{"text": "on"}]}]
    return {"contents": history}


def own_call(**more: Any) -> dict[str, Any]:
    """A call that a scripted model made."""
    return {"functionCall": {"id": "call_000000000001", "name": "ls", "args": {}}, **more}


@pytest.mark.parametrize(
    ("path", "body", "culprit"),
    [
        (MESSAGES, {"messages": [GO, turn(THOUGHT, USE), turn(RESULT, role="user")]}, None),
        (
            MESSAGES,
            {"messages": [GO, turn({**THOUGHT, "thinking": "Look!"}, USE), turn(RESULT, role="user")]},
            "signat",
        ),
        (MESSAGES, {"messages": [GO, turn(THOUGHT), GO]}, "final block"),
        (MESSAGES, {"messages": [turn(THOUGHT, role="user")]}, "no place"),
        (MESSAGES, {"messages": [GO, turn(RESULT)]}, "no place"),
        (
            MESSAGES,
            {"messages": [GO, turn(USE), turn({"type": "text", "text": "x"}, RESULT, role="user")]},
            "stand first",
        ),
        (MESSAGES, {"messages": [turn({"type": "text", "text": ""}, role="user")]}, "non-empty"),
        (
            MESSAGES,
            {"messages": [GO], "thinking": {"type": "adaptive"}, "tool_choice": {"type": "tool", "name": "ls"}},
            "Thinking",
        ),
        (MESSAGES, {"messages": [GO, turn(USE, USE), turn(RESULT, role="user")]}, "ids must be unique"),
        (MESSAGES, {**THINKING, "messages": [GO, turn(THOUGHT, USE), turn(RESULT, role="user")]}, None),
        (MESSAGES, {**THINKING, "messages": [GO, turn(USE), turn(RESULT, role="user")]}, "messages.1.content.0.type"),
        (MESSAGES, {**THINKING, "messages": [GO, turn(SAID, USE), turn(RESULT, role="user")]}, "but found `text`"),
        (MESSAGES, {**THINKING, "messages": [GO, turn(USE), turn(RESULT, role="user"), turn(SAID), GO]}, None),
        (
            MESSAGES,
            {**THINKING, "messages": [GO, turn(THOUGHT, USE), turn(RESULT, role="user"), *ROUND]},
            None,
        ),
        (MESSAGES, {**THINKING, "messages": [GO, *ROUND, {"role": "system", "content": "x"}]}, "content.0.type"),
        (MESSAGES, {"thinking": {"type": "adaptive"}, "messages": [GO, *ROUND]}, None),
        (MESSAGES, {**THINKING, "messages": [GO]}, None),
        (CHAT, {"messages": [GO, {"role": "assistant", "content": "a", "tool_calls": []}, GO]}, "tool_calls: empty"),
        (CHAT, {"messages": [GO, {"role": "assistant", "content": "a", "tool_calls": None}, GO]}, None),
        (CHAT, {"messages": [GO, {"role": "assistant", "tool_calls": "x"}, GO]}, "tool_calls is not an array"),
        (CHAT, {"messages": [GO, {"role": "assistant", "content": None}, GO]}, "needs content"),
        (
            CHAT,
            {"messages": [GO], "tool_choice": {"type": "function", "function": {"name": "ls"}}, "tools": []},
            "'ls'",
        ),
        (RESPONSES, {"input": [GO, REASONING, CALL, OUTPUT]}, None),
        (RESPONSES, {"input": [GO, REASONING, turn(role="assistant"), GO]}, None),
        (RESPONSES, {"input": [GO, REASONING, GO]}, "required following item"),
        (RESPONSES, {"input": [GO, CALL, OUTPUT, REASONING]}, "required following item"),
        (RESPONSES, {"input": [{**REASONING, "encrypted_content": "x"}, CALL, OUTPUT]}, "could not be verified"),
        (RESPONSES, {"input": [{**CALL, "id": "msg_1"}, OUTPUT]}, "begins with 'fc'"),
        (GEMINI, contents(own_call(thoughtSignature=token(1, 0)), own_call()), None),
        (GEMINI, contents(own_call(thoughtSignature="skip_thought_signature_validator")), None),
        (GEMINI, contents(own_call(thoughtSignature="c2NyaXB0ZWQ=")), "not valid"),
        (GEMINI, contents(own_call(), own_call(thoughtSignature=token(1, 0))), "missing a thought_signature"),
        (GEMINI, contents({"functionCall": {"name": "ls", "args": {}}}), None),
    ],
)
def test_what_the_real_api_would_refuse_is_refused(path: str, body: Any, culprit: str | None) -> None:
    """Thoughts and signatures must be the ones it gave, results and reasoning where they belong."""
    with ScriptedUpstream([Reply(Text("ok"))]) as upstream:
        status, answer = post(upstream, path, body)

    assert status == (200 if culprit is None else 400)
    assert culprit is None or culprit in json.loads(answer)["error"]["message"]


def test_tokens_and_signatures_are_recognised() -> None:
    """What it made is its own; what was edited, or is no token at all, is not."""
    made = token(3, 1)

    assert is_own_token(made)
    assert not any(is_own_token(other) for other in (made[:-2], made.lower(), "", None, 7, "é", "abcd"))
    assert signature_of("a") != signature_of("b")


def test_the_longest_unchanged_prefix_is_cached() -> None:
    """Whole parts from the start count, of the same model only, whichever earlier prompt has most of them."""
    cache = PromptCache()
    first, second, third = ({"text": word * 40} for word in "abc")

    assert cache.use("m", [first, second]).cached_tokens == 0
    grown = cache.use("m", [first, second, third])
    assert grown == PromptUse(grown.tokens, 2 * (len(json.dumps(first))) // 4)
    assert cache.use("m", [first, third]).cached_tokens == len(json.dumps(first)) // 4
    assert cache.use("m", [first, second, third, first]).cached_tokens == grown.tokens
    assert cache.use("other", [first, second]).cached_tokens == 0


USAGE = {
    MESSAGES: lambda body: body["usage"]["cache_read_input_tokens"],
    CHAT: lambda body: body["usage"]["prompt_tokens_details"]["cached_tokens"],
    RESPONSES: lambda body: body["usage"]["input_tokens_details"]["cached_tokens"],
    GEMINI: lambda body: body["usageMetadata"]["cachedContentTokenCount"],
}


@pytest.mark.parametrize("path", USAGE)
def test_each_api_reports_what_was_cached(path: str) -> None:
    """A prompt that grows is cached whole, also when the client writes its text in another form."""
    key = {RESPONSES: "input", GEMINI: "contents"}.get(path, "messages")
    first: Any = [{"role": "user", "parts": [{"text": "go"}]}] if path == GEMINI else [GO]
    kind = {"type": "input_text" if path == RESPONSES else "text"}
    again = first if path == GEMINI else [{"role": "user", "content": [{**kind, "text": "go"}]}]
    with ScriptedUpstream([Reply(Text("hi"))] * 2) as upstream:
        post(upstream, path, {key: first})
        body = json.loads(post(upstream, path, {key: again + first})[1])
        one, two = upstream.prompts

    assert USAGE[path](body) == two.cached_tokens == one.tokens > 0


def test_reasoning_is_sealed_when_asked_for() -> None:
    """A request that includes encrypted reasoning gets content that is taken back unedited."""
    with ScriptedUpstream([Reply(Thinking("Look."), ToolUse("ls", {}))]) as upstream:
        ask = {"input": "go", "include": ["reasoning.encrypted_content"]}
        thought, call = json.loads(post(upstream, RESPONSES, ask)[1])["output"]

    assert is_own_token(thought["encrypted_content"])
    assert call["type"] == "function_call"
