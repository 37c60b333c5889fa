"""stages.table: which handlers are asked, and in which order."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.catalog.reading import read_call
from interpose.contracts.decisions import Continue
from interpose.contracts.errors import MisuseError
from interpose.contracts.handlers import ShapeHandler
from interpose.contracts.stages import STAGES, Context, LlmChunk, LlmRequest, Point, Stage, ToolCall, TurnStart
from interpose.stages.registry import STAGE_RULES
from interpose.stages.table import MEMO_ENTRIES, StageTable

HERE = Context("process", "s", agent="claude-code")


def handler(name: str, *stages: Stage, **more: Any) -> ShapeHandler:
    """A handler that lets everything pass."""
    return ShapeHandler(name, stages or ("tool.call",), lambda _point: Continue(), **more)


def asked(table: StageTable, point: Point) -> list[str]:
    """The ids of who is asked about `point`."""
    form = None
    if isinstance(point, ToolCall):
        form = read_call(point.context.agent, point.tool_name, point.arguments, point.leaf)
    return [one.id for one in table.matching(point, form)]


def bash(agent: str | None = "claude-code", name: str = "Bash") -> ToolCall:
    """A shell call in an agent's words."""
    return ToolCall(Context("process", "s", agent=agent), "c1", name, {"command": "ls"})


def test_nobody_is_asked_where_nobody_is() -> None:
    """An empty table is a table."""
    table = StageTable.publish()
    assert asked(table, bash()) == []
    assert not any(table.at(stage) or table.changes(stage) for stage in STAGES)


def test_links_then_ids_decide_the_order() -> None:
    """Whatever the sequence in which they are given."""
    handlers = [handler("c", before=("a",)), handler("a"), handler("b", after=("z",)), handler("z")]
    for given_now in (handlers, handlers[::-1]):
        table = StageTable.publish(given_now)
        assert asked(table, bash()) == ["c", "a", "z", "b"]
        assert table.order.reasons["a"] == ("after 'c'",)
        assert table.problems == ()


def test_links_hold_across_stages() -> None:
    """An order through a handler of another stage holds between those of this one."""
    table = StageTable.publish([handler("a", after=("m",)), handler("m", "turn.start", after=("z",)), handler("z")])
    assert asked(table, bash()) == ["z", "a"]
    assert asked(table, TurnStart(HERE, "hi")) == ["m"]


def test_broken_links_are_told_and_left_out() -> None:
    """A circle and a link to nobody: everybody is still asked."""
    table = StageTable.publish([handler("a", before=("b",)), handler("b", before=("a",)), handler("c", after=("x",))])
    assert asked(table, bash()) == ["a", "b", "c"]
    told = [str(problem) for problem in table.problems]
    assert told == ["'c' is to come after 'x', which is not known", "links go in a circle: 'a' before 'b' before 'a'"]


@pytest.mark.parametrize(
    ("tools", "is_asked"),
    [
        (None, True),
        ((), False),
        (("shell",), True),
        (("Bash",), True),
        (("read", "sh*"), True),
        (("*",), True),
        (("bash",), False),
        (("read",), False),
        (("shellfish*",), False),
    ],
)
def test_tools_match_by_name_alias_and_prefix(tools: tuple[str, ...] | None, *, is_asked: bool) -> None:
    """The canonical name and the agent's own."""
    table = StageTable.publish([handler("h", tools=tools)])
    assert bool(asked(table, bash())) is is_asked
    assert bool(asked(table, bash())) is is_asked


def test_tools_say_nothing_where_there_is_no_tool() -> None:
    """A handler of several stages is asked at the others all the same."""
    table = StageTable.publish([handler("h", "tool.call", "turn.start", tools=("read",))])
    assert asked(table, TurnStart(HERE, "hi")) == ["h"]
    assert asked(table, bash()) == []


def test_agents_and_protocols_narrow() -> None:
    """An unknown agent is none of those named; protocols count at the llm stages alone."""
    one = handler("codex", agents=("codex",))
    chat = handler("chat", "llm.request", "llm.chunk", "turn.start", protocols=("chat",))
    table = StageTable.publish([one, chat])
    assert [asked(table, bash(agent)) for agent in ("codex", "gemini-cli", None)] == [["codex"], [], []]
    assert asked(table, LlmRequest(HERE, "chat", {})) == ["chat"]
    assert asked(table, LlmChunk(HERE, "gemini", 0, None, {})) == []
    assert asked(table, TurnStart(HERE, "hi")) == ["chat"]


