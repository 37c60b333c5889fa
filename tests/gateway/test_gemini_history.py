"""gateway.gemini: the model's history where the client's has lines of ours."""

import json
from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpose.contracts.verdict import ToolChoice
from interpose.gateway.api import TurnEdit
from interpose.gateway.ledger import SessionLedger
from tests.gateway.gemini_talks import (
    FIRST,
    FORMS,
    HEARD,
    LINE,
    NUDGE,
    SECOND,
    THIRD,
    G,
    Round,
    Talk,
    answer,
    call,
    model,
    refusal,
    text,
    together,
    user,
)

WAYS = ("as it came", "texts joined", "a content a chunk")
"""How clients keep a reply."""

GROWING = (("text",), ("text", "thought"))
"""The members of parts that are pieces of one text or thought."""


def test_what_has_no_line_is_the_clients_bytes() -> None:
    """Also lines that the person quotes, lines of another conversation, and contents of odd shapes."""
    talk = Talk("events").plays(FIRST, THIRD)
    odd = [HEARD, user(text(LINE)), model(text("no line")), {"role": "model", "parts": None}, {"role": "model"}]
    other = [user(text("another")), model(text(LINE))]
    for contents in (odd, other):
        body = json.dumps({"contents": contents}, indent=1).encode()
        assert G.read(body).rewritten(talk.ledger, None).body is body


def test_the_nth_line_stands_for_the_nth_call() -> None:
    """Lines are counted in what the model said, and in nothing else."""
    talk = Talk("events").plays(FIRST, SECOND, THIRD)
    kept = talk.kept("texts joined")
    view = G.read(json.dumps({"contents": [HEARD, user(text(LINE)), *kept, user(text(LINE))]}).encode())

    assert view.occurrences(LINE) == 3
    assert G.read(json.dumps({"contents": [HEARD]}).encode()).occurrences(LINE) == 0
    assert (view.length, view.is_streamed, view.root) == (4, False, G.read(talk.sent[0]).root)
    assert G.read(b'{"contents": []}').root == ""


def test_a_client_that_drops_a_part_loses_no_more_than_that() -> None:
    """Thoughts and later rounds may go; what is left is put back, and always answered."""
    talk = Talk("events").plays(FIRST, SECOND, THIRD)
    parts = [part for part in talk.parts if not part.get("thought") and part["text"]]
    at = next(place for place, part in enumerate(parts) if LINE in part["text"])

    assert talk.rewritten([HEARD, model(*together(parts))])[-1] == model(text("Done é."))
    assert talk.rewritten([HEARD, model(*parts[: at + 1])]) == [
        HEARD,
        model(text("I clean."), call(own="c1", signature="s1", x=1)),
        user(refusal("c1")),
    ]
    alone = talk.rewritten([HEARD, model(parts[at])])
    assert alone == [HEARD, model(call(own="c1", signature="s1", x=1)), user(refusal("c1"))]


def test_a_person_who_speaks_in_the_place_of_a_tool() -> None:
    """What the model waits for stands in front of the words, where the client has no response beside it."""
    talk = Talk("events").plays(Round((call(own="c1"), call("Read", own="c2"))))

    assert talk.restored(user(text("stop")))[2] == user(refusal("c1"), text("stop"))


def test_a_call_that_nobody_changed_stays_beside_one_that_was() -> None:
    """What is not ours is the client's own object."""
    talk = Talk("events").plays(Round((call("Edit", own="c1", x=1),)))
    other = [user(text("another")), model(call("Read", own="c2")), user(answer("Read", {}, "c2"))]
    body = json.dumps({"contents": other}).encode()

    assert talk.ledger.restores
    assert G.read(body).rewritten(talk.ledger, None).body is body


def test_a_line_in_a_part_with_other_members() -> None:
    """A client that joins texts onto a signed one: the signature stays with the model's own text."""
    talk = Talk("whole").plays(Round((text("So."), call(own="c"))), Round((text("No."),), 2))
    joined = text(f"So.\n\n{LINE}\n\nNo.", thoughtSignature="sig")
    bare = text(LINE, thoughtSignature="sig")
    former = [text("So.", thoughtSignature="sig"), call(own="c")]

    assert talk.rewritten([HEARD, model(joined)])[1:] == [model(*former), user(refusal("c")), model(text("No."))]
    assert talk.rewritten([HEARD, model(bare)])[1] == model(text("", thoughtSignature="sig"), call(own="c"))


@pytest.mark.parametrize(
    "reply",
    [
        {},
        {"candidates": []},
        {"candidates": [{}, {}]},
        {"candidates": [{"content": model()}]},
        {"candidates": [{"content": model(text(""))}]},
        {"candidates": [{"content": model(text("hm", thought=True))}]},
        {"candidates": [{"content": model(text("a"), call("Read"))}]},
        {"candidates": [{"content": {"role": "model", "parts": "odd"}}]},
    ],
)
def test_histories_that_the_api_would_not_take(reply: dict[str, Any]) -> None:
    """Nothing said, several candidates, calls that nobody answers."""
    assert G.onward(json.dumps({"contents": [HEARD]}).encode(), reply, [], NUDGE) is None


