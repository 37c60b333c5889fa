"""One policy on the wire of every API, streamed and not: the same verdicts in the same words, in both histories.

The client keeps its own history and sends it unedited; the strict upstream refuses a history that no model made, and
counts how much of each prompt it knows. What the gateway changed must be there again in every later request.
"""

import json
from typing import Any

import pytest

from interpose.contracts.stages import Annotation, Point, ToolCall, ToolResult, TurnEnd, TurnStart
from interpose.contracts.verdict import Refusal, Reminder, ToolChoice, Verdict
from interpose.testing.fakes import allow, refuse
from interpose.testing.upstream import Failure, RawBody, Reply, Step, Text, Thinking, ToolUse
from tests.e2e.apis import Case, every_case
from tests.e2e.house import House
from tests.e2e.talkers import APIS, Anthropic

RM = {"command": "rm -rf build"}
LINE = "[interpose] Bash was refused by no-rm: not recursively"
TOLD = "Bash was refused by no-rm: not recursively"
NUDGE = "[interpose] the turn goes on: run the tests first"


def no_rm(point: Point) -> Verdict:
    """A policy with one rule."""
    if isinstance(point, ToolCall) and "rm -rf" in str(point.arguments):
        return refuse(point, "not recursively", "no-rm")
    return allow(point)


def assert_prefix_never_shrinks(house: House) -> None:
    """Each prompt begins with all of the one before it."""
    prompts = house.upstream.prompts
    assert [prompt.cached_tokens for prompt in prompts[1:]] == [prompt.tokens for prompt in prompts[:-1]]


def histories(house: House) -> list[str]:
    """The bodies that the model was sent."""
    return [json.dumps(request.json) for request in house.upstream.requests]


@every_case
def test_a_refused_call_is_told_to_the_model_and_the_reply_goes_on(case: Case) -> None:
    """The client gets one message, with the refusal and what the model said then; the model's history has the call."""
    script: list[Step] = [
        Reply(Thinking("hm"), Text("I clean up."), ToolUse("Bash", RM)),
        Reply(Thinking("then"), Text("Then not.")),
        Reply(Text("Two.")),
        Reply(Text("Three.")),
    ]
    with case.house(script, no_rm) as house:
        talker = case.talker(house)
        first = talker.says("clean up")
        second = talker.says("again")
        third = talker.says("and again")

        assert [part for part in ("I clean up.", LINE, "Then not.") if part in first.text] == [
            "I clean up.",
            LINE,
            "Then not.",
        ]
        assert first.text.index(LINE) < first.text.index("Then not.")
        assert (first.calls, first.stop) == ((), "done")
        assert (second.text, third.text) == ("Two.", "Three.")
        sent = histories(house)
        assert len(sent) == 4
        assert all(TOLD in body and LINE not in body for body in sent[1:])
        assert_prefix_never_shrinks(house)
        refused = [record for record in house.journal.records if record.outcome == "refused"]
        assert [record.call_id for record in refused if record.step == "applied"] == [refused[0].call_id]


@every_case
def test_a_refused_call_beside_a_released_one(case: Case) -> None:
    """The refusal is told as text now, and stands as call and error in the next request."""
    script: list[Step] = [
        Reply(Text("Both."), ToolUse("Bash", RM), ToolUse("Read", {"file_path": "a.txt"})),
        Reply(Text("Read it.")),
        Reply(Text("Three.")),
    ]
    with case.house(script, no_rm) as house:
        talker = case.talker(house)
        first = talker.says("clean up")
        ((call_id, name, arguments),) = first.calls
        talker.answers({call_id: "the text"})
        talker.says("more")

        assert LINE in first.text
        assert (name, arguments, first.stop) == ("Read", {"file_path": "a.txt"}, "calls")
        sent = histories(house)
        assert len(sent) == 3
        assert all(TOLD in body and LINE not in body and "rm -rf build" in body for body in sent[1:])
        assert_prefix_never_shrinks(house)


