"""Does a registration apply to an input?

Knows: hooks, tool names, aliases, the trailing `*`. Does not know: the table, or what a name stands for.
"""

from collections.abc import Iterable, Sequence

from interpose.contracts.effects import HookInput, Registration

WILDCARD = "*"
"""As the last character of a tool name in a scope it means: every name that starts with what stands before."""


def names_of(tool_name: str | None, aliases: Sequence[str]) -> tuple[str, ...]:
    """Every name of the tool, the canonical one first; empty when the input names no tool."""
    return tuple(aliases) if tool_name is None else (tool_name, *aliases)


def covers(tool_names: Sequence[str] | None, names: Sequence[str]) -> bool:
    """Whether a scope holds one of `names`: exactly and case-sensitively, or by prefix; None holds every input."""
    if tool_names is None:
        return True
    return any(_covers_one(member, name) for member in tool_names for name in names)


def select(hook_input: HookInput, registrations: Iterable[Registration]) -> tuple[Registration, ...]:
    """Those that match, in their order, each once however many aliases match. Asks every one of them."""
    names = names_of(hook_input.tool_name, hook_input.tool_aliases)
    return tuple(
        registration
        for registration in registrations
        if hook_input.hook in registration.hooks and covers(registration.tool_names, names)
    )


def _covers_one(member: str, name: str) -> bool:
    return name.startswith(member[:-1]) if member.endswith(WILDCARD) else name == member
