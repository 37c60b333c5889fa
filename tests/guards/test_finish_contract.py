"""guards.finish_contract: changed files want proof."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from interpose.contracts.effects import BlockTool, Effect, HookInput, InjectReminder, ProtectPath, RequestContinuation
from interpose.guards.finish_contract import RESULTS_KEPT, RIGOR_FILES, FinishContract, FinishDecision
from interpose.guards.settings import Rigor
from tests.guards.making import call, ended, evaluated, prompted, reader, result

EDIT = {"path": "src/a.py", "old": "x", "new": "y"}


class Desk:
    """One assessor and what it decided."""

    def __init__(self, root: Path | str = "/house", rigor: Rigor | None = None) -> None:
        self.decisions: list[FinishDecision] = []
        self.registration = FinishContract(
            reader=reader(str(root)), rigor=rigor, sink=self.decisions.append
        ).registration()

    def tell(self, *inputs: HookInput) -> None:
        """Lets it see hooks at which it says nothing."""
        for given in inputs:
            assert evaluated(self.registration, given) == ()

    def end(self, text: str = "It is done.", *prior: Effect, **more: Any) -> tuple[Effect, ...]:
        """What it says at the end of the turn."""
        return evaluated(self.registration, ended(text, **more), *prior)

    def finding(self) -> str:
        """What it finds at the end of the turn."""
        self.end()
        return self.decisions[-1].finding


def test_changed_files_without_proof_earn_one_reminder() -> None:
    """At normal rigor the model is told once, and the decision names the file."""
    desk = Desk()
    desk.tell(prompted(), result("edit", EDIT))
    effects = desk.end()
    assert [type(effect) for effect in effects] == [InjectReminder]
    assert isinstance(effects[0], InjectReminder)
    assert effects[0].severity == "warn"
    assert "/house/src/a.py" in effects[0].message
    assert desk.decisions == [FinishDecision("s1", "t1", "engage", "normal", ("/house/src/a.py",))]


def test_high_rigor_carries_the_turn_on() -> None:
    """A continuation and the same reminder."""
    desk = Desk(rigor="high")
    desk.tell(result("edit", EDIT))
    assert [type(effect) for effect in desk.end()] == [RequestContinuation, InjectReminder]


@pytest.mark.parametrize("name", RIGOR_FILES)
def test_a_project_with_validation_rules_is_held_to_high_rigor(tmp_path: Path, name: str) -> None:
    """Any of the files is enough, unless the settings say otherwise."""
    (tmp_path / name).parent.mkdir(exist_ok=True)
    assert Desk(tmp_path).end() == ()
    (tmp_path / name).write_text("")
    high, normal = Desk(tmp_path), Desk(tmp_path, rigor="normal")
    for desk in (high, normal):
        desk.tell(result("edit", EDIT))
    assert len(high.end()) == 2
    assert len(normal.end()) == 1


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("write", {"path": "a"}),
        ("patch", {"patch": "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch"}),
        ("shell", {"command": "echo x > a"}),
        ("shell", {"command": "echo x | tee a"}),
        ("shell", {"command": "mkdir a"}),
        ("shell", {"command": "touch a"}),
        ("shell", {"command": "ln -s b a"}),
        ("shell", {"command": "cp b a"}),
        ("shell", {"command": "mv b a"}),
        ("shell", {"command": "rm a"}),
        ("shell", {"command": "sed -i s/x/y/ a"}),
        ("shell", {"command": "find . -name a -delete"}),
        ("shell", {"command": "sh -c 'echo x > a'"}),
    ],
)
def test_these_change_files(tool: str, args: Mapping[str, Any]) -> None:
    """File tools, and commands by the files that they write or remove."""
    desk = Desk()
    desk.tell(result(tool, args))
    assert desk.finding() == "engage"


@pytest.mark.parametrize(
    "given",
    [
        result("edit", EDIT, ok=False),
        result("read", {"path": "a"}),
        result("shell", {"command": "cat a"}),
        result("shell", {"command": "ls 2>/dev/null"}),
        result("shell", {"command": "echo x > /dev/stderr"}),
        result("shell", {"command": "unclosed '"}),
        result("mcp:files/write", {"path": "a"}),
    ],
)
def test_these_change_nothing(given: HookInput) -> None:
    """Failures, reads, devices and what nobody can read."""
    desk = Desk()
    desk.tell(given)
    assert desk.finding() == "no_mutation"


@pytest.mark.parametrize(
    "given",
    [
        result("shell", {"command": "npm test"}),
        result("shell", {"command": "python -m pytest -q"}),
        result("shell", {"command": "./own-checks"}, validationCommand="own-checks"),
        result("verify", {}),
        result("agent", {"task": "x"}, details={"exitCode": 0}),
        result("agent", {"task": "x"}, details={"runs": [{"exitCode": 0}, {"exitCode": 0}]}),
    ],
)
def test_these_prove_it(given: HookInput) -> None:
    """A successful validation, wherever it stands in the turn."""
    desk = Desk()
    desk.tell(given, result("edit", EDIT))
    assert desk.finding() == "validated"
    assert desk.decisions[-1].evidence


@pytest.mark.parametrize(
    "given",
    [
        result("shell", {"command": "npm test"}, ok=False),
        result("shell", {"command": "npm install"}),
        call("shell", {"command": "npm test"}),
        result("agent", {"task": "x"}, details={"exitCode": 2}),
        result("agent", {"task": "x"}, details={"runs": [{"exitCode": 0}, {"exitCode": 1}]}),
        result("agent", {"task": "x"}, details={"runs": []}),
        result("agent", {"task": "x"}, details={"runs": [0]}),
        result("agent", {"task": "x"}),
        result("verify", {}, ok=False),
    ],
)
def test_these_prove_nothing(given: HookInput) -> None:
    """Failures, other commands and calls that have not run."""
    desk = Desk()
    desk.tell(result("edit", EDIT))
    if given.hook == "after_tool":
        desk.tell(given)
    assert desk.finding() == "engage"


def test_a_protected_artifact_and_a_stated_limitation_end_it_too() -> None:
    """A path that a hook protected was validated; a limitation tool says what could not be checked."""
    protected, limited = Desk(), Desk()
    for desk in (protected, limited):
        desk.tell(result("edit", EDIT))
    assert evaluated(protected.registration, result("shell", {"command": "x"}), ProtectPath("dist", "built")) == ()
    limited.tell(result("limitation", {"text": "no display here"}))
    assert protected.finding() == "validated"
    assert limited.finding() == "limitation"


def test_text_alone_is_no_limitation() -> None:
    """Saying so in words does not count."""
    desk = Desk()
    desk.tell(result("edit", EDIT))
    assert desk.end("I could not run the tests here.")


@pytest.mark.parametrize(
    ("text", "prior", "more"),
    [
        ("done", (BlockTool("no"),), {}),
        ("done", (InjectReminder("no", "hard-block"),), {}),
        (" \n", (), {}),
        ("done", (), {"stopReason": "aborted"}),
        ("done", (), {"session": None}),
    ],
)
def test_it_is_silent_where_another_has_spoken_or_nothing_ended(
    text: str, prior: tuple[Effect, ...], more: dict[str, Any]
) -> None:
    """Stops, blank texts, cut turns and unknown sessions are not assessed."""
    desk = Desk()
    desk.tell(result("edit", EDIT))
    assert desk.end(text, *prior, **more) == ()
    assert desk.decisions == []


def test_other_reminders_do_not_silence_it() -> None:
    """Only a stop does."""
    desk = Desk()
    desk.tell(result("edit", EDIT))
    assert desk.end("done", InjectReminder("x", "warn"))


def test_a_prompt_begins_anew_and_a_continuation_does_not() -> None:
    """The window starts at the person's own message."""
    desk = Desk()
    desk.tell(result("edit", EDIT), prompted(again=True))
    assert desk.finding() == "engage"
    desk.tell(prompted())
    assert desk.finding() == "no_mutation"