@every_case
def test_at_most_three_times_within_one_reply(case: Case) -> None:
    """A model that insists is told three times; then the person is."""
    script: list[Step] = [
        *(Reply(Text(f"Try {number}."), ToolUse("Bash", RM)) for number in range(4)),
        Reply(Text("Two.")),
    ]
    with case.house(script, no_rm) as house:
        talker = case.talker(house)
        first = talker.says("clean up")
        second = talker.says("again")

        assert first.text.count(LINE) == 4
        assert [f"Try {number}." in first.text for number in range(4)] == [True] * 4
        assert (first.calls, first.stop, second.text) == ((), "done", "Two.")
        assert len(house.upstream.requests) == 5
        told = [record.reason for record in house.journal.records if record.outcome == "told"]
        assert told == ["the model is not told of a refusal: it was asked 3 times within this reply"]
        assert histories(house)[-1].count(TOLD) == 4
        assert_prefix_never_shrinks(house)


@every_case
def test_two_calls_refused_at_once_are_both_answered(case: Case) -> None:
    """The model gets an error for each of them."""
    script: list[Step] = [
        Reply(ToolUse("Bash", RM), ToolUse("Bash", {"command": "rm -rf dist"})),
        Reply(ToolUse("Read", {"file_path": "a.txt"})),
        Reply(Text("Done.")),
        Reply(Text("Two.")),
    ]
    with case.house(script, no_rm) as house:
        talker = case.talker(house)
        first = talker.says("clean up")
        ((call_id, name, _),) = first.calls
        second = talker.answers({call_id: "text"})
        talker.says("more")

        assert (first.text.count(LINE), name, first.stop) == (2, "Read", "calls")
        assert second.text == "Done."
        assert all("rm -rf dist" in body and LINE not in body for body in histories(house)[1:])
        assert_prefix_never_shrinks(house)


@every_case
def test_tell_ends_the_reply(case: Case) -> None:
    """With `on_refusal = "tell"` the model learns of it from the text in its history."""
    script: list[Step] = [Reply(Text("I clean up."), ToolUse("Bash", RM)), Reply(Text("Two."))]
    with case.house(script, no_rm, on_refusal="tell") as house:
        talker = case.talker(house)
        first = talker.says("clean up")
        talker.says("again")

        assert (first.calls, first.stop) == ((), "done")
        assert first.text.endswith(LINE)
        assert LINE in histories(house)[1]


@every_case
def test_where_the_model_cannot_go_on_the_person_is_told(case: Case) -> None:
    """An upstream that refuses the next request ends the reply, which is whole all the same."""
    with case.house([Reply(Text("I clean up."), ToolUse("Bash", RM))], no_rm) as house:
        first = case.talker(house).says("clean up")

        assert (first.calls, first.stop) == ((), "done")
        assert first.text.endswith(LINE)
        told = [record.reason for record in house.journal.records if record.outcome == "told"]
        assert len(told) == 1
        assert "500" in told[0]


@every_case
def test_a_turn_is_carried_onward_once(case: Case) -> None:
    """The nudge stands in the model's history as a message, in the client's as a line; both keep it."""

    def nudging(point: Point) -> Verdict:
        if isinstance(point, TurnEnd):
            return allow(point)._replace(continuation="run the tests first")
        return allow(point)

    script: list[Step] = [
        Reply(Text("All is done.")),
        Reply(Text("They pass.")),
        Reply(Text("Two.")),
        Reply(Text("Really.")),
        Reply(Text("Three.")),
        Reply(Text("Yes.")),
    ]
    with case.house(script, nudging) as house:
        talker = case.talker(house)
        first = talker.says("do it")
        second = talker.says("again")
        talker.says("and again")

        assert first.text.split("\n\n") == ["All is done.", NUDGE, "They pass."]
        assert second.text.split("\n\n") == ["Two.", NUDGE, "Really."]
        ends = [point.text for point in house.policy.points if isinstance(point, TurnEnd)]
        assert ends == ["All is done.", "They pass.", "Two.", "Really.", "Three.", "Yes."]
        sent = histories(house)
        assert all(NUDGE not in body and "run the tests first" in body for body in sent[1:])
        assert_prefix_never_shrinks(house)


