"""How long evaluations may take, and when slowness is steady enough to be told.

Knows: budgets per hook, warm-up, a rolling window per registration and hook. Does not know: what was evaluated; it
stops nothing and drops nothing.
"""

import math
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from interpose.contracts.effects import HOOKS, Hook

ENVIRONMENT_PREFIX = "INTERPOSE_HOOK_BUDGET_"
TRACKED_KEYS = 100_000
"""How many (registration, hook) pairs one tracker holds; beyond it the pair seen first is forgotten."""


@dataclass(frozen=True, slots=True)
class BudgetSettings:
    """Soft limits. Budgets given merge over the defaults; numbers out of range are brought into it.

    Attributes:
        budgets_ms: milliseconds per hook; a hook not named keeps its default.
        warmup_calls: the first calls of each registration at each hook that never count (at least 0).
        window: how many calls after warm-up are looked at (at least 1).
        threshold: how many of them must be over budget for a warning (1 to `window`).
    """

    budgets_ms: Mapping[Hook, float] = field(default_factory=dict)
    warmup_calls: int = 1
    window: int = 5
    threshold: int = 3

    def __post_init__(self) -> None:
        window = max(1, self.window)
        object.__setattr__(self, "budgets_ms", _default_budgets_ms() | dict(self.budgets_ms))
        object.__setattr__(self, "warmup_calls", max(0, self.warmup_calls))
        object.__setattr__(self, "window", window)
        object.__setattr__(self, "threshold", min(window, max(1, self.threshold)))


@dataclass(frozen=True, slots=True)
class BadSetting:
    """An environment value that was passed over for the next layer, and what it should have been."""

    variable: str
    value: str
    expected: str


@dataclass(frozen=True, slots=True)
class BudgetStats:
    """What the window held. All zero during warm-up.

    `sample_count` counts every call after warm-up; `window` and `over_count` count the samples held; percentiles are
    by nearest rank.
    """

    sample_count: int = 0
    window: int = 0
    over_count: int = 0
    p50_ms: float = 0.0
    p95_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class BudgetReading:
    """One call against its budget. `warn` says that it was over budget and so were enough calls before it."""

    budget_ms: float
    exceeded: bool
    warmup: bool
    warn: bool
    sample_count: int = 0
    samples: tuple[float, ...] = ()

    @property
    def stats(self) -> BudgetStats:
        """The window at that moment, computed when asked for."""
        if not self.samples:
            return BudgetStats()
        return BudgetStats(
            sample_count=self.sample_count,
            window=len(self.samples),
            over_count=_over(self.samples, self.budget_ms),
            p50_ms=percentile(self.samples, 50),
            p95_ms=percentile(self.samples, 95),
        )


class BudgetTracker:
    """Samples of one engine, for as long as it lives. Any number of threads may record at once."""

    def __init__(self, settings: BudgetSettings | None = None) -> None:
        self._settings = settings or BudgetSettings()
        self._budgets_ms = self._settings.budgets_ms
        self._warmup_calls = self._settings.warmup_calls
        self._samples: dict[tuple[str, Hook], _Samples] = {}
        self._lock = threading.Lock()

    def budget_for(self, hook: Hook) -> float:
        """Milliseconds that one evaluation at `hook` may take."""
        return self._settings.budgets_ms[hook]

    def record(self, registration_id: str, hook: Hook, elapsed_ms: float) -> BudgetReading:
        """Takes one sample and reads it against the budget; exactly at the budget is within it."""
        settings = self._settings
        budget_ms = settings.budgets_ms[hook]
        exceeded = elapsed_ms > budget_ms
        with self._lock:
            samples = self._sampled(registration_id, hook, elapsed_ms)
            counted, held = samples.calls - settings.warmup_calls, tuple(samples.held)
        if counted <= 0:
            return BudgetReading(budget_ms, exceeded, warmup=True, warn=False)

        warn = exceeded and _over(held, budget_ms) >= settings.threshold
        return BudgetReading(budget_ms, exceeded, False, warn, counted, held)

    def overrun(self, registration_id: str, hook: Hook, elapsed_ms: float) -> BudgetReading | None:
        """As `record`, but reads only a call after warm-up that was over budget; the quick way for a hot path."""
        if elapsed_ms > self._budgets_ms[hook]:
            reading = self.record(registration_id, hook, elapsed_ms)
            return None if reading.warmup else reading

        with self._lock:
            samples = self._samples.get((registration_id, hook))
            if samples is not None and samples.calls >= self._warmup_calls:
                samples.calls += 1
                samples.held.append(elapsed_ms)
                return None
            self._sampled(registration_id, hook, elapsed_ms)
        return None

    def _sampled(self, registration_id: str, hook: Hook, elapsed_ms: float) -> "_Samples":
        key = (registration_id, hook)
        samples = self._samples.get(key)
        if samples is None:
            samples = self._start(key)
        samples.calls += 1
        if samples.calls > self._settings.warmup_calls:
            samples.held.append(elapsed_ms)
        return samples

    def _start(self, key: tuple[str, Hook]) -> "_Samples":
        if len(self._samples) >= TRACKED_KEYS:
            del self._samples[next(iter(self._samples))]
        samples = self._samples[key] = _Samples(self._settings.window)
        return samples


