"""A session that several processes serve one after the other: what the model is told is the same."""

import json
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from interpose.contracts.stages import Annotation, Point, ToolCall, ToolResult, TurnEnd, TurnStart
from interpose.contracts.verdict import Reminder, ToolChoice, Verdict
from interpose.gateway.sessions import SqliteLedgers
from interpose.kernel.clock import SystemClock
from interpose.testing.fakes import FakePolicy, allow
from interpose.testing.journal import MemoryJournal
from interpose.testing.upstream import Reply, ScriptedUpstream, Step, Text, ToolUse
from tests.e2e.apis import Case, every_case
from tests.e2e.house import no_rm
from tests.e2e.talkers import APIS, Responses, Talker
from tests.e2e.test_lens_sessions import served

Story = Callable[[Talker, Callable[[], None]], None]
"""What a client does; it may ask for a new process in between."""


def sent(
    folder: Path, case: Case, script: list[Step], policy: FakePolicy, story: Story, *, restarts: bool
) -> list[Any]:
    """The bodies that the upstream was sent in the story."""
    with ScriptedUpstream(list(script), strict=False) as upstream:

        def store() -> SqliteLedgers:
            return SqliteLedgers(folder / f"{restarts}.db", clock=SystemClock())

        parts = [store()]
        gateways = [served(upstream, parts[0], MemoryJournal(), policy)]

        def again() -> None:
            if not restarts:
                return
            gateways[-1].__exit__(None, None, None)
            parts[-1].close()
            parts.append(store())
            gateways.append(served(upstream, parts[-1], MemoryJournal(), policy))
            talker.url = gateways[-1].__enter__()

        talker = APIS[case.api](gateways[0].__enter__(), stream=case.stream)
        try:
            story(talker, again)
        finally:
            gateways[-1].__exit__(None, None, None)
            parts[-1].close()
        return [request.json for request in upstream.requests]


@every_case
def test_what_is_to_be_said_of_a_call(case: Case, tmp_path: Path) -> None:
    """Its annotations, with what it ran, its reminders, and what it says of tools stand in the requests behind it."""

    def judge(point: Point) -> Verdict:
        if not isinstance(point, ToolCall):
            return allow(point)
        return allow(point)._replace(
            outcome="patched",
            arguments={"command": "ls -a"},
            annotations=(Annotation("r", "warn", "noted before"),),
            reminders=(Reminder("r", "info", "be brief"),),
            tool_choice=ToolChoice("none"),
        )

    def story(talker: Talker, again: Callable[[], None]) -> None:
        ((call_id, _, arguments),) = talker.says("go").calls
        assert arguments == {"command": "ls -a"}
        again()
        talker.answers({call_id: "a.txt"})
        again()
        talker.says("on")

    script: list[Step] = [Reply(ToolUse("Bash", {"command": "ls"})), Reply(Text("One.")), Reply(Text("Two."))]
    with_restarts, without = (
        sent(tmp_path, case, script, FakePolicy(judge), story, restarts=restarts) for restarts in (True, False)
    )

    assert with_restarts == without
    for said in ("noted before", "this call ran with other arguments than yours", "be brief"):
        assert all(said in json.dumps(body) for body in without[1:])


@every_case
def test_a_reminder_that_waits_for_the_next_prompt(case: Case, tmp_path: Path) -> None:
    """It is told with that prompt, once."""

    def judge(point: Point) -> Verdict:
        is_first = isinstance(point, TurnEnd) and point.text == "One."
        return allow(point)._replace(reminders=(Reminder("r", "info", "remember this"),) if is_first else ())

    def story(talker: Talker, again: Callable[[], None]) -> None:
        for words in ("go", "on", "further"):
            talker.says(words)
            again()

    script: list[Step] = [Reply(Text("One.")), Reply(Text("Two.")), Reply(Text("Three."))]
    with_restarts, without = (
        sent(tmp_path, case, script, FakePolicy(judge), story, restarts=restarts) for restarts in (True, False)
    )

    assert with_restarts == without
    assert [json.dumps(body).count("remember this") for body in without] == [0, 1, 1]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("session", ["one", None])
def test_whose_result_it_is_where_the_provider_keeps_the_history(
    tmp_path: Path, session: str | None, stream: bool
) -> None:
    """The rules for the tool judge the output, though the request has nothing else."""
    policy = FakePolicy()

    def story(talker: Talker, again: Callable[[], None]) -> None:
        talker.session = session
        talker.more = {"store": True, "input": "go"}
        ((call_id, _, _),) = talker.says("go").calls
        again()
        response = json.loads(talker.raw) if not stream else Responses._chunks(talker)[-1]["response"]
        talker.more = {
            "store": True,
            "previous_response_id": response["id"],
            "input": talker.answered({call_id: "a.txt"}),
        }
        talker.answers({call_id: "a.txt"})

    script: list[Step] = [Reply(ToolUse("Bash", {"command": "ls"})), Reply(Text("Done."))]
    sent(tmp_path, Case("responses", stream), script, policy, story, restarts=True)

    (result,) = [point for point in policy.points if isinstance(point, ToolResult)]
    assert (result.tool_name, result.arguments, result.problem) == ("Bash", {"command": "ls"}, None)


@pytest.mark.parametrize("api", ["anthropic", "chat", "gemini"])
def test_a_session_that_two_gateways_serve_in_turn(api: str, tmp_path: Path) -> None:
    """Each puts back what the other changed, so that the model's history only grows."""

    def judge(point: Point) -> Verdict:
        if isinstance(point, TurnStart):
            return allow(point)._replace(reminders=(Reminder("r", "info", f"told with {point.prompt}"),))
        return no_rm(point)

    rm = {"command": "rm -rf build"}
    script: list[Step] = []
    for words in ("One.", "Two.", "Three.", "Four."):
        script += [Reply(ToolUse("Bash", rm)), Reply(Text(words))]
    stores = [SqliteLedgers(tmp_path / "state.db", clock=SystemClock()) for _ in range(2)]
    policy = FakePolicy(judge)
    with ScriptedUpstream(script) as upstream, ExitStack() as stack:
        urls = [stack.enter_context(served(upstream, store, MemoryJournal(), policy)) for store in stores]
        talker = APIS[api](urls[0], stream=True)
        for turn, words in enumerate(("first", "second", "third", "fourth")):
            here, there = turn % 2, 1 - turn % 2
            talker.url = urls[here]
            assert "was refused" in talker.says(words).text
            stores[here].flush()
            until_seen(stores[there])
        prompts = upstream.prompts
    for store in stores:
        store.close()

    assert [prompt.cached_tokens for prompt in prompts[1:]] == [prompt.tokens for prompt in prompts[:-1]]


def until_seen(store: SqliteLedgers) -> None:
    """Waits, bounded, until the store has seen what another one wrote of a session."""
    end = time.monotonic() + 10
    while not store.has_news("", "one"):
        assert time.monotonic() < end, "it did not happen"
        threading.Event().wait(0.005)
