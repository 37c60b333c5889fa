"""launch.pause."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from interpose.contracts.ports import Pause
from interpose.launch.pause import SqlitePause, SwitchedOff


class _HeldClock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.time = 1_000_000_000.0

    def now(self) -> float:
        """The time as it was set."""
        return self.time

    def monotonic(self) -> float:
        """The same, from another start."""
        return self.time - 999_999_000.0


@pytest.fixture
def clock() -> _HeldClock:
    """A clock that the test holds."""
    return _HeldClock()


@pytest.fixture
def pause(tmp_path: Path, clock: _HeldClock) -> Iterator[SqlitePause]:
    """An open switch."""
    opened = SqlitePause(tmp_path / "state.db", clock=clock)
    yield opened
    opened.close()


def test_nothing_is_off_at_first(pause: SqlitePause) -> None:
    """Judging is on unless somebody switched it off."""
    port: Pause = pause

    assert port.is_off("/w") is False
    assert pause.state() == ()


def test_a_workspace_is_off_until_its_time(pause: SqlitePause, clock: _HeldClock) -> None:
    """Others stay on, requests without a workspace too, and the end comes by itself."""
    pause.switch_off("/w", until=clock.time + 600)

    assert (pause.is_off("/w"), pause.is_off("/v"), pause.is_off("")) == (True, False, False)
    assert pause.state() == (SwitchedOff("/w", clock.time + 600),)
    clock.time += 600
    assert pause.is_off("/w") is False
    assert pause.state() == ()


def test_everywhere_is_off_for_all(pause: SqlitePause, clock: _HeldClock) -> None:
    """None means each workspace and what has none; what lasts longest is told first."""
    pause.switch_off("/w", until=clock.time + 5)
    pause.switch_off(None, until=clock.time + 600)

    assert all(pause.is_off(workspace) for workspace in ("/w", "/v", ""))
    assert [switched.workspace for switched in pause.state()] == [None, "/w"]


def test_switching_on_ends_one_or_all(pause: SqlitePause, clock: _HeldClock) -> None:
    """One workspace is switched on alone; with none named all are."""
    for workspace in ("/w", "/v"):
        pause.switch_off(workspace, until=clock.time + 600)

    pause.switch_on("/w")
    assert (pause.is_off("/w"), pause.is_off("/v")) == (False, True)
    pause.switch_on()
    assert pause.is_off("/v") is False


def test_a_later_switch_replaces_an_earlier_one_and_old_rows_go(pause: SqlitePause, clock: _HeldClock) -> None:
    """The last word counts, also when it is shorter."""
    pause.switch_off("/old", until=clock.time + 1)
    pause.switch_off("/w", until=clock.time + 600)
    pause.switch_off("/w", until=clock.time + 60)
    clock.time += 60

    assert pause.is_off("/w") is False
    pause.switch_off("/v", until=clock.time + 1)
    assert pause._database.query("SELECT workspace FROM pauses") == [("/v",)]


def test_another_instance_sees_it_within_a_quarter_of_a_second(tmp_path: Path, clock: _HeldClock) -> None:
    """An answer is read anew at most four times a second, and never older than that."""
    ours, theirs = (SqlitePause(tmp_path / "state.db", clock=clock) for _ in range(2))
    assert ours.is_off("/w") is False

    theirs.switch_off("/w", until=clock.time + 600)
    assert ours.is_off("/w") is False
    clock.time += 0.25
    assert ours.is_off("/w") is True
    theirs.switch_on()
    clock.time += 0.25
    assert ours.is_off("/w") is False
    ours.close()
    theirs.close()


def test_a_table_that_cannot_be_read_means_on(pause: SqlitePause, clock: _HeldClock) -> None:
    """Judging never stops because of a broken file."""
    pause.switch_off("/w", until=clock.time + 600)
    pause.close()

    assert pause.is_off("/w") is False
