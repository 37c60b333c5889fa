"""A project's policy around any Python callable.

policy = interpose.load_policy()
read_notes = interpose.protect(read_notes, policy=policy, tool="read")
"""

import functools
import inspect
import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, ParamSpec, Self, TypeVar, cast

from interpose.assembly.binding import Binding, CallJudged, CallJudgedAsync
from interpose.assembly.folders import Folders, canonical_root, user_folders
from interpose.assembly.handlers import project_fault
from interpose.assembly.runtime import Runtime
from interpose.concerns.policy.middleware import PolicyMiddleware
from interpose.contracts.errors import ConfigError, InterposeError, MisuseError, Refused
from interpose.contracts.handlers import ShapeHandler
from interpose.contracts.naming import not_a_name
from interpose.contracts.ports import Approvals, Policy
from interpose.contracts.stages import Context, ToolCall, ToolResult
from interpose.contracts.verdict import Refusal, Verdict
from interpose.kernel.clock import SystemClock
from interpose.kernel.ids import random_id
from interpose.trust.approvals import SqliteApprovals

_log = logging.getLogger("interpose")

P = ParamSpec("P")
R = TypeVar("R")


class LoadedPolicy:
    """The policy of one project, ready to judge calls of this process. Any thread may use it.

    It keeps the journal open; `close()` (or leaving it as a context manager) commits what was written. A process
    that ends without either commits at exit.
    """

    def __init__(self, runtime: Runtime, root: str, *, cwd: str, agent: str | None) -> None:
        self._runtime = runtime
        self._closed = False
        self._policy = runtime.workspaces.policy(root)
        self._links = tuple(f"shape handlers: {problem}" for problem in runtime.shapes.table().problems)
        for problem in self.problems:
            _log.warning("%s", problem)
        self._context = Context(mount="process", session=random_id("s"), workspace=root, cwd=cwd, agent=agent)

    @property
    def policy(self) -> Policy:
        """The port that judges."""
        return self._policy

    @property
    def context(self) -> Context:
        """Who acts, and where: one session per loaded policy."""
        return self._context

    def acting(self) -> Context:
        """The context, for a call that is to be judged now. Raises MisuseError once the policy was closed."""
        if self._closed:
            raise MisuseError("the policy was closed: nothing can be judged any more, load_policy() gives another one")
        return self._context

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong with the hook files, and with links between handlers, one line each; all others work."""
        return (*self._links, *(str(issue) for issue in self._policy.issues))

    def close(self) -> None:
        """Commits what was journalled and closes the files; later calls raise MisuseError. Idempotent."""
        self._closed = True
        self._runtime.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def load_policy(
    folder: str | os.PathLike[str] | None = None,
    *,
    agent: str | None = "process",
    watch_loops: bool = False,
    approvals: Approvals | None = None,
    handlers: Iterable[ShapeHandler] = (),
) -> LoadedPolicy:
    """The policy of the project that `folder` (default: the current one) belongs to.

    `watch_loops` also refuses equal calls that are repeated within seconds, as it is done for agents; leave it off
    for a program that is none. What no rule can tell is refused, unless `approvals` (`interpose.open_approvals()`, or a
    port of your own) says who may be asked: then the call waits for the answer. `handlers`, as `@interpose.on(…)` makes
    them, shape what is judged, beside those of the files that the user's settings name.
    Raises StorageError when the state folder cannot be used, ConfigError for a bad setting, for a project that names
    handlers, and when `folder` is none, MisuseError for a handler that says something impossible; a hook file with
    mistakes does not raise: they are logged as warnings, and `LoadedPolicy.problems` holds them.
    """
    start = Path(folder) if folder is not None else Path.cwd()
    if not start.is_dir():
        raise ConfigError(str(start), "is not a folder", "name a project's folder")
    runtime = Runtime.open(watch_loops=watch_loops, asks=False, asked=approvals, handlers=handlers)
    return _loaded(runtime, start, agent)


def load_policy_from(
    folders: Folders,
    folder: Path,
    *,
    agent: str | None = "process",
    approvals: Approvals | None = None,
    handlers: Iterable[ShapeHandler] = (),
) -> LoadedPolicy:
    """As `load_policy`, with the user's folders given."""
    runtime = Runtime.open(folders, watch_loops=False, asks=False, asked=approvals, handlers=handlers)
    return _loaded(runtime, folder, agent)


