"""gateway.gemini: several replies of the model within one of the client's."""

import json
from typing import Any

import pytest

from interpose.gateway.api import Onward, RoundOver, steps_of
from interpose.gateway.driving import Driven
from tests.gateway.gemini_talks import (
    FIRST,
    FORMS,
    HEARD,
    LINE,
    MODELS,
    NUDGE,
    NUDGE_LINE,
    SECOND,
    THIRD,
    TOLD,
    G,
    Round,
    Talk,
    answer,
    call,
    judge,
    model,
    refusal,
    text,
    user,
)


@pytest.mark.parametrize("form", FORMS)
def test_three_replies_are_one(form: str) -> None:
    """One head, one end, texts that stand apart, and tokens that add up."""
    talk = Talk(form).plays(FIRST, SECOND, THIRD)

    spoken = "".join(part["text"] for part in talk.parts if not part.get("thought"))
    assert spoken.split("\n\n") == ["I clean.", LINE, "Then ", LINE, LINE, "Done é."]
    assert {(chunk["responseId"], chunk["modelVersion"]) for chunk in talk.chunks} == {("r-1", "m-1")}
    reasons = [chunk["candidates"][0].get("finishReason") for chunk in talk.chunks]
    assert reasons == [None] * (len(reasons) - 1) + ["STOP"]
    assert talk.chunks[-1]["usageMetadata"] == {
        "promptTokenCount": 30,
        "candidatesTokenCount": 17,
        "thoughtsTokenCount": 6,
        "totalTokenCount": 53,
    }
    assert [len(over.refused) for over in talk.driven.over] == [1, 2, 0]
    assert json.loads(talk.sent[-1])["contents"] == MODELS[:-1]


@pytest.mark.parametrize("form", ["events", "array"])
@pytest.mark.parametrize("ends_apart", [True, False])
def test_every_cut_gives_the_same_reply(form: str, *, ends_apart: bool) -> None:
    """Wherever a read ends, the same bytes leave and the same is sent."""
    rounds = [Round(one.parts, number, ends_apart=ends_apart) for number, one in enumerate((FIRST, SECOND, THIRD), 1)]
    whole = Talk(form).plays(*rounds)
    longest = max(len(one.raw(form)) for one in rounds)

    for at in range(1, longest, 3):
        cut = Talk(form).plays(*rounds, cuts=[at])
        assert (cut.driven.body, cut.sent) == (whole.driven.body, whole.sent)
    single = Talk(form).plays(*rounds, cuts=range(1, longest))
    assert (single.driven.body, single.sent) == (whole.driven.body, whole.sent)


@pytest.mark.parametrize("way", ["as it came", "texts joined"])
@pytest.mark.parametrize("form", FORMS)
def test_the_history_is_put_back_as_it_was_sent(form: str, way: str) -> None:
    """Every later request begins with what was sent within the reply, and has the model's last words."""
    talk = Talk(form).plays(FIRST, SECOND, THIRD)

    assert talk.restored(user(text("more")), way=way) == [*MODELS, user(text("more"))]


@pytest.mark.parametrize("way", ["as it came", "texts joined"])
@pytest.mark.parametrize("form", FORMS)
def test_a_nudge_is_a_message_of_the_persons(form: str, way: str) -> None:
    """The client has a line of ours, the model a content between its two."""
    talk = Talk(form, nudge=True).plays(Round((text("All done."),)), Round((text("They pass."),), 2))

    assert "".join(part["text"] for part in talk.parts) == f"All done.\n\n{NUDGE_LINE}\n\nThey pass."
    contents = [HEARD, model(text("All done.")), user(text(NUDGE)), model(text("They pass."))]
    assert json.loads(talk.sent[-1])["contents"] == contents[:-1]
    assert talk.restored(user(text("more")), way=way) == [*contents, user(text("more"))]


@pytest.mark.parametrize("form", FORMS)
def test_a_signature_behind_the_last_text_stays_where_it_was(form: str) -> None:
    """It is told before the nudge, alone in its part, and belongs to the model's former reply."""
    first = Round((text("All done."), text("", thoughtSignature="sig")), ends_apart=False)
    talk = Talk(form, nudge=True).plays(first, Round((text("Yes."),), 2))

    former = model(text("All done."), text("", thoughtSignature="sig"))
    assert talk.restored(user(text("more")))[1:4] == [former, user(text(NUDGE)), model(text("Yes."))]
    assert json.loads(talk.sent[-1])["contents"] == [HEARD, former, user(text(NUDGE))]


