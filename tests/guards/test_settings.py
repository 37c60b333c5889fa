"""guards.settings: environment, then settings, then default."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpose.effects.budget import BadSetting
from interpose.guards.settings import (
    DEFAULT_TURN_TOOL_BUDGET,
    LARGEST_SAFE_NUMBER,
    RIGOR_VARIABLE,
    TURN_BUDGET_VARIABLE,
    GuardSettings,
    guard_settings,
)


def test_nothing_set_means_the_defaults() -> None:
    """Sixty calls in a turn, and a rigor that is looked up."""
    assert guard_settings({}) == (GuardSettings(60, None), ())
    assert guard_settings({TURN_BUDGET_VARIABLE: " ", RIGOR_VARIABLE: ""}) == (GuardSettings(60, None), ())


def test_the_environment_stands_above_the_settings() -> None:
    """Of two good values the variable's is used."""
    environment = {TURN_BUDGET_VARIABLE: " 200 ", RIGOR_VARIABLE: "High"}
    assert guard_settings(environment, turn_tool_budget=90, rigor="normal") == (GuardSettings(200, "high"), ())
    assert guard_settings({}, turn_tool_budget=90, rigor="normal") == (GuardSettings(90, "normal"), ())


@pytest.mark.parametrize(
    "text", ["0", "-1", "1.5", "many", "1e3", "1_000", "+5", "\u0661", str(LARGEST_SAFE_NUMBER + 1), "9" * 5_000]
)
def test_a_wrong_variable_falls_to_the_settings_and_is_reported(text: str) -> None:
    """Only positive safe whole numbers are numbers."""
    settings, bad = guard_settings({TURN_BUDGET_VARIABLE: text}, turn_tool_budget=7)
    assert settings.turn_tool_budget == 7
    assert bad == (BadSetting(TURN_BUDGET_VARIABLE, text, "a whole number from 1 to 9007199254740991"),)


@pytest.mark.parametrize("value", [0, -1, 1.5, "5", True, [], LARGEST_SAFE_NUMBER + 1])
def test_a_wrong_setting_falls_to_the_default_and_is_reported(value: object) -> None:
    """The settings file is held to the same range."""
    settings, bad = guard_settings({}, turn_tool_budget=value)
    assert settings.turn_tool_budget == DEFAULT_TURN_TOOL_BUDGET
    assert [one.variable for one in bad] == ["guards.turn_tool_budget"]


def test_a_wrong_rigor_is_reported() -> None:
    """Only two words are known."""
    settings, bad = guard_settings({RIGOR_VARIABLE: "extreme"}, rigor="low")
    assert settings.rigor is None
    assert [(one.variable, one.expected) for one in bad] == [
        (RIGOR_VARIABLE, "high or normal"),
        ("guards.rigor", "high or normal"),
    ]


@settings(deadline=None)
@given(st.integers(1, LARGEST_SAFE_NUMBER))
def test_every_safe_number_is_taken(number: int) -> None:
    """From 1 to 2**53 - 1."""
    assert guard_settings({TURN_BUDGET_VARIABLE: str(number)})[0].turn_tool_budget == number
