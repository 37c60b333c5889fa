"""What of a request is new, in all four APIs: what stands before a begun reply, beside results, and inside of files."""

import asyncio
import base64
import json
from functools import partial
from typing import Any

import pytest

from interpose.gateway.anthropic import ANTHROPIC
from interpose.gateway.api import Codec, ResultEdit, TurnEdit, Unreadable
from interpose.gateway.chat import CHAT
from interpose.gateway.gemini import GEMINI
from interpose.gateway.ledger import SessionLedger
from interpose.gateway.reading import first_unseen
from interpose.gateway.responses import RESPONSES
from tests.gateway.test_requests import GivenEdits

CODECS: dict[str, tuple[Codec, str]] = {
    "anthropic": (ANTHROPIC, "messages"),
    "chat": (CHAT, "messages"),
    "responses": (RESPONSES, "input"),
    "gemini": (GEMINI, "contents"),
}
REMINDER = "<system-reminder>be kind</system-reminder>"
ENCODED = base64.b64encode("grüße".encode()).decode()
PICTURE = base64.b64encode(b"\x89PNG\xff\xfe").decode()


def said(api: str, text: str, *, by: str = "user") -> Any:
    """A message, an item or a content with one text."""
    if api == "gemini":
        return {"role": "user" if by == "user" else "model", "parts": [{"text": text}]}
    return {"role": by, "content": text}


