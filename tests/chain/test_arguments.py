"""What layers and the tool get: read-only values in between, plain ones of its own for the tool."""

import asyncio
import copy
import json
import pickle
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.chain.arguments import owned, read_only
from interpose.chain.chain import Chain
from interpose.contracts.errors import MisuseError
from interpose.contracts.tools import Arguments, CallNext, Flow, FlowMiddleware, ToolMiddleware

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=2), inner, max_size=2).map(OrderedDict)
    ),
    max_leaves=8,
)


class Doing(ToolMiddleware):
    """Does what the given function says."""

    def __init__(self, hook: Callable[[Any], Any]) -> None:
        self.hook = hook

    def on_execute_tool(self, tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        """The function with the arguments, then on with what it gives."""
        return call_next(tool_name, self.hook(arguments))


def given_to_layers(arguments: Arguments) -> Any:
    """What a middleware gets."""
    seen: list[Any] = []

    def noting(given: Any) -> Any:
        seen.append(given)
        return given

    Chain([Doing(noting)]).call("t", arguments, lambda name, own: None)
    return seen[0]


def plain_kinds(value: Any) -> set[type]:
    """The types of everything that holds other values in it."""
    match value:
        case dict():
            return {type(value)}.union(*map(plain_kinds, value.values()))
        case list() | tuple():
            return {type(value)}.union(*map(plain_kinds, value))
    return set()


@given(st.dictionaries(st.text(max_size=3), VALUES, max_size=4))
def test_read_only_and_back_is_the_same_in_plain(arguments: dict[str, Any]) -> None:
    """Equal all the way, also as JSON, and nothing but plain containers comes out, none of them the given ones."""
    before = copy.deepcopy(arguments)
    seen = read_only(arguments, "the caller")
    assert seen == arguments
    assert json.dumps(seen) == json.dumps(arguments)

    back = owned(seen, "the caller")
    assert back == arguments == before
    assert plain_kinds(back) <= {dict, list, tuple}
    for value in back.values():
        if isinstance(value, dict | list):
            value.clear()
    assert arguments == before
    assert seen == before


@pytest.mark.parametrize(
    "change",
    [
        lambda given: given.__setitem__("v", 1),
        lambda given: given.__delitem__("v"),
        lambda given: given.update(v=1),
        lambda given: given.setdefault("w", 1),
        lambda given: given.pop("v"),
        lambda given: given.popitem(),
        lambda given: given.clear(),
        lambda given: given["v"].__setitem__(0, 1),
        lambda given: given["v"].__delitem__(0),
        lambda given: given["v"].append(1),
        lambda given: given["v"].extend([1]),
        lambda given: given["v"].insert(0, 1),
        lambda given: given["v"].pop(),
        lambda given: given["v"].remove(3),
        lambda given: given["v"].clear(),
        lambda given: given["v"].sort(),
        lambda given: given["v"].reverse(),
        lambda given: given["deep"]["list"][0].update(x=1),
        lambda given: given["pair"][0].append(1),
    ],
)
def test_a_change_in_place_is_refused_and_told_what_to_write(change: Callable[[Any], Any]) -> None:
    """Whatever it is and however deep: it reaches neither the layers outside, nor the caller, nor a second run."""
    caller: dict[str, Any] = {"v": [3, 2], "deep": {"list": [{"x": 0}]}, "pair": ([], 1)}
    before = copy.deepcopy(caller)
    seen: list[Any] = []

    def noting(given: Any) -> Any:
        seen.append(given)
        return given

    with pytest.raises(MisuseError, match=r"read-only: pass a changed copy on, such as (\{\*\*arguments|\[\*values)"):
        Chain([Doing(noting), Doing(change)]).call("t", caller, lambda name, arguments: "never")
    assert caller == before == seen[0]


def test_a_flow_that_changes_in_place_is_told_too() -> None:
    """Sync and async, flat arguments too; the tool does not run."""

    class Editing(FlowMiddleware):
        """Forgets the copy."""

        def flow(self, tool_name: str, arguments: Any) -> Flow:
            """Wrong."""
            arguments["x"] = 2
            return (yield tool_name, arguments)

    runs: list[str] = []

    async def tool(tool_name: str, arguments: dict[str, Any]) -> None:
        runs.append(tool_name)

    chain = Chain([Editing()])
    with pytest.raises(MisuseError, match="read-only"):
        chain.call("t", {"x": 1}, lambda tool_name, arguments: runs.append(tool_name))
    with pytest.raises(MisuseError, match="read-only"):
        asyncio.run(chain.call_async("t", {"x": 1}, tool))
    assert runs == []


@pytest.mark.parametrize(
    "copied",
    [
        lambda given: {**given},
        dict,
        copy.copy,
        copy.deepcopy,
        lambda given: given.copy(),
        lambda given: given | {},
        lambda given: pickle.loads(pickle.dumps(given)),  # noqa: S301 - our own bytes
    ],
)
@pytest.mark.parametrize("arguments", [{"x": 1}, {"x": 1, "list": [1]}])
def test_a_copy_can_be_changed_and_passed_on(copied: Callable[[Any], Any], arguments: dict[str, Any]) -> None:
    """However it is made; the next layer gets the change."""

    def rewriting(given: Any) -> Any:
        mine = copied(given)
        mine["x"] = 2
        return mine

    assert Chain([Doing(rewriting), ToolMiddleware()]).call("t", arguments, lambda name, own: own["x"]) == 2


def test_what_can_be_changed_deep_is_a_deep_copy() -> None:
    """`copy.deepcopy` gives plain values all the way down."""
    mine = copy.deepcopy(given_to_layers({"deep": {"list": [1]}}))
    mine["deep"]["list"].append(2)
    assert mine == {"deep": {"list": [1, 2]}}


def test_the_operators_that_look_like_a_change_make_a_copy() -> None:
    """As for a str or a tuple: the name stands for a new, plain value and nobody else's has changed."""
    given = seen = given_to_layers({"list": [1]})
    values = given["list"]
    values += (2,)
    doubled = given["list"]
    doubled *= 2
    given |= [("list", values), ("twice", doubled)]
    assert given == {"list": [1, 2], "twice": [1, 1]}
    assert seen == {"list": [1]}
    assert plain_kinds(given) == {dict, list}


def test_layers_see_dicts_and_lists() -> None:
    """Checks of type and match statements work as on plain values; tuples stay tuples."""
    match given_to_layers({"list": [{"x": 1}], "pair": (1, [2])}):
        case {"list": [{"x": one}], "pair": (1, [two])}:
            assert (one, two) == (1, 2)
        case other:
            pytest.fail(f"{other!r} has another shape")


def test_what_nobody_changes_is_not_copied_for_each_layer() -> None:
    """All layers see the very same value; what one passes on in its place, all inside of it see."""
    seen: list[Any] = []

    def noting(given: Any) -> Any:
        seen.append(given)
        return given

    chain = Chain([Doing(noting), Doing(noting), Doing(lambda given: {**given, "y": 2}), Doing(noting), Doing(noting)])
    chain.call("t", {"x": [1]}, lambda name, arguments: None)
    assert seen[0] is seen[1]
    assert seen[2] is seen[3]
    assert seen[2] == {"x": [1], "y": 2}


def test_the_tool_has_plain_arguments_of_its_own_in_each_run() -> None:
    """It may change them at will, flat or nested, and neither the caller nor its next run sees it."""
    runs: list[str] = []

    class Twice(ToolMiddleware):
        """Runs the tool twice."""

        def on_execute_tool(self, tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
            """The second result."""
            call_next(tool_name, arguments)
            return call_next(tool_name, arguments)

    def spoiling(tool_name: str, arguments: dict[str, Any]) -> None:
        runs.append(repr(arguments))
        assert plain_kinds(arguments) <= {dict, list}
        arguments.get("deep", {}).clear()
        arguments["new"] = 1

    for caller in ({"x": 1}, {"x": 1, "deep": {"list": [1]}}):
        runs.clear()
        before = repr(caller)
        Chain([Twice()]).call("t", caller, spoiling)
        assert runs == [before, before]
        assert repr(caller) == before


@pytest.mark.parametrize(
    "arguments", [MappingProxyType({"x": [1]}), defaultdict(list, x=[1]), OrderedDict(x=[1])], ids=repr
)
@pytest.mark.parametrize("layers", [0, 2])
def test_any_mapping_will_do(arguments: Arguments, layers: int) -> None:
    """The tool gets a plain dict all the same."""
    got = Chain([ToolMiddleware() for _ in range(layers)]).call("t", arguments, lambda name, own: own)
    assert got == {"x": [1]}
    assert plain_kinds(got) == {dict, list}
    assert got["x"] is not arguments["x"]


def test_other_objects_are_shared() -> None:
    """What is no dict, list or tuple is passed on as it is."""
    thing, inner = object(), [1]
    for layers in ([], [ToolMiddleware()]):
        own = Chain(layers).call("t", {"thing": thing, "pair": (inner, 2), "list": [[1], thing]}, lambda name, own: own)
        assert own["thing"] is own["list"][1] is thing
        assert own["pair"] == ([1], 2)
        assert own["pair"][0] is not inner
