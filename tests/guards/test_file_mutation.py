"""guards.file_mutation: who changed what is told to a listener."""

from collections.abc import Mapping
from typing import Any

import pytest

from interpose.effects.scope import select
from interpose.guards.file_mutation import FileMutation, FileMutationObserver
from tests.guards.making import call, evaluated, reader, result

PATCH = "*** Begin Patch\n*** Update File: a\n*** Move to: b\n*** Add File: c\n*** Delete File: d\n*** End Patch"


@pytest.mark.parametrize(
    ("tool", "args", "paths"),
    [
        ("write", {"path": "a.txt", "content": "x"}, ("/house/a.txt",)),
        ("edit", {"path": "../b", "old": "x", "new": "y"}, ("/b",)),
        ("patch", {"patch": PATCH}, ("/house/a", "/house/b", "/house/c", "/house/d")),
    ],
)
def test_file_tools_that_went_well_are_told(tool: str, args: Mapping[str, Any], paths: tuple[str, ...]) -> None:
    """Canonical paths, each once, in order; no effect."""
    told: list[FileMutation] = []
    registration = FileMutationObserver(reader=reader(), sink=told.append).registration()
    assert evaluated(registration, result(tool, args)) == ()
    assert told == [FileMutation("s1", "t1", tool, paths)]


@pytest.mark.parametrize(
    ("tool", "args", "ok"),
    [
        ("write", {"path": "a.txt"}, False),
        ("write", {}, True),
        ("write", {"path": 3}, True),
        ("patch", {"patch": "no patch"}, True),
    ],
)
def test_failures_and_unreadable_calls_are_not_told(tool: str, args: Mapping[str, Any], ok: bool) -> None:
    """Only what surely changed counts."""
    told: list[FileMutation] = []
    registration = FileMutationObserver(reader=reader(), sink=told.append).registration()
    evaluated(registration, result(tool, args, ok=ok))
    assert told == []


def test_only_results_of_file_tools_are_looked_at() -> None:
    """A shell command or a call that has not run is not told."""
    registration = FileMutationObserver(reader=reader(), sink=lambda _: None).registration()
    assert select(result("write"), [registration])
    assert not select(result("shell", {"command": "echo > a"}), [registration])
    assert not select(call("write"), [registration])


def test_a_change_seen_at_two_mounts_is_told_once() -> None:
    """The id and the content tell calls apart."""
    told: list[FileMutation] = []
    registration = FileMutationObserver(reader=reader(), sink=told.append).registration()
    for path, call_id in (("a", "c1"), ("a", "c1"), ("b", "c1"), ("a", "c2"), ("a", None), ("a", None)):
        evaluated(registration, result("write", {"path": path}, call_id=call_id))
    assert [one.paths[0] for one in told] == ["/house/a", "/house/b", "/house/a", "/house/a", "/house/a"]


def test_a_listener_that_fails_changes_nothing() -> None:
    """The call goes on."""

    def fail(_mutation: FileMutation) -> None:
        raise RuntimeError("no")

    registration = FileMutationObserver(reader=reader(), sink=fail).registration()
    assert evaluated(registration, result("write", {"path": "a"})) == ()