def test_who_may_change_a_stage() -> None:
    """Not those that only look or are only observed, and nobody where nothing can be changed."""
    table = StageTable.publish(
        [
            handler("looks", "llm.response", can_change=False),
            handler("observed", "llm.request", mode="observe"),
            handler("changes", "tool.result", "turn.end", "compaction"),
        ]
    )
    assert [stage for stage in STAGES if table.changes(stage)] == ["tool.result"]
    assert [stage for stage in STAGES if table.at(stage)] == [
        "tool.result", "turn.end", "compaction", "llm.request", "llm.response",
    ]  # fmt: skip


@given(st.lists(st.text(max_size=20), max_size=8))
def test_what_is_remembered_is_what_is_found(names: list[str]) -> None:
    """Names of strangers are looked up alike the first time and later."""
    table = StageTable.publish([handler("h", tools=("a*", "b"))])
    for name in (*names, *names):
        assert bool(asked(table, bash("process", name))) is (name.startswith("a") or name == "b")


def test_what_is_remembered_is_bounded() -> None:
    """Strangers' names fill no memory."""
    table = StageTable.publish([handler("h", tools=("never",))])
    for number in range(MEMO_ENTRIES + 10):
        asked(table, bash("process", f"t{number}"))
    asked(table, bash("process", "x" * 10_000))
    assert len(table._memo) <= MEMO_ENTRIES


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"id": " "}, "id must be a text"),
        ({"stages": ()}, "names none; possible: turn.start, tool.call"),
        ({"stages": ("tool.cal",)}, "'tool.cal' is not possible; expected one of turn.start, tool.call"),
        ({"stages": ("memory.save",)}, "'memory.save' is not possible"),
        ({"stages": "tool.call"}, "stages must be a tuple of texts"),
        ({"run": None}, "run must be a function of one point, not None"),
        ({"tools": "shell"}, "tools must be a tuple of texts"),
        ({"agents": (1,)}, "agents must be a tuple of texts"),
        ({"protocols": ("openai",)}, "expected one of anthropic, chat, responses, gemini"),
        ({"timeout_s": 0}, "timeout_s must be a number of seconds above 0, not 0"),
        ({"timeout_s": float("nan")}, "timeout_s must be"),
        ({"timeout_s": "5"}, "timeout_s must be"),
        ({"on_unknown": "allow"}, "on_unknown: 'allow' is not possible; expected one of ask, refuse, pass"),
        ({"mode": "off"}, "expected one of enforce, observe"),
        ({"kind": "magic"}, "kind: 'magic' is not possible"),
        ({"before": ("h",)}, "cannot come before or after itself"),
        ({"after": None}, "after must be a tuple of texts"),
        ({"fail_closed": True, "can_change": False}, "fail_closed cancels, and can_change=False says that it never"),
    ],
)
def test_an_impossible_handler_is_misuse(fields: dict[str, Any], told: str) -> None:
    """The error names the handler, the field and what is possible."""
    whole: dict[str, Any] = {"id": "h", "stages": ("tool.call",), "run": lambda _point: None} | fields
    with pytest.raises(MisuseError) as caught:
        StageTable.publish([ShapeHandler(**whole)])
    assert told in str(caught.value)
    assert repr(whole["id"]) in str(caught.value)


def test_only_handlers_with_their_own_ids() -> None:
    """Two of one id, and what is no handler at all."""
    with pytest.raises(MisuseError, match="two shape handlers have the id 'a'"):
        StageTable.publish([handler("a"), handler("b"), handler("a")])
    with pytest.raises(MisuseError, match="expected a ShapeHandler, as `@on"):
        StageTable.publish([lambda _point: None])  # type: ignore[list-item]


def test_every_rule_is_of_a_stage() -> None:
    """The registry names stages, and nothing that no point exists for."""
    assert set(STAGE_RULES) < set(STAGES)
