"""Handlers of the `llm.*` stages on the wire of every API: what they change is what the other side gets."""

import http.client
import json
import threading
from collections.abc import Callable, Collection
from typing import Any
from urllib.parse import urlsplit

import pytest

from interpose.contracts.json import Json
from interpose.contracts.stages import LlmChunk, LlmRequest, LlmResponse, Point, Stage, ToolCall
from interpose.contracts.verdict import Refusal, Verdict
from interpose.testing import anthropic
from interpose.testing.fakes import FakePolicy, allow
from interpose.testing.upstream import RawStream, Reply, Step, Text, ToolUse
from tests.e2e.apis import Case, every_case, every_stream
from tests.e2e.house import House
from tests.e2e.talkers import APIS, Anthropic

BUSY: Collection[Stage] = ("turn.start", "tool.call", "tool.result", "turn.end")


def house_of(
    script: list[Step],
    judge: Callable[[Point], Verdict],
    *,
    wants: Collection[Stage],
    changes: Collection[Stage] = (),
    **settings: Any,
) -> House:
    """A gateway whose handlers want these stages too."""
    house = House(script, judge, on_refusal="continue", **settings)
    house.policy = FakePolicy(judge, wants={*BUSY, *wants, *changes}, changes=changes)
    return house


def changed(point: Point, body: Json, old: str, new: str) -> Verdict:
    """The verdict that patches one text into another, wherever it stands."""
    text = json.dumps(body)
    if old not in text:
        return allow(point)
    return allow(point)._replace(outcome="patched", body=json.loads(text.replace(old, new)))


@every_case
def test_a_request_is_changed_before_it_is_judged(case: Case) -> None:
    """The model is sent what the handler made; the policy judges that too."""

    def judge(point: Point) -> Verdict:
        if isinstance(point, LlmRequest):
            assert point.protocol == case.api.removesuffix("-array")
            return changed(point, point.body, "secret", "***")
        return allow(point)

    with house_of([Reply(Text("One."))], judge, wants=["llm.request"]) as house:
        said = case.talker(house).says("a secret word")

        assert said.text == "One."
        assert "a *** word" in json.dumps(house.upstream.requests[0].json)
        assert [getattr(point, "prompt", "") for point in house.policy.points][1] == "a *** word"


@every_case
def test_a_request_is_cancelled(case: Case) -> None:
    """The client gets an error in its API's shape, and the model is not asked."""

    def judge(point: Point) -> Verdict:
        if isinstance(point, LlmRequest):
            return allow(point)._replace(outcome="refused", refusal=Refusal("budget", "it is spent"))
        return allow(point)

    with house_of([], judge, wants=["llm.request"]) as house:
        talker = case.talker(house)
        talker.history.append(talker.spoken("hello"))
        status, _, body = house.raw("POST", talker.path, json.dumps(talker.body()).encode())

        assert status == 400
        assert "the request was refused by budget: it is spent" in json.dumps(json.loads(body))
        assert house.upstream.requests == ()


@every_stream
def test_chunks_are_changed_and_dropped(case: Case) -> None:
    """Each event is seen once, in order; what is dropped leaves nothing behind."""
    seen: list[int] = []

    def judge(point: Point) -> Verdict:
        if not isinstance(point, LlmChunk):
            return allow(point)
        seen.append(point.sequence)
        if "drop me" in json.dumps(point.data) and "delta" in json.dumps(point.data):
            return allow(point)._replace(outcome="refused", refusal=Refusal("h", "no"))
        return changed(point, point.data, "bad", "good")

    with house_of([Reply(Text("bad news---- drop me----"))], judge, wants=["llm.chunk"]) as house:
        talker = case.talker(house)
        if case.api == "responses":
            talker.history.append(talker.spoken("hi"))
            raw = house.raw("POST", talker.path, json.dumps(talker.body()).encode())[2]
            assert b"good news" in raw
        else:
            assert "good news" in talker.says("hi").text
        assert seen == list(range(len(seen)))


