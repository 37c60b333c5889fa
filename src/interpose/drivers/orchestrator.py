"""Several drivers as one: labels, names, nesting.

Knows: which child a name belongs to, and that a child is reached through its own list. Does not know: what children
do; it shows its own capabilities, not theirs.
"""

import hashlib
import logging
import operator
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from interpose.contracts.drivers import Health, HealthStatus, SupportsHealthcheck, Tool, ToolDriver
from interpose.contracts.errors import UnknownToolError
from interpose.contracts.settings import of_kind
from interpose.contracts.sheet import DriverMeta
from interpose.contracts.tools import LABEL_END, Arguments, Call, Linked, SupportsToolMiddleware, ToolMiddleware
from interpose.drivers.attempt import called_inside, demand_name
from interpose.drivers.children import invoke, invoke_async, leaf_of, tools_of
from interpose.drivers.driver import BaseDriver
from interpose.drivers.naming import NAME_MOST, fits_apis
from interpose.drivers.prompts import PromptStrategy
from interpose.kernel.boundary import fault_line, guarded

_log = logging.getLogger(__name__)

_SEPARATOR = LABEL_END
_LABEL_MOST = 32
_DIGEST_CHARS = 8
_UNFIT = re.compile(r"[^A-Za-z0-9_-]+")
_SHORTENED = re.compile(rf"_[0-9a-f]{{{_DIGEST_CHARS}}}\Z")
_LABEL = re.compile(r"(?!.*__)[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9-])?")


class Orchestrator(BaseDriver, SupportsHealthcheck):
    """A driver made of labelled drivers; itself a driver, so orchestrators nest.

    With one child its tools keep their names; with several each is `label__name` and its description begins with
    `[label]`. A name that the APIs of models would refuse, for its length or its characters, gets one that they take:
    as much of it as fits and a digest of the whole, the same each time.

    A child with a middleware list is reached through it, so no call gets past a list on its way. A child without one is
    protected by the list of the orchestrator above it. A model that names an unknown tool is told which there are.

    Children may be added and removed by any thread at any time; a call whose child has just left fails as unknown.
    """

    meta = DriverMeta("interpose.orchestrator", "Orchestrator", "1")
    _hands_on = True

    def __init__(
        self,
        drivers: Mapping[str, ToolDriver] | None = None,
        *,
        middleware: Iterable[ToolMiddleware | Linked] = (),
        prompts: PromptStrategy | None = None,
        **settings: Any,
    ) -> None:
        of_kind("Orchestrator(prompts=…)", prompts, PromptStrategy | None, "a PromptStrategy")
        asking = replace(prompts or PromptStrategy.default(), unknown_tool="retry_with_list")
        super().__init__(middleware=middleware, prompts=asking, **settings)
        self._changing = threading.Lock()
        self._children: Mapping[str, ToolDriver] = MappingProxyType({})
        # A child's tools and what they are called here, by label; replaced whole, and right whoever replaces it last.
        self._named: Mapping[tuple[str, str], _Named] = {}
        children: Any = drivers or {}
        if not isinstance(children, Mapping):
            raise TypeError(f'Orchestrator({children!r:.200}): expected drivers by label, {{"label": driver}}')
        for label, driver in children.items():
            self.add_driver(driver, label=label)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the children, in the order in which they were added."""
        return tuple(self._children)

    @property
    def drivers(self) -> Mapping[str, ToolDriver]:
        """The children by label; a view that does not change."""
        return self._children

    def add_driver(self, driver: ToolDriver, *, label: str) -> None:
        """Adds a child. A middleware that is in both lists is told in the log: it will see each call twice.

        Raises ValueError for a label that is taken, too long or no label, or a driver that holds this one; TypeError
        for what is no tool driver.
        """
        if not isinstance(driver, ToolDriver):
            raise TypeError(
                f"{driver!r} is no tool driver: expected an instance of a class that extends BaseDriver, or ToolDriver "
                "with list_tools() and execute_tool(name, arguments)"
            )
        if not isinstance(label, str) or not _LABEL.fullmatch(label):
            raise ValueError(
                f"{label!r} is no label: expected letters, digits, '-' and '_', without '__' and no '_' at either end"
            )
        if len(label) > _LABEL_MOST:
            raise ValueError(
                f"the label {label!r} has {len(label)} characters: {_LABEL_MOST} at most leave room for names"
            )
        if any(inner is self for inner in _tree(driver)):
            raise ValueError(f"the driver labelled {label!r} holds this orchestrator: calls would go in a circle")

        with self._changing:
            if label in self._children:
                raise ValueError(f"the label {label!r} is taken: labels are unique, remove_driver({label!r}) frees it")
            self._children = MappingProxyType({**self._children, label: driver})
        _warn_of_repeats(self.middleware, driver, label)

    def remove_driver(self, label: str) -> ToolDriver | None:
        """Takes a child out and returns it; None when no child has the label. Calls on their way finish."""
        with self._changing:
            driver = self._children.get(label) if isinstance(label, str) else None
            self._children = MappingProxyType({name: each for name, each in self._children.items() if name != label})
        return driver

    def add_middleware(self, middleware: ToolMiddleware | Linked) -> None:
        """As in every driver; one that a child has too is told in the log."""
        super().add_middleware(middleware)
        own = middleware.middleware if isinstance(middleware, Linked) else middleware
        for label, driver in self._children.items():
            _warn_of_repeats((own,), driver, label)

    def list_tools(self) -> Sequence[Tool]:
        """What every child offers, named for this level; nothing of one that cannot tell, which the log says."""
        children = self._children
        several = len(children) > 1
        return tuple(
            tool
            for label, driver in children.items()
            for tool in self._named_here(label, _prefix(label, several=several), _offered(label, driver)).named
        )

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> Any:
        """Runs a child's tool through the child's own list; raises UnknownToolError where no child has the name."""
        return self._reach(tool_name, arguments, called_inside(tool_name, arguments))

    async def execute_tool_async(self, tool_name: str, arguments: dict[str, Any]) -> Any:
        """As `execute_tool`, from an event loop."""
        return await self._reach_async(tool_name, arguments, called_inside(tool_name, arguments))

    def leaf_name(self, tool_name: str) -> str:
        """What the child that has the tool calls it, and the child's own children; a name of no child is itself."""
        try:
            driver, name = self._resolved(tool_name)
        except UnknownToolError:
            return tool_name
        return leaf_of(driver, name)

    def healthcheck(self) -> Health:
        """The worst of the children that can say how they are; ok when there are none. One that raises is an error."""
        parts = {
            label: _health(driver)
            for label, driver in self._children.items()
            if isinstance(driver, SupportsHealthcheck)
        }
        worst = max(
            (part.status for part in parts.values()), key=lambda status: status.severity, default=HealthStatus.OK
        )
        ill = [
            f"{label}: {part.detail or part.status}"
            for label, part in parts.items()
            if part.status is not HealthStatus.OK
        ]
        return Health(worst, "; ".join(ill), parts)

    def _named_here(self, label: str, prefix: str, tools: Sequence[Tool]) -> "_Named":
        """The tools under the names of this level; made once for as long as the child offers the same ones."""
        own = tuple(tools)
        before = self._named.get((label, prefix))
        if before is not None and len(before.own) == len(own) and all(map(operator.is_, before.own, own)):
            return before

        made = _Named(
            own,
            tuple(_renamed(tool, _fitting(prefix + tool.name), f"[{label}] " if prefix else "") for tool in own),
            {_fitting(prefix + tool.name): tool.name for tool in own},
        )
        self._named = {**self._named, (label, prefix): made}
        return made

    def _reach(self, tool_name: str, arguments: Arguments, call: Call) -> Any:
        driver, name = self._resolved(tool_name)
        return invoke(driver, name, arguments, call=self._handed_down(call, tool_name, name))

    async def _reach_async(self, tool_name: str, arguments: Arguments, call: Call) -> Any:
        driver, name = self._resolved(tool_name)
        return await invoke_async(driver, name, arguments, call=self._handed_down(call, tool_name, name))

    def _handed_down(self, call: Call, tool_name: str, name: str) -> Call:
        prefix = _prefix(tool_name.partition(_SEPARATOR)[0], several=len(self._children) > 1)
        return call.handed_down(tool_name, name, named_here=lambda other: _fitting(prefix + other))

    def _resolved(self, tool_name: str) -> tuple[ToolDriver, str]:
        """The child and its own name of the tool."""
        demand_name(tool_name)
        children = self._children
        several = len(children) > 1
        label = tool_name.partition(_SEPARATOR)[0] if several else next(iter(children), "")
        prefix = _prefix(label, several=several)
        if label not in children or not tool_name.startswith(prefix):
            raise UnknownToolError(tool_name, (tool.name for tool in self.list_tools()))

        named = self._named.get((label, prefix))
        if _SHORTENED.search(tool_name) and (named is None or tool_name not in named.names):
            named = self._named_here(label, prefix, _offered(label, children[label]))
        own = named.names.get(tool_name) if named is not None else None
        return children[label], tool_name.removeprefix(prefix) if own is None else own


