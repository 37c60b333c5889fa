"""Which commands prove that a change works.

Knows: test runners, linters, builds and type checkers by their names. Does not know: whether they passed.
"""

from dataclasses import dataclass
from typing import Final

from interpose.command.reading import Reading, SimpleCommand
from interpose.contracts.decisions import Unknown
from interpose.contracts.effects import HookInput
from interpose.guards.calls import CallReader

_RUNNERS: Final = frozenset({"npm", "pnpm", "yarn", "bun"})
_SCRIPTS: Final = ("test", "lint", "build", "typecheck", "check", "format", "ci")
_TESTERS: Final = frozenset({"cargo", "go", "make", "ninja", "mvn", "mvnw", "gradle", "gradlew", "dotnet", "swift"})
_CHECKERS: Final = frozenset({"cargo", "make", "gradle", "gradlew"})
_BY_ITSELF: Final = frozenset({"pytest", "ctest", "tox", "nox", "jest", "vitest"})
_RUN_BY: Final = frozenset({"uv", "poetry", "pipenv", "hatch", "pdm", "rye"})
_NPX: Final = frozenset({"npx", "bunx", "pnpx"})


@dataclass(frozen=True, slots=True)
class Validations:
    """Tells of each shell call which of its commands validates. Any thread may ask; it never raises."""

    reader: CallReader

    def __call__(self, given: HookInput) -> str | None:
        """The first command that validates, for people, or None."""
        if given.tool_name != "shell":
            return None
        reading = self.reader.read(given)
        return None if isinstance(reading, Unknown) else validation_command(reading)


def validation_command(reading: Reading) -> str | None:
    """The first command that validates, for people, or None."""
    return next((command.text for command in reading.commands if _validates(command)), None)


def _validates(command: SimpleCommand) -> bool:
    if any(word.dynamic for word in command.words[:1]):
        return False
    words = [word.text for word in command.words]
    return _is_validation(command.name, words)


def _is_validation(name: str, words: list[str]) -> bool:
    first = words[0] if words else ""
    if name in _BY_ITSELF:
        return True
    if name in _RUNNERS:
        script = words[1] if first == "run" and len(words) > 1 else first
        return script == "test" or (script.startswith(_SCRIPTS) and (first == "run" or name != "npm"))
    if name.startswith("python"):
        return words[:2] == ["-m", "pytest"]
    if name in _TESTERS:
        return first == "test" or (first == "check" and name in _CHECKERS)
    if name in _RUN_BY and first == "run" and len(words) > 1:
        return _is_validation(words[1], words[2:])
    return name in _NPX and bool(words) and _is_validation(first, words[1:])
