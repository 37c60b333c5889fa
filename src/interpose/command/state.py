"""What is known about a shell at one place of a text: folder, variables, functions.

Knows: how two ways to one place are merged. Does not know: syntax, programs.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, TypeAlias

from tree_sitter import Node

MAX_CWDS = 8
"""More possible folders than this count as not known."""


class Piece(NamedTuple):
    """A part of a word: known text, a glob as an expansion left it, or something not known before it runs."""

    kind: Literal["text", "glob", "dynamic"]
    text: str
    many: bool = False


Value: TypeAlias = tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Stdin:
    """Where a command's input comes from; `text` where it is known."""

    kind: Literal["inherited", "pipe", "file", "text", "dynamic"] = "inherited"
    text: str = ""


@dataclass(slots=True)
class State:
    """One shell at one place. `cwds` are all folders it may be in, None when any. A name that is missing from
    `variables` is not known. `dead` is set where the place cannot be reached, `remote` on another machine or in a
    container, whose files are not ours.
    """

    cwds: tuple[str, ...] | None
    variables: dict[str, Value]
    exported: set[str] = field(default_factory=set)
    functions: dict[str, tuple[Node, ...]] = field(default_factory=dict)
    positional: tuple[Value, ...] | None = None
    stdin: Stdin = field(default_factory=Stdin)
    dead: bool = False
    remote: bool = False

    def copy(self) -> "State":
        """An independent copy, as a subshell has."""
        return replace(
            self, variables=dict(self.variables), exported=set(self.exported), functions=dict(self.functions)
        )

    def forget(self, name: str) -> None:
        """Makes one variable not known."""
        self.variables.pop(name, None)

    def forget_all(self) -> None:
        """Makes every variable and parameter not known."""
        self.variables.clear()
        self.positional = None

    def restore(self, names: Iterable[str], outer: "State") -> None:
        """Gives these variables back what they are in `outer`."""
        for name in names:
            self.forget(name)
            if name in outer.variables:
                self.variables[name] = outer.variables[name]
            if name not in outer.exported:
                self.exported.discard(name)

    def fed(self, stdin: Stdin) -> "State":
        """This very state, reading from `stdin` from now on."""
        self.stdin = stdin
        return self

    def home(self) -> Value | None:
        """What `~` means here, or None."""
        return self.variables.get("HOME")


class After(NamedTuple):
    """The states after a command that succeeded, and after one that failed."""

    ok: State
    fail: State

    def either(self) -> State:
        """What is known whichever it was."""
        return self.ok if self.ok is self.fail else merge(self.ok, self.fail)


def same(state: State) -> After:
    """The outcome of a command that leaves the shell as it was."""
    return After(state, state)


def merge(left: State, right: State) -> State:
    """What is known at a place that both states lead to."""
    if left.dead:
        return right.copy()
    if right.dead:
        return left.copy()
    cwds: tuple[str, ...] | None = None
    if left.cwds is not None and right.cwds is not None:
        cwds = tuple(dict.fromkeys((*left.cwds, *right.cwds)))
        cwds = cwds if len(cwds) <= MAX_CWDS else None
    functions = dict(left.functions)
    for name, bodies in right.functions.items():
        functions[name] = tuple(dict.fromkeys((*functions.get(name, ()), *bodies)))
    return State(
        cwds=cwds,
        variables={name: value for name, value in left.variables.items() if right.variables.get(name) == value},
        exported=left.exported & right.exported,
        functions=functions,
        positional=left.positional if left.positional == right.positional else None,
        stdin=left.stdin,
        remote=left.remote,
    )


def without_stdin(state: State) -> State:
    """This place with the input it started with, for what a program feeds otherwise."""
    inner = state.copy()
    inner.stdin = Stdin()
    return inner


def distant(state: State) -> State:
    """Another machine or a container: nothing is known there, and its files are not ours."""
    inner = state.copy()
    inner.forget_all()
    inner.exported.clear()
    inner.functions.clear()
    inner.cwds = None
    inner.remote = True
    return inner


def child(state: State) -> State:
    """A shell that a program starts: it has the exported variables only."""
    inner = state.copy()
    inner.variables = {name: value for name, value in state.variables.items() if name in state.exported}
    inner.positional = ()
    return inner