@dataclass(frozen=True, slots=True)
class _Named:
    """Tools of a child.

    Attributes:
        own: as the child offers them.
        named: as they are offered here.
        names: what the child calls them, by their names here.
    """

    own: tuple[Tool, ...]
    named: tuple[Tool, ...]
    names: Mapping[str, str]


def _prefix(label: str, *, several: bool) -> str:
    return label + _SEPARATOR if several else ""


def _fitting(name: str) -> str:
    """The name, or one like it that every model's API takes."""
    if fits_apis(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_CHARS]
    return f"{_UNFIT.sub('_', name)[: NAME_MOST - _DIGEST_CHARS - 1]}_{digest}"


def _renamed(tool: Tool, name: str, before: str) -> Tool:
    if name == tool.name and not before:
        return tool
    return replace(tool, name=name, description=before + tool.description)


def _offered(label: str, driver: ToolDriver) -> Sequence[Tool]:
    def nothing(error: Exception) -> Sequence[Tool]:
        _log.warning("%r cannot say which tools it has and is left out: %s", label, fault_line(error))
        return ()

    return guarded(lambda: tools_of(driver), failure=nothing)


def _health(driver: SupportsHealthcheck) -> Health:
    answer: Any = guarded(driver.healthcheck, failure=lambda error: Health(HealthStatus.ERROR, fault_line(error)))
    if isinstance(answer, Health) and isinstance(answer.status, HealthStatus):
        return answer
    return Health(HealthStatus.ERROR, f"its healthcheck answered with {answer!r:.200}, not a Health")


def _tree(driver: ToolDriver) -> Iterator[ToolDriver]:
    yield driver
    if isinstance(driver, Orchestrator):
        for child in driver.drivers.values():
            yield from _tree(child)


def _warn_of_repeats(middlewares: Sequence[ToolMiddleware], driver: ToolDriver, label: str) -> None:
    for inner in _tree(driver):
        if not isinstance(inner, SupportsToolMiddleware):
            continue
        for middleware in middlewares:
            if any(each is middleware for each in inner.middleware):
                _log.warning(
                    "%s is in the orchestrator's list and in that of %r: it sees each of its calls twice",
                    type(middleware).__name__,
                    label,
                )
