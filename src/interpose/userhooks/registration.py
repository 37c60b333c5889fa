"""A user hook as the effect engine runs it.

Knows: how an answer to a hook's questions becomes effects. Does not know: tables, generations, files.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from interpose.command.reader import CommandReader
from interpose.command.reading import Found, NotFound
from interpose.contracts.decisions import Unknown
from interpose.contracts.effects import BlockTool, Effect, Evaluated, EvaluationContext, HookInput, Registration
from interpose.userhooks.hooks import UserHook
from interpose.userhooks.matching import Matcher, Workspace

SHOWN_CHARS: Final = 120
"""A command or file in a reason is cut here."""


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
                return (_told(self.hook.effect, answer),)
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


def _told(effect: Effect, found: Found) -> Effect:
    """The effect; a refusal also says which part of a line and which file it is about, where that is not plain."""
    if not isinstance(effect, BlockTool):
        return effect
    command = " ".join(found.command.split())
    parts = [
        f"in: {_cut(command)}" if command else "",
        f"file: {_cut(found.file)}" if found.file else "",
    ]
    clause = "; ".join(part for part in parts if part)
    return replace(effect, reason=f"{effect.reason} ({clause})") if clause else effect


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 1] + "…"
