"""gateway.gemini: parts, candidates and signatures, streamed and not."""

import json
from typing import Any

import pytest

from interpose.contracts.verdict import Refusal, Verdict
from interpose.gateway.api import CUT_SHORT_TOLD, ProposedCall, Unreadable, steps_of
from interpose.gateway.driving import Driven, drive_reply, drive_stream
from interpose.gateway.gemini import GEMINI

G = GEMINI
LINE = "[interpose] {} was refused by rule: no"


def call(name: str = "Bash", key: str = "functionCall", **more: Any) -> dict[str, Any]:
    """A part with a call."""
    return {key: {"name": name, "args": {"command": "ls"}}, **more}


def text(words: str) -> dict[str, Any]:
    """A part with a text."""
    return {"text": words}


def chunk(*parts: Any, index: int | None = 0, **candidate: Any) -> dict[str, Any]:
    """A chunk, or a whole reply, with one candidate."""
    at = {} if index is None else {"index": index}
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, **at, **candidate}], "new": 1.0}


def events(*chunks: Any) -> list[bytes]:
    """The chunks as events."""
    return [b"data: " + json.dumps(one).encode() + b"\r\n\r\n" for one in chunks]


def array(*chunks: Any) -> bytes:
    """The chunks as one array."""
    return json.dumps(list(chunks), indent=1).encode()


def judge_by(refused: tuple[str, ...] = (), patched: tuple[str, ...] = ()) -> Any:
    """A judge by names."""

    def judge(proposed: ProposedCall) -> Verdict:
        if proposed.name in refused:
            return Verdict("a-1", "tool.call", "refused", Refusal("rule", "no"))
        if proposed.name in patched:
            return Verdict("a-1", "tool.call", "patched", arguments={"n": 1})
        return Verdict("a-1", "tool.call", "allowed")

    return judge


def served(*pieces: bytes) -> Driven:
    """The pieces of a stream as they are served: where it cannot be read it ends with an error that says why."""
    machine, driven = G.stream(), Driven()
    try:
        for piece in pieces:
            driven.drive(machine.feed(piece), judge_by())
        driven.drive(machine.finish(), judge_by())
    except Unreadable as error:
        driven.drive(machine.finish(str(error)), judge_by())
    return driven


def stream(*chunks: Any, refused: tuple[str, ...] = (), patched: tuple[str, ...] = ()) -> Driven:
    """The chunks as events through the codec."""
    return drive_stream(G, events(*chunks), judge_by(refused, patched))


def parts_of(body: bytes) -> list[Any]:
    """All parts of a streamed or whole reply, in order."""
    chunks = [json.loads(line[6:]) for line in body.splitlines() if line.startswith(b"data: ")] or json.loads(body)
    chunks = chunks if isinstance(chunks, list) else [chunks]
    return [part for one in chunks for candidate in one["candidates"] for part in candidate["content"]["parts"]]


def test_a_part_of_another_kind_is_a_call_that_cannot_be_read() -> None:
    """What nobody knows is asked about, and never passes as text."""
    driven = stream(chunk({"newThing": {"x": 1}, "thought": False}))
    (asked,) = driven.asked

    assert (asked.name, "'newThing'" in (asked.problem or "")) == ("unknown:newThing", True)
    assert b"newThing" in driven.body
    refused = stream(chunk({"newThing": {"x": 1}}), refused=("unknown:newThing",))
    assert parts_of(refused.body) == [text(LINE.format("unknown:newThing"))]


@pytest.mark.parametrize(
    "part",
    [
        {"executableCode": {"code": "rm"}},
        {"codeExecutionResult": {}},
        {"toolCall": {}, "thoughtSignature": "x"},
        {"inline_data": {}},
        {"text": "functionCall", "functionCall": None},
        {"functionResponse": {}},
    ],
)
def test_what_runs_at_the_provider_passes(part: dict[str, Any]) -> None:
    """Nobody is asked, not a byte changes; null is no call."""
    driven = stream(chunk(part))

    assert (driven.asked, driven.body) == ([], events(chunk(part))[0])


