"""A gateway around Gemini without sockets: replies of several rounds, what the client keeps, what is sent again."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Any

from interpose.contracts.verdict import Refusal, Verdict
from interpose.gateway.api import Mark, Onward, ProposedCall, RefusedCall, RoundOver
from interpose.gateway.driving import Driven
from interpose.gateway.gemini import GEMINI
from interpose.gateway.ledger import SessionLedger
from interpose.wire.sse import SseReader

G = GEMINI
FORMS = ("events", "array", "whole")
LINE = "[interpose] Bash was refused by rule: no"
TOLD = "Bash was refused by rule: no"
NUDGE_LINE, NUDGE = "[interpose] the turn goes on: test it", "<system-reminder>\ntest it\n</system-reminder>"
HEARD = {"role": "user", "parts": [{"text": "clean up"}]}


def text(words: str, **more: Any) -> dict[str, Any]:
    """A part with a text."""
    return {"text": words, **more}


def call(name: str = "Bash", own: str = "", signature: str = "", **args: Any) -> dict[str, Any]:
    """A part with a call."""
    identity = {"id": own} if own else {}
    signed = {"thoughtSignature": signature} if signature else {}
    return {"functionCall": {**identity, "name": name, "args": args}, **signed}


def answer(name: str, response: dict[str, Any], own: str = "") -> dict[str, Any]:
    """A part with a response."""
    identity = {"id": own} if own else {}
    return {"functionResponse": {**identity, "name": name, "response": response}}


def refusal(own: str = "") -> dict[str, Any]:
    """The response that the model gets to a refused call."""
    return answer("Bash", {"error": TOLD}, own)


def model(*parts: Any) -> dict[str, Any]:
    """A content of the model."""
    return {"role": "model", "parts": list(parts)}


def user(*parts: Any) -> dict[str, Any]:
    """A content of the person's or a tool's."""
    return {"role": "user", "parts": list(parts)}


def judge(proposed: ProposedCall) -> Verdict:
    """Refuses Bash, changes Edit, lets go of the others."""
    if proposed.name == "Bash":
        return Verdict("a-1", "tool.call", "refused", Refusal("rule", "no"))
    if proposed.name == "Edit":
        return Verdict("a-1", "tool.call", "patched", arguments={"changed": True})
    return Verdict("a-1", "tool.call", "allowed")


@dataclass(frozen=True)
class Round:
    """One reply of the model: its parts, one a chunk, and how it ends."""

    parts: tuple[Any, ...]
    number: int = 1
    stop: str = "STOP"
    tokens: int = 5
    ends_apart: bool = True

    def chunks(self) -> list[dict[str, Any]]:
        """The reply as it is streamed; the end in a chunk of its own, or in that of the last part."""
        groups = [[part] for part in self.parts]
        if self.ends_apart or not groups:
            groups.append([text("")])
        chunks = [self.chunk(parts) for parts in groups]
        chunks[-1]["candidates"][0]["finishReason"] = self.stop
        return chunks

    def chunk(self, parts: Iterable[Any]) -> dict[str, Any]:
        """A chunk with these parts."""
        return {
            "candidates": [{"content": {"role": "model", "parts": list(parts)}, "index": 0}],
            "usageMetadata": {
                "promptTokenCount": 10 * self.number,
                "candidatesTokenCount": self.tokens,
                "thoughtsTokenCount": 2,
                "totalTokenCount": 10 * self.number + self.tokens + 2,
            },
            "modelVersion": f"m-{self.number}",
            "responseId": f"r-{self.number}",
        }

    def raw(self, form: str) -> bytes:
        """The reply's bytes."""
        if form == "events":
            return b"".join(b"data: " + json.dumps(chunk).encode() + b"\r\n\r\n" for chunk in self.chunks())
        if form == "array":
            return b"[" + b"\n,\r\n".join(json.dumps(chunk).encode() for chunk in self.chunks()) + b"\n]"
        whole = self.chunk(self.parts)
        whole["candidates"][0]["finishReason"] = self.stop
        return json.dumps(whole, indent=1).encode()


