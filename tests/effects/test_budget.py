"""effects.budget: phases, warm-up, the window, percentiles, the environment."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.contracts.effects import HOOKS
from interpose.effects.budget import (
    TRACKED_KEYS,
    BadSetting,
    BudgetSettings,
    BudgetStats,
    BudgetTracker,
    percentile,
    settings_from_environment,
)


def warns(tracker: BudgetTracker, *samples: float) -> list[bool]:
    """What the tracker says about each sample in turn."""
    return [tracker.record("slow", "before_tool", sample).warn for sample in samples]


def test_hot_phases_have_tighter_budgets() -> None:
    """The defaults are 25, 25, 50, 75 and 150 ms; overrides merge over them."""
    tracker = BudgetTracker()
    assert [tracker.budget_for(hook) for hook in HOOKS] == [25, 25, 50, 75, 150]
    partial = BudgetTracker(BudgetSettings({"turn_end": 5}))
    assert [partial.budget_for(hook) for hook in HOOKS] == [25, 25, 50, 5, 150]


def test_warmup_is_silent_and_not_stored() -> None:
    """The first call never warns and leaves no sample; the next one is the first that counts."""
    tracker = BudgetTracker()
    first = tracker.record("a", "before_tool", 500.0)
    assert (first.exceeded, first.warmup, first.warn, first.stats) == (True, True, False, BudgetStats())
    second = tracker.record("a", "before_tool", 30.0)
    assert (second.warmup, second.stats) == (False, BudgetStats(1, 1, 1, 30.0, 30.0))


def test_a_lone_spike_is_not_steady_and_four_overruns_are() -> None:
    """One overrun does not warn; of four in a row the third and fourth do."""
    assert warns(BudgetTracker(), 1.0, 30.0, 1.0) == [False, False, False]
    assert warns(BudgetTracker(), 1.0, 30.0, 30.0, 30.0, 30.0) == [False, False, False, True, True]


def test_a_fast_call_never_warns() -> None:
    """However bad the window, a call within its budget does not warn; exactly at the budget is within."""
    assert warns(BudgetTracker(), 1.0, 30.0, 30.0, 30.0, 25.0) == [False, False, False, True, False]


def test_old_samples_leave_the_window() -> None:
    """After five calls the window holds five; the count of all goes on."""
    tracker = BudgetTracker()
    reading = tracker.record("a", "turn_end", 0.0)
    for sample in (100.0, 1.0, 2.0, 3.0, 4.0, 5.0):
        reading = tracker.record("a", "turn_end", sample)
    assert reading.stats == BudgetStats(sample_count=6, window=5, over_count=0, p50_ms=3.0, p95_ms=5.0)


def test_keys_are_registration_and_hook() -> None:
    """Another registration and another hook have their own warm-up."""
    tracker = BudgetTracker()
    tracker.record("a", "before_tool", 1.0)
    assert tracker.record("b", "before_tool", 1.0).warmup
    assert tracker.record("a", "after_tool", 1.0).warmup
    assert not tracker.record("a", "before_tool", 1.0).warmup


@pytest.mark.parametrize(
    ("given_settings", "warmup", "window", "threshold"),
    [
        (BudgetSettings(warmup_calls=-4, window=-1, threshold=0), 0, 1, 1),
        (BudgetSettings(window=2, threshold=9), 1, 2, 2),
        (BudgetSettings(window=8, threshold=8), 1, 8, 8),
    ],
)
def test_settings_are_brought_into_range(
    given_settings: BudgetSettings, warmup: int, window: int, threshold: int
) -> None:
    """Warm-up is at least 0, the window at least 1, and a small window cannot disable warnings."""
    assert (given_settings.warmup_calls, given_settings.window, given_settings.threshold) == (warmup, window, threshold)


def test_a_small_window_still_warns() -> None:
    """With a window of one every counted overrun warns."""
    assert warns(BudgetTracker(BudgetSettings(warmup_calls=0, window=1)), 30.0, 1.0, 30.0) == [True, False, True]


@given(st.lists(st.floats(0, 1000), min_size=1, max_size=20))
def test_the_quick_way_reads_the_same(samples: list[float]) -> None:
    """`overrun` is `record` for counted overruns, and None for everything else."""
    slow, quick = BudgetTracker(), BudgetTracker()
    for sample in samples:
        reading = slow.record("a", "before_tool", sample)
        assert quick.overrun("a", "before_tool", sample) == (
            reading if reading.exceeded and not reading.warmup else None
        )


@given(st.lists(st.floats(0, 1e6), min_size=1), st.integers(1, 100))
def test_percentiles_are_by_nearest_rank(samples: list[float], percent: int) -> None:
    """The percentile is the smallest sample that at least so many percent are not above."""
    found = percentile(tuple(samples), percent)
    at_most = sum(sample <= found for sample in samples)
    below = sum(sample < found for sample in samples)
    assert found in samples
    assert at_most * 100 >= percent * len(samples) > below * 100


def test_no_samples_have_percentile_zero() -> None:
    """The percentile of nothing is 0."""
    assert percentile((), 95) == 0.0


def test_the_environment_goes_by_phase_then_everywhere_then_default() -> None:
    """A phase's own variable wins, then the one for all, then the default; fractions are allowed."""
    environment = {"INTERPOSE_HOOK_BUDGET_MS": "40", "INTERPOSE_HOOK_BUDGET_TURN_END_MS": " 0.5 "}
    settings, bad = settings_from_environment(environment)
    assert dict(settings.budgets_ms) == {
        "before_tool": 40,
        "after_tool": 40,
        "turn_start": 40,
        "turn_end": 0.5,
        "on_compaction": 40,
    }
    assert bad == ()


