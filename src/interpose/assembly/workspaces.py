"""The policies of the workspaces, built on demand and built anew when a hook file changes."""

import threading
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interpose.assembly.folders import PROJECT_FOLDER, Folders
from interpose.assembly.handlers import Shapes, project_fault
from interpose.assembly.lineup import MakeLineup
from interpose.assembly.project import project_settings
from interpose.contracts.effects import Registration
from interpose.contracts.journal import Record, Step
from interpose.contracts.ports import Approvals, Clock, Journal, Pause
from interpose.contracts.stages import Point, Stage
from interpose.contracts.verdict import Verdict
from interpose.effects.contract import MiddlewareContract, create_middleware
from interpose.effects.diagnostics import Diagnostic, HookFailed, Notices
from interpose.guards.canary import CANARY_ID
from interpose.policy.judgement import EffectPolicy
from interpose.stages.table import StageTable
from interpose.userhooks.issues import Issue
from interpose.userhooks.loading import HookFile, LoadedHooks, load_user_hooks, signature

OWNER = "user-hooks"
RELOAD_CHECK_S = 0.2
"""A changed hook file is seen at most this many seconds later."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What every policy is made with. Without `approvals` nobody is asked."""

    folders: Folders
    journal: Journal
    clock: Clock
    pause: Pause
    lineup: MakeLineup
    approvals: Approvals | None
    ask_timeout_s: float
    shapes: Shapes


class WorkspacePolicy:
    """The port `Policy` of one workspace, following its hook files.

    A file that cannot be parsed keeps the last good set; what is wrong is journalled once per change.
    """

    def __init__(self, root: str | None, parts: Parts) -> None:
        self._root = root
        self._parts = parts
        self._notices = Notices()
        lineup = parts.lineup(root or "")
        self._reader = lineup.reader
        self._engine: MiddlewareContract = create_middleware(
            rules=lineup.rules, registrations=lineup.before, owners=(OWNER,), on_diagnostic=self._diagnose
        )
        own = project_settings(root, ask_timeout_s=parts.ask_timeout_s)
        self._policy = EffectPolicy(
            self._engine,
            journal=parts.journal,
            clock=parts.clock,
            pause=parts.pause,
            validation=lineup.validation,
            approvals=parts.approvals,
            ask_timeout_s=own.ask_timeout_s,
            shapes=parts.shapes.table(),
        )
        self._lock = threading.Lock()
        self._generation = 0
        self._files = hook_files(root, parts.folders)
        self._signature = signature(self._files)
        self._checked = time.monotonic()
        self._issues: tuple[Issue, ...] = ()
        self._loaded = self._load(None)
        fault = project_fault(root) if root is not None else None
        for problem in (*own.problems, *([str(fault)] if fault else [])):
            self._write("problem", problem)
        for registration in lineup.after:  # behind the user hooks, whose place is where they were first published
            self._engine.register_hook(registration)

    @property
    def loaded(self) -> LoadedHooks:
        """The hooks in force."""
        return self._loaded

    @property
    def issues(self) -> tuple[Issue, ...]:
        """What is wrong or worth a note in the files as they are now, also where older hooks are still in force."""
        self._follow()
        return self._issues

    @property
    def own(self) -> tuple[Registration, ...]:
        """Our own rules and guards that judge here, in order; the doctor's canary is left out."""
        others = frozenset(registration.id for registration in self._loaded.registrations) | {CANARY_ID}
        return tuple(one for one in self._engine.registrations() if one.id not in others)

    @property
    def guards(self) -> tuple[str, ...]:
        """Their ids."""
        return tuple(registration.id for registration in self.own)

    @property
    def shapes(self) -> StageTable:
        """The shape handlers that judge here."""
        return self._policy.shapes

    @property
    def engine(self) -> MiddlewareContract:
        """The registration table."""
        return self._engine

    @property
    def generation(self) -> int:
        """As the port says; the files are looked at first."""
        self._follow()
        return self._generation + self._policy.generation

    def judge(self, point: Point) -> Verdict:
        """As the port says."""
        self._follow()
        return self._policy.judge(point)

    def judge_async(self, point: Point) -> Coroutine[Any, Any, Verdict]:
        """As the port says."""
        self._follow()
        return self._policy.judge_async(point)

    def wants(self, stage: Stage) -> bool:
        """As the port says."""
        return self._policy.wants(stage)

    def changes(self, stage: Stage) -> bool:
        """As the port says."""
        return self._policy.changes(stage)

    def _follow(self) -> None:
        if time.monotonic() - self._checked < RELOAD_CHECK_S or not self._lock.acquire(blocking=False):
            return
        try:
            self._checked = time.monotonic()
            present = signature(self._files)
            if present != self._signature:
                self._signature = present
                self._loaded = self._load(self._loaded)
        finally:
            self._lock.release()

    def _load(self, before: LoadedHooks | None) -> LoadedHooks:
        folders = self._parts.folders
        loaded = load_user_hooks(self._files, root=self._root or "", home=str(folders.home), reader=self._reader)
        self._issues = loaded.issues
        for issue in loaded.issues:
            self._write("problem", str(issue))
        if loaded.broken_files and before is not None:
            self._write("problem", "the hooks as they were stay in force until the file can be read again")
            return before
        self._generation += 1
        self._engine.replace_registrations(OWNER, self._generation, loaded.registrations)
        if before is not None:
            self._write("switched", f"{len(loaded.hooks)} hooks are in force now (before: {len(before.hooks)})")
        return loaded

    def _diagnose(self, diagnostic: Diagnostic) -> None:
        notice = self._notices.of(diagnostic)
        if notice is not None and not isinstance(diagnostic, HookFailed):  # the verdict tells of failed handlers
            self._write("problem", notice)

    def _write(self, step: Step, text: str) -> None:
        self._parts.journal.write(
            Record(
                at=self._parts.clock.now(),
                action="hooks",
                step=step,
                workspace=self._root or "",
                reason=text,
            )
        )


class Workspaces:
    """The port `Workspaces`: one policy per root, kept for the life of the process. Any thread may ask."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._lock = threading.Lock()
        self._policies: dict[str | None, WorkspacePolicy] = {}

    def policy(self, root: str | None) -> WorkspacePolicy:
        """The policy of the workspace at `root`; None means the user's hooks only."""
        found = self._policies.get(root)
        if found is not None:
            return found
        with self._lock:
            if root not in self._policies:
                self._policies[root] = WorkspacePolicy(root, self._parts)
            return self._policies[root]


def hook_files(root: str | None, folders: Folders) -> tuple[HookFile, ...]:
    """The files whose hooks judge in the workspace at `root`, lowest precedence first."""
    files = [HookFile("user", folders.user_hooks)]
    if root is not None:
        project = Path(root) / PROJECT_FOLDER
        files.append(HookFile("project", project / "hooks.yaml"))
        files.append(HookFile("project.local", project / "hooks.local.yaml"))
    return tuple(files)
