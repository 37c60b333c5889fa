"""assembly.protection: what a protected function is called with."""

import asyncio
import json
import threading
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from interpose.assembly.folders import Folders
from interpose.assembly.middleware import default_middleware
from interpose.assembly.protection import load_policy_from, protect
from interpose.chain.chain import Chain
from interpose.contracts.decisions import Patch
from interpose.contracts.errors import MisuseError, Refused
from interpose.contracts.stages import ToolCall, ToolResult
from interpose.stages.front import on


class Context(dict[str, Any]):
    """A dict of an application's own class."""


def collect(source: str, into: list[str], context: Context, counts: Counter[str], *rest: Any, **more: Any) -> Any:
    """Fills what it is given."""
    into.append(source)
    context["source"] = source
    counts[source] += 1
    return (into, context, counts, rest, more)


def test_a_function_gets_the_callers_very_objects(folders: Folders, tmp_path: Path) -> None:
    """A list to be filled is filled, a class of dict stays one, sync and async; so it is with defaults."""
    kept: list[str] = []

    def keeping(source: str, into: list[str] = kept) -> None:
        into.append(source)

    async def collect_async(*args: Any, **kwargs: Any) -> Any:
        return collect(*args, **kwargs)

    def through_async(*args: Any, **kwargs: Any) -> Any:
        return asyncio.run(protect(collect_async, policy=policy)(*args, **kwargs))

    with load_policy_from(folders, tmp_path) as policy:
        for run in (protect(collect, policy=policy), through_async):
            into, context, counts, late = list[str](), Context(), Counter[str](), defaultdict[str, Any](list)
            got = run("a", into, context, counts, late, option=late)
            assert (into, context, counts) == (["a"], {"source": "a"}, {"a": 1})
            assert all(one is other for one, other in zip(got[:3], (into, context, counts), strict=True))
            assert got[3][0] is got[4]["option"] is late
        protect(keeping, policy=policy)("b")
        assert kept == ["b"]


def test_what_a_patch_leaves_alone_stays_the_callers(folders: Folders, tmp_path: Path) -> None:
    """The patched argument is the patch's, each other one the very object that was passed."""

    @on("tool.call", tools="collect")
    def safer(call: ToolCall) -> Patch:
        return Patch({**call.arguments, "source": "safe", "extra": [1]})

    with load_policy_from(folders, tmp_path, handlers=[safer]) as policy:
        into, context, pair = list[str](), Context(), (1, [2])
        got = protect(collect, policy=policy)("a", into, context, Counter(), pair)
        assert into == ["safe"]
        assert got[1] is context
        assert got[3][0] is pair
        assert got[4] == {"extra": [1]}


def test_a_patch_to_an_equal_value_of_another_type_counts(folders: Folders, tmp_path: Path) -> None:
    """1 and True are equal in Python, and not the same argument."""

    @on("tool.call", tools="shown")
    def truth(call: ToolCall) -> Patch:
        return Patch({"value": True, "why": "patched"})

    def shown(value: object, why: str) -> str:
        return f"{value!r} {why}"

    with load_policy_from(folders, tmp_path, handlers=[truth]) as policy:
        assert protect(shown, policy=policy)(1, "") == "True patched"


def test_a_handler_cannot_change_what_runs(folders: Folders, tmp_path: Path) -> None:
    """It sees a snapshot; its edit fails and the caller's objects are as they were."""
    seen: list[str] = []

    @on("tool.call", tools="collect")
    def editing(call: ToolCall) -> None:
        arguments: Any = call.arguments
        for change, value in ((arguments["into"].append, "x"), (arguments["tags"].add, "x")):
            try:
                change(value)
            except (TypeError, MisuseError) as error:
                seen.append(type(error).__name__)

    with load_policy_from(folders, tmp_path, handlers=[editing]) as policy:
        into, tags = list[str](), {"a"}
        protect(collect, policy=policy)("a", into, Context(), Counter(), tags=tags)
    assert (into, tags) == (["a"], {"a"})
    assert len(seen) == 2


def test_what_changes_while_it_is_judged_does_not_run(folders: Folders, tmp_path: Path) -> None:
    """What was judged is what runs, also when another thread of the program has the list."""
    into: list[str] = []

    @on("tool.call", tools="collect")
    def meanwhile(call: ToolCall) -> None:
        other = threading.Thread(target=into.append, args=["late"])
        other.start()
        other.join()

    with (
        load_policy_from(folders, tmp_path, handlers=[meanwhile]) as policy,
        pytest.raises(
            MisuseError, match="collect did not run: its arguments were changed while they were being judged"
        ),
    ):
        protect(collect, policy=policy)("a", into, Context(), Counter())
    assert into == ["late"]


def test_arguments_that_hold_themselves_cannot_be_judged(folders: Folders, tmp_path: Path) -> None:
    """The caller is told so."""
    circle: list[Any] = []
    circle.append(circle)
    with load_policy_from(folders, tmp_path) as policy, pytest.raises(MisuseError, match="hold themselves"):
        protect(collect, policy=policy)("a", circle, Context(), Counter())


