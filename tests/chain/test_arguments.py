"""What layers and the tool get: read-only values in between, plain ones of its own for the tool."""

import asyncio
import copy
import functools
import io
import json
import pickle
import random
import threading
from collections import ChainMap, OrderedDict, UserDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from interpose.chain.chain import Chain
from interpose.contracts.arguments import owned, read_only
from interpose.contracts.errors import MisuseError
from interpose.contracts.tools import Arguments, CallNext, Flow, FlowMiddleware, ToolMiddleware
from interpose.kernel.boundary import guarded

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
        lambda given: given.__ior__({"v": 1}),
        lambda given: given["deep"].__ior__({"v": 1}),
        lambda given: given["v"].__iadd__([1]),
        lambda given: given["v"].__imul__(2),
        lambda given: given["tags"].add("b"),
        lambda given: given["tags"].discard("a"),
        lambda given: given["tags"].update({"b"}),
        lambda given: given["tags"].__ior__({"b"}),
        lambda given: given["tags"].__iand__({"b"}),
        lambda given: given["tags"].__ixor__({"b"}),
        lambda given: given["tags"].__isub__({"a"}),
        lambda given: given["tags"].clear(),
    ],
)
def test_a_change_in_place_is_refused_and_told_what_to_write(change: Callable[[Any], Any]) -> None:
    """Whatever it is and however deep: it reaches neither the layers outside, nor the caller, nor a second run."""
    caller: dict[str, Any] = {"v": [3, 2], "deep": {"list": [{"x": 0}]}, "pair": ([], 1), "tags": {"a"}}
    before = copy.deepcopy(caller)
    seen: list[Any] = []

    def noting(given: Any) -> Any:
        seen.append(given)
        return given

    with pytest.raises(
        MisuseError,
        match=r"read-only, and .*<lambda> changes a (dict|list|set) in place.*such as \{\*\*arguments.*deepcopy",
    ):
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


def test_a_value_that_is_rebuilt_by_its_type_is_plain() -> None:
    """Many walk through values so; what they put in is then copied for the tool's next run, as anywhere else."""

    def rebuilt(value: Any) -> Any:
        match value:
            case dict():
                return type(value)({key: rebuilt(item) for key, item in value.items()}, more=mine)
            case list() | set():
                return type(value)(rebuilt(item) for item in value)
        return value

    def spoiling(name: str, own: dict[str, Any]) -> None:
        runs.append(copy.deepcopy(own))
        own["more"].append(2)

    runs: list[Any] = []
    mine = [1]
    for caller in ({"x": 1}, {"x": 1, "list": [{"y": {"z"}}]}):
        runs.clear()
        chain = Chain([Doing(rebuilt), Twice()])
        chain.call("t", caller, spoiling)
        assert mine == [1]
        assert runs == [rebuilt(caller)] * 2


def test_what_can_be_changed_deep_is_a_deep_copy() -> None:
    """`copy.deepcopy` gives plain values all the way down."""
    mine = copy.deepcopy(given_to_layers({"deep": {"list": [1]}}))
    mine["deep"]["list"].append(2)
    assert mine == {"deep": {"list": [1, 2]}}


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


@dataclass
class Point:
    """Data of an application's own."""

    x: int
    seen: list[int] = field(default_factory=list)


class Pair(NamedTuple):
    """A tuple that holds a list."""

    first: list[int]
    second: int


class Model(BaseModel):
    """Data that says itself how it is copied."""

    tags: list[str]


def data() -> dict[str, Any]:
    """One of each kind that is neither dict, list nor tuple, in the first level and below."""
    values: dict[str, Any] = {
        "set": {"a"},
        "bytearray": bytearray(b"a"),
        "deque": deque(["a"]),
        "dataclass": Point(1),
        "pydantic": Model(tags=["a"]),
        "userdict": UserDict(a=[1]),
        "chainmap": ChainMap({"a": 1}),
        "namedtuple": Pair([1], 2),
    }
    return {**values, "deep": [{**values}]}


def edited(values: dict[str, Any]) -> None:
    """Changes all that can be changed in them, in place."""
    values["bytearray"].extend(b"b")
    values["deque"].append("b")
    values["dataclass"].x = 2
    values["pydantic"].tags.append("b")
    values["userdict"]["a"].append(2)
    values["chainmap"]["a"] = 2
    values["namedtuple"].first.append(2)


