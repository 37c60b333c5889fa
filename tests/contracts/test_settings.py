"""Checks of settings, of names, and of a StopIteration that nobody meant."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interpose.contracts import settings
from interpose.contracts.errors import ConfigError, ToolNameError, UnknownToolError
from interpose.contracts.naming import not_a_name
from interpose.contracts.stopping import stop_of, stopped


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (settings.a_flag, True),
        (settings.a_count, 1),
        (settings.a_port, 0),
        (settings.seconds, 0.5),
        (settings.an_age, 0),
        (settings.a_text, "a"),
        (settings.a_function, len),
        (settings.a_table, {"a": ""}),
        (settings.an_environment, {"A": "b=c"}),
        (settings.headers, {"x-key": "a b\t"}),
    ],
)
def test_what_can_be_is_given_back(check: Callable[[str, Any], Any], value: Any) -> None:
    """Equal to what was given; tables as copies."""
    kept = check("here", value)
    assert kept == value
    assert (kept is value) != isinstance(value, dict)


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (settings.a_flag, 1),
        (settings.a_count, True),
        (settings.a_port, 65_536),
        (settings.seconds, math.nan),
        (settings.seconds, 0),
        (settings.an_age, -1),
        (settings.an_age, False),
        (settings.a_text, "a\0"),
        (settings.a_function, "len"),
        (settings.a_table, {"a": b""}),
        (settings.an_environment, {"A=": "b"}),
        (settings.headers, {"x key": "a"}),
        (settings.headers, {"x-key": "a\n"}),
    ],
)
def test_what_cannot_be_names_the_setting(check: Callable[[str, Any], Any], value: Any) -> None:
    """With what was expected."""
    with pytest.raises(ConfigError, match=r"^here.*\(expected "):
        check("here", value)


def test_a_path_is_kept_as_text_and_texts_as_a_tuple() -> None:
    """Whatever they were given as."""
    assert settings.a_path("here", Path("a") / "b", "a path") == str(Path("a") / "b")
    assert settings.texts("here", iter(["a", "b"]), "texts") == ("a", "b")
    assert settings.one_of("here", None, (None, "a")) is None
    with pytest.raises(ConfigError, match=r"^here: is True \(expected 1 or 'a'\)"):
        settings.one_of("here", True, (1, "a"))


@pytest.mark.parametrize("name", ["a", "mail.send now", "é", "x" * 256, "a__b"])
def test_what_can_be_a_name(name: str) -> None:
    """Letters of any script, and spaces inside."""
    assert not_a_name(name) is None


def test_a_name_of_a_type_of_its_own_is_its_text() -> None:
    """A text by descent is one; the words about one that is none hold little of it."""

    class Own(str):
        __slots__ = ()

    assert not_a_name(Own("a")) is None
    assert not_a_name(Own("")) is not None
    words = str(not_a_name("x" * 1_000_000))
    assert len(words) < 250
    assert "of 1,000,000 characters" in words


def test_a_name_that_is_none_is_a_tool_that_is_unknown() -> None:
    """For who catches the one and not the other."""
    error = ToolNameError(5, "the tool name 5: expected more")
    assert isinstance(error, UnknownToolError)
    assert (str(error), error.tool, error.available) == ("the caller gave the tool name 5: expected more", "5", ())


def test_a_stop_iteration_is_known_in_each_form() -> None:
    """Itself, and what a generator makes of it; another RuntimeError is none. Its notes stay."""

    def generator() -> Any:
        yield next(iter(()))

    with pytest.raises(RuntimeError) as caught:
        next(generator())
    stop = StopIteration(1)
    stop.add_note("noted")
    assert stop_of(stop) is stop
    assert isinstance(stop_of(caught.value), StopIteration)
    assert stop_of(RuntimeError("generator raised StopIteration")) is stop_of(ValueError()) is None
    assert (str(stopped("it", stop)), stopped("it", stop).__notes__) == ("it raised StopIteration(1)", ["noted"])