def called(api: str) -> list[Any]:
    """A call of the model."""
    arguments = {"path": "x"}
    match api:
        case "anthropic":
            block = {"type": "tool_use", "id": "c1", "name": "Read", "input": arguments}
            return [{"role": "assistant", "content": [block]}]
        case "chat":
            function = {"name": "Read", "arguments": json.dumps(arguments)}
            entry = {"id": "c1", "type": "function", "function": function}
            return [{"role": "assistant", "content": None, "tool_calls": [entry]}]
        case "responses":
            return [{"type": "function_call", "call_id": "c1", "name": "Read", "arguments": json.dumps(arguments)}]
        case _:
            return [{"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "Read", "args": arguments}}]}]


def result(api: str, output: Any, *beside: str) -> list[Any]:
    """The call's result, with texts beside it."""
    match api:
        case "anthropic":
            block = {"type": "tool_result", "tool_use_id": "c1", "content": output}
            return [{"role": "user", "content": [block, *({"type": "text", "text": one} for one in beside)]}]
        case "chat":
            return [{"role": "tool", "tool_call_id": "c1", "content": output}, *(said(api, one) for one in beside)]
        case "responses":
            item = {"type": "function_call_output", "call_id": "c1", "output": output}
            return [item, *(said(api, one) for one in beside)]
        case _:
            answer = {"functionResponse": {"id": "c1", "name": "Read", "response": {"output": output}}}
            return [{"role": "user", "parts": [answer, *({"text": one} for one in beside)]}]


def read(api: str, *history: Any) -> Any:
    """The request with this history."""
    codec, key = CODECS[api]
    return codec.read(json.dumps({"model": "m", key: list(history)}).encode())


def edited(api: str, view: Any, **edits: Any) -> Any:
    """The history as the model is to see it."""
    return json.loads(view.rewritten(GivenEdits(**edits), None).body)[CODECS[api][1]]


@pytest.mark.parametrize(
    ("of_model", "heard", "place"),
    [
        ([], [], 0),
        ([0], [1], 0),
        ([0, 1], [1, 0], 0),
        ([0, 1, 0], [1, 0, 1], 2),
        ([0, 1, 0, 1, 1], [1, 0, 1, 0, 0], 2),
        ([0, 1, 0], [1, 0, 0], 0),
        ([1, 1], [0, 0], 0),
    ],
)
def test_new_is_what_no_reply_has_answered(of_model: list[bool], heard: list[bool], place: int) -> None:
    """Entries of the model at the end answer nothing yet; what is nobody's does not count."""
    assert first_unseen(of_model, heard) == place


@pytest.mark.parametrize("api", CODECS)
def test_a_reply_that_the_client_begins_hides_nothing(api: str) -> None:
    """The prompt before it is new, and so are results; those that were answered are not."""
    begun = said(api, "Sure:", by="assistant")
    prompt = read(api, said(api, "go"), begun)
    results = read(api, said(api, "go"), *called(api), *result(api, "out"), begun)
    later = read(api, said(api, "go"), *called(api), *result(api, "out"), begun, said(api, "more"), begun)

    assert (prompt.turn.prompt, prompt.results) == ("go", ())
    assert [(one.call_id, one.name, one.output) for one in results.results] == [("c1", "Read", "out")]
    assert results.turn is None
    assert (later.turn.prompt, later.results) == ("more", ())


@pytest.mark.parametrize("api", CODECS)
def test_words_beside_results_begin_a_turn(api: str) -> None:
    """The agent's own reminders do not; those that only begin as one are the person's."""
    history = [said(api, "go"), *called(api)]
    spoken = read(api, *history, *result(api, "out", REMINDER, "and then"))
    plain = read(api, *history, *result(api, "out", REMINDER))
    sly = read(api, *history, *result(api, "out", f"{REMINDER} and then {REMINDER}"))

    assert (spoken.turn.prompt, plain.turn, spoken.results) == ("and then", None, plain.results)
    assert "and then" in sly.turn.prompt
    assert plain.turn_key == read(api, said(api, "go")).turn_key != spoken.turn_key


@pytest.mark.parametrize("api", ["anthropic", "gemini"])
def test_a_prompt_beside_results_is_edited_beside_them(api: str) -> None:
    """Results stay first, and what a client makes of them later does not make the prompt another one."""
    history = [said(api, "go"), *called(api)]
    view = read(api, *history, *result(api, "out", "and then"))
    cleared = read(api, *history, *result(api, "cleared", "and then"))
    turn = TurnEdit(REMINDER, replacement="and so")
    message = edited(api, view, turns={2: turn})[2]
    parts = message["content" if api == "anthropic" else "parts"]

    assert view.turn.digest == cleared.turn.digest
    assert [part.get("text") for part in parts] == [None, REMINDER, "and so"]


ANTHROPIC_FILES = [
    ({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "hidden"}}, "hidden"),
    (
        {
            "type": "document",
            "title": "T",
            "source": {"type": "content", "content": [{"type": "text", "text": "hidden"}]},
        },
        "T\nhidden",
    ),
    ({"type": "document", "source": {"type": "content", "content": "hidden"}}, "hidden"),
    ({"type": "document", "source": {"type": "base64", "media_type": "text/csv", "data": ENCODED}}, "grüße"),
    ({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": ENCODED}}, None),
    ({"type": "document", "source": {"type": "url", "url": "https://example.com"}}, None),
    (
        {"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "hidden"}]},
        "t\ns\nhidden",
    ),
    ({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}}, None),
]
OPENAI_FILES = [
    ("hidden text", "hidden text"),
    (f"data:text/plain;base64,{ENCODED}", "grüße"),
    (f"data:text/plain;charset=utf-8;base64,{ENCODED}", "grüße"),
    ("data:application/json,{}", "{}"),
    (f"data:application/pdf;base64,{PICTURE}", None),
    (ENCODED, "grüße"),
    (PICTURE, None),
]
GEMINI_FILES = [
    ({"inlineData": {"mimeType": "text/plain", "data": ENCODED}}, "grüße"),
    ({"inline_data": {"mime_type": "text/markdown", "data": ENCODED.rstrip("=")}}, "grüße"),
    ({"inlineData": {"mimeType": "text/plain", "data": "grüße!"}}, "grüße!"),
    ({"inlineData": {"mimeType": "image/png", "data": PICTURE}}, None),
]
FILES: list[tuple[str, Any, str | None]] = [
    *(("anthropic", part, text) for part, text in ANTHROPIC_FILES),
    *(("chat", {"type": "file", "file": {"file_data": data}}, text) for data, text in OPENAI_FILES),
    *(("responses", {"type": "input_file", "file_data": data}, text) for data, text in OPENAI_FILES),
    *(("gemini", part, text) for part, text in GEMINI_FILES),
]


def with_file(api: str, part: Any) -> tuple[Any, list[Any]]:
    """A prompt with this file, and a result."""
    if api != "gemini":
        return {"role": "user", "content": [part]}, result(api, [part])
    answer = {"functionResponse": {"id": "c1", "name": "Read", "response": {"output": ""}, "parts": [part]}}
    return {"role": "user", "parts": [part]}, [{"role": "user", "parts": [answer]}]


@pytest.mark.parametrize(("api", "part", "text"), FILES)
def test_the_text_of_files_is_judged(api: str, part: Any, text: str | None) -> None:
    """In prompts and in results; what is no text is nothing that could be read."""
    prompt, answers = with_file(api, part)
    view, answered = read(api, prompt), read(api, said(api, "go"), *called(api), *answers)

    assert (view.turn.prompt if view.turn else None) == text
    assert answered.results[0].output == (text or "")


def parts_of(api: str, history: Any) -> list[Any]:
    """The parts of the last result of a history."""
    last = history[-1]
    match api:
        case "anthropic":
            parts = last["content"][0]["content"]
        case "chat":
            parts = last["content"]
        case "responses":
            parts = last["output"]
        case _:
            answer = last["parts"][0]["functionResponse"]
            parts = [{"text": answer["response"]["output"]}, *answer.get("parts", [])]
    return [part.get("text", "a file") for part in parts]


@pytest.mark.parametrize("api", CODECS)
def test_a_replaced_output_keeps_what_is_no_text(api: str) -> None:
    """Texts and files of text are replaced by one text in their place; an output that is withheld goes as a whole."""
    kind = "input_text" if api == "responses" else "text"
    picture, file = next((p, f) for a, p, _ in FILES for b, f, t in FILES if a == b == api and t and p != f and not _)
    if api == "gemini":
        response = {"output": "secret"}
        answer = {"id": "c1", "name": "Read", "response": response, "parts": [picture, file, picture]}
        answers = [{"role": "user", "parts": [{"functionResponse": answer}]}]
    else:
        first, second = {"type": kind, "text": "secret"}, {"type": kind, "text": "more"}
        answers = result(api, [first, picture, file, second, picture])
    view = read(api, said(api, "go"), *called(api), *answers)
    keeping = ResultEdit("note", "clean", keeps_rest=True)
    withheld = ResultEdit("note", "withheld")

    kept = parts_of(api, edited(api, view, results={"c1": keeping}))
    gone = parts_of(api, edited(api, view, results={"c1": withheld}))
    if api == "gemini":
        assert (kept, gone) == (["clean\n\nnote", "a file", "a file"], ["withheld\n\nnote"])
        return
    assert (kept, gone) == (["clean", "a file", "a file", "note"], ["withheld", "note"])


def test_other_members_of_a_response_stay_with_a_replaced_text() -> None:
    """They were not what was replaced."""
    answer = {"id": "c1", "name": "Read", "response": {"output": "secret", "more": {"n": 1}}}
    view = read("gemini", said("gemini", "go"), *called("gemini"), {"parts": [{"functionResponse": answer}]})
    history = edited("gemini", view, results={"c1": ResultEdit(replacement="clean", keeps_rest=True)})

    assert history[-1]["parts"][0]["functionResponse"]["response"] == {"output": "clean", "more": {"n": 1}}


def test_outputs_of_unknown_kinds_are_results() -> None:
    """A new kind of tool is judged as those that are known; what says which tools there are is none."""
    unknown = {"type": "future_output", "call_id": "c1", "output": "secret"}
    listing = {"type": "tool_search_output", "call_id": "c2", "tools": []}
    view = read("responses", said("responses", "go"), *called("responses"), unknown, listing)

    assert [(one.call_id, one.name, one.output) for one in view.results] == [("c1", "Read", "secret")]
    assert edited("responses", view, results={"c1": ResultEdit(replacement="x")})[-2]["output"] == "x"


def test_single_objects_of_gemini_are_lists_of_one() -> None:
    """As Google's readers take them; the bytes stay the client's."""
    raw = b'{"contents": {"parts": {"text": "go"}}, "tools": {"functionDeclarations": {"name": "Read"}}}'
    view = GEMINI.read(raw)
    assert (view.turn and view.turn.prompt, view.tool_names()) == ("go", ("Read",))
    assert view.rewritten(GivenEdits(), None).body is raw

    answer = {"functionResponse": {"name": "Read", "id": "c1", "response": {"output": "secret"}}}
    call = {"role": "model", "parts": {"functionCall": {"id": "c1", "name": "Read", "args": {"a": 1}}}}
    answered = read("gemini", said("gemini", "go"), call, {"role": "user", "parts": answer})
    assert [(one.name, one.arguments, one.output) for one in answered.results] == [("Read", {"a": 1}, "secret")]
    history = edited("gemini", answered, results={"c1": ResultEdit(replacement="withheld")})
    assert history[-1]["parts"][0]["functionResponse"]["response"] == {"output": "withheld"}


@pytest.mark.parametrize(
    ("codec", "body", "words"),
    [
        (ANTHROPIC, {"messages": "hi"}, "messages must be an array, and is a text"),
        (CHAT, {"messages": None}, "messages must be an array, and is null"),
        (RESPONSES, {"input": 5}, "input must be an array, and is a number"),
        (GEMINI, {"contents": "hi"}, "contents must be an array, and is a text"),
        (GEMINI, {"contents": [{"parts": []}, "hi"]}, r"contents\[1\] must be an object, and is a text"),
        (GEMINI, {"contents": [{"parts": 5}]}, r"contents\[0\].parts must be an array, and is a number"),
        (GEMINI, {"contents": [], "tools": True}, "tools must be an array, and is a boolean"),
    ],
)
def test_what_is_no_list_is_named(codec: Codec, body: Any, words: str) -> None:
    """The error says which member, what it must be, and what it is."""
    with pytest.raises(Unreadable, match=f"^{words}$"):
        codec.read(json.dumps(body).encode())


@pytest.mark.parametrize("api", CODECS)
def test_equal_results_of_one_id_are_judged_each(api: str) -> None:
    """Some providers count the ids of calls anew: each result is judged, once, and keeps an edit of its own."""
    ledger = SessionLedger()
    turns = [said(api, "go"), *called(api), *result(api, "same")]
    asked: list[str] = []

    async def judged(view: Any, note: str) -> list[ResultEdit]:
        async def judge() -> ResultEdit:
            asked.append(note)
            return ResultEdit(note)

        return [await ledger.result_once(one, judge, partial(view.nth, one)) for one in view.results]

    for number, note in enumerate(("first", "second", "third")):
        view = read(api, *turns)
        assert asyncio.run(judged(view, note)) == [ResultEdit(note)]
        assert asyncio.run(judged(read(api, *turns), "again")) == [ResultEdit(note)]
        assert view.nth(view.results[0]) == number
        turns += [*called(api), *result(api, "same")]

    text = read(api, *turns).rewritten(ledger, None).body.decode()
    assert asked == ["first", "second", "third"]
    assert [text.count(note) for note in asked] == [1, 1, 1]
    assert text.index("first") < text.index("second") < text.index("third")


@pytest.mark.parametrize("api", CODECS)
def test_equal_results_in_one_request(api: str) -> None:
    """They are told apart too, and another output of the same id is the first of its own."""
    both = [*result(api, "same"), *result(api, "same"), *result(api, "other")]
    view = read(api, said(api, "go"), *called(api), *called(api), *called(api), *both)

    assert [view.nth(one) for one in view.results] == [0, 1, 0]