def test_sessions_are_apart() -> None:
    """What one session changed is nothing to another."""
    desk = Desk()
    desk.tell(result("edit", EDIT, session="s2"), result("edit", EDIT, session=None))
    assert desk.finding() == "no_mutation"


def test_the_newest_results_are_kept() -> None:
    """After very many results the oldest proof is forgotten; a long path list is cut in the message."""
    desk = Desk()
    desk.tell(result("shell", {"command": "npm test"}))
    for number in range(RESULTS_KEPT):
        desk.tell(result("write", {"path": f"f{number}"}))
    effects = desk.end()
    assert isinstance(effects[0], InjectReminder)
    assert "and 77 more" in effects[0].message


def test_a_result_seen_at_two_mounts_counts_once() -> None:
    """The echo pushes nothing out of the window."""
    desk = Desk()
    desk.tell(result("shell", {"command": "npm test"}))
    for number in range(RESULTS_KEPT - 1):
        for _ in range(2):
            desk.tell(result("write", {"path": f"f{number}"}, call_id=f"c{number}"))
    assert desk.finding() == "validated"


def test_a_listener_that_fails_changes_nothing() -> None:
    """The reminder stands."""

    def fail(_decision: FinishDecision) -> None:
        raise RuntimeError("no")

    registration = FinishContract(reader=reader(), sink=fail).registration()
    evaluated(registration, result("edit", EDIT))
    assert evaluated(registration, ended("done"))