@every_case
def test_a_whole_reply_is_changed(case: Case) -> None:
    """Streamed or not, the client gets the reply as the handler made it, coherent to its last event."""

    def judge(point: Point) -> Verdict:
        if isinstance(point, LlmResponse):
            assert point.streamed == case.stream
            assert point.status == 200
            return changed(point, point.body, "secret", "******")
        return allow(point)

    script: list[Step] = [Reply(Text("The secret is out."), ToolUse("Read", {"file_path": "a"})), Reply(Text("Two."))]
    with house_of(script, judge, wants=[], changes=["llm.response"]) as house:
        talker = case.talker(house)
        said = talker.says("hi")
        ((call_id, name, _),) = said.calls

        assert (said.text, name, said.stop) == ("The ****** is out.", "Read", "calls")
        assert talker.answers({call_id: "text"}).text == "Two."
        assert [point.tool_name for point in house.policy.points if isinstance(point, ToolCall)] == ["Read"]


@every_case
def test_a_whole_reply_is_cancelled(case: Case) -> None:
    """The person is told in the model's place; no call of the reply reaches the agent."""

    def judge(point: Point) -> Verdict:
        if isinstance(point, LlmResponse):
            return allow(point)._replace(outcome="refused", refusal=Refusal("leaks", "it names a customer"))
        return allow(point)

    script: list[Step] = [Reply(Text("Ms X."), ToolUse("Read", {"file_path": "a"}))]
    with house_of(script, judge, wants=[], changes=["llm.response"]) as house:
        said = case.talker(house).says("hi")

        assert (said.text, said.calls) == ("[interpose] the reply was refused by leaks: it names a customer", ())
        assert said.stop == "done"


@every_case
def test_an_unchanged_reply_that_was_held_leaves_as_it_came(case: Case) -> None:
    """Byte for byte, the same as without the handler."""
    raws = []
    held: tuple[Stage, ...] = ("llm.response",)
    for changes in ((), held):
        with house_of([Reply(Text("Words of the model."))], allow, wants=[], changes=changes) as house:
            talker = case.talker(house)
            talker.says("hi")
            raws.append(talker.raw)

    assert raws[0] == raws[1]


@pytest.mark.parametrize("looks", [True, False])
def test_text_is_held_only_for_who_may_change_it(looks: bool) -> None:
    """A handler that only looks is told at the end; one that may change it holds the text, with signs of life."""
    gate = threading.Event()
    frames = list(anthropic.stream(Reply(Text("word")), 1, {}))
    script: list[Step] = [RawStream([*frames[:4], gate, *frames[4:]])]
    changes: tuple[Stage, ...] = () if looks else ("llm.response",)
    with house_of(script, allow, wants=["llm.response"], changes=changes, keep_alive_s=0.05) as house:
        address = urlsplit(house.url)
        talker = Anthropic(house.url, stream=True)
        talker.history.append(talker.spoken("hi"))
        connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=10)
        connection.request("POST", talker.path, json.dumps(talker.body()))
        response = connection.getresponse()
        early = b""
        while (b"word" if looks else b"ping") not in early:
            early += response.read1()
        assert (b"message_start" in early) == looks
        assert not any(isinstance(point, LlmResponse) for point in house.policy.points)
        gate.set()
        rest = early + response.read()
        connection.close()
        assert b"word" in rest
        assert b"message_stop" in rest
        house.until(lambda: any(isinstance(point, LlmResponse) for point in house.policy.points))


@pytest.mark.parametrize("api", ["anthropic", "chat", "responses", "gemini"])
def test_a_held_reply_that_breaks_off_is_an_error(api: str) -> None:
    """Nothing of it reaches the client but an error in the API's shape."""
    dialect = __import__(f"interpose.testing.{api}", fromlist=["stream"])
    frames = list(dialect.stream(Reply(Text("many words of the model that nobody sees")), 1, {}))
    with house_of([RawStream(frames[:3], cut=True)], allow, wants=[], changes=["llm.response"]) as house:
        talker = APIS[api](house.url, stream=True)
        talker.history.append(talker.spoken("hi"))
        status, _, body = house.raw("POST", talker.path, json.dumps(talker.body()).encode())

        assert status == 200
        assert b"the upstream broke off" in body
        assert b"many words" not in body


