"""policy.inputs and policy.facts: what handlers are told beside the payload."""

import pytest

from interpose.catalog.reading import read_call
from interpose.contracts.effects import HOOKS, EvaluationContext, HookInput, MetadataValue, Registration
from interpose.contracts.stages import Compaction, Context, HookPoint, ToolCall, ToolResult, TurnEnd, TurnStart
from interpose.effects.contract import create_middleware
from interpose.kernel.clock import SystemClock
from interpose.policy.facts import FACTS, facts_at
from interpose.policy.inputs import filled_keys, hook_input, with_validation
from interpose.policy.judgement import EffectPolicy
from interpose.testing.fakes import FakePause
from interpose.testing.journal import MemoryJournal

HERE = Context(mount="process", session="s1", workspace="/w", agent="claude-code", turn="t1")
CALL = ToolCall(HERE, "c1", "Bash", {"command": "pytest -q"})
OK = ToolResult(HERE, "c1", "Bash", {"command": "pytest -q"}, "3 passed", duration_ms=5.0)
ERROR = ToolResult(HERE, "c1", "Bash", {"command": "pytest -q"}, "boom", is_error=True)
START = TurnStart(HERE, "go", {"activeToolNames": "shell,read"})


def seen(point: HookPoint, **remembered: MetadataValue) -> HookInput:
    """What handlers are given of a point."""
    if isinstance(point, ToolCall | ToolResult):
        return hook_input(point, read_call("claude-code", point.tool_name, point.arguments))
    return hook_input(point, None, remembered)


class House:
    """A policy whose one handler notes what it sees; shell calls that say pytest are validations."""

    def __init__(self) -> None:
        self.seen: list[HookInput] = []
        self.journal = MemoryJournal()
        self.policy = EffectPolicy(
            create_middleware(registrations=[Registration("probe", "", HOOKS, evaluate=self._note)]),
            journal=self.journal,
            clock=SystemClock(),
            pause=FakePause(),
            validation=lambda given: "pytest -q" if "pytest" in str(given.tool_args) else None,
        )

    def _note(self, given: HookInput, _context: EvaluationContext) -> tuple[()]:
        self.seen.append(given)
        return ()

    def end(self, context: Context = HERE) -> dict[str, MetadataValue]:
        """The metadata of the turn's end."""
        self.policy.judge(TurnEnd(context, "done", "end_turn"))
        return dict(self.seen[-1].metadata)


@pytest.mark.parametrize("point", [CALL, OK, ERROR, START, TurnEnd(HERE, "x", "stop"), Compaction(HERE)], ids=repr)
def test_every_key_is_in_the_table(point: HookPoint) -> None:
    """What is filled at a hook is a fact of that hook, so that its page and `coverage` can tell of it."""
    given = seen(point, turnToolCalls=0, turnToolNames="")
    if given.tool_name is not None:
        given = with_validation(given, "pytest -q")

    assert set(given.metadata) <= {fact.key for fact in facts_at(given.hook)}


def test_the_table_names_each_fact_once_a_hook() -> None:
    """One line a key, and a meaning on one line."""
    assert len({fact.key for fact in FACTS}) == len(FACTS)
    assert all(fact.meaning and "\n" not in fact.meaning and "|" not in fact.meaning for fact in FACTS)
    assert [facts_at(hook) for hook in HOOKS if not facts_at(hook)] == []


def test_a_validation_is_told_with_its_success_alone() -> None:
    """The command is known at both hooks; exit code 0 only where the result is no error."""
    house = House()
    for point in (CALL, OK, ERROR):
        house.policy.judge(point)

    told = [(one.metadata.get("validationCommand"), one.metadata.get("validationExitCode")) for one in house.seen]
    assert told == [("pytest -q", None), ("pytest -q", 0), ("pytest -q", None)]


def test_what_the_mount_says_stands_above_what_is_found() -> None:
    """A mount that knows better is believed, also when it says that it does not know."""
    own = ToolResult(HERE, "c1", "Bash", {}, "", metadata={"resultKind": "error", "validationExitCode": None})
    given = with_validation(seen(own), "pytest -q")

    assert given.metadata["resultKind"] == "error"
    assert "validationExitCode" not in filled_keys(given.metadata)
    assert seen(TurnEnd(HERE, "", metadata={"turnToolCalls": 7}), turnToolCalls=1).metadata["turnToolCalls"] == 7


@pytest.mark.parametrize(
    ("output", "details"),
    [
        ('{"exitCode": 0}', {"exitCode": 0}),
        ('{"exitCode": 0}\n', {"exitCode": 0}),
        ("[1]", None),
        ("{broken}", None),
        ("{" * 100_000 + "}", None),
        ('{"a":' * 5_000 + "1" + "}" * 5_000, None),
        ("", None),
    ],
)
def test_an_output_that_is_an_object_is_its_own_details(output: str, details: object) -> None:
    """A JSON object is looked into; anything else, however odd, is only text."""
    assert seen(ToolResult(HERE, "c1", "Task", {"prompt": "x"}, output)).tool_result_details == details


def test_details_of_the_mount_stand_above_the_output() -> None:
    """What the mount gives is taken as it is, and frozen."""
    given = seen(ToolResult(HERE, "c1", "Task", {}, '{"exitCode": 0}', details={"exitCode": 1}))

    assert given.tool_result_details == {"exitCode": 1}


def test_a_turns_end_knows_its_calls() -> None:
    """Calls are counted from the turn's start, once for each id, by canonical name."""
    house = House()
    house.policy.judge(START)
    for call_id, tool in (("c1", "Bash"), ("c1", "Bash"), ("c2", "Read"), ("c3", "Bash")):
        house.policy.judge(ToolCall(HERE, call_id, tool, {"command": "ls", "file_path": "x"}))

    ended = house.end()

    assert (ended["turnToolCalls"], ended["turnToolNames"]) == (3, "shell,read")
    assert (ended["activeToolNames"], ended["userTurnId"]) == ("shell,read", "t1")
    house.policy.judge(START)
    assert (house.end()["turnToolCalls"], house.end()["turnToolNames"]) == (0, "")


def test_a_turn_that_nobody_saw_start_has_no_count() -> None:
    """A count that began in the middle would be wrong, so there is none."""
    house = House()
    house.policy.judge(CALL)

    assert "turnToolCalls" not in house.end()


def test_turns_of_one_session_are_apart() -> None:
    """Two turns that run at once, as of an agent's helper in the same session, count for themselves."""
    house = House()
    other = Context(mount="wire", session="s1", turn="t2")
    for context in (HERE, other):
        house.policy.judge(TurnStart(context, "go"))
    house.policy.judge(ToolCall(other, "c9", "shell", {"command": "ls"}))

    assert (house.end()["turnToolCalls"], house.end(other)["turnToolCalls"]) == (0, 1)


def test_the_journal_keeps_which_facts_were_known() -> None:
    """The verdict's line names the keys that said something, sorted, and no values."""
    house = House()
    house.policy.judge(TurnEnd(HERE, "x"))
    house.policy.judge(CALL)

    turn, call = (record.data["facts"] for record in house.journal.records if record.step == "verdict")
    assert turn == ["assistantTextChars", "userTurnId"]
    assert call == sorted(call)
    assert "requestedToolName" in call
