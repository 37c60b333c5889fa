"""The words of hooks.yaml in tables: keys, kinds, effects, and which effect may stand at which event.

Knows: what may be written. Reading and the JSON Schema are both made from these tables.
Does not know: files, YAML, matching.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from interpose.catalog.names import CANONICAL_TOOLS
from interpose.contracts.effects import (
    ANNOTATION_SEVERITIES,
    HOOKS,
    REMINDER_SEVERITIES,
    EffectKind,
    Hook,
)

HookKind: TypeAlias = Literal["prompt", "effect"]
HOOK_KINDS: Final[tuple[HookKind, ...]] = ("prompt", "effect")

Shape: TypeAlias = Literal["text", "flag", "choice", "words", "word_or_words", "choices", "effect"]
"""The shapes of values: a text; true or false; one of a closed set; a list of texts; a text or a list of texts;
a list of members of a closed set; an effect."""


@dataclass(frozen=True, slots=True)
class Key:
    """One key: the shape of its value, the closed set if there is one, and a line for people."""

    shape: Shape
    doc: str
    choices: tuple[str, ...] = ()
    required: bool = False


TOOL_HOOKS: Final[tuple[Hook, ...]] = ("before_tool", "after_tool")
GUARD_EFFECTS: Final[frozenset[EffectKind]] = frozenset({"block_tool", "protect_path"})
"""Effects that refuse something; a hook with one is a guard."""

PATH_TOOLS: Final = ("shell", "read", "write", "edit", "patch", "search", "fetch")
"""What `path:` means when `tools:` is absent: every tool that names files (a fetch does by a file URL)."""

NAMELESS_TOOLS: Final[Mapping[str, tuple[str, ...]]] = {
    "command": tuple(tool for tool in CANONICAL_TOOLS if tool != "shell"),
    "path": tuple(tool for tool in CANONICAL_TOOLS if tool not in PATH_TOOLS),
}
"""For a matcher, the tools that never have what it asks about."""

MESSAGE_MAX_CHARS: Final = 2000
"""A prompt's message is cut here."""

ID_MAX_CHARS: Final = 100
ID_PATTERN: Final = r"[a-z][a-z0-9-]*(\.[a-z][a-z0-9-]*)*"

APPLICABILITY: Final[Mapping[Hook, tuple[EffectKind, ...]]] = {
    "before_tool": ("block_tool", "annotate_tool_result", "require_tool", "lock_tools", "protect_path"),
    "after_tool": ("annotate_tool_result", "require_tool", "lock_tools", "protect_path"),
    "turn_start": ("inject_reminder", "notify_operator", "require_tool", "lock_tools"),
    "turn_end": ("inject_reminder", "request_continuation", "notify_operator"),
    "on_compaction": (),
}

KEYS: Final[Mapping[str, Key]] = {
    "id": Key("text", "A name of your own, such as no-force-push. Without one, a name is made from the content."),
    "on": Key("choice", "The event at which the hook is asked.", HOOKS, required=True),
    "kind": Key("choice", "prompt reminds the model; effect does one of eight things.", HOOK_KINDS, required=True),
    "description": Key("text", "One line for people."),
    "tools": Key(
        "words",
        "Tools it is asked for: shell, read, write, edit, patch, fetch, search, agent, "
        "mcp:SERVER/TOOL, or any name as an agent writes it. A name that ends in * is a prefix.",
    ),
    "command": Key(
        "word_or_words",
        "Command patterns; one that matches is enough. Judged by the words of the "
        "command: 'rm -r|-R|--recursive' also means rm -fr.",
    ),
    "path": Key(
        "word_or_words",
        "Files in the manner of .gitignore; the last pattern that matches decides, and one "
        "that starts with ! takes back.",
    ),
    "access": Key(
        "choices", "What happens to the files of path; any of the three when absent.", ("read", "write", "remove")
    ),
    "enabled": Key("flag", "false keeps the hook listed and silent."),
    "mode": Key(
        "choice",
        "observe writes to the journal what the hook would have done, and does nothing.",
        ("enforce", "observe"),
    ),
    "on_unknown": Key(
        "choice",
        "What happens when it cannot be read what a call does: ask the person (refuse where "
        "nobody can be asked), refuse, or pass.",
        ("ask", "refuse", "pass"),
    ),
    "fail_closed": Key("flag", "true refuses the call when this hook itself fails."),
    "message": Key("text", "kind prompt: what the model is told. At most 2000 characters are used."),
    "severity": Key("choice", "kind prompt: how urgent the message is; info when absent.", REMINDER_SEVERITIES),
    "effect": Key("effect", "kind effect: what happens when the hook matches."),
}

OWN_KEYS: Final[Mapping[HookKind, tuple[str, ...]]] = {"prompt": ("message", "severity"), "effect": ("effect",)}
"""Keys that belong to one kind; the first of each is required there."""

_REASON: Final = Key("text", "Shown to the model and to you.", required=True)
_SEVERITY: Final = "How urgent it is; info when absent."

EFFECT_KEYS: Final[Mapping[EffectKind, Mapping[str, Key]]] = {
    "inject_reminder": {
        "message": Key("text", "What the model is told.", required=True),
        "severity": Key("choice", _SEVERITY, REMINDER_SEVERITIES),
    },
    "annotate_tool_result": {
        "message": Key("text", "Added to the result the model sees.", required=True),
        "severity": Key("choice", _SEVERITY, ANNOTATION_SEVERITIES),
    },
    "block_tool": {"reason": _REASON, "severity": Key("choice", "Always hard-block.", ("hard-block",))},
    "protect_path": {
        "path": Key("text", "The one file or folder to protect, no pattern.", required=True),
        "reason": _REASON,
    },
    "request_continuation": {"message": Key("text", "The nudge that carries the turn on.", required=True)},
    "require_tool": {"toolName": Key("text", "The tool the next request must use.", required=True)},
    "lock_tools": {},
    "notify_operator": {
        "message": Key("text", "Shown to you alone, never to the model.", required=True),
        "key": Key("text", "Names the source, so that repeats replace each other.", required=True),
    },
}


def events_for(kind: EffectKind) -> tuple[Hook, ...]:
    """The events at which an effect of `kind` may stand, in the order of events."""
    return tuple(event for event in HOOKS if kind in APPLICABILITY[event])
