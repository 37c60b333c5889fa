"""What a model is told about tools and their failures, all of it data from a TOML file.

Knows: the texts, which fields of a JSON object make a call, how a broken reply is healed.
Does not know: APIs, drivers, what a tool does.
"""

import fnmatch
import functools
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypeAlias

from interpose.contracts.drivers import Tool
from interpose.contracts.errors import ConfigError
from interpose.contracts.settings import a_path

UnknownTool: TypeAlias = Literal["silent", "retry_with_list"]
"""What a call of an unknown tool leads to: nothing, as it may be another driver's, or a text that lists the tools."""

_PLACEHOLDER = re.compile(r"\{(\w+)\}")

_KEYS = {
    "system_message.template": "system_template",
    "call_example.example": "call_example",
    "native.system_message": "native_system_message",
    "native.models_without": "models_without_native",
    "parsing.tool_fields": "tool_fields",
    "parsing.tool_fields_next_to_arguments": "tool_fields_next_to_arguments",
    "parsing.argument_fields": "argument_fields",
    "parsing.unknown_tool": "unknown_tool",
    "results.role": "result_role",
    "results.skipped": "skipped",
    "retry.malformed": "retry_malformed",
    "retry.unknown_tool": "retry_unknown_tool",
    "retry.failed": "retry_failed",
    "retry.misconfigured": "retry_misconfigured",
    "healing": "healing",
}
_LISTS = frozenset({"models_without_native", "tool_fields", "tool_fields_next_to_arguments", "argument_fields"})


@dataclass(frozen=True, slots=True)
class Healing:
    """One substitution over a reply that holds no call as it stands."""

    pattern: re.Pattern[str]
    replacement: str


@dataclass(frozen=True, slots=True)
class PromptStrategy:
    """The texts and field names of one way of talking to a model; `prompts.toml` explains each.

    `tool_description` and `system_message` stand in place of what is made from the tools. Texts have placeholders in
    braces; any other braces stay as they are. A value: share it among drivers and threads.
    """

    system_template: str
    call_example: str
    native_system_message: str
    models_without_native: tuple[str, ...]
    tool_fields: tuple[str, ...]
    tool_fields_next_to_arguments: tuple[str, ...]
    argument_fields: tuple[str, ...]
    unknown_tool: UnknownTool
    result_role: str
    skipped: str
    retry_malformed: str
    retry_unknown_tool: str
    retry_failed: str
    retry_misconfigured: str
    healing: tuple[Healing, ...]
    tool_description: str | None = None
    system_message: str | None = None

    @staticmethod
    def default() -> "PromptStrategy":
        """The strategy that comes with interpose."""
        return _default()

    @staticmethod
    def from_toml(path: Path | str) -> "PromptStrategy":
        """The default with what the file at `path` changes.

        Raises ConfigError naming the file and the key when it cannot be read, or says something impossible.
        """
        where = a_path("PromptStrategy.from_toml(path)", path, "the path of a file")
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(where, f"cannot be read: {error}") from error
        return replace(_default(), **_fields(text, where))

    def function_description(self, tools: Sequence[Tool]) -> str:
        """The tools for the model, as one JSON object, or the text that stands in their place."""
        if self.tool_description is not None:
            return self.tool_description

        told = [{"name": t.name, "description": t.description, "parameters": t.input_schema()} for t in tools]
        return json.dumps({"tools": told}, ensure_ascii=False, indent=1)

    def driver_system_message(self, tools: Sequence[Tool]) -> str:
        """The whole system message for a model that is told about tools in words."""
        if self.system_message is not None:
            return self.system_message

        description = self.function_description(tools)
        return filled(self.system_template, {"tools": description, "call_example": self.call_example}).strip()

    def has_native_tools(self, model_name: str | None) -> bool:
        """Whether the model takes native tools; unknown models do."""
        if model_name is None:
            return True
        return not any(fnmatch.fnmatchcase(model_name, pattern) for pattern in self.models_without_native)

    def healed(self, text: str) -> str:
        """`text` after every substitution."""
        for step in self.healing:
            text = step.pattern.sub(step.replacement, text)
        return text


def filled(template: str, values: Mapping[str, str]) -> str:
    """`template` with its placeholders filled, once: braces in a value, and unknown placeholders, stay as they are."""
    return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), template)


@functools.cache
def _default() -> PromptStrategy:
    where = files("interpose.drivers") / "prompts.toml"
    return PromptStrategy(**_fields(where.read_text(encoding="utf-8"), str(where)))


def _fields(text: str, where: str) -> dict[str, Any]:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(where, f"is not TOML: {error}") from error

    given: dict[str, Any] = {}
    for key, value in _flattened(data):
        if key not in _KEYS:
            raise ConfigError(where, f"unknown key {key!r}", f"known are: {', '.join(sorted(_KEYS))}")
        given[_KEYS[key]] = _checked(_KEYS[key], value, f"{where}: {key}")
    return given


def _flattened(data: Mapping[str, Any]) -> list[tuple[str, Any]]:
    pairs: list[tuple[str, Any]] = []
    for section, value in data.items():
        if isinstance(value, dict):
            pairs += [(f"{section}.{key}", inner) for key, inner in value.items()]
            continue
        pairs.append((section, value))
    return pairs


def _checked(field: str, value: Any, where: str) -> Any:
    if field == "healing":
        return _healing(value, where)
    if field in _LISTS:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise ConfigError(where, f"is {value!r}, expected a list of strings")
        return tuple(value)
    if not isinstance(value, str):
        raise ConfigError(where, f"is {value!r}, expected a string")
    if field == "unknown_tool" and value not in {"silent", "retry_with_list"}:
        raise ConfigError(where, f"is {value!r}, expected 'silent' or 'retry_with_list'")
    return value


def _healing(value: Any, where: str) -> tuple[Healing, ...]:
    steps: list[Healing] = []
    for number, step in enumerate(value if isinstance(value, list) else [value], 1):
        if not isinstance(step, dict) or {k: type(v) for k, v in step.items()} != {"pattern": str, "replacement": str}:
            raise ConfigError(f"{where} {number}", f"is {step!r}, expected a table of pattern and replacement")
        try:
            compiled = re.compile(step["pattern"])
            compiled.sub(step["replacement"], "")
        except (re.error, IndexError) as error:
            raise ConfigError(f"{where} {number}", f"is no regular expression: {error}") from error
        steps.append(Healing(compiled, step["replacement"]))
    return tuple(steps)