@pytest.mark.parametrize(
    ("part", "problem"),
    [
        ({"functionCall": {"name": "Bash", "args": [1]}}, "not an object"),
        ({"functionCall": "Bash"}, "no object"),
        ({**call(), **call(key="function_call")}, "twice"),
        ({"functionCall": {"name": "Bash", "partialArgs": [{"jsonPath": "$.x"}]}}, "pieces"),
        ({"functionCall": {"name": "", "args": {"command": "ls"}}}, "names no tool"),
    ],
)
def test_calls_that_cannot_be_read_are_problems(part: dict[str, Any], problem: str) -> None:
    """The judge gets no arguments and is told why."""
    (asked,) = stream(chunk(part)).asked

    assert asked.arguments == {}
    assert problem in (asked.problem or "")


def test_arguments_are_read_from_their_bytes() -> None:
    """Repeated keys show; a call without arguments has none; the snake-case spelling is the same call."""
    twice = b'{"candidates": [{"content": {"parts": [{"functionCall": {"name": "B", "args": {"a": 1, "a": 2}}}]}}]}'
    none = chunk({"function_call": {"name": "Clock"}}, {"functionCall": {"name": "Clock", "args": None}})

    assert "twice" in (drive_reply(G, twice, judge_by()).asked[0].problem or "")
    assert [(one.name, one.arguments, one.problem) for one in stream(none).asked] == [("Clock", {}, None)] * 2


def test_candidates_are_judged_each_for_itself() -> None:
    """Several candidates in one chunk; the first text of one is nothing to the other."""
    both = {"candidates": [*chunk(text("a"))["candidates"], *chunk(call(), index=1, finishReason="STOP")["candidates"]]}
    driven = stream(chunk(text("hi")), both, chunk(call(), index=0), refused=("Bash",))

    assert [part["text"] for part in parts_of(driven.body)] == [
        "hi",
        "a",
        LINE.format("Bash"),
        f"\n\n{LINE.format('Bash')}",
    ]
    assert b'"finishReason":"STOP"' in driven.body


def test_a_refusal_stands_apart_from_what_was_said() -> None:
    """Thoughts and empty texts are nothing said; clients join texts without a gap."""
    quiet = stream(chunk({"text": "hm", "thought": True}), chunk(text("")), chunk(call()), refused=("Bash",))
    spoken = stream(chunk(text("So."), call(), call("Read")), refused=("Bash", "Read"))

    assert parts_of(quiet.body)[-1] == text(LINE.format("Bash"))
    assert [part["text"] for part in parts_of(spoken.body)] == [
        "So.",
        f"\n\n{LINE.format('Bash')}",
        f"\n\n{LINE.format('Read')}",
    ]


@pytest.mark.parametrize("is_split", [False, True])
def test_the_signature_of_a_refused_call_goes_to_the_next_one(is_split: bool) -> None:
    """The provider wants it back with the first call of the content; it is never given twice or in another's place."""
    parts = [call(thoughtSignature="sig"), call("Read"), call("Read")]
    chunks = [chunk(part) for part in parts] if is_split else [chunk(*parts)]
    found = parts_of(stream(*chunks, refused=("Bash",)).body)

    assert [part.get("thoughtSignature") for part in found] == [None, "sig", None]
    assert "thoughtSignature" not in parts_of(stream(*chunks, refused=("Bash", "Read")).body)[0]
    own = [call(thoughtSignature="sig"), call("Read", thoughtSignature="own")]
    assert parts_of(stream(chunk(*own), refused=("Bash",)).body)[1]["thoughtSignature"] == "own"
    later = [call("Read"), call(thoughtSignature="sig"), call("Read")]
    assert "thoughtSignature" not in parts_of(stream(chunk(*later), refused=("Bash",)).body)[2]


@pytest.mark.parametrize("key", ["functionCall", "function_call"])
def test_a_patched_call_keeps_its_other_members(key: str) -> None:
    """Id, signature and what is not known stay; only the arguments change."""
    part = {key: {"id": "i", "name": "Bash", "args": {"a": 1}, "odd": 1}, "thoughtSignature": "sig"}
    (changed,) = parts_of(stream(chunk(part), patched=("Bash",)).body)

    assert changed == {key: {"id": "i", "name": "Bash", "args": {"n": 1}, "odd": 1}, "thoughtSignature": "sig"}


