"""effects.snapshot: rules travel as data and come alive where they are built in."""

import json
import subprocess
import sys
from typing import Any

import pytest

from interpose.contracts.effects import HookInput, LockTools, NotifyOperator
from interpose.effects.contract import create_middleware, from_snapshot
from interpose.effects.diagnostics import Diagnostic, HookFailed
from interpose.effects.rules import Rule, RuleDefinition
from interpose.effects.snapshot import Snapshot, create_snapshot, resolve, snapshot_to_json, validate_snapshot
from interpose.effects.validation import Invalid, Valid
from tests.effects.making import emitting, engine, ids, rule, saying, unheard

END = HookInput("turn_end")


def test_rules_that_notify_the_operator_stay_whole() -> None:
    """A rule that declares notify_operator is left out even if it declares other kinds; disabled ones travel."""
    definitions = [
        rule("loud", NotifyOperator("m", "k")),
        rule("both", saying("x"), NotifyOperator("m", "k")),
        rule("off", enabled=False),
        rule("on"),
    ]
    assert [one.id for one in create_snapshot(one.rule for one in definitions).rules] == ["off", "on"]


def test_an_engines_snapshot_holds_its_rules_alone() -> None:
    """Host and owned registrations never travel."""
    one = engine(emitting("host"), rules=[rule("a"), rule("b")])
    one.replace_registrations("user-hooks", 1, [emitting("owned")])
    assert [each.id for each in one.snapshot().rules] == ["a", "b"]


def test_a_snapshot_crosses_a_process_boundary() -> None:
    """Another process admits the JSON and says back the same snapshot."""
    snapshot = create_snapshot([rule("a").rule, rule("b", LockTools(), enabled=False).rule])
    program = (
        "import json, sys\n"
        "from interpose.effects.snapshot import snapshot_to_json, validate_snapshot\n"
        "from interpose.effects.validation import Valid\n"
        "outcome = validate_snapshot(json.load(sys.stdin))\n"
        "assert isinstance(outcome, Valid), outcome\n"
        "json.dump(snapshot_to_json(outcome.value), sys.stdout)\n"
    )
    sent = json.dumps(snapshot_to_json(snapshot))
    ran = subprocess.run(
        [sys.executable, "-c", program], input=sent, capture_output=True, text=True, timeout=30, check=True
    )
    assert validate_snapshot(json.loads(ran.stdout)) == Valid(snapshot)


def test_the_snapshot_decides_what_is_on_and_the_builtin_what_it_says() -> None:
    """Enabled, hooks and kinds come from the snapshot; effects, tool names and predicate from the built-in rule."""
    builtins = [
        rule("two-kinds", saying("m"), LockTools(), hooks=("turn_start",)),
        rule("off", hooks=("turn_end",)),
        rule("scoped", hooks=("turn_end",), tool_names=("read",)),
        rule("guarded", hooks=("turn_end",), predicate=lambda given: given.text == "go"),
    ]
    snapshot = Snapshot(
        (
            Rule("two-kinds", "d", True, ("turn_end",), ("lock_tools",)),
            Rule("off", "d", False, ("turn_end",), ("inject_reminder",)),
            Rule("scoped", "d", True, ("turn_end",), ("inject_reminder",)),
            Rule("guarded", "d", True, ("turn_end",), ("inject_reminder",)),
        )
    )
    worker = from_snapshot(snapshot, builtins, on_diagnostic=unheard)
    assert worker.run_hook(END).effects == (LockTools(),)
    assert worker.run_hook(HookInput("turn_end", tool_name="read")).rule_ids == ("two-kinds", "scoped")
    assert worker.run_hook(HookInput("turn_end", text="go")).rule_ids == ("two-kinds", "guarded")
    assert worker.snapshot() == snapshot


