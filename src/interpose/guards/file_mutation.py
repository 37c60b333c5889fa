"""The observer `observer.file-mutation`: tells which files an agent's own tools have changed.

Knows: the tools that write files by name. Does not know: what shell commands write; who listens, or why.

State: the call ids seen last (512 in each of the 1,024 sessions used last), since a call seen at two mounts is told
once. Any thread may evaluate; the listener is called on the evaluating thread, and what it raises changes nothing.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from interpose.contracts.decisions import Unknown
from interpose.contracts.effects import EvaluationContext, HookInput, Registration
from interpose.guards.calls import CallReader
from interpose.guards.given import content_of, session_of, succeeded
from interpose.guards.state import SeenCalls
from interpose.kernel.boundary import guarded

FILE_MUTATION_ID: Final = "observer.file-mutation"
FILE_TOOLS: Final = ("write", "edit", "patch")


@dataclass(frozen=True, slots=True)
class FileMutation:
    """Files, as canonical paths, that one successful call has written or removed."""

    session: str
    turn: str | None
    tool_name: str
    paths: tuple[str, ...]


MutationSink = Callable[[FileMutation], None]


class FileMutationObserver:
    """The observer of one workspace."""

    def __init__(self, *, reader: CallReader, sink: MutationSink) -> None:
        self._reader = reader
        self._sink = sink
        self._lock = threading.Lock()
        self._seen = SeenCalls()

    def registration(self) -> Registration:
        """The observer's entry in the table."""
        return Registration(
            id=FILE_MUTATION_ID,
            description="tells which files were changed by file tools",
            hooks=("after_tool",),
            tool_names=FILE_TOOLS,
            evaluate=self.evaluate,
            reads=("resultKind",),
        )

    def evaluate(self, given: HookInput, _context: EvaluationContext) -> tuple[()]:
        """Tells the listener; has no effect."""
        paths = mutated_files(given, self._reader)
        if not succeeded(given) or not paths:
            return ()
        with self._lock:
            is_new = self._seen.is_new(session_of(given), given.tool_call_id, *content_of(given))
        if is_new:
            mutation = FileMutation(session_of(given), given.turn_id, given.tool_name or "", paths)
            guarded(lambda: self._sink(mutation), failure=lambda _: None)
        return ()


def mutated_files(given: HookInput, reader: CallReader) -> tuple[str, ...]:
    """The files that the call writes or removes as far as its arguments say, each once, in order."""
    reading = reader.read(given)
    if isinstance(reading, Unknown):
        return ()
    uses = [use for use in reading.files if use.access != "read" and not use.dynamic]
    return tuple(dict.fromkeys(use.canonical for use in uses))
