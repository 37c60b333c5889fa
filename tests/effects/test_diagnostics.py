"""effects.diagnostics: one line each, and lone overruns quiet."""

from dataclasses import replace

import pytest

from interpose.effects.budget import BudgetStats
from interpose.effects.diagnostics import (
    NOTICES_KEPT,
    BudgetExceeded,
    DiagnosticOutlet,
    HookFailed,
    Notices,
    RegistrationConflict,
    SettingIgnored,
    describe,
    write_to_stderr,
)

STEADY = BudgetExceeded("slow", "before_tool", 31.25, 25.0, True, BudgetStats(9, 5, 3, 26.0, 31.0))
LONE = BudgetExceeded("slow", "turn_end", 80.0, 75.0, False, BudgetStats())


@pytest.mark.parametrize(
    ("diagnostic", "line"),
    [
        (
            HookFailed("a", "turn_end", "ValueError: x\n\x1b[31mred"),
            "a failed at turn_end: ValueError: x\\n\\x1b[31mred",
        ),
        (STEADY, "slow took 31.2 ms at before_tool (budget 25 ms); 3 of the last 5 over budget, p95 31.0 ms"),
        (LONE, "slow took 80.0 ms at turn_end (budget 75 ms)"),
        (
            RegistrationConflict("a", "user-hooks", 2, "builtin", "dropped"),
            "a of user-hooks (generation 2) was dropped: the id is taken (builtin)",
        ),
        (
            RegistrationConflict("a", "user-hooks", 2, "host", "evicted"),
            "a of user-hooks (generation 2) was evicted by a host registration with the same id",
        ),
        (SettingIgnored("V", "x", "a number"), "V='x' is ignored: expected a number"),
    ],
)
def test_each_diagnostic_is_one_line(diagnostic: HookFailed, line: str) -> None:
    """Every sort is one line without control characters."""
    assert describe(diagnostic) == line


def test_people_are_told_of_steady_slowness_once() -> None:
    """A lone overrun is no news; steady slowness is, once for each registration and hook; all else always is."""
    notices = Notices()
    elsewhere = replace(STEADY, hook="after_tool")
    failed = HookFailed("slow", "before_tool", "x")

    told = [notices.of(one) for one in (LONE, STEADY, STEADY, elsewhere, LONE, failed, failed)]

    assert [text is not None for text in told] == [False, True, False, True, False, True, True]
    assert told[1] == f"{describe(STEADY)}; this is told once"


def test_what_was_told_is_remembered_within_bounds() -> None:
    """When very many were told the memory starts anew, rather than growing for ever."""
    notices = Notices()
    for number in range(NOTICES_KEPT + 1):
        notices.of(replace(STEADY, registration_id=f"r{number}"))

    assert notices.of(replace(STEADY, registration_id="r0")) is not None
    assert notices.of(replace(STEADY, registration_id=f"r{NOTICES_KEPT}")) is None


def test_standard_error_is_told_of_steady_slowness_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lone overrun is quiet unless the debug variable is 1; everything else is always written."""
    monkeypatch.delenv("INTERPOSE_HOOK_BUDGET_DEBUG", raising=False)
    outlet = DiagnosticOutlet()
    outlet.emit(LONE)
    assert capsys.readouterr().err == ""
    outlet.emit(STEADY)
    outlet.emit(HookFailed("a", "turn_end", "b"))
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(" ")[:2] for line in lines] == [["[interpose:effects]", "slow"], ["[interpose:effects]", "a"]]
    monkeypatch.setenv("INTERPOSE_HOOK_BUDGET_DEBUG", "1")
    write_to_stderr(LONE)
    assert capsys.readouterr().err.startswith("[interpose:effects] slow took 80.0 ms")
