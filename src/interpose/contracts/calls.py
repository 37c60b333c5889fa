"""One call on its way through the lists of drivers, and who has judged it.

Knows: who judged which form of the call, here and in the lists around, and its names there. Does not know:
middlewares, policies, how a form is compared with another (`contracts.digest`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

Arguments: TypeAlias = Mapping[str, Any]
"""Read-only for a middleware, see `contracts.arguments`: to change a call, pass on `{**arguments, "x": 1}`."""
LeafOf: TypeAlias = Callable[[str], str]
"""From a tool's name in one driver to its name in the driver that has it; any other name is itself. Never raises."""


@dataclass(frozen=True, slots=True)
class Withheld:
    """A call that may not run. `answer` is what the caller gets in place of a result."""

    answer: Any


class LateJudge(Protocol):
    """Judges a call once more that was changed after it had been judged."""

    def judge(self, tool_name: str, arguments: Arguments) -> Withheld | None:
        """None when the call may run exactly as it is now."""
        ...

    async def judge_async(self, tool_name: str, arguments: Arguments) -> Withheld | None:
        """As `judge`, from an event loop."""
        ...


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one middleware has judged: the digest of that form, and who judges any other; None: no other may run."""

    digest: str
    late_judge: LateJudge | None


@dataclass(slots=True)
class Run:
    """What a call has led to, in whatever driver the tool is.

    Attributes:
        executed: the tool's name in the outermost list, and the arguments of its last run; None while it did not run.
        returned: whether a run came back.
    """

    executed: tuple[str, dict[str, Any]] | None = None
    returned: bool = False


@dataclass(slots=True)
class Call:
    """One call on its way through a middleware list; the same object from the outermost to the terminal.

    `call_id` is "" until somebody needs one and gives it. `facts` is what middlewares keep of this call, also from one
    driver's list to the next one's inside of it. `leaf_of` is given by a driver that puts labels in front of its tools'
    names; None: names are the tools' own. `late_rewrite` is written by a driver whose list may change a call unjudged.
    `above` is the call in the list that is around this one's driver, None in the outermost. `run` is what it has led
    to, one for all the lists that it is handed down; None where nobody wants to know.
    """

    call_id: str
    facts: dict[str, Any] = field(default_factory=dict)
    leaf_of: LeafOf | None = None
    late_rewrite: bool = False
    above: "Above | None" = None
    run: Run | None = None
    _judgements: dict[int, Judgement] = field(default_factory=dict)

    @property
    def judgements(self) -> tuple[Judgement, ...]:
        """What each middleware that judges has judged last, outermost first. A driver has each judge what differs."""
        return tuple(self._judgements.values())

    @property
    def judged_digest(self) -> str | None:
        """The digest of what the innermost that judges has judged; None while nobody has."""
        judgements = self.judgements
        return judgements[-1].digest if judgements else None

    def judged(self, by: object, digest: str, late_judge: LateJudge | None = None) -> None:
        """Written by the middleware `by` when the call with this digest may run, as far as that middleware goes."""
        self._judgements[id(by)] = Judgement(digest, late_judge)

    def leaf(self, tool_name: str) -> str:
        """What the driver that has the tool calls it, for a middleware that is about tools wherever they are."""
        return tool_name if self.leaf_of is None else self.leaf_of(tool_name)

    def known_as(self, tool_name: str) -> str:
        """One name for a tool in all the lists that a call goes through; another one for what it was renamed to."""
        if self.above is None:
            return tool_name
        outside = self.above.call.known_as(self.above.name_of(tool_name))
        is_theirs = tool_name == self.above.name_there or self.above.named_here is not None
        return outside if is_theirs else f"{self.above.name_there}\0{outside}"

    def handed_down(self, tool_name: str, name_there: str, *, named_here: Callable[[str], str] | None = None) -> "Call":
        """The same call for the list of the driver that has the tool `tool_name` as `name_there`.

        What that list makes of the call is judged here too, before it runs. `named_here` says what its other tools are
        called here; without it they have their own names.
        """
        return Call(self.call_id, facts=self.facts, above=Above(self, tool_name, name_there, named_here), run=self.run)

    def ran(self, tool_name: str, arguments: dict[str, Any]) -> None:
        """Written by the driver that is about to run the tool itself, with arguments that nobody will change."""
        if self.run is None:
            return
        above, name = self.above, tool_name
        while above is not None and above.call.run is self.run:
            name = above.name_of(name)
            above = above.call.above
        self.run.executed = (name, arguments)

    def came_back(self) -> None:
        """Written by the same driver when the tool has returned."""
        if self.run is not None:
            self.run.returned = True


@dataclass(frozen=True, slots=True)
class Above:
    """The call in the list around a driver, and the names of the driver's tools there; see `Call.handed_down`.

    `given` is the digest of the call as the outer driver made it, where it makes another call of its own: nobody above
    has to judge that.
    """

    call: Call
    tool_name: str
    name_there: str
    named_here: Callable[[str], str] | None = None
    given: str = ""

    def name_of(self, tool_name: str) -> str:
        """What the list above calls a tool of the driver."""
        if tool_name == self.name_there:
            return self.tool_name
        return tool_name if self.named_here is None else self.named_here(tool_name)
