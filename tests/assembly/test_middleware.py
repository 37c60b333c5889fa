"""The default middleware list."""

from collections import deque
from pathlib import Path
from typing import Any

import pytest

import interpose
from interpose.assembly.folders import Folders
from interpose.assembly.middleware import default_middleware
from interpose.assembly.protection import load_policy_from
from interpose.chain.chain import Chain
from interpose.concerns.auth.middleware import AuthMiddleware
from interpose.concerns.hooks.middleware import HooksMiddleware
from interpose.concerns.permission.middleware import PermissionMiddleware
from interpose.concerns.policy.middleware import PolicyMiddleware
from interpose.contracts.drivers import Tool
from interpose.contracts.errors import MisuseError
from interpose.contracts.sheet import DriverMeta
from interpose.contracts.stages import Context, Point, ToolCall
from interpose.contracts.verdict import Verdict
from interpose.drivers.driver import BaseDriver
from interpose.drivers.orchestrator import Orchestrator
from interpose.testing.fakes import FakePolicy, allow

CONTEXT = Context("process", "s1")


def test_the_order_is_hooks_policy_permission_auth() -> None:
    """Outermost first; yours are taken as they are."""
    hooks, permission = HooksMiddleware(), PermissionMiddleware()
    made = default_middleware(FakePolicy(), hooks=hooks, consent=permission, context=CONTEXT)
    assert [type(item) for item in made] == [HooksMiddleware, PolicyMiddleware, PermissionMiddleware, AuthMiddleware]
    assert made[0] is hooks
    assert made[2] is permission


def test_what_nobody_asked_for_is_not_there() -> None:
    """Without consent nobody is asked, without hooks nobody is told."""
    assert [type(item) for item in default_middleware(FakePolicy(), auth=False, context=CONTEXT)] == [PolicyMiddleware]


def test_consent_is_about_the_judged_form_and_observers_see_the_proposed_one() -> None:
    """The policy's change is what the person is asked about, and what runs."""
    seen: list[object] = []
    policy = FakePolicy(
        lambda point: (
            Verdict("a", point.stage, "patched", arguments={"x": 2}) if isinstance(point, ToolCall) else allow(point)
        )
    )

    def consent(tool_name: str, arguments: dict[str, object]) -> bool:
        seen.append(("asked", arguments))
        return True

    hooks = HooksMiddleware(pre=[lambda name, arguments: seen.append(("told", arguments))])
    chain = Chain(default_middleware(policy, consent=consent, hooks=hooks, context=CONTEXT))
    assert chain.call("t", {"x": 1}, lambda name, arguments: arguments["x"]) == 2
    assert seen == [("told", {"x": 1}), ("asked", {"x": 2})]


def test_a_loaded_policy_brings_its_context(folders: Folders, tmp_path: Path) -> None:
    """Any other policy needs one, and the error says so."""
    with load_policy_from(folders, tmp_path) as policy:
        chain = Chain(interpose.default_middleware(policy))
        assert chain.call("read", {"path": "notes.md"}, lambda name, arguments: "out") == "out"
    with pytest.raises(MisuseError, match=r"needs context=Context\(…\)"):
        default_middleware(FakePolicy())
    nothing: Any = None
    with pytest.raises(MisuseError, match=r"default_middleware\(None\): expected what interpose.load_policy\(\) gives"):
        default_middleware(nothing, context=CONTEXT)


class Note:
    """Says nothing of itself but its address."""

    def __init__(self, text: str) -> None:
        self.text = text


class Notes(BaseDriver):
    """One tool that spoils what it is given."""

    meta = DriverMeta("test.notes", "Notes", "1")

    def list_tools(self) -> list[Tool]:
        """The tool."""
        return [Tool("keep", "Keeps notes")]

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> Any:
        """The texts."""
        texts = [note.text for note in arguments["notes"]]
        arguments["notes"].clear()
        return texts


def test_data_is_judged_and_asked_about_once() -> None:
    """A copy is what was judged, so neither the policy nor the person is asked again; the caller keeps its own."""
    points: list[str] = []
    asked: list[int] = []

    def judging(point: Point) -> Verdict:
        points.append(point.stage)
        return allow(point)

    def consent(tool_name: str, arguments: dict[str, Any]) -> bool:
        asked.append(len(arguments["notes"]))
        return True

    notes = Notes(middleware=default_middleware(FakePolicy(judging), consent=consent, context=CONTEXT))
    given = deque([Note("a"), Note("b")])
    outer = Orchestrator({"one": notes}, middleware=[PermissionMiddleware(consent=consent)])
    assert outer.invoke_tool("keep", {"notes": given}) == ["a", "b"]
    assert (points, asked) == (["tool.call", "tool.result"], [2])
    assert len(given) == 2