def test_calls_without_ids_get_ones_that_the_history_has_too() -> None:
    """The same call in a request is known by the same id; two equal ones in one reply are told apart."""
    signed = call(thoughtSignature="sig")
    asked = stream(chunk(signed), chunk(call()), chunk(call())).asked
    history = {
        "contents": [{"role": "model", "parts": [signed, call(), call()]}, {"role": "user", "parts": answers(3)}]
    }
    results = G.read(json.dumps(history).encode()).results

    assert [one.call_id for one in asked] == [result.call_id for result in results]
    assert len({one.call_id for one in asked}) == 3


def answers(times: int) -> list[Any]:
    """Parts that answer calls of Bash, with ids of the client's own."""
    return [
        {"functionResponse": {"id": f"own-{at}", "name": "Bash", "response": {"output": str(at)}}}
        for at in range(times)
    ]


def test_whole_replies_and_arrays_read_whole() -> None:
    """Nothing is written anew that nobody changed; an array that was not streamed is judged item by item."""
    one, many = json.dumps(chunk(call()), indent=1).encode(), array(chunk(text("So.")), chunk(call()))

    for raw in (one, many):
        assert drive_reply(G, raw, judge_by()).body == raw
        assert parts_of(drive_reply(G, raw, judge_by(("Bash",))).body)[-1]["text"].endswith(LINE.format("Bash"))
    with pytest.raises(Unreadable):
        drive_reply(G, b"<html>", judge_by())


@pytest.mark.parametrize("raw", [b"{}", b'{"candidates": {}}', b'{"candidates": [1, {"content": {}}]}'])
def test_replies_of_another_shape_pass(raw: bytes) -> None:
    """Without a place for calls there is nothing to judge."""
    assert drive_reply(G, raw, judge_by()).body == raw


def test_an_array_that_dies_is_closed_with_an_error() -> None:
    """What came whole stays; the error is the last item, so that the whole is still JSON."""
    whole = array(chunk(text("a")), chunk(text("b")))
    for at in range(1, len(whole) - 1):
        driven = drive_stream(G, [whole[:at]], judge_by(), "it broke off")
        assert json.loads(driven.body)[-1]["error"]["message"] == "it broke off"
    assert drive_stream(G, [whole], judge_by(), "late").body == whole


def test_a_stream_with_blanks_in_front_is_told_apart() -> None:
    """A byte order mark and blanks, in pieces, are not what tells events from an array."""
    for blank in (b"\xef\xbb\xbf", b"\r\n\n", b""):
        for body in (events(chunk(call()))[0], array(chunk(call()))):
            driven = drive_stream(G, [blank[:1], blank[1:], body], judge_by())
            assert driven.body == blank + body
            assert len(driven.asked) == 1
    assert drive_stream(G, [b" "], judge_by()).body == b" "


def test_lenient_json_hides_no_call() -> None:
    """A chunk that strict readers refuse and clients take is judged all the same."""
    odd = json.dumps(chunk(call(), avgLogprobs=float("nan"))).encode()
    driven = drive_stream(
        G, [b"data: " + odd + b"\r\n\r\n", b"data: not json\r\n\r\n", b"data: [1]\r\n\r\n"], judge_by()
    )

    assert [one.name for one in driven.asked] == ["Bash"]
    assert driven.body.endswith(b"data: not json\r\n\r\ndata: [1]\r\n\r\n")


def test_a_chunk_waits_for_its_own_calls_only() -> None:
    """What came before in the same read leaves before anything is asked."""
    machine = G.stream()
    steps = steps_of(machine.feed(b"".join(events(chunk(text("first")), chunk(call())))))

    first = next(steps)
    assert isinstance(first, bytes)
    assert b"first" in first
    assert isinstance(next(steps), ProposedCall)