class Twice(ToolMiddleware):
    """Runs the tool twice."""

    def on_execute_tool(self, tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
        """The second result."""
        call_next(tool_name, arguments)
        return call_next(tool_name, arguments)


@pytest.mark.parametrize("layers", [0, 1])
def test_the_tool_has_data_of_its_own_in_each_run(layers: int) -> None:
    """Whatever it does to it, neither the caller nor its next run sees it, and each thing keeps its type."""
    runs: list[dict[str, Any]] = []

    def spoiling(tool_name: str, own: dict[str, Any]) -> None:
        runs.append(copy.deepcopy(own))
        for values in (own, own["deep"][0]):
            edited(values)
            values["set"].add("b")

    caller = data()
    Chain([Twice() for _ in range(layers)]).call("t", caller, spoiling)
    assert runs == [data()] * (layers + 1)
    assert all(type(run[name]) is type(value) for run in runs for name, value in data().items())
    assert caller == data()


def test_a_layers_edit_of_data_does_not_reach_the_caller() -> None:
    """Inside of the list it does, as a rewrite would: what a layer passes on is what the tool gets."""
    caller = data()
    got = Chain([Doing(lambda given: edited(given) or given)]).call("t", caller, lambda name, own: own)  # type: ignore[func-returns-value]
    assert caller == data()
    assert got["dataclass"] == Point(2)


@pytest.mark.parametrize("layers", [0, 1])
def test_what_is_no_data_is_shared(layers: int) -> None:
    """What may be alive is passed on as it is, and so is data that cannot be copied."""
    shared: dict[str, Any] = {
        "thing": object(),
        "callback": [].append,
        "stream": io.StringIO(),
        "lock": [threading.Lock()],
        "locked": Point(threading.Lock()),  # type: ignore[arg-type]
        "path": Path("a"),
    }
    own = Chain([ToolMiddleware() for _ in range(layers)]).call("t", shared, lambda name, own: own)
    assert own["lock"][0] is shared["lock"][0]
    for name in shared.keys() - {"lock"}:
        assert own[name] is shared[name], name


def test_arguments_that_come_back_as_the_result_are_plain() -> None:
    """The application may change what it is given, however deep it was."""

    class Answering(ToolMiddleware):
        """Answers with the arguments, or a part of them."""

        def on_execute_tool(self, tool_name: str, arguments: Arguments, call_next: CallNext) -> Any:
            """The part that is named, or all."""
            return arguments.get(tool_name, arguments)

    chain = Chain([Answering()])
    assert plain_kinds(chain.call("all", {"list": [{"x": 1}]}, lambda name, own: None)) == {dict, list}
    assert plain_kinds(chain.call("list", {"list": [{"x": 1}]}, lambda name, own: None)) == {dict, list}
    assert type(asyncio.run(chain.call_async("all", {"x": 1}, _never))) is dict


async def _never(tool_name: str, arguments: dict[str, Any]) -> None:
    pytest.fail("ran")


class Shuffling(FlowMiddleware):
    """Leaves the changing to others."""

    def __init__(self, change: Callable[[Any], Any]) -> None:
        self.change = change

    def flow(self, tool_name: str, arguments: Arguments) -> Flow:
        """Wrong."""
        self.change(arguments)
        return (yield tool_name, arguments)


class Direct(FlowMiddleware):
    """Gets its flow from another class."""

    def flow(self, tool_name: str, arguments: Any) -> Flow:
        """Wrong."""
        random.shuffle(arguments["v"])
        return (yield tool_name, arguments)


class Descended(Direct):
    """Has the flow of another class."""


def failing(error: Exception) -> Any:
    """As it is."""
    raise error


def map_over(change: Callable[[Any], Any], given: dict[str, Any]) -> None:
    """Changes each."""
    list(map(change, given.values()))


@pytest.mark.parametrize(
    ("middleware", "who"),
    [
        (Descended(), "Descended.flow"),
        (Shuffling(lambda given: guarded(given["v"].clear, failure=failing)), "<lambda>"),
        (Shuffling(functools.partial(map_over, random.shuffle)), "map_over"),
        (Shuffling(lambda given: given["v"].sort()), "<lambda>"),
    ],
)
def test_who_changes_in_place_is_one_of_the_callers(middleware: ToolMiddleware, who: str) -> None:
    """The function or the middleware that is not ours, also where ours or the standard library's makes the change."""
    chain = Chain([ToolMiddleware(), middleware])
    change = {"v": [1, 2, 3]}
    with pytest.raises(MisuseError, match=rf"read-only, and ({who}) changes a list in place") as caught:
        chain.call("t", change, lambda name, own: None)
    assert "guarded" not in str(caught.value)
    assert "shuffle" not in str(caught.value)


def test_a_hook_that_is_no_code_of_its_own_is_named_by_its_class() -> None:
    """Nothing but our code and a builtin stands between the list and the change."""

    class Clearing(ToolMiddleware):
        """Calls a mutator by ours."""

        def on_execute_tool(self, tool_name: str, arguments: Any, call_next: CallNext) -> Any:
            """Wrong."""
            return guarded(arguments.clear, failure=failing)

    with pytest.raises(MisuseError, match=r"read-only, and Clearing\.on_execute_tool changes a dict in place"):
        Chain([Clearing()]).call("t", {"x": 1}, lambda name, own: None)
