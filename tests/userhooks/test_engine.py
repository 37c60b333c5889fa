"""User hooks in the effect engine: what is loaded is what runs, and nothing an agent writes makes it raise."""

from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpose.catalog.reading import read_call
from interpose.catalog.table import AGENTS
from interpose.command.reader import CommandReader
from interpose.contracts.decisions import Unknown
from interpose.contracts.effects import EffectKind, EvaluationContext, HookInput
from interpose.effects.contract import MiddlewareContract, create_middleware
from interpose.effects.validation import Valid, registration_issues, validate_effect
from interpose.kernel.frozen import freeze
from interpose.userhooks.hooks import Source
from interpose.userhooks.loading import HookFile, load_user_hooks
from interpose.userhooks.matching import Workspace
from interpose.userhooks.normalise import normalise
from interpose.userhooks.registration import registration_of
from interpose.userhooks.vocabulary import EFFECT_KEYS, events_for

HOOKS = """\
- id: no-recursive-delete
  on: before_tool
  kind: effect
  command: rm -r
  effect: {kind: block_tool, reason: not recursively}
- id: wire-name
  on: before_tool
  kind: effect
  tools: [Bash]
  effect: {kind: annotate_tool_result, message: by its wire name}
- id: servers
  on: before_tool
  kind: effect
  tools: ["mcp:files/*"]
  path: .env
  effect: {kind: block_tool, reason: secret}
- id: tried-out
  on: before_tool
  kind: effect
  mode: observe
  path: .env
  effect: {kind: block_tool, reason: only watching}
"""


def engine(tmp_path: Path) -> MiddlewareContract:
    """The engine of a workspace with those hooks."""
    path = tmp_path / "hooks.yaml"
    path.write_text(HOOKS)
    loaded = load_user_hooks([HookFile("project", path)], root=str(tmp_path), home="/home/ann")
    assert loaded.issues == ()
    assert [registration_issues(found) for found in loaded.registrations] == [()] * 4
    made = create_middleware(owners=("user-hooks",))
    made.replace_registrations("user-hooks", 1, loaded.registrations)
    return made


def run(made: MiddlewareContract, agent: str, tool: str, arguments: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The ids whose effects count, and all that said anything."""
    form = read_call(agent, tool, arguments)
    result = made.run_hook(
        HookInput(
            "before_tool",
            tool_name=form.name,
            tool_aliases=form.aliases,
            tool_args=freeze(form.input),
            unreadable=form.problem,
        )
    )
    assert [emission.failure for emission in result.emissions if emission.failure] == []
    said = [emission.registration.id for emission in result.emissions if emission.effects or emission.unknown]
    return list(result.rule_ids), said


def test_rules_reach_their_calls_whatever_the_agent(tmp_path: Path) -> None:
    """By canonical name, by wire name as written, by the start of a server's tools."""
    made = engine(tmp_path)

    assert run(made, "claude-code", "Bash", {"command": "rm -rf x"})[0] == ["no-recursive-delete", "wire-name"]
    assert run(made, "codex", "exec_command", {"cmd": "rm -r x"})[0] == ["no-recursive-delete", "wire-name"]
    assert run(made, "gemini-cli", "run_shell_command", {"command": "rm -r x"})[0] == ["no-recursive-delete"]
    assert run(made, "gemini-cli", "mcp_files_read", {"path": ".env"})[0] == ["servers"]
    assert run(made, "opencode", "files_read", {"path": ".env"})[0] == ["servers"]
    assert run(made, "opencode", "read", {"filePath": "README.md"}) == ([], [])


def test_an_observed_hook_speaks_and_does_nothing(tmp_path: Path) -> None:
    """What it would have done is in its emission only."""
    assert run(engine(tmp_path), "claude-code", "Read", {"file_path": ".env"}) == ([], ["tried-out"])


@pytest.mark.parametrize("kind", get_args(EffectKind))
def test_both_rooms_agree_on_what_an_effect_is(kind: str) -> None:
    """A right effect is right in both; without any of its fields, with one more or with a wrong one, in neither."""
    fields = {name: key.choices[-1] if key.choices else "words" for name, key in EFFECT_KEYS[kind].items()}  # type: ignore[index]
    effect = {"kind": kind, **fields}
    wrong = [{**effect, "extra": 1}, *({**effect, name: 5} for name in fields)]
    wrong += [{**effect, name: " "} for name in fields]
    wrong += [
        {key: value for key, value in effect.items() if key != name}
        for name, key in EFFECT_KEYS[kind].items()  # type: ignore[index]
        if key.required
    ]

    for value in [effect, *wrong]:
        entry = {"on": events_for(kind)[0], "kind": "effect", "effect": value}  # type: ignore[arg-type]
        hook, _ = normalise(entry, Source("project", "hooks.yaml"))
        theirs = validate_effect(value)
        assert (hook is not None) == isinstance(theirs, Valid) == (value is effect), value
        if hook is not None and isinstance(theirs, Valid):
            assert hook.effect == theirs.value


ENTRIES = [(agent, name, tool) for agent, table in AGENTS.items() for name, tool in table.items()]
TEXT = st.text(max_size=10) | st.sampled_from(
    [".env", "/", "..", "rm -r x", "$X", "\0", "\ud800", "~", "a/*", "file:///"]
)
READER = CommandReader()
VALUE = TEXT | st.lists(TEXT, max_size=3) | st.none() | st.integers() | st.dictionaries(TEXT, TEXT, max_size=2)


@settings(deadline=None)
@given(st.data())
def test_nothing_an_agent_writes_makes_a_hook_raise(data: st.DataObject) -> None:
    """Every matcher answers with an effect, silence or unknown, whatever the arguments."""
    hooks = [
        {"on": "before_tool", "kind": "effect", "effect": {"kind": "block_tool", "reason": "no"}, **matchers}
        for matchers in ({"command": "rm -r"}, {"path": [".env", "*.key"]}, {"tools": ["*"], "path": "**"})
    ]
    agent, name, tool = data.draw(st.sampled_from(ENTRIES))
    known = [key for keys in tool.fields.values() for key in keys]
    form = read_call(agent, name, data.draw(st.dictionaries(st.sampled_from([*known, "path", "x"]), VALUE, max_size=4)))
    given_call = HookInput("before_tool", tool_name=form.name, tool_args=freeze(form.input), unreadable=form.problem)

    for raw in hooks:
        hook, _ = normalise(raw, Source("project", "hooks.yaml"))
        assert hook is not None
        evaluate = registration_of(hook, Workspace("/house", "/home/ann"), READER).evaluate
        assert evaluate is not None
        answer = evaluate(given_call, EvaluationContext())
        assert isinstance(answer, Unknown) or len(answer) < 2