@every_case
def test_changed_arguments_reach_the_agent_and_the_model_keeps_its_own(case: Case) -> None:
    """The agent runs the call as it was changed; the model's history has it as the model made it, and a note."""

    def changing(point: Point) -> Verdict:
        if isinstance(point, ToolCall):
            return allow(point)._replace(outcome="patched", arguments={"command": "ls -l"})
        return allow(point)

    script: list[Step] = [Reply(ToolUse("Bash", {"command": "ls"})), Reply(Text("Two.")), Reply(Text("Three."))]
    with case.house(script, changing) as house:
        talker = case.talker(house)
        ((call_id, _, arguments),) = talker.says("list").calls
        talker.answers({call_id: "a.txt"})
        talker.says("more")

        assert arguments == {"command": "ls -l"}
        results = [point for point in house.policy.points if isinstance(point, ToolResult)]
        assert [point.arguments for point in results] == [{"command": "ls -l"}]
        for body in histories(house)[1:]:
            assert "this call ran with other arguments than yours" in body
            assert body.count("ls -l") == 1
        assert_prefix_never_shrinks(house)


@every_case
def test_a_turn_that_is_refused_is_told_in_a_reply(case: Case) -> None:
    """No error and no retry: the person reads why, and the model is not asked."""

    def closed(point: Point) -> Verdict:
        if isinstance(point, TurnStart):
            return allow(point)._replace(outcome="refused", refusal=Refusal("hours", "it is late"))
        return allow(point)

    with case.house([], closed) as house:
        said = case.talker(house).says("hello")

        assert (said.text, said.stop) == ("[interpose] the turn was refused by hours: it is late", "done")
        assert house.upstream.requests == ()


@every_case
def test_a_prompt_and_an_output_can_be_replaced(case: Case) -> None:
    """The model sees what a handler made of them, in every request."""

    def rewriting(point: Point) -> Verdict:
        match point:
            case TurnStart():
                text = point.prompt.replace("secret", "***")
                return allow(point)._replace(
                    outcome="patched", text=text, reminders=(Reminder("r", "info", "be kind"),)
                )
            case ToolResult():
                note = Annotation("n", "warn", "look twice")
                return allow(point)._replace(outcome="patched", text="short", annotations=(note,))
            case _:
                return allow(point)

    script: list[Step] = [Reply(ToolUse("Bash", {"command": "ls"})), Reply(Text("Two.")), Reply(Text("Three."))]
    with case.house(script, rewriting) as house:
        talker = case.talker(house)
        ((call_id, _, _),) = talker.says("my secret word").calls
        talker.answers({call_id: "a very long output"})
        talker.says("more")

        for body in histories(house):
            assert "my *** word" in body
            assert "my secret word" not in body
            assert "be kind" in body
        for body in histories(house)[1:]:
            assert "a very long output" not in body
            assert "short" in body
            assert "look twice" in body
        assert_prefix_never_shrinks(house)


@every_case
def test_reminders_of_a_turns_end_come_with_the_next_turn(case: Case) -> None:
    """What a handler says when a turn has ended is told when the person speaks again."""

    def reminding(point: Point) -> Verdict:
        if isinstance(point, TurnEnd) and point.text == "One.":
            return allow(point)._replace(reminders=(Reminder("r", "info", "mind the gap"),))
        return allow(point)

    with case.house([Reply(Text("One.")), Reply(Text("Two.")), Reply(Text("Three."))], reminding) as house:
        talker = case.talker(house)
        talker.says("a")
        talker.says("b")
        talker.says("c")

        assert ["mind the gap" in body for body in histories(house)] == [False, True, True]
        assert_prefix_never_shrinks(house)


def test_a_tool_that_cannot_be_forced_is_asked_for() -> None:
    """A thinking model may not be forced; it is reminded instead, in every request, and the journal says why."""

    def requiring(point: Point) -> Verdict:
        if isinstance(point, TurnStart) and point.prompt == "go":
            return allow(point)._replace(tool_choice=ToolChoice("required", "Read"))
        return allow(point)

    with House([Reply(Text("One.")), Reply(Text("Two."))], requiring) as house:
        talker = Anthropic(house.url, stream=True)
        talker.more = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
        talker.says("go")
        talker.says("more")

        for request in house.upstream.requests:
            assert "tool_choice" not in request.json
            assert json.dumps(request.json).count("Use the tool Read next.") == 1
        reasons = [record.reason for record in house.journal.records if record.outcome == "not_applicable"]
        assert reasons == ["the request cannot be told to use tools so: required Read"]
        assert_prefix_never_shrinks(house)


