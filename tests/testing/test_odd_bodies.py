"""Bodies that no client sends: the scripted upstream answers them in the API's shape."""

import json
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.testing import anthropic, chat, gemini, responses
from interpose.testing.upstream import Reply, ScriptedUpstream, Text, Thinking
from tests.testing.test_upstream import post

KEYS = [
    "messages",
    "role",
    "content",
    "type",
    "tool_use",
    "tool_result",
    "tool_use_id",
    "id",
    "text",
    "thinking",
    "signature",
    "tools",
    "tool_choice",
    "name",
    "system",
    "tool_calls",
    "function",
    "function_call",
    "tool_call_id",
    "functions",
    "input",
    "call_id",
    "summary",
    "encrypted_content",
    "contents",
    "parts",
    "functionCall",
    "functionResponse",
    "thoughtSignature",
    "stream",
    "stream_options",
    "include_usage",
    "model",
    "any",
    "user",
    "assistant",
    "tool",
    "reasoning",
    "message",
    "function_call_output",
    "instructions",
    "include",
]
SCALARS = st.none() | st.booleans() | st.integers(0, 9) | st.sampled_from(KEYS)
ODD: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=6,
)
MEMBERS = st.dictionaries(st.sampled_from(KEYS), ODD, max_size=4)
LISTS = ("messages", "input", "contents")
BODIES = st.fixed_dictionaries(
    dict.fromkeys(LISTS, st.lists(MEMBERS | ODD, min_size=1, max_size=3)),
    optional=dict.fromkeys(["tools", "tool_choice", "stream_options", "include", "model"], ODD),
)
DIALECTS = (anthropic, chat, responses, gemini)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.__name__.rpartition(".")[2])
@given(body=BODIES)
def test_nothing_that_json_can_say_breaks_the_checks(dialect: ModuleType, body: Any) -> None:
    """It is a fault, or a prompt that can be counted and answered."""
    assert dialect.fault([body]) is not None
    if dialect.fault(body) is not None:
        return
    assert dialect.prompt(body)
    assert dialect.whole(Reply(Thinking("hm"), Text("hi")), 1, body)
    assert b"".join(dialect.stream(Reply(Text("hi")), 1, body))


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/messages", {"messages": [1, 2]}),
        ("/v1/messages", [1]),
        ("/v1/chat/completions", {"messages": [{"role": "assistant", "tool_calls": [{"id": "c"}, 7]}]}),
        ("/v1/chat/completions", "text"),
        ("/v1/responses", {"input": [{"type": ["x"]}]}),
        ("/v1beta/models/m:generateContent", {"contents": [7]}),
    ],
)
def test_an_odd_body_is_answered_in_the_apis_shape(path: str, body: Any, strict: bool) -> None:
    """Where nothing is checked, what can be read is answered, and nothing breaks."""
    with ScriptedUpstream([Reply(Thinking("hm"), Text("hi"))], strict=strict) as upstream:
        status, answer = post(upstream, path, body)

        told = json.loads(answer)
        assert status in (200, 400)
        assert status == 200 or isinstance(told["error"]["message"], str)