def test_after_close_nothing_runs_and_the_error_says_why(folders: Folders, tmp_path: Path) -> None:
    """A protected function, sync and async, and a driver's list."""
    runs: list[str] = []

    async def run_async(command: str) -> None:
        runs.append(command)

    with load_policy_from(folders, tmp_path) as policy:
        run = protect(runs.append, policy=policy, tool="shell")
        later = protect(run_async, policy=policy, tool="shell")
        chain = Chain(default_middleware(policy))
    with pytest.raises(MisuseError, match="the policy was closed"):
        run("ls")
    with pytest.raises(MisuseError, match="the policy was closed"):
        asyncio.run(later("ls"))
    with pytest.raises(MisuseError, match="the policy was closed"):
        chain.call("shell", {"command": "ls"}, lambda name, arguments: runs.append(name))
    assert runs == []


class Mute:
    """Nobody can read what is in it."""

    def __repr__(self) -> str:
        raise LookupError


def test_a_result_that_nobody_can_read_is_refused(folders: Folders, tmp_path: Path) -> None:
    """It was not judged, so the caller does not get it."""

    def read(path: str) -> Any:
        return {(1, 2): Mute(), "secret": path}

    said = "PolicyMiddleware: its result cannot be judged, since it cannot be shown"
    with load_policy_from(folders, tmp_path) as policy, pytest.raises(Refused, match=said):
        protect(read, policy=policy)("x")


def test_arguments_that_nest_too_deep_are_refused_wherever_they_are_met(folders: Folders, tmp_path: Path) -> None:
    """Each value holds the one before it, so that none is deep where it is met first."""
    out: list[Any] = []
    value: Any = [1]
    for _ in range(10):
        for _ in range(150):
            value = [value]
        out.append(value)
    counts: Counter[str] = Counter()
    said = "the caller gave arguments that hold themselves, or nest deeper than"
    with load_policy_from(folders, tmp_path) as policy, pytest.raises(MisuseError, match=said):
        protect(collect, policy=policy)("x", [], Context(), counts, out)
    assert counts == {}


def test_a_patch_that_went_through_json_leaves_a_tuple_alone(folders: Folders, tmp_path: Path) -> None:
    """JSON has none, so the same values in a list are the caller's own tuple."""

    @on("tool.call", tools="shown")
    def as_json(call: ToolCall) -> Patch:
        return Patch(json.loads(json.dumps({**call.arguments, "why": "patched"})))

    def shown(pair: Any, table: Any, why: str) -> Any:
        return [pair, table, why]

    pair, table = (1, (2, "x")), {1: "x"}
    with load_policy_from(folders, tmp_path, handlers=[as_json]) as policy:
        got = protect(shown, policy=policy)(pair, table, "given")
    assert (got[0] is pair, got[1] is table, got[2]) == (True, True, "patched")


class Reader:
    """A function that is an object, and async."""

    async def __call__(self, path: str) -> Any:
        """The path again."""
        return path


def test_an_object_that_is_called_async_is_judged_as_a_coroutine_function(folders: Folders, tmp_path: Path) -> None:
    """Its result on the way back too."""

    @on("tool.result", tools="read")
    def louder(result: ToolResult) -> Patch:
        return Patch({"output": result.output.upper()})

    with load_policy_from(folders, tmp_path, handlers=[louder]) as policy:
        assert asyncio.run(protect(Reader(), policy=policy, tool="read")("x")) == "X"


def test_a_stop_iteration_names_the_tool(folders: Folders, tmp_path: Path) -> None:
    """Sync and async, in the words of a driver; what Python raises for any other reason is itself."""

    def stopping(error: Exception) -> None:
        raise error

    async def stopping_async(error: Exception) -> None:
        raise error

    with load_policy_from(folders, tmp_path) as policy:
        sync = protect(stopping, policy=policy, tool="stop")
        waiting = protect(stopping_async, policy=policy, tool="stop")
        for run in (sync, lambda error: asyncio.run(waiting(error))):
            with pytest.raises(RuntimeError, match=r"^the tool 'stop' raised StopIteration\('x'\)$") as raised:
                run(StopIteration("x"))
            assert isinstance(raised.value.__cause__, StopIteration)
            own = RuntimeError("mine")
            with pytest.raises(RuntimeError, match="mine") as raised:
                run(own)
            assert raised.value is own


@pytest.mark.parametrize("tool", ["", " shell", "shell ", "a\nb", "\u200bshell", "x" * 257, 5, b"shell"])
def test_what_can_be_no_tools_name_is_refused(folders: Folders, tmp_path: Path, tool: Any) -> None:
    """No rule could know it, so nothing would be judged as what it is."""
    said = r"^protect\(tool=…\) was given the tool name .*: expected 1 to 256 printable characters"
    with load_policy_from(folders, tmp_path) as policy, pytest.raises(MisuseError, match=said):
        protect(collect, policy=policy, tool=tool)


def test_a_function_whose_own_name_is_none_needs_another(folders: Folders, tmp_path: Path) -> None:
    """Such as one that was made by code."""

    def made(path: str) -> str:
        return path

    made.__name__ = "made \n"
    with load_policy_from(folders, tmp_path) as policy:
        assert protect(made, policy=policy, tool="read")("x") == "x"
        with pytest.raises(MisuseError, match="expected 1 to 256 printable"):
            protect(made, policy=policy)
