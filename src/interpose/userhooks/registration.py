"""A user hook as the effect engine runs it.

Knows: how an answer to a hook's questions becomes effects. Does not know: tables, generations, files.
"""

from collections.abc import Callable
from dataclasses import dataclass

from interpose.command.reader import CommandReader
from interpose.command.reading import Found, NotFound
from interpose.contracts.decisions import Unknown
from interpose.contracts.effects import Evaluated, EvaluationContext, HookInput, Registration
from interpose.userhooks.hooks import UserHook
from interpose.userhooks.matching import Matcher, Workspace


@dataclass(frozen=True, slots=True)
class HookEvaluation:
    """Asks the hook's questions and answers with its effect. Keeps nothing between calls; any thread may call."""

    hook: UserHook
    ask: Callable[[HookInput], Found | NotFound | Unknown]

    def __call__(self, given: HookInput, _context: EvaluationContext) -> Evaluated:
        """The hook's effect, nothing, or from a guard that cannot tell `Unknown`."""
        if not self.hook.enabled:
            return ()
        answer = self.ask(given)
        match answer:
            case Found():
                return (self.hook.effect,)
            case Unknown():
                return answer if self.hook.is_guard else ()
            case NotFound():
                return ()


def registration_of(hook: UserHook, workspace: Workspace, reader: CommandReader) -> Registration:
    """The registration of one hook in one workspace; `reader` may be shared by all.

    A hook that asks about paths is `blocking`: it looks at the filesystem, which may be slow or far away.
    """
    return Registration(
        id=hook.id,
        description=hook.description or f"{hook.kind} of {hook.source}",
        hooks=(hook.on,),
        tool_names=hook.tool_names,
        evaluate=HookEvaluation(hook, Matcher(hook.matchers, workspace, reader).ask),
        kind="user_hook",
        fail_closed=hook.fail_closed,
        blocking=bool(hook.matchers.path),
        mode=hook.mode,
        on_unknown=hook.on_unknown,
    )
