"""A chat client and the rounds of its gateway without a socket: replies of the model in, both histories out."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from interpose.gateway.api import Mark, Onward, RefusedCall, RoundOver
from interpose.gateway.chat import CHAT
from interpose.gateway.driving import Driven
from interpose.gateway.ledger import SessionLedger
from interpose.gateway.wording import TOLD_AS, nudge_line, reminded
from interpose.testing import chat
from interpose.testing.script import Reply
from interpose.wire.sse import SseReader
from tests.gateway.apis import Judge, judging

CODEC = CHAT
REFUSE_BASH = judging(frozenset({"Bash"}))
Cut = Callable[[bytes], list[bytes]]


def whole_cut(stream: bytes) -> list[bytes]:
    """The stream in one piece."""
    return [stream]


@dataclass
class Conversation:
    """One client's conversation; `says` plays one reply for it, made of the model's `replies`."""

    stream: bool = True
    messages: list[Any] = field(default_factory=lambda: [{"role": "user", "content": "do it"}])
    ledger: SessionLedger = field(default_factory=SessionLedger)
    sent: list[bytes] = field(default_factory=list)
    """What the model was sent, in order."""
    overs: list[RoundOver] = field(default_factory=list)
    judge: Judge = REFUSE_BASH
    nudge: str | None = None
    number: int = 0

    def body(self) -> bytes:
        """The client's request."""
        return json.dumps({"model": "m", "messages": self.messages, "stream": self.stream}).encode()

    def rewritten(self) -> bytes:
        """The request as the model gets it."""
        return CODEC.read(self.body()).rewritten(self.ledger, None).body

    def says(self, replies: Sequence[Reply], cut: Cut = whole_cut) -> dict[str, Any]:
        """The client's message for the replies of the model, which goes on until the last of them."""
        left = list(replies)
        sent = self.rewritten()
        assert chat.fault(json.loads(sent)) is None
        self.sent.append(sent)
        seen: list[str] = []

        def onward(over: RoundOver) -> Onward | None:
            self.overs.append(over)
            follows = self._after(over, goes_on=bool(left), seen=seen)
            return follows if left else None

        driven = Driven(onward=onward)
        reader = CODEC.stream() if self.stream else CODEC.whole()
        while left:
            self.number += 1
            self._play(reader, driven, self._raw(left.pop(0)), cut)
        message = kept(driven.body) if self.stream else json.loads(driven.body)["choices"][0]["message"]
        self.messages.append(message)
        return message

    def _play(self, reader: Any, driven: Driven, raw: bytes, cut: Cut) -> None:
        before = len(driven.over)
        for chunk in cut(raw):
            driven.drive(reader.feed(chunk), self.judge)
            if self.stream and len(driven.over) > before:
                return
        driven.drive(reader.finish(), self.judge)

    def _raw(self, reply: Reply) -> bytes:
        request = {"stream_options": {"include_usage": True}}
        if self.stream:
            return b"".join(chat.stream(reply, self.number, request))
        return json.dumps(chat.whole(reply, self.number, request)).encode()

    def _after(self, over: RoundOver, *, goes_on: bool, seen: list[str]) -> Onward | None:
        """What the gateway does when a reply of the model is over."""
        if goes_on:
            assert over.is_natural
            nudge = reminded(self.nudge) if self.nudge and not over.refused else None
            reply = CODEC.collected(over.raw) if self.stream else json.loads(over.raw)
            assert reply is not None
            body = CODEC.onward(self.sent[-1], reply, answers(over.refused), nudge)
            assert body is not None
            assert chat.fault(json.loads(body)) is None
            self.sent.append(body)
        root = CODEC.read(self.body()).root
        for place, (refused, answer) in enumerate(answers(over.refused)):
            ends = goes_on and place == len(over.refused) - 1
            if refused.entry is not None and (goes_on or over.released):
                self._keep(root, refused.line, Mark(refused.entry, answer, ends), seen)
        if not goes_on or over.refused or self.nudge is None:
            return Onward()
        line = nudge_line(self.nudge)
        self._keep(root, line, Mark(None, reminded(self.nudge), ends_round=True), seen)
        return Onward(line)

    def _keep(self, root: str, line: str, mark: Mark, seen: list[str]) -> None:
        nth = CODEC.read(self.body()).occurrences(line) + seen.count(line)
        seen.append(line)
        self.ledger.keep_mark(root, line, nth, mark)


def answers(refused: Sequence[RefusedCall]) -> list[tuple[RefusedCall, str]]:
    """What the model is told of each call."""
    return [(call, call.line.removeprefix(TOLD_AS)) for call in refused]


def datas(body: bytes) -> list[dict[str, Any]]:
    """The chunks of a stream."""
    return [json.loads(event.data) for event in SseReader().feed(body) if event.data and event.data != b"[DONE]"]


def kept(body: bytes) -> dict[str, Any]:
    """The message that a client keeps of a stream; checks that it is one coherent reply."""
    chunks = datas(body)
    assert body.count(b"data: [DONE]") == 1
    assert body.endswith(b"data: [DONE]\n\n")
    assert len({chunk["id"] for chunk in chunks}) == 1
    assert len({chunk["created"] for chunk in chunks}) == 1
    assert [bool(chunk.get("usage")) for chunk in chunks].count(True) == 1
    assert chunks[-1]["usage"]
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    assert [bool(choice["delta"].get("role")) for choice in choices].count(True) == 1
    assert [bool(choice["finish_reason"]) for choice in choices] == [False] * (len(choices) - 1) + [True]
    calls: list[dict[str, Any]] = []
    text = ""
    for choice in choices:
        text += choice["delta"].get("content") or ""
        for entry in choice["delta"].get("tool_calls") or ():
            if entry["index"] == len(calls):
                calls.append({"id": entry["id"], "type": "function", "function": {"name": "", "arguments": ""}})
            for member in ("name", "arguments"):
                calls[entry["index"]]["function"][member] += entry["function"].get(member) or ""
    assert choices[-1]["finish_reason"] == ("tool_calls" if calls else "stop")
    return {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}


def results(message: dict[str, Any]) -> list[Any]:
    """The results of a message's calls."""
    return [{"role": "tool", "tool_call_id": call["id"], "content": "out"} for call in message.get("tool_calls") or ()]


def prompt(body: bytes) -> list[Any]:
    """What the model reads."""
    return chat.prompt(json.loads(body))
