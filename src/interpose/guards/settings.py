"""The numbers and words of guards that people may set: environment, then settings, then default.

Knows: names and ranges. Does not know: what the guards do with them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from interpose.effects.budget import BadSetting

Rigor: TypeAlias = Literal["high", "normal"]

TURN_BUDGET_VARIABLE: Final = "INTERPOSE_TURN_TOOL_CALL_BUDGET"
RIGOR_VARIABLE: Final = "INTERPOSE_RIGOR"

DEFAULT_TURN_TOOL_BUDGET: Final = 60
LARGEST_SAFE_NUMBER: Final = 2**53 - 1
"""The largest whole number that every JSON reader keeps exactly."""


@dataclass(frozen=True, slots=True)
class GuardSettings:
    """What the guards run with.

    Attributes:
        turn_tool_budget: the tool call of one turn that is refused first; the turn is told to stop 15 calls later.
            None sets no bound.
        rigor: how much the finish contract insists; None looks whether the project has validation rules.
    """

    turn_tool_budget: int | None = DEFAULT_TURN_TOOL_BUDGET
    rigor: Rigor | None = None


def guard_settings(
    environment: Mapping[str, str], *, turn_tool_budget: object = None, rigor: object = None
) -> tuple[GuardSettings, tuple[BadSetting, ...]]:
    """The settings in force, and each value that was passed over for the next layer.

    `turn_tool_budget` and `rigor` are what the settings file says, None when it says nothing. A blank variable counts
    as not set; numbers must be whole, above 0 and at most 2**53 - 1. Pure.
    """
    bad: list[BadSetting] = []
    budget = _environment_number(environment, bad)
    if budget is None and turn_tool_budget is not None:
        budget = _settings_number(turn_tool_budget, bad)
    level = _rigor(RIGOR_VARIABLE, environment.get(RIGOR_VARIABLE, "").strip().lower() or None, bad)
    if level is None:
        level = _rigor("guards.rigor", rigor, bad)
    return GuardSettings(budget or DEFAULT_TURN_TOOL_BUDGET, level), tuple(bad)


def _environment_number(environment: Mapping[str, str], bad: list[BadSetting]) -> int | None:
    text = environment.get(TURN_BUDGET_VARIABLE, "").strip()
    if not text:
        return None
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(LARGEST_SAFE_NUMBER)) else 0
    return _in_range(TURN_BUDGET_VARIABLE, number, text, bad)


def _settings_number(value: object, bad: list[BadSetting]) -> int | None:
    number = value if isinstance(value, int) and not isinstance(value, bool) else 0
    return _in_range("guards.turn_tool_budget", number, str(value), bad)


def _in_range(name: str, number: int, text: str, bad: list[BadSetting]) -> int | None:
    if 0 < number <= LARGEST_SAFE_NUMBER:
        return number
    bad.append(BadSetting(name, text, f"a whole number from 1 to {LARGEST_SAFE_NUMBER}"))
    return None


def _rigor(name: str, value: object, bad: list[BadSetting]) -> Rigor | None:
    match value:
        case None:
            return None
        case "high":
            return "high"
        case "normal":
            return "normal"
        case _:
            bad.append(BadSetting(name, str(value), "high or normal"))
            return None