def test_a_prompt_is_replaced_and_reminded() -> None:
    """The person's words go, what the agent put in and pictures stay."""
    picture = {"inlineData": {"mimeType": "image/png", "data": "AA=="}}
    own = text("<system-reminder>\nown\n</system-reminder>")
    contents = [user(own, text("my secret"), picture, text("word"))]
    request = G.read(json.dumps({"contents": contents}).encode())
    assert request.turn is not None

    class Edits(SessionLedger):
        edited_positions = (0,)

        def turn_edit(self, position: int, digest: str) -> TurnEdit | None:
            assert request.turn is not None
            assert (position, digest) == (request.turn.position, request.turn.digest)
            return TurnEdit(reminder="R", replacement="my ***")

    body = json.loads(request.rewritten(Edits(), ToolChoice("none", None)).body)
    assert body["contents"] == [user(own, text("R"), text("my ***"), picture)]


pieces = st.sampled_from(["a", "b ", "", "\n", "\n\n", "\n\nc", "d\n\n", "[interpose] "])
quiet = st.one_of(
    st.builds(text, pieces),
    st.builds(text, pieces, thought=st.just(value=True)),
    st.builds(text, pieces, thoughtSignature=st.just("sig")),
    st.just({"executableCode": {"code": "1"}}),
)
ids = st.sampled_from(["", "own"])


@st.composite
def conversations(draw: st.DrawFn) -> list[tuple[Any, ...]]:
    """Rounds that end in refused calls, and a last one with anything in it that goes to the client."""
    numbers = iter(range(1000))

    def one_call(name: str) -> Any:
        number = next(numbers)
        own, signature = draw(ids), draw(st.sampled_from(["", "signed"]))
        return call(name, own and f"{own}-{number}", signature and f"{signature}-{number}", n=draw(st.integers(0, 1)))

    rounds = [
        (*draw(st.lists(quiet, max_size=4)), *(one_call("Bash") for _ in range(draw(st.integers(1, 2)))))
        for _ in range(draw(st.integers(0, 3)))
    ]
    last = draw(st.lists(st.one_of(quiet, st.sampled_from(["Bash", "Read", "Edit"])), min_size=1, max_size=6))
    made = [one_call(part) if isinstance(part, str) else part for part in last]
    if any(part == "Bash" for part in last) and not any(part in ("Read", "Edit") for part in last):
        made.append(one_call("Read"))
    return [*rounds, tuple(made)]


def canonical(parts: Iterable[Any]) -> list[Any]:
    """The parts with neighbouring pieces of one text or thought together, and without empty ones."""
    joined: list[Any] = []
    told = [part for part in parts if names_of(part) not in GROWING or part["text"]]
    for names, group in groupby(told, key=names_of):
        found = list(group)
        if names in GROWING:
            found = [{**found[0], "text": "".join(part["text"] for part in found)}]
        joined += found
    return joined


def names_of(part: Any) -> tuple[str, ...]:
    """The members of a part."""
    return tuple(part)


def name_of(part: Any) -> str:
    """The name of a call; "" for another part."""
    return str(part.get("functionCall", {}).get("name", ""))


@given(rounds=conversations(), way=st.sampled_from(WAYS), data=st.data())
@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("form", FORMS)
def test_any_history_is_put_back(form: str, rounds: list[tuple[Any, ...]], way: str, data: st.DataObject) -> None:
    """Whatever the model says, and however the client keeps it: the model sees what it said, every call answered."""
    ends_apart = data.draw(st.booleans())
    cuts = data.draw(st.lists(st.integers(1, 400), max_size=3)) if form != "whole" else []
    talk = Talk(form).plays(
        *(Round(parts, number, ends_apart=ends_apart) for number, parts in enumerate(rounds, 1)), cuts=cuts
    )
    expected: list[Any] = [HEARD]
    for parts in rounds[:-1]:
        refused = [part for part in parts if name_of(part)]
        expected += [
            model(*canonical(parts)),
            user(*(refusal(part["functionCall"].get("id", "")) for part in refused)),
        ]
    assert json.loads(talk.sent[-1])["contents"] == expected

    calls = [part for part in rounds[-1] if name_of(part)]
    answers = [answer(name_of(part), {"output": str(place)}, data.draw(ids)) for place, part in enumerate(calls)]
    kept = [one for one, part in zip(answers, calls, strict=True) if name_of(part) != "Bash"]
    all_answers = [
        refusal(part["functionCall"].get("id", "")) if name_of(part) == "Bash" else one
        for one, part in zip(answers, calls, strict=True)
    ]
    restored = talk.restored(user(*kept, text("more")), way=way)
    last = [model(*canonical(rounds[-1])), user(*all_answers, text("more"))]
    assert restored[: len(expected)] == expected
    assert replies_of(restored[len(expected) :]) == [one for one in last if one["parts"]]


def replies_of(contents: list[Any]) -> list[Any]:
    """The contents with those that are one reply of the model as one, which is how they are told in most clients."""
    replies: list[Any] = []
    for role, group in groupby(contents, key=itemgetter("role")):
        found = list(group)
        if role == "model":
            found = [model(*canonical(part for one in found for part in one["parts"]))]
        replies += [one for one in found if one["parts"]]
    return replies
