"""effects.index: it finds what asking everyone would find."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.contracts.effects import HOOKS, Hook, HookInput, Registration
from interpose.contracts.errors import MisuseError
from interpose.effects.index import MEMO_ENTRIES, RegistrationIndex
from interpose.effects.scope import select
from tests.effects.making import emitting, ids

NAMES = st.text("abA:*", max_size=3)
REGISTRATIONS = st.lists(
    st.tuples(
        st.lists(st.sampled_from(HOOKS), min_size=1, unique=True).map(tuple),
        st.none() | st.lists(NAMES, max_size=3).map(tuple),
    ),
    max_size=8,
).map(lambda made: tuple(emitting(str(at), hooks=hooks, tool_names=names) for at, (hooks, names) in enumerate(made)))


@given(REGISTRATIONS, st.sampled_from(HOOKS), st.none() | NAMES, st.lists(NAMES, max_size=2).map(tuple))
def test_the_index_finds_what_asking_everyone_finds(
    registrations: tuple[Registration, ...], hook: Hook, tool_name: str | None, aliases: tuple[str, ...]
) -> None:
    """For any registrations and names both ways give the same list; asking twice too."""
    index = RegistrationIndex(registrations)
    expected = select(HookInput(hook, tool_name=tool_name, tool_aliases=aliases), registrations)
    assert index.find(hook, tool_name, aliases).registrations == expected
    assert index.find(hook, tool_name, aliases).registrations == expected


def test_scopes() -> None:
    """None matches all, an empty scope nothing, names exactly, a trailing star by prefix, and each once."""
    index = RegistrationIndex(
        (
            emitting("all"),
            emitting("nothing", tool_names=()),
            emitting("exact", tool_names=("write",)),
            emitting("twice", tool_names=("write", "Write", "wr*")),
            emitting("named", tool_names=("*",)),
            emitting("mcp", tool_names=("mcp:*",)),
            emitting("inner star", tool_names=("a*b",)),
        )
    )

    def found(tool_name: str | None, *aliases: str) -> list[str]:
        return ids(index.find("before_tool", tool_name, aliases).registrations)

    assert found(None) == ["all"]
    assert found("write", "Write") == ["all", "exact", "twice", "named"]
    assert found("WRITE") == ["all", "named"]
    assert found("tool", "write") == ["all", "exact", "twice", "named"]
    assert found("mcp:server/tool") == ["all", "named", "mcp"]
    assert found("mcp") == ["all", "named"]
    assert found("a*b") == ["all", "named", "inner star"]
    assert found("axb") == ["all", "named"]
    assert ids(index.find("after_tool", "write", ()).registrations) == []


def test_blocking_counts_only_for_what_matches() -> None:
    """A blocking registration makes its own hook and tools blocking, and no others; one without `evaluate` none."""
    asynchronous = Registration("later", "d", HOOKS, blocking=True)
    index = RegistrationIndex(
        (emitting("waits", tool_names=("fetch",), blocking=True), emitting("quick"), asynchronous)
    )
    assert index.find("before_tool", "fetch", ()).blocking
    assert not index.find("before_tool", "read", ()).blocking
    assert not index.find("after_tool", "fetch", ()).blocking


def test_an_unknown_hook_is_misuse() -> None:
    """Asking at a hook that does not exist raises and names those that do."""
    wrong: list[Hook] = ["before_model"]  # type: ignore[list-item]
    with pytest.raises(MisuseError, match=r"'before_model' is not a hook; the hooks are before_tool"):
        RegistrationIndex(()).find(wrong[0], None, ())


def test_what_is_remembered_is_bounded() -> None:
    """Any number of different names, long ones too, keeps the memory of an index small, and answers right."""
    index = RegistrationIndex((emitting("named", tool_names=("*",)),))
    for number in range(3 * MEMO_ENTRIES):
        assert ids(index.find("before_tool", f"tool-{number}", ()).registrations) == ["named"]
    assert len(index._memo) <= MEMO_ENTRIES
    held = len(index._memo)
    assert ids(index.find("before_tool", "x" * 100_000, ()).registrations) == ["named"]
    assert len(index._memo) == held


def test_threads_may_ask_while_the_memo_starts_anew() -> None:
    """Lookups from several threads are right while the memo overflows under them."""
    index = RegistrationIndex(tuple(emitting(str(number), tool_names=(str(number),)) for number in range(1500)))
    wrong: list[int] = []

    def ask() -> None:
        wrong.extend(
            number
            for number in range(1500)
            if ids(index.find("before_tool", str(number), ()).registrations) != [str(number)]
        )

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert wrong == []
