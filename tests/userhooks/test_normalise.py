"""userhooks.normalise: from plain values to checked hooks."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpose.contracts.effects import HOOKS, BlockTool, InjectReminder, RequireTool
from interpose.userhooks.hooks import Matchers, Source, UserHook
from interpose.userhooks.normalise import normalise
from interpose.userhooks.vocabulary import APPLICABILITY, EFFECT_KEYS, KEYS

SOURCE = Source("project", "hooks.yaml")
BLOCK: dict[str, Any] = {"on": "before_tool", "kind": "effect", "effect": {"kind": "block_tool", "reason": "no"}}
PROMPT: dict[str, Any] = {"on": "turn_start", "kind": "prompt", "message": "Run the tests."}
FILLED = {"text": "words", "choice": None, "flag": True}


def hook(raw: dict[str, Any]) -> UserHook:
    """The hook of an entry that must be right."""
    found, problems = normalise(raw, SOURCE)
    assert problems == ()
    assert found is not None
    return found


def problems(raw: object) -> list[str]:
    """The words for an entry that must be wrong."""
    found, said = normalise(raw, SOURCE)
    assert found is None
    return [problem.text for problem in said]


def effect_of(kind: str) -> dict[str, Any]:
    """A right effect of each kind."""
    fields = {name: key.choices[0] if key.choices else "words" for name, key in EFFECT_KEYS[kind].items()}  # type: ignore[index]
    return {"kind": kind, **fields}


def test_an_effect_hook_is_complete_with_its_defaults() -> None:
    """What is not said is enforced, asks when it cannot tell, fails open, is enabled and asks about every tool."""
    found = hook(BLOCK)

    assert found.effect == BlockTool("no")
    assert (found.mode, found.on_unknown, found.fail_closed, found.enabled) == ("enforce", "ask", False, True)
    assert (found.tools, found.tool_names, found.matchers) == (None, None, Matchers())
    assert found.is_guard


def test_a_prompt_is_a_reminder_and_info_is_left_out() -> None:
    """An info prompt emits no severity; any other keeps it; a long message is cut at 2000 characters."""
    assert hook(PROMPT).effect == InjectReminder("Run the tests.", None)
    assert hook({**PROMPT, "severity": "warn"}).effect == InjectReminder("Run the tests.", "warn")
    assert len(hook({**PROMPT, "message": "x" * 3000}).effect.message) == 2000  # type: ignore[union-attr]
    assert not hook(PROMPT).is_guard


def test_the_seeds_field_names_become_ours() -> None:
    """`toolName` is the name in files."""
    raw = {"on": "before_tool", "kind": "effect", "effect": {"kind": "require_tool", "toolName": "read"}}

    assert hook(raw).effect == RequireTool("read")


@pytest.mark.parametrize(
    ("extra", "names"),
    [
        ({"command": "rm -r"}, ("shell",)),
        ({"path": ".env"}, ("shell", "read", "write", "edit", "patch", "search", "fetch")),
        ({"command": "rm -r", "path": ".env"}, ("shell",)),
        ({"command": "rm -r", "tools": ["my_runner"]}, ("my_runner",)),
        ({"path": ".env", "tools": ["mcp:files/*"]}, ("mcp:files/*",)),
        ({"tools": []}, ()),
    ],
)
def test_matchers_say_which_tools_are_meant_when_nothing_else_does(
    extra: dict[str, Any], names: tuple[str, ...]
) -> None:
    """A command means the shell, a path every tool that names files; what is written wins."""
    assert hook({**BLOCK, **extra}).tool_names == names


def test_one_word_and_a_list_of_one_are_the_same() -> None:
    """So they have one hash too."""
    assert hook({**BLOCK, "command": "rm -r"}).matchers == Matchers(command=("rm -r",))
    assert hook({**BLOCK, "command": "rm -r"}).hash == hook({**BLOCK, "command": ["rm -r"]}).hash


def test_the_hash_is_over_what_a_hook_does() -> None:
    """Id, description, enabled, source and key order do not count; everything else does."""
    plain = hook({**BLOCK, "path": ".env"})
    same = {"description": "d", "id": "named", "enabled": False, **dict(reversed(BLOCK.items())), "path": [".env"]}
    others = [
        {**BLOCK},
        {**BLOCK, "path": ".env", "access": ["read"]},
        {**BLOCK, "path": ".env", "mode": "observe"},
        {**BLOCK, "path": ".env", "on_unknown": "pass"},
        {**BLOCK, "path": ".env", "fail_closed": True},
        {**BLOCK, "path": ".env", "tools": ["read"]},
        {**BLOCK, "path": ".env", "effect": {"kind": "block_tool", "reason": "other"}},
    ]

    assert normalise(same, Source("user", "elsewhere.yaml", 7))[0].hash == plain.hash  # type: ignore[union-attr]
    assert len({hook(raw).hash for raw in others} | {plain.hash}) == len(others) + 1
    assert len(plain.hash) == 16


def test_a_hook_without_an_id_is_named_by_its_content() -> None:
    """Origin, kind and hash; the same hook has the same name wherever it stands in the file."""
    first, second = hook(PROMPT), normalise(PROMPT, Source("project", "hooks.yaml", 5))[0]

    assert first.id == f"project.prompt.{first.hash}"
    assert second is not None
    assert second.id == first.id


@pytest.mark.parametrize("kind", EFFECT_KEYS)
@pytest.mark.parametrize("event", HOOKS)
def test_the_applicability_map_is_enforced(kind: str, event: str) -> None:
    """Each effect stands at the events of the map and nowhere else, and a refusal names those."""
    raw = {"on": event, "kind": "effect", "effect": effect_of(kind)}
    found, said = normalise(raw, SOURCE)

    if kind in APPLICABILITY[event]:  # type: ignore[index]
        assert found is not None
        return
    assert found is None
    assert [problem.place for problem in said] == [("on",)]
    for possible in HOOKS:
        assert (possible in said[0].way_out) == (kind in APPLICABILITY[possible])


def test_problems_of_one_entry_are_all_told() -> None:
    """Values are judged one by one, so a person repairs them all at once."""
    assert problems({"on": "nowhere", "kind": "effect", "tool": [], "enabled": "yes", "effect": {"kind": "x"}}) == [
        "on is 'nowhere'",
        "unknown key 'tool'",
        "enabled is 'yes', expected true or false",
        "effect: kind is 'x'",
    ]


@pytest.mark.parametrize("raw", [None, 5, "text", [], True])
def test_an_entry_that_is_no_mapping_is_one_problem(raw: object) -> None:
    """Nothing else is said about it."""
    assert len(problems(raw)) == 1


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(["before_tool", "prompt", "effect"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["kind", "reason", "x"]), inner, max_size=3)
    ),
    max_leaves=5,
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(KEYS)) | st.text(max_size=5), JSON, max_size=8))
def test_any_mapping_is_a_hook_or_has_problems_with_places_in_it(raw: dict[str, Any]) -> None:
    """Nothing raises, and there is never a hook beside a problem nor neither of the two."""
    found, said = normalise(raw, SOURCE)

    assert (found is None) == bool(said)
    for problem in said:
        assert not problem.place or problem.place[0] in raw