def test_what_a_rule_reads_is_known_to_its_registration_wherever_it_runs() -> None:
    """The keys stand in the registration, also in a worker's."""
    reading = RuleDefinition(rule("a").rule, (saying("a"),), reads=("turnToolCalls",))
    here = create_middleware(rules=[reading])
    worker = from_snapshot(here.snapshot(), [reading], on_diagnostic=unheard)
    assert [one.reads for made in (here, worker) for one in made.registrations()] == [("turnToolCalls",)] * 2


def test_an_unknown_rule_is_listed_and_emits_nothing() -> None:
    """A rule this program has not built in evaluates to nothing and is still in the worker's snapshot."""
    snapshot = Snapshot((Rule("from.the-future", "d", True, ("turn_end",), ("lock_tools",)),))
    worker = from_snapshot(snapshot, [rule("a")], on_diagnostic=unheard)
    assert (worker.run_hook(END).effects, worker.snapshot()) == ((), snapshot)


def test_duplicates_of_a_snapshot_are_kept_and_of_builtins_the_first_holds() -> None:
    """Each rule of the snapshot is resolved, in order; ids are listed once."""
    twice = Snapshot((rule("a").rule, rule("a").rule))
    assert resolve(twice, [rule("a"), rule("a", LockTools())]) == (
        RuleDefinition(rule("a").rule, (saying("a"),)),
        RuleDefinition(rule("a").rule, (saying("a"),)),
    )
    result = from_snapshot(twice, [rule("a")], on_diagnostic=unheard).run_hook(END)
    assert (result.effects, result.rule_ids) == ((saying("a"), saying("a")), ("a",))


def test_a_workers_table_and_sink_are_those_of_any_engine() -> None:
    """Owned sets, host eviction and a sink that is set later work on a worker."""
    told: list[Diagnostic] = []
    worker = from_snapshot(Snapshot((rule("a").rule,)), [rule("a")], on_diagnostic=unheard)
    worker.replace_registrations("user-hooks", 1, [emitting("x", hooks=("turn_end",)), emitting("a")])
    worker.register_hook(emitting("x", hooks=("turn_end",)))
    assert ids(worker.registrations()) == ["a", "x"]
    worker.set_diagnostic_sink(told.append)
    broken: Any = lambda *_: None  # noqa: E731 - a registration that answers with nothing
    worker.register_hook(emitting("y", hooks=("turn_end",)))
    worker.replace_registrations(
        "user-hooks", 2, [type(worker.registrations()[0])("z", "d", ("turn_end",), evaluate=broken)]
    )
    worker.run_hook(END)
    assert [type(one) for one in told] == [HookFailed]


GOOD = snapshot_to_json(Snapshot((rule("a").rule,)))


@pytest.mark.parametrize("version", [2, 0, "1", 1.0, True, None])
def test_another_version_is_refused_whole(version: Any) -> None:
    """One issue, at the version, however much else is wrong."""
    outcome = validate_snapshot(GOOD | {"version": version, "rules": 5, "extra": 1}, "snapshot")
    assert isinstance(outcome, Invalid)
    (issue,) = outcome.issues
    assert issue.path == "snapshot.version"
    assert issue.message.startswith("expected 1, found ")


def test_a_missing_version_is_refused() -> None:
    """Without a version nothing is admitted."""
    assert [str(issue) for issue in validate_snapshot({"rules": []}).issues] == ["$.version: expected 1, found nothing"]
    assert [issue.path for issue in validate_snapshot([]).issues] == ["$"]


def test_a_worker_admits_no_operator_notice_and_reports_all_issues() -> None:
    """Unknown keys, rules that are no list, and each wrong rule by its index."""
    loud = {**GOOD["rules"][0], "effectKinds": ["notify_operator"]}
    outcome = validate_snapshot({"version": 1, "rules": [GOOD["rules"][0], loud, 5], "sent": 1})
    assert [issue.path for issue in outcome.issues] == ["$.sent", "$.rules[1].effectKinds[0]", "$.rules[2]"]
    assert [issue.path for issue in validate_snapshot({"version": 1}).issues] == ["$.rules"]
    assert validate_snapshot({"version": 1, "rules": []}) == Valid(Snapshot())