@pytest.mark.parametrize("form", FORMS)
def test_refused_beside_released_calls(form: str) -> None:
    """No other reply follows; the error stands in the next request among the responses, in the order of the calls."""
    parts = (
        call(signature="s1", x=1),
        call("Read", x=2),
        call("Read", x=3),
        call(x=4),
    )
    talk = Talk(form).plays(Round((text("Both."), *parts)))
    given = [part for part in talk.parts if "functionCall" in part]
    answers = [answer("Read", {"output": "two"}), answer("Read", {"output": "three"})]

    assert [part.get("thoughtSignature") for part in given] == ["s1", None]
    assert len(talk.sent) == 1
    assert talk.restored(user(*answers, text("go on"))) == [
        HEARD,
        model(text("Both."), *parts),
        user(refusal(), *answers, refusal(), text("go on")),
    ]


@pytest.mark.parametrize(
    "edited",
    [
        call("Edit", own="c1", x=1),
        call("Edit", x=1),
        call("Edit", signature="s1", x=1),
        {"function_call": {"name": "Edit", "args": {"x": 1}}, "thought_signature": "s1"},
        call("Edit", signature="s1", own="c1"),
    ],
)
def test_the_model_keeps_its_own_arguments(edited: dict[str, Any]) -> None:
    """Also of a call without an id, which the agent gets one for, since it would be known by its arguments."""
    talk = Talk("events").plays(Round((text("So"), text("."), edited)))
    (given,) = [part for part in talk.parts if part.keys() & {"functionCall", "function_call"}]
    request = G.read(json.dumps({"contents": [HEARD, *talk.kept("as it came"), user(answer("Edit", {}))]}).encode())

    assert (given.get("functionCall") or given.get("function_call"))["args"] == {"changed": True}
    assert request.results[0].call_id in talk.ledger.changed_calls
    assert talk.restored(user(answer("Edit", {})))[1] == model(text("So"), text("."), edited)


def test_an_entry_in_the_other_spelling_is_answered_in_it() -> None:
    """Snake case stays snake case."""
    refused = {"function_call": {"name": "Bash", "args": {}}}
    talk = Talk("whole").plays(Round((refused,)), Round((text("No."),), 2))
    heard = user({"function_response": {"name": "Bash", "response": {"error": TOLD}}})

    assert json.loads(talk.sent[-1])["contents"] == [HEARD, model(refused), heard]
    assert talk.restored(user(text("more")))[1:4] == [model(refused), heard, model(text("No."))]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "odd",
    [
        Round((text("a"), call()), stop="MAX_TOKENS"),
        Round((call(), text("behind"))),
        Round((call(), text("behind", thought=True))),
        Round((call(), {"executableCode": {"code": "1"}})),
        Round((call("Read"), call())),
    ],
)
def test_what_cannot_be_gone_on_with(form: str, odd: Round) -> None:
    """The model did not stop behind its refused call, or the agent has something to do: the end leaves."""
    talk = Talk(form).plays(odd, THIRD)

    assert len(talk.sent) == 1
    assert talk.chunks[-1]["candidates"][0]["finishReason"] == odd.stop
    assert talk.chunks[-1]["usageMetadata"]["totalTokenCount"] == 17


def test_several_candidates_are_not_gone_on_with() -> None:
    """Neither streamed nor whole; each is told of its own."""
    both = Round((call(),)).chunk([call()])
    both["candidates"] = [{**both["candidates"][0], "index": index, "finishReason": "STOP"} for index in (0, 1)]
    for machine, raw in ((G.whole(), json.dumps(both)), (G.stream(), f"data: {json.dumps(both)}\n\n")):
        driven = Driven()
        driven.drive(machine.feed(raw.encode()), judge)
        driven.drive(machine.finish(), judge)
        (over,) = driven.over
        assert (over.is_natural, len(over.refused)) == (False, 2)


