"""What a project's own `.interpose/config.toml` may say: it makes a user's setting tighter, never looser.

Knows: the keys that a repository may set, and which way is tighter. Does not know: where the user's values came from.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from interpose.assembly.folders import PROJECT_FOLDER
from interpose.assembly.source import Source
from interpose.contracts.errors import ConfigError

PROJECT_FILE: Final = "config.toml"
ASK_KEY: Final = "gateway.ask_timeout_s"
LONGEST_ASK_S: Final = 600.0

_TOLD_ELSEWHERE: Final = "handlers"
_POSSIBLE: Final = f"a project may set {ASK_KEY} alone; everything else belongs in your own config.toml"


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """How long a call waits for a person in this project, and what of the file is left out of account, in words."""

    ask_timeout_s: float
    problems: tuple[str, ...] = ()


def project_settings(root: str | None, *, ask_timeout_s: float) -> ProjectSettings:
    """The settings in force in the project at `root`, where the user's `ask_timeout_s` is the most.

    What the file may not say changes nothing and is a problem; a file that is not there says nothing. Never raises.
    """
    if root is None:
        return ProjectSettings(ask_timeout_s)
    path = Path(root) / PROJECT_FOLDER / PROJECT_FILE
    try:
        text = path.read_text(encoding="utf-8")
        tree = tomllib.loads(text)
    except FileNotFoundError:
        return ProjectSettings(ask_timeout_s)
    except (OSError, ValueError) as error:
        return ProjectSettings(ask_timeout_s, (str(ConfigError(str(path), f"cannot be read: {error}", "mend it")),))

    source = Source(str(path), text)
    problems = [str(ConfigError(source.place(key), "has no place here", _POSSIBLE)) for key in _strange(tree)]
    gateway = tree.get("gateway")
    wanted = gateway.get("ask_timeout_s") if isinstance(gateway, dict) else None
    fault = None if wanted is None else _fault(wanted, ask_timeout_s)
    if fault is not None:
        problems.append(str(ConfigError(source.place(ASK_KEY), *fault)))
    if wanted is None or fault is not None:
        return ProjectSettings(ask_timeout_s, tuple(problems))
    return ProjectSettings(float(wanted), tuple(problems))


def _strange(tree: Mapping[str, Any]) -> Iterator[str]:
    for section, value in tree.items():
        if section == "gateway" and isinstance(value, dict):
            yield from (f"gateway.{key}" for key in value if key != "ask_timeout_s")
        elif section != _TOLD_ELSEWHERE:
            yield section


def _fault(wanted: Any, most_s: float) -> tuple[str, str] | None:
    if isinstance(wanted, bool) or not isinstance(wanted, int | float) or not 1 <= wanted <= LONGEST_ASK_S:
        return f"{wanted!r} is no time to wait for a person", "1 to 600 seconds"
    if wanted > most_s:
        return f"{wanted:g} s is more than your own {most_s:g} s, which stay", "a project may only make it shorter"
    return None
