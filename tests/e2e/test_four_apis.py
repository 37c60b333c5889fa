"""One policy, four APIs, streamed and not: the same verdicts, the same words, and a history that the provider takes.

The upstream is as strict as the providers: it refuses orphans, misplaced reasoning and signatures that are not its own.
"""

import json
from itertools import pairwise
from typing import Any

import pytest

from interpose.contracts.stages import Annotation, Point, ToolCall, ToolResult, TurnEnd, TurnStart
from interpose.contracts.verdict import Refusal, Reminder, Verdict
from interpose.testing.fakes import allow, refuse
from interpose.testing.upstream import Reply, Step, Text, Thinking, ToolUse
from tests.e2e.house import House
from tests.e2e.talkers import APIS, Said

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"]),
    pytest.mark.parametrize("api", APIS),
]
LINE = "[interpose] Bash was refused by no-rm: not recursively"
WITHHELD = "the output of Read was withheld by no-secrets: it stays here"
REMINDER = "<system-reminder>\nrun the tests\n</system-reminder>"
FROM_CALL, FROM_RESULT = "[interpose:warn] from the call", "[interpose:info] from the result"
RM = ToolUse("Bash", {"command": "rm -rf build"})


def policy(point: Point) -> Verdict:
    """Refuses, rewrites, annotates, withholds and reminds."""
    match point:
        case TurnStart():
            return Verdict("a-0", point.stage, "allowed", reminders=(Reminder("tests", "info", "run the tests"),))
        case ToolCall() if "rm -rf" in str(point.arguments):
            return refuse(point, "not recursively", "no-rm")
        case ToolCall() if "push" in str(point.arguments):
            return Verdict("a-1", point.stage, "patched", arguments={"command": "git push --dry-run"})
        case ToolCall():
            return Verdict("a-2", point.stage, "allowed", annotations=(Annotation("h", "warn", "from the call"),))
        case ToolResult() if "sesame" in point.output:
            refusal = Refusal("no-secrets", "it stays here")
            return Verdict("a-3", point.stage, "refused", refusal, annotations=point.annotations)
        case ToolResult():
            lines = (*point.annotations, Annotation("h", "info", "from the result"))
            return Verdict("a-4", point.stage, "allowed", annotations=lines)
        case _:
            return allow(point)


SCRIPT: list[Step] = [
    Reply(Thinking("Look first."), Text("I will."), RM, ToolUse("Bash", {"command": "ls"})),
    Reply(Thinking("Again."), RM),
    Reply(ToolUse("Read", {"path": ".env"}), ToolUse("Bash", {"command": "git push"})),
    Reply(Text("Done.")),
    Reply(Text("You are welcome.")),
]
VERDICTS = [
    ("turn.start", "clean up"),
    ("tool.call", "Bash", {"command": "rm -rf build"}),
    ("tool.call", "Bash", {"command": "ls"}),
    ("tool.result", "Bash", {"command": "ls"}, "a.txt"),
    ("tool.call", "Bash", {"command": "rm -rf build"}),
    ("turn.end", ""),
    ("turn.start", "go on"),
    ("tool.call", "Read", {"path": ".env"}),
    ("tool.call", "Bash", {"command": "git push"}),
    ("tool.result", "Read", {"path": ".env"}, "sesame"),
    ("tool.result", "Bash", {"command": "git push --dry-run"}, "pushed"),
    ("turn.end", "Done."),
    ("turn.start", "thanks"),
    ("turn.end", "You are welcome."),
]


def talk(house: House, api: str, *, stream: bool) -> list[Said]:
    """Three turns: a refused and a released call, a withheld and an annotated result, thanks."""
    talker = APIS[api](house.url, stream=stream)
    said = [talker.says("clean up")]
    said.append(talker.answers({said[-1].calls[0][0]: "a.txt"}))
    said.append(talker.says("go on"))
    outputs = dict(zip((call[0] for call in said[-1].calls), ("sesame", "pushed"), strict=True))
    said.append(talker.answers(outputs))
    said.append(talker.says("thanks"))
    return said


def summary(point: Point) -> tuple[Any, ...]:
    """What was judged, without ids."""
    match point:
        case TurnStart():
            return point.stage, point.prompt
        case ToolCall():
            return point.stage, point.tool_name, dict(point.arguments)
        case ToolResult():
            return point.stage, point.tool_name, dict(point.arguments), point.output
        case TurnEnd():
            return point.stage, point.text
        case _:
            return (point.stage,)


def test_the_same_verdicts_and_the_same_words(api: str, stream: bool) -> None:
    """Whoever speaks which API: the same is judged once, the client reads the same, the model is told the same."""
    with House(SCRIPT, policy) as house:
        said = talk(house, api, stream=stream)
        bodies = [json.dumps(request.json, ensure_ascii=False) for request in house.upstream.requests]

    assert [summary(point) for point in house.policy.points] == VERDICTS
    assert [one.text for one in said] == [f"I will.\n\n{LINE}", LINE, "", "Done.", "You are welcome."]
    assert [one.stop for one in said] == ["calls", "done", "calls", "done", "done"]
    assert [[call[2] for call in one.calls] for one in said] == [
        [{"command": "ls"}],
        [],
        [{"path": ".env"}, {"command": "git push --dry-run"}],
        [],
        [],
    ]
    for number, body in enumerate(bodies):
        assert body.count(json.dumps(REMINDER)[1:-1]) == [1, 1, 2, 2, 3][number]
        assert body.count(FROM_CALL) == [0, 1, 1, 2, 2][number]
        assert body.count(FROM_RESULT) == [0, 1, 1, 2, 2][number]
        assert body.count(WITHHELD) == (number > 2)
        assert "sesame" not in body
        assert "rm -rf" not in body


def test_the_cached_prefix_never_shrinks(api: str, stream: bool) -> None:
    """What the model was told stays as it was, so each prompt begins with the whole of the one before."""
    with House(SCRIPT, policy) as house:
        talk(house, api, stream=stream)
        prompts = house.upstream.prompts

    assert len(prompts) == len(SCRIPT)
    for earlier, later in pairwise(prompts):
        assert later.cached_tokens == earlier.tokens