def settings_from_environment(environment: Mapping[str, str]) -> tuple[BudgetSettings, tuple[BadSetting, ...]]:
    """Settings by `INTERPOSE_HOOK_BUDGET_…`, and the values that could not be used.

    For each hook `…<HOOK>_MS` goes before `…MS` before the default; `…WARMUP_CALLS`, `…WINDOW` and `…THRESHOLD` are
    whole numbers. A blank value counts as not set; a wrong one falls to the next layer and is reported once.
    """
    reader = _EnvironmentReader(environment)
    defaults = BudgetSettings()
    everywhere = reader.budget_ms("MS")
    budgets_ms: dict[Hook, float] = {}
    for hook in HOOKS:
        own = reader.budget_ms(f"{hook.upper()}_MS")
        chosen = own if own is not None else everywhere
        if chosen is not None:
            budgets_ms[hook] = chosen
    settings = BudgetSettings(
        budgets_ms,
        warmup_calls=reader.whole("WARMUP_CALLS", minimum=0, default=defaults.warmup_calls),
        window=reader.whole("WINDOW", minimum=1, default=defaults.window),
        threshold=reader.whole("THRESHOLD", minimum=1, default=defaults.threshold),
    )
    return settings, tuple(reader.bad)


LARGEST_COUNT = 1_000_000
"""The largest number of calls that a setting may name."""


def percentile(samples: tuple[float, ...], percent: int) -> float:
    """The nearest-rank percentile; 0 of no samples."""
    if not samples:
        return 0.0
    rank = math.ceil(percent / 100 * len(samples))
    return sorted(samples)[min(len(samples), max(1, rank)) - 1]


class _Samples:
    __slots__ = ("calls", "held")

    def __init__(self, window: int) -> None:
        self.calls = 0
        self.held: deque[float] = deque(maxlen=window)


class _EnvironmentReader:
    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.bad: list[BadSetting] = []

    def budget_ms(self, name: str) -> float | None:
        number = self._number(name)
        if number is None or number > 0:
            return number
        self._refuse(name, "a number of milliseconds above 0")
        return None

    def whole(self, name: str, *, minimum: int, default: int) -> int:
        number = self._number(name)
        if number is None:
            return default
        if number.is_integer() and minimum <= number <= LARGEST_COUNT:
            return int(number)
        self._refuse(name, f"a whole number from {minimum} to {LARGEST_COUNT}")
        return default

    def _number(self, name: str) -> float | None:
        text = self._environment.get(ENVIRONMENT_PREFIX + name, "").strip()
        if not text:
            return None
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if math.isfinite(number) and "_" not in text:
            return number
        self._refuse(name, "a number")
        return None

    def _refuse(self, name: str, expected: str) -> None:
        variable = ENVIRONMENT_PREFIX + name
        self.bad.append(BadSetting(variable, self._environment[variable], expected))


def _over(samples: tuple[float, ...], budget_ms: float) -> int:
    return sum(sample > budget_ms for sample in samples)


def _default_budgets_ms() -> dict[Hook, float]:
    return {"before_tool": 25.0, "after_tool": 25.0, "turn_start": 50.0, "turn_end": 75.0, "on_compaction": 150.0}
