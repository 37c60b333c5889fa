"""The assessor `assessor.finish-contract`: a turn that changed files and proved nothing is told so when it ends.

Knows: what the tools of the present prompt have changed, and which of them count as proof. Does not know: whether the
work is right.

State, per session (the 1,024 used last): the 80 newest results since the person's prompt, and 512 call ids. Any
thread may evaluate; one lock is held for the bookkeeping, and commands are read without it.
"""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from interpose.contracts.decisions import Unknown
from interpose.contracts.effects import (
    BlockTool,
    Effect,
    EvaluationContext,
    HookInput,
    InjectReminder,
    ProtectPath,
    Registration,
    RequestContinuation,
)
from interpose.contracts.json import JsonObject
from interpose.guards.calls import CallReader
from interpose.guards.dispatch_dedup import exited_well
from interpose.guards.file_mutation import FILE_TOOLS, mutated_files
from interpose.guards.given import content_of, ended_normally, is_continuation, session_of, succeeded, text_of
from interpose.guards.settings import Rigor
from interpose.guards.state import SESSIONS_KEPT, Recent, SeenCalls
from interpose.guards.validation import validation_command
from interpose.kernel.boundary import guarded

FINISH_CONTRACT_ID: Final = "assessor.finish-contract"
RESULTS_KEPT: Final = 80
RIGOR_FILES: Final = (
    ".interpose/validation.yaml",
    ".interpose/validation.yml",
    "validation.yaml",
    "validation.yml",
    "VALIDATION.md",
)
"""A project with one of these is held to high rigor."""

Finding: TypeAlias = Literal["no_mutation", "validated", "limitation", "engage"]


@dataclass(frozen=True, slots=True)
class FinishDecision:
    """What was found at the end of one turn. `paths` are the changed files; `evidence` what proves them, for people."""

    session: str
    turn: str | None
    finding: Finding
    rigor: Rigor
    paths: tuple[str, ...]
    evidence: str | None = None


@dataclass(frozen=True, slots=True)
class _Result:
    paths: tuple[str, ...] = ()
    evidence: str | None = None
    limitation: bool = False


class FinishContract:
    """The assessor of one workspace. `sink` is told every decision; what it raises changes nothing."""

    def __init__(
        self,
        *,
        reader: CallReader,
        rigor: Rigor | None = None,
        sink: Callable[[FinishDecision], None] | None = None,
    ) -> None:
        self._reader = reader
        self._rigor = rigor
        self._sink = sink
        self._lock = threading.Lock()
        self._results: Recent[str, deque[_Result]] = Recent(SESSIONS_KEPT)
        self._seen = SeenCalls()

    def registration(self) -> Registration:
        """The assessor's entry in the table; it stands last, since it is silent where another one has spoken."""
        return Registration(
            id=FINISH_CONTRACT_ID,
            description="asks for proof when a turn ends that has changed files",
            hooks=("turn_start", "after_tool", "turn_end"),
            evaluate=self.evaluate,
            reads=("resultKind",),
        )

    def evaluate(self, given: HookInput, context: EvaluationContext) -> tuple[Effect, ...]:
        """Takes a prompt or a result, or assesses the turn that ends."""
        if given.session_id is None:
            return ()
        match given.hook:
            case "turn_start":
                if not is_continuation(given):
                    with self._lock:
                        self._results.pop(session_of(given))
                return ()
            case "after_tool":
                self._take(given, context)
                return ()
            case "turn_end":
                return self._assess(given, context)
            case _:
                return ()

    def _take(self, given: HookInput, context: EvaluationContext) -> None:
        result = self._result(given, context)
        if result is None:
            return
        with self._lock:
            if self._seen.is_new(session_of(given), given.tool_call_id, *content_of(given)):
                self._results.get_or_make(session_of(given), _no_results).append(result)

    def _result(self, given: HookInput, context: EvaluationContext) -> _Result | None:
        """What a result contributes, or None when it changes and proves nothing."""
        if any(isinstance(effect, ProtectPath) for effect in context.prior_effects):
            return _Result(evidence="a protected artifact")
        if not succeeded(given):
            return None
        match given.tool_name:
            case "shell":
                return self._shell_result(given)
            case "agent":
                return _Result(evidence="a delegated run") if _all_exited_well(given.tool_result_details) else None
            case "verify":
                return _Result(evidence="verify")
            case "limitation":
                return _Result(limitation=True)
            case name if name in FILE_TOOLS:
                return _Result(mutated_files(given, self._reader))
            case _:
                return None

    def _shell_result(self, given: HookInput) -> _Result | None:
        command = text_of(given, "validationCommand")
        if command is None:
            reading = self._reader.read(given)
            command = None if isinstance(reading, Unknown) else validation_command(reading)
        paths = mutated_files(given, self._reader)
        return _Result(paths, command) if paths or command else None

    def _assess(self, given: HookInput, context: EvaluationContext) -> tuple[Effect, ...]:
        with self._lock:
            results = tuple(self._results.get(session_of(given)) or ())
        if self._sink is None and not any(result.paths for result in results):
            return ()  # most turns change nothing, and need not look at the filesystem for how much proof is wanted
        if not ended_normally(given) or not (given.text or "").strip() or _is_stopped(context):
            return ()
        decision = self._decide(given, results)
        self._tell(decision)
        if decision.finding != "engage":
            return ()
        message = _message(decision.paths)
        reminder = InjectReminder(message, "warn")
        return (RequestContinuation(message), reminder) if decision.rigor == "high" else (reminder,)

    def _decide(self, given: HookInput, results: tuple[_Result, ...]) -> FinishDecision:
        paths = tuple(dict.fromkeys(path for result in results for path in result.paths))
        evidence = next((result.evidence for result in results if result.evidence), None)
        finding: Finding = "engage"
        if not paths:
            finding = "no_mutation"
        elif evidence:
            finding = "validated"
        elif any(result.limitation for result in results):
            finding = "limitation"
        return FinishDecision(session_of(given), given.turn_id, finding, self._rigor_now(), paths, evidence)

    def _rigor_now(self) -> Rigor:
        if self._rigor is not None:
            return self._rigor
        root = self._reader.root
        return "high" if root and any(Path(root, name).is_file() for name in RIGOR_FILES) else "normal"

    def _tell(self, decision: FinishDecision) -> None:
        sink = self._sink
        if sink is not None:
            guarded(lambda: sink(decision), failure=lambda _: None)


def _no_results() -> deque[_Result]:
    return deque(maxlen=RESULTS_KEPT)


def _is_stopped(context: EvaluationContext) -> bool:
    return any(
        isinstance(effect, BlockTool) or (isinstance(effect, InjectReminder) and effect.severity == "hard-block")
        for effect in context.prior_effects
    )


def _all_exited_well(details: JsonObject | None) -> bool:
    runs = (details or {}).get("runs")
    if isinstance(runs, list):
        return bool(runs) and all(isinstance(run, dict) and exited_well(run) for run in runs)
    return exited_well(details)


def _message(paths: tuple[str, ...]) -> str:
    named = ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
    return (
        f"Files were changed ({named}) and nothing was run that proves the change. Run the tests, the linter or the "
        "build, or say what could not be checked and why."
    )
