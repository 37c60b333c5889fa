"""A key that is there twice hides no call: other readers than ours may take the other value."""

import json

import pytest

from interpose.contracts.verdict import Verdict
from interpose.gateway.anthropic import ANTHROPIC
from interpose.gateway.api import Codec, ProposedCall, Unreadable
from interpose.gateway.chat import CHAT
from interpose.gateway.driving import Driven, drive_reply
from interpose.gateway.gemini import GEMINI
from interpose.gateway.responses import RESPONSES

A, C, R, G = ANTHROPIC, CHAT, RESPONSES, GEMINI

TOOL_USE = '{"type":"tool_use","id":"t","name":"Bash","input":{}}'
CHAT_CALL = '[{"index":0,"id":"t","type":"function","function":{"name":"Bash","arguments":"{}"}}]'
ITEM = '{"type":"function_call","id":"f","call_id":"t","name":"Bash","arguments":"{}"}'
PARTS = '[{"functionCall":{"name":"Bash","args":{}}}]'

REPLIES = [
    (A, f'{{"content":[{TOOL_USE}],"content":[]}}'),
    (A, '{"content":[{"type":"tool_use","type":"text","id":"t","name":"Bash","input":{},"text":""}]}'),
    (A, '{"content":[{"type":"tool_use","id":"t","name":"Bash","input":{"a":1},"input":{}}]}'),
    (C, f'{{"choices":[{{"message":{{"tool_calls":{CHAT_CALL},"tool_calls":null}}}}]}}'),
    (C, '{"choices":[{"message":{"tool_calls":[{"function":{"name":"a","name":"b","arguments":"{}"}}]}}]}'),
    (R, f'{{"output":[{ITEM}],"output":[]}}'),
    (R, '{"output":[{"type":"function_call","type":"message","content":[]}]}'),
    (G, f'{{"candidates":[{{"content":{{"parts":{PARTS},"parts":[]}}}}]}}'),
    (G, f'[{{"candidates":[{{"content":{{"parts":{PARTS}}},"content":null}}]}}]'),
]

EVENTS = [
    (A, f'{{"type":"content_block_start","index":0,"content_block":{TOOL_USE},"content_block":{{"type":"text"}}}}'),
    (A, f'{{"type":"content_block_start","type":"ping","index":0,"content_block":{TOOL_USE}}}'),
    (C, f'{{"choices":[{{"index":0,"delta":{{"tool_calls":{CHAT_CALL},"tool_calls":[]}}}}]}}'),
    (C, f'{{"choices":[{{"index":0,"delta":{{"tool_calls":{CHAT_CALL}}}}}],"choices":[]}}'),
    (R, f'{{"type":"response.output_item.done","type":"x","output_index":0,"item":{ITEM}}}'),
    (R, f'{{"type":"response.output_item.done","output_index":0,"item":{ITEM},"item":{{"type":"message"}}}}'),
    (G, f'{{"candidates":[{{"content":{{"parts":{PARTS},"parts":[{{"text":"x"}}]}}}}]}}'),
    (G, f'{{"candidates":[{{"content":{{"parts":{PARTS}}}}}],"candidates":[]}}'),
    (G, f'{{"candidates":[{{"content":{{"parts":[{{"text":"a"}}],"p\\u0061rts":{PARTS}}}}}]}}'),
]

REQUESTS = [
    (A, '{"model":"m","messages":[{"role":"user","content":"a"}],"messages":[]}'),
    (A, '{"model":"m","messages":[{"role":"user","content":"a","content":"b"}]}'),
    (C, '{"model":"m","model":"n","messages":[]}'),
    (R, '{"model":"m","input":[{"role":"user","role":"system","content":"a"}]}'),
    (G, '{"contents":[{"role":"user","parts":[{"text":"a","text":"b"}]}]}'),
]


def _never(call: ProposedCall) -> Verdict:
    raise AssertionError(call)


def _driven(codec: Codec, stream: bytes, fault: str | None = None) -> Driven:
    """The stream as the gateway drives it: what cannot be read is the end."""
    reader, driven = codec.stream(), Driven()
    try:
        driven.drive(reader.feed(stream), _never)
        driven.drive(reader.finish(), _never)
    except Unreadable as error:
        driven.drive(reader.finish(f"unreadable: {error}"), _never)
    return driven


@pytest.mark.parametrize(("codec", "body"), REPLIES)
def test_a_whole_reply_that_can_be_read_in_two_ways_is_not_let_through(codec: Codec, body: str) -> None:
    """Neither value is judged, and none of it leaves."""
    with pytest.raises(Unreadable, match="two ways"):
        drive_reply(codec, body.encode(), _never)


@pytest.mark.parametrize("ends", ["\n\n", ""], ids=["whole", "unfinished"])
@pytest.mark.parametrize(("codec", "data"), EVENTS)
def test_a_streamed_call_that_can_be_read_in_two_ways_ends_the_stream(codec: Codec, data: str, ends: str) -> None:
    """What came before it leaves, then an error; the event itself never does."""
    before = b": hello\n\n"
    driven = _driven(codec, before + f"data: {data}{ends}".encode())

    assert driven.body.startswith(before)
    assert b"Bash" not in driven.body
    assert "two ways" in json.dumps(driven.body.decode())


@pytest.mark.parametrize(("codec", "body"), REQUESTS)
def test_a_request_that_can_be_read_in_two_ways_is_refused(codec: Codec, body: str) -> None:
    """The provider might take the value that was not judged."""
    with pytest.raises(Unreadable, match="two ways"):
        codec.read(body.encode())