@pytest.mark.parametrize("text", ["0", "-1", "inf", "nan", "abc", "1_0", "25ms"])
def test_a_bad_value_falls_to_the_next_layer_and_is_reported_once(text: str) -> None:
    """A typo never zeroes a budget: the next layer holds, and there is one report."""
    environment = {"INTERPOSE_HOOK_BUDGET_BEFORE_TOOL_MS": text, "INTERPOSE_HOOK_BUDGET_MS": "40"}
    settings, bad = settings_from_environment(environment)
    assert settings.budgets_ms["before_tool"] == 40
    assert [(one.variable, one.value) for one in bad] == [("INTERPOSE_HOOK_BUDGET_BEFORE_TOOL_MS", text)]
    everywhere, reports = settings_from_environment({"INTERPOSE_HOOK_BUDGET_MS": text})
    assert everywhere.budgets_ms["before_tool"] == 25
    assert len(reports) == 1


def test_counts_from_the_environment() -> None:
    """Warm-up may be 0; window and threshold are whole and above 0; a blank value counts as not set."""
    prefix = "INTERPOSE_HOOK_BUDGET_"
    settings, bad = settings_from_environment(
        {prefix + "WARMUP_CALLS": "0", prefix + "WINDOW": "7", prefix + "THRESHOLD": "1.5", prefix + "MS": " "}
    )
    assert (settings.warmup_calls, settings.window, settings.threshold) == (0, 7, 3)
    assert bad == (BadSetting(prefix + "THRESHOLD", "1.5", "a whole number from 1 to 1000000"),)


def test_many_threads_lose_no_sample() -> None:
    """Samples recorded by eight threads at once are all counted."""
    tracker = BudgetTracker(BudgetSettings(warmup_calls=0))
    threads = [
        threading.Thread(target=lambda: [tracker.overrun("a", "turn_end", 1.0) for _ in range(500)]) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert tracker.record("a", "turn_end", 1.0).stats.sample_count == 8 * 500 + 1


def test_the_number_of_keys_is_bounded() -> None:
    """Beyond the bound the pair seen first is forgotten and starts its warm-up anew."""
    tracker = BudgetTracker()
    for number in range(TRACKED_KEYS):
        tracker.overrun(str(number), "turn_end", 1.0)
    assert not tracker.record("0", "turn_end", 1.0).warmup
    tracker.overrun("one more", "turn_end", 1.0)
    assert tracker.record("0", "turn_end", 1.0).warmup