@every_case
def test_a_refused_prompt_never_reaches_the_model(case: Case) -> None:
    """Later requests have the reason in its place, with no picture that came along; the person's client keeps it."""

    def careful(point: Point) -> Verdict:
        if isinstance(point, TurnStart) and "hunter2" in point.prompt:
            return refuse(point, "it holds a password", "secrets")
        return allow(point)

    with case.house([Reply(Text("One.")), Reply(Text("Two.")), Reply(Text("Three."))], careful) as house:
        talker = case.talker(house)
        talker.says("hello")
        assert talker.says("my password is hunter2").text.endswith("refused by secrets: it holds a password")
        assert talker.says("do what I said").text == "Two."
        assert talker.says("and now").text == "Three."

        assert "hunter2" in json.dumps(talker.history)
        sent = histories(house)
        assert len(sent) == 3
        assert all("hunter2" not in body for body in sent)
        assert all("the prompt was withheld by secrets: it holds a password" in body for body in sent[1:])
        assert_prefix_never_shrinks(house)


@every_case
def test_a_provider_that_refuses_to_go_on(case: Case) -> None:
    """The person is told of the refusal, the journal of the provider's answer, and the turn ended for the client."""
    down = Failure(429, "slow down")
    html = RawBody(b"<h1>no</h1>", status=500)
    for answer, told in ((down, "429 application/json: slow down"), (html, "500 text/html")):
        with case.house([Reply(Text("One."), ToolUse("Bash", RM)), answer], no_rm) as house:
            said = case.talker(house).says("go")

            assert LINE in said.text
            (line,) = [record for record in house.journal.records if record.outcome == "told"]
            assert line.step == "failed"
            assert line.reason == f"the model is not told of a refusal: the upstream answered {told}"
            (end,) = [point for point in house.policy.points if isinstance(point, TurnEnd)]
            assert end.stop_reason in ("end_turn", "stop", "STOP")


FORCED: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {
    "anthropic": [
        ({"tool_choice": {"type": "any"}}, {"tool_choice": {"type": "auto"}}),
        (
            {"tool_choice": {"type": "tool", "name": "Bash", "disable_parallel_tool_use": True}},
            {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
        ),
        ({"tool_choice": {"type": "auto"}}, {"tool_choice": {"type": "auto"}}),
    ],
    "chat": [
        ({"tool_choice": "required"}, {"tool_choice": "auto"}),
        ({"tool_choice": {"type": "function", "function": {"name": "Bash"}}}, {"tool_choice": "auto"}),
        (
            {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": []}}},
            {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}},
        ),
    ],
    "responses": [
        ({"tool_choice": "required"}, {"tool_choice": "auto"}),
        ({"tool_choice": {"type": "function", "name": "Bash"}}, {"tool_choice": "auto"}),
        (
            {"tool_choice": {"type": "allowed_tools", "mode": "required", "tools": []}},
            {"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []}},
        ),
        (
            {"tool_choice": {"type": "allowed_tools", "mode": "auto"}},
            {"tool_choice": {"type": "allowed_tools", "mode": "auto"}},
        ),
    ],
    "gemini": [
        (
            {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["Bash"]}, "x": 1}},
            {"toolConfig": {"functionCallingConfig": {"mode": "AUTO"}, "x": 1}},
        ),
        (
            {"tool_config": {"function_calling_config": {"mode": "NONE"}}},
            {"tool_config": {"function_calling_config": {"mode": "NONE"}}},
        ),
    ],
}


@pytest.mark.parametrize(("api", "asked", "then"), [(api, *pair) for api, pairs in FORCED.items() for pair in pairs])
def test_a_refused_call_is_not_forced_again(api: str, asked: dict[str, Any], then: dict[str, Any]) -> None:
    """Within the reply the model may answer in words; the client's next request says again what it wants."""
    script: list[Step] = [Reply(ToolUse("Bash", RM)), Reply(Text("Then not.")), Reply(Text("Two."))]
    with House(script, no_rm, on_refusal="continue", strict=False) as house:
        talker = APIS[api](house.url, stream=True)
        talker.more = asked
        talker.says("go")
        talker.says("on")

        (name,) = asked
        assert [request.json[name] for request in house.upstream.requests] == [asked[name], then[name], asked[name]]