def open_approvals() -> SqliteApprovals:
    """A person is asked at a terminal that shows questions: `interpose up`, or `interpose approvals watch`.

    For `load_policy(approvals=…)` and `PermissionMiddleware(consent=ApprovalsConsent(…))`. It keeps the state open
    until `close()`. Raises StorageError when the state folder cannot be used.
    """
    return SqliteApprovals(user_folders().state_db, clock=SystemClock())


def protect(function: Callable[P, R], *, policy: LoadedPolicy, tool: str | None = None) -> Callable[P, R]:
    """`function` behind the policy: a call that is refused raises Refused and does not run.

    `tool` is the name that rules know it by (default: the function's own name); name it `shell`, `read`, `write`, ...
    to have it judged as those. Arguments are judged by their parameter names, defaults included. What is judged is a
    snapshot whose dicts, lists, tuples and sets no handler can change (other objects it sees as they are), and the
    function gets the caller's very objects: also a list that it is to fill, and a dict of a class of its own. Where a
    handler patches the call, each argument that the patch changes is the patch's, and the others stay the caller's. A
    coroutine function stays one. The result is judged on its way back: an annotation is added to a text, and a withheld
    result raises Refused.

    The function may be called by any thread. Raises MisuseError when `function` has no signature that can be read, and
    for a `tool` that can be no tool's name; the function raises it once the policy was closed, and for arguments that
    hold themselves or nest too deep, or that somebody changes while they are being judged. A StopIteration of the
    function is the cause of a RuntimeError that names the tool.
    """
    if not isinstance(policy, LoadedPolicy):
        raise MisuseError(f"policy must be what interpose.load_policy() gives, not {policy!r}")
    binding = Binding(function)
    name = str(getattr(function, "__name__", type(function).__name__)) if tool is None else tool
    if (problem := not_a_name(name)) is not None:
        raise MisuseError(f"protect(tool=…) was given {problem}, such as 'shell'")
    middleware = PolicyMiddleware(policy.policy, context=policy.acting, refused=_raise_refused)

    if _is_async(function):

        @functools.wraps(function)
        async def protected_async(*args: P.args, **kwargs: P.kwargs) -> Any:
            judged = CallJudgedAsync(binding, args, kwargs)
            return await middleware.on_execute_tool_async(name, judged.arguments, judged)

        return cast("Callable[P, R]", protected_async)

    @functools.wraps(function)
    def protected(*args: P.args, **kwargs: P.kwargs) -> R:
        judged = CallJudged(binding, args, kwargs)
        return cast("R", middleware.on_execute_tool(name, judged.arguments, judged))

    return protected


def _loaded(runtime: Runtime, start: Path, agent: str | None) -> LoadedPolicy:
    """The policy at `start`; the runtime is closed again when there is none."""
    root = canonical_root(start)
    try:
        fault = project_fault(root)
        if fault is not None:
            raise fault
        return LoadedPolicy(runtime, root, cwd=str(start.resolve()), agent=agent)
    except InterposeError:
        runtime.close()
        raise


def _is_async(function: Callable[..., Any]) -> bool:
    by_call = getattr(function, "__call__", None)  # noqa: B004 - asked what it is, not whether it is there
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(by_call)


def _raise_refused(point: ToolCall | ToolResult, verdict: Verdict) -> NoReturn:
    refusal = verdict.refusal or Refusal("policy", "no reason was given")
    raise Refused(tool=point.tool_name, handler=refusal.handler, reason=refusal.reason, action=verdict.action)