@every_stream
def test_what_ends_a_stream_is_never_dropped(case: Case) -> None:
    """A client would wait for it or fail; the journal says that the cancel did not apply."""

    def judge(point: Point) -> Verdict:
        if isinstance(point, LlmChunk):
            return allow(point)._replace(outcome="refused", refusal=Refusal("h", "no"))
        return allow(point)

    with house_of([Reply(Text("Hello."))], judge, wants=["llm.chunk"]) as house:
        talker = case.talker(house)
        talker.history.append(talker.spoken("hi"))
        raw = house.raw("POST", talker.path, json.dumps(talker.body()).encode())[2]

        ends = {
            "anthropic": [b"message_delta", b"message_stop"],
            "chat": [b'"finish_reason": "stop"', b"[DONE]"],
            "responses": [b"response.completed"],
        }
        for end in ends.get(case.api, [b"finishReason"]):
            assert end in raw
        kept = [record for record in house.journal.records if record.outcome == "not_applicable"]
        assert {(record.step, record.stage, record.handler) for record in kept} == {("skipped", "llm.chunk", "h")}


UNKNOWN = {
    "anthropic": b'data: {"type":"content_block_delta","index":0,"delta":{"type":"new","x":1}}\n\n',
    "chat": b'data: {"choices":[{"index":0,"delta":{"thinking_blocks":[1]}}]}\n\n' * 2,
}
"""What nobody knows how to join, beside a text."""

BROKEN = {
    "anthropic": b'data: {"type":"content_block_delta","index":9,"delta":{"type":"text_delta","text":"odd"}}\n\n',
    "chat": b'data: {"choices":[7]}\n\n',
    "responses": b'data: {"type":"response.output_item.done","output_index":"odd","item":{}}\n\n',
    "gemini": b"data: no json\r\n\r\n",
}
"""What leaves no whole reply."""


def stream_with(api: str, odd: bytes) -> RawStream:
    """A reply with something odd in its middle."""
    dialect = __import__(f"interpose.testing.{api}", fromlist=["stream"])
    frames = list(dialect.stream(Reply(Text("The secret is out.")), 1, {}))
    return RawStream([*frames[:3], odd, *frames[3:]])


def asked(house: House, api: str) -> bytes:
    """What the client gets."""
    talker = APIS[api](house.url, stream=True)
    talker.history.append(talker.spoken("hi"))
    return house.raw("POST", talker.path, json.dumps(talker.body()).encode())[2]


@pytest.mark.parametrize("api", UNKNOWN)
@pytest.mark.parametrize("hides", [True, False])
def test_a_handler_is_shown_a_reply_with_unknown_members(api: str, hides: bool) -> None:
    """It is no reason to refuse: the reply leaves as it came, or as the handler made it."""

    def judge(point: Point) -> Verdict:
        return (
            changed(point, point.body, "secret", "******") if hides and isinstance(point, LlmResponse) else allow(point)
        )

    with house_of([stream_with(api, UNKNOWN[api])], judge, wants=[], changes=["llm.response"]) as house:
        raw = asked(house, api)

        assert "The secret is out." in "".join(
            json.dumps(p.body) for p in house.policy.points if isinstance(p, LlmResponse)
        )
        assert (b"******" in raw) == hides
        assert (UNKNOWN[api] in raw) != hides


@pytest.mark.parametrize("api", BROKEN)
def test_a_reply_that_no_handler_can_be_shown_is_refused(api: str) -> None:
    """Where one may change it; the client is told, and the journal says why."""
    with house_of([stream_with(api, BROKEN[api])], allow, wants=[], changes=["llm.response"]) as house:
        raw = asked(house, api)

        assert b"the reply was refused by interpose: it cannot be read as a whole" in raw
        assert b"secret" not in raw
        (record,) = [record for record in house.journal.records if record.stage == "llm.response"]
        assert (record.step, record.outcome, record.handler) == ("failed", "refused", "interpose")
        assert record.reason == "it cannot be read as a whole, and a handler is to see it first"
        assert record.action