@pytest.mark.parametrize(
    "parts",
    [
        b'[{"text": "a"}, {"functionCall": {"name": "Bash"}}]',
        b'[{"text": "a", "functionCall": {"name": "Bash"}}]',
        b'[{"functionCall": {"name": "Bash"}}], "x": {"parts": [{"text": "a"}]}',
        b'[{"text": "a"}, {"function\\u0043all": {"name": "Bash"}}]',
        b'[{"text": "\\"}]"}, {"functionCall": {"name": "Bash"}}]',
    ],
)
def test_a_text_beside_it_hides_no_call(parts: bytes) -> None:
    """What passes without being read is one text alone, whatever the text says."""
    frame = b'data: {"candidates": [{"content": {"parts": ' + parts + b"}}]}\r\n\r\n"

    assert [one.name for one in drive_stream(G, [frame], judge_by()).asked] == ["Bash"]


@pytest.mark.parametrize("words", ['", "functionCall": {', "\\", "}]", "é", '"error"', '"finishReason"', "\n"])
def test_a_text_may_say_anything(words: str) -> None:
    """It passes byte for byte, ends nothing, and counts as something said."""
    one = chunk(text(words))
    died = drive_stream(G, events(one), judge_by(), "it broke off").body
    spoken = stream(one, chunk(call()), refused=("Bash",)).body

    assert died.startswith(events(one)[0])
    assert b"it broke off" in died
    assert parts_of(spoken)[-1]["text"] == f"\n\n{LINE.format('Bash')}"


@pytest.mark.parametrize("end", [b"\r\n\r\n", b"\n", b""])
@pytest.mark.parametrize(
    "written",
    [
        b"%s",
        b" data: %s",
        b"\xef\xbb\xbfdata: %s",
        b"DATA: %s",
        b"event: x\r\n%s",
        b'data: {"candidates": []}\r\n%s',
        b"[%s]",
        b"[\r\n%s\r\n]",
    ],
)
def test_a_call_in_a_line_that_is_no_field_does_not_leave(written: bytes, end: bytes) -> None:
    """Some clients read such a line as a chunk: what came before it leaves, and then the stream is over."""
    before = events(chunk(text("So.")))[0]
    driven = served(before + written.replace(b"%s", json.dumps(chunk(call())).encode()) + end)
    error = json.loads(driven.body.strip().rpartition(b"data: ")[2])["error"]["message"]

    assert driven.body.startswith(before)
    assert b"functionCall" not in driven.body
    assert driven.asked == []
    assert "without `data:`" in error or error == CUT_SHORT_TOLD


@pytest.mark.parametrize("end", [b"\r\n\r\n", b"\n", b""])
def test_an_error_that_google_tells_outside_of_a_field_passes(end: bytes) -> None:
    """It is told over many lines, and its client reads it; nothing of ours follows on it."""
    before, error = events(chunk(text("So.")))[0], json.dumps({"error": {"code": 503, "message": "call"}}, indent=2)
    stream = before + error.encode().replace(b"\n", b"\r\n") + end

    assert drive_stream(G, [stream], judge_by()).body == stream


@pytest.mark.parametrize("behind", [b"\n%s", b"%s", b"\r\n,%s", b"\n{}", b" x"])
def test_nothing_stands_behind_an_array(behind: bytes) -> None:
    """A second array, or anything else, is an error: in the array where it is streamed."""
    one, two = array(chunk(text("So."))), array(chunk(call()))
    body = one + behind.replace(b"%s", two)
    for cut in (len(one) - 1, len(one), len(one) + 2, len(body)):
        first, last = json.loads(served(body[:cut], body[cut:]).body)

        assert first == chunk(text("So."))
        assert "behind the end of its array" in last["error"]["message"]
    with pytest.raises(Unreadable, match="behind the end of its array"):
        drive_reply(G, body, judge_by())


def test_blanks_behind_an_array_come_out_in_their_place() -> None:
    """Also where the reply never told its end."""
    body = array(chunk(text("So."))) + b"\r\n"

    assert drive_stream(G, [body[:-2], body[-2:-1], body[-1:]], judge_by()).body == body


def test_an_array_that_cannot_be_read_is_closed_with_an_error() -> None:
    """The end of the array came in the same read, and is not told before the error."""
    twice = array(chunk(text("So.")))[:-2] + b', {"a": 1, "a": 2}]'

    assert "'a' twice" in json.loads(served(twice).body)[-1]["error"]["message"]