@dataclass
class Talk:
    """One reply of the client's, made as the gateway makes it: its marks are kept, its requests are noted."""

    form: str
    nudge: bool = False
    ledger: SessionLedger = field(default_factory=SessionLedger)
    sent: list[bytes] = field(default_factory=lambda: [json.dumps({"contents": [HEARD]}).encode()])
    driven: Driven = field(default_factory=Driven)
    lines: list[str] = field(default_factory=list)

    def plays(self, *rounds: Round, cuts: Iterable[int] = ()) -> "Talk":
        """Drives the rounds through one machine, each cut at `cuts`."""
        self.driven.onward = self.over
        machine = G.whole() if self.form == "whole" else G.stream()
        for number, one in enumerate(rounds, 1):
            raw = one.raw(self.form)
            edges = [0, *sorted(cut for cut in cuts if cut < len(raw)), len(raw)]
            for start, end in pairwise(edges):
                self.driven.drive(machine.feed(raw[start:end]), self.judged)
            self.driven.drive(machine.finish(), self.judged)
            assert len(self.driven.over) == number
            if len(self.sent) == number:
                break
        return self

    def judged(self, proposed: ProposedCall) -> Verdict:
        """The verdict, which the ledger keeps."""
        verdict = judge(proposed)
        if verdict.allowed:
            self.ledger.remember_call(proposed, verdict)
        return verdict

    def over(self, step: RoundOver) -> Onward | None:
        """What the gateway does at the end of a reply."""
        if step.released or not step.is_natural:
            if step.released:
                self.remember(step.refused, ends=False)
            return None
        if not step.refused and not self.nudge:
            return None
        said = json.loads(step.raw) if self.form == "whole" else G.collected(step.raw)
        nudge = None if step.refused else NUDGE
        self.nudge = self.nudge and bool(step.refused)
        body = G.onward(self.sent[-1], said or {}, [(one, TOLD) for one in step.refused], nudge)
        assert body is not None
        self.sent.append(body)
        if step.refused:
            self.remember(step.refused, ends=True)
            return Onward()
        self.keep(NUDGE_LINE, Mark(None, NUDGE, ends_round=True))
        return Onward(NUDGE_LINE)

    def remember(self, refused: tuple[RefusedCall, ...], *, ends: bool) -> None:
        """Keeps what each line stands for."""
        for one in refused:
            self.keep(one.line, Mark(one.entry, TOLD, ends_round=ends and one is refused[-1]))

    def keep(self, line: str, mark: Mark) -> None:
        """Keeps one mark."""
        self.ledger.keep_mark(G.read(self.sent[0]).root, line, self.lines.count(line), mark)
        self.lines.append(line)

    @property
    def chunks(self) -> list[dict[str, Any]]:
        """What the client got."""
        if self.form != "events":
            value = json.loads(self.driven.body)
            return value if isinstance(value, list) else [value]
        return [json.loads(event.data) for event in SseReader().feed(self.driven.body) if event.data]

    @property
    def parts(self) -> list[Any]:
        """All parts that the client got."""
        return [part for chunk in self.chunks for part in chunk["candidates"][0]["content"]["parts"]]

    def kept(self, way: str) -> list[dict[str, Any]]:
        """What the client has of it in its history."""
        parts = [part for part in self.parts if part != text("")]
        if way == "a content a chunk":
            return [model(*chunk["candidates"][0]["content"]["parts"]) for chunk in self.chunks]
        return [model(*(together(parts) if way == "texts joined" else parts))]

    def restored(self, *behind: Any, way: str = "as it came") -> list[Any]:
        """The contents of the next request, as the model is sent it."""
        return self.rewritten([HEARD, *self.kept(way), *behind])

    def rewritten(self, contents: list[Any]) -> list[Any]:
        """These contents, as the model is sent them."""
        request = G.read(json.dumps({"contents": contents}).encode())
        return list(json.loads(request.rewritten(self.ledger, None).body)["contents"])


def together(parts: Iterable[Any]) -> list[Any]:
    """Neighbouring texts in one part, as many clients keep them."""
    joined: list[Any] = []
    for is_text, group in groupby(parts, key=lambda part: part.keys() == {"text"}):
        found = list(group)
        joined += [text("".join(part["text"] for part in found))] if is_text else found
    return joined


FIRST = Round((text("hm", thought=True), text("I cl"), text("ean."), call(own="c1", signature="s1", x=1)))
SECOND = Round((text("so", thought=True), text("Then "), call(own="c2", x=2), call(own="c3", x=3)), 2)
THIRD = Round((text("Done"), text(" é.")), 3, tokens=7)
MODELS = [
    HEARD,
    model(text("hm", thought=True), text("I clean."), call(own="c1", signature="s1", x=1)),
    user(refusal("c1")),
    model(text("so", thought=True), text("Then "), call(own="c2", x=2), call(own="c3", x=3)),
    user(refusal("c2"), refusal("c3")),
    model(text("Done é.")),
]