@pytest.mark.parametrize("form", ["events", "array"])
def test_a_reply_that_dies_is_not_over(form: str) -> None:
    """Neither the first nor a later one; the client gets what came and an error behind it."""
    raw = FIRST.raw(form)
    for fault, cut in (("it broke off", raw[: len(raw) // 2]), ("late", raw)):
        driven, machine = Driven(), G.stream()
        driven.drive(machine.feed(cut), judge)
        driven.drive(machine.finish(fault), judge)
        assert driven.over == []
    driven, machine = Driven(onward=lambda _: Onward()), G.stream()
    driven.drive(machine.feed(raw), judge)
    driven.drive(machine.finish(), judge)
    driven.drive(machine.feed(SECOND.raw(form)[:700]), judge)
    driven.drive(machine.finish("it broke off"), judge)
    talk = Talk(form, driven=driven)
    assert len(driven.over) == 1
    assert talk.chunks[-1]["error"]["message"] == "it broke off"


@pytest.mark.parametrize("form", ["events", "array"])
def test_an_error_of_the_providers_ends_it(form: str) -> None:
    """In a later reply it passes as it is, and nothing follows on it."""
    error = json.dumps({"error": {"code": 503, "message": "m"}})
    driven, machine = Driven(onward=lambda _: Onward()), G.stream()
    for raw in (FIRST.raw(form), (f"[{error}]" if form == "array" else f"data: {error}\n\n").encode()):
        driven.drive(machine.feed(raw), judge)
        driven.drive(machine.finish(), judge)

    assert len(driven.over) == 1
    assert Talk(form, driven=driven).chunks[-1] == json.loads(error)


@pytest.mark.parametrize("form", ["events", "array"])
def test_a_reply_without_an_end_can_be_followed(form: str) -> None:
    """The one that follows has the same head; an array is closed once."""
    driven, machine = Driven(onward=lambda over: Onward() if over.stop_reason is None else None), G.stream()
    for raw in (FIRST.raw(form).replace(b"finishReason", b"newMember"), THIRD.raw(form)):
        driven.drive(machine.feed(raw), judge)
        driven.drive(machine.finish(), judge)
    chunks = Talk(form, driven=driven).chunks

    assert [over.is_natural for over in driven.over] == [False, True]
    assert {chunk["responseId"] for chunk in chunks} == {"r-1"}
    assert chunks[-1]["candidates"][0]["finishReason"] == "STOP"


def test_a_part_that_is_no_object_passes() -> None:
    """There is nothing to judge in it, and a line of ours stands apart from what is said behind it all the same."""
    talk = Talk("whole").plays(Round((call(own="c"), "odd", text("said"))))

    assert talk.parts == [text(LINE), "odd", text("\n\nsaid")]


@pytest.mark.parametrize("form", ["events", "array"])
def test_what_came_leaves_before_it_is_asked_what_follows(form: str) -> None:
    """All but the chunk with the end; that is held until the bytes end."""
    raw = Round((text("a"), text("b"))).raw(form)
    machine = G.stream()
    before = b"".join(step for step in steps_of(machine.feed(raw)) if isinstance(step, bytes))
    steps = machine.finish()

    assert before.count(b'"text"') == 2
    assert b"finishReason" not in before
    over = next(steps)
    assert isinstance(over, RoundOver)
    assert over.raw == raw
    assert before + b"".join(step for step in steps if isinstance(step, bytes)) == raw


@pytest.mark.parametrize("form", FORMS)
def test_what_the_end_says_is_not_lost(form: str) -> None:
    """A last chunk that tells more than the end is told without the end when another reply follows."""
    first = Round((text("So."), call(own="c")), ends_apart=False)
    raw = json.loads(first.raw("whole"))
    raw["candidates"][0]["groundingMetadata"] = {"webSearchQueries": ["q"]}
    driven, machine = Driven(onward=lambda _: Onward()), G.whole() if form == "whole" else G.stream()
    framed = {"events": f"data: {json.dumps(raw)}\n\n", "array": f"[{json.dumps(raw)}]", "whole": json.dumps(raw)}
    driven.drive(machine.feed(framed[form].encode()), judge)
    driven.drive(machine.finish(), judge)
    driven.onward = None
    driven.drive(machine.feed(THIRD.raw(form)), judge)
    driven.drive(machine.finish(), judge)
    talk = Talk(form, driven=driven)

    assert [part["text"] for part in talk.parts if part["text"]][:2] == ["So.", f"\n\n{LINE}"]
    assert form == "whole" or talk.chunks[0]["candidates"][0]["groundingMetadata"] == {"webSearchQueries": ["q"]}
    assert [chunk["candidates"][0].get("finishReason") for chunk in talk.chunks][-1] == "STOP"


@pytest.mark.parametrize("last", [{}, {"promptFeedback": {"blockReason": "SAFETY"}}, {"candidates": [{}]}])
def test_a_whole_reply_without_words_keeps_what_was_said(last: dict[str, Any]) -> None:
    """The client gets the former words, and whatever the last reply has."""
    driven, machine = Driven(onward=lambda over: Onward() if over.refused else None), G.whole()
    for raw in (FIRST.raw("whole"), json.dumps(last).encode()):
        driven.drive(machine.feed(raw), judge)
        driven.drive(machine.finish(), judge)
    body = json.loads(driven.body)

    assert [part["text"] for part in body["candidates"][0]["content"]["parts"]][-1] == f"\n\n{LINE}"
    assert body.get("promptFeedback") == last.get("promptFeedback")
    assert body["responseId"] == "r-1"
