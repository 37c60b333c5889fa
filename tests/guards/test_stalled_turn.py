"""guards.stalled_turn: which last sentences announce an action, and which only sound so."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpose.contracts.effects import RequestContinuation
from interpose.effects.rules import rule_registration
from interpose.guards.stalled_turn import announces_action, is_stalled, stalled_turn
from tests.guards.making import NOTHING, call, ended, turn_hook

ANNOUNCED = [
    "I'll run npm test now.",
    "Let me read src/cli/index.ts.",
    "I'll add the test once package.json is updated.",
    "I'll fix the import if the config is valid.",
    "I'm going to grep for the symbol:",
    "I\u2019ll check the logs.",
    "I\u2019m going to open the file.",
    "I will build it in a container.",
    "I am going to modify our config.",
    "Now I run the tests.",
    "Now I'll run the tests.",
    "Next I compare both outputs.",
    "Let's look at foo.ts.",
    "let us trace this call.",
    "LET ME DEBUG THE PARSER.",
    "I'll continue with debugging `parse`.",
    "I'll start by applying the patch.",
    "I'll keep on modifying the schema.",
    "I'll do the rest in ./src",
    "I'll continue in ~/notes",
    "I'll go on with config.yaml next.",
    "I'll use git status.",
    "I'll go for pytest -q",
    "I'll validate again, then update 3 files.",
    "The tests do not pass yet, so I'll fix the parser.",
    "The tests are not passing yet; let me read the log.",
    "Per your request, I'll run the linter.",
    "Running the tests:",
    "Reading the files in src:",
    "\u201cLet me inspect the logs.\u201d",
    "- I'll rename the field.",
    "(I'll update the docs.)",
    "All tests are known.\n\nI'll write the patch.\n\n",
    "That was it. Is it fine? Now I'll search for callers.",
    "I'll read foo.ts. bar.ts is next, I'll read it too: I'll read the rest.",
]

NOT_ANNOUNCED = [
    "",
    "I'll review it later.",
    "Next I'll refactor the parser, in the next sprint.",
    "I will add the tests tomorrow!",
    "\n \n",
    "Say go and I'll run the tests.",
    "Tell me the name, then I'll create the file.",
    "Just point me at the file and let me read it.",
    "Confirm and I will edit the file.",
    "Awaiting your go-ahead; I'll apply the patch.",
    "I'll apply the patch after you approve.",
    "I'll run the migration upon your approval.",
    "I am not implementing yet per your instruction; I'll write the plan.",
    "I am not yet editing anything; I'll write a plan first.",
    "I will not edit the file.",
    "I'll never delete the file.",
    "Let me know if you want me to run the tests.",
    "I fixed it. Let me know!",
    "Shall I run the tests?",
    'Should I say "I\'ll run the tests?"',
    "I'll wait for the tests.",
    "I'll just wait for a run.",
    "I'll simply hold off the build.",
    "I will now stand by and read the logs.",
    "I'll pause the build.",
    "Let me defer the update.",
    "If the tests fail, I'll fix the code.",
    "Once it is merged I'll update the docs.",
    "I'll fix it if needed.",
    "I'll update the docs if necessary.",
    "I'll add a test if requested.",
    "I'll fix the code if you want.",
    "I'll run the tests when you are ready.",
    "I'll run the tests whenever you say.",
    "All done: I'll run nothing.",
    "Done. I'll run the linter in a moment.",
    "Complete! Let me run the tests.",
    "All set, I'll check the rest.",
    "Summary: I'll add tests.",
    "Here's a summary: I'll add tests.",
    "Here is the work. A summary: let me list the files.",
    "I'll think about it.",
    "I'll test again.",
    "I'll look into you.",
    "I'll check now.",
    "I'll report when src/a.ts is there.",
    "I'll go on with v1.2.",
    "Everything works:",
    "The tests pass.",
    "Run the tests.",
    "I ran the tests.",
    "Now I'll wait for your review.",
]


@pytest.mark.parametrize("text", ANNOUNCED)
def test_an_announced_action_is_seen(text: str) -> None:
    """These last sentences promise a concrete next step."""
    assert announces_action(text)


@pytest.mark.parametrize("text", NOT_ANNOUNCED)
def test_what_waits_finishes_or_only_talks_is_left_alone(text: str) -> None:
    """These end a turn rightly, or leave the next step to the person."""
    assert not announces_action(text)


@pytest.mark.parametrize(
    "verb", ["apply", "analyze", "create", "debug", "format", "run", "scan", "find", "verify", "list"]
)
def test_every_form_of_a_verb_is_an_action(verb: str) -> None:
    """Plain, -s, -ing and past forms name the same action."""
    forms = {
        "apply": ["applies", "applied", "applying"],
        "analyze": ["analyzes", "analyzed", "analyzing"],
        "create": ["creates", "created", "creating"],
        "debug": ["debugs", "debugged", "debugging"],
        "format": ["formats", "formatted", "formatting", "formating"],
        "run": ["runs", "running"],
        "scan": ["scans", "scanned", "scanning"],
        "find": ["finds", "finding"],
        "verify": ["verifies", "verified", "verifying"],
        "list": ["lists", "listed", "listing"],
    }
    for form in [verb, *forms[verb]]:
        assert announces_action(f"I'll go on with {form} the modules."), form


@pytest.mark.parametrize("extension", ["ts", "py", "yaml", "lock", "CMAKE", "md"])
def test_a_file_name_is_an_action_of_its_own(extension: str) -> None:
    """An intent that names a file with a known ending counts, whatever the verb."""
    assert announces_action(f"I'll go for main.{extension}, nothing else.")
    assert not announces_action("I'll go for main.xyz, nothing else.")


@pytest.mark.parametrize(
    "reason", [None, "stop", " Stop ", "end_turn", "END TURN", "end - turn", "stop_sequence", "stop-sequence: x"]
)
def test_a_normal_stop_may_be_stalled(reason: str | None) -> None:
    """No stop reason, or one of those that mean a normal end."""
    assert is_stalled(ended("I'll run the tests.", turnToolCalls=0, stopReason=reason))


@pytest.mark.parametrize("reason", ["length", "error", "aborted", "tool_use", "", "stopped", 3, False])
def test_any_other_stop_is_not_stalled(reason: str | int) -> None:
    """A turn that was cut off did not stall."""
    assert not is_stalled(ended("I'll run the tests.", turnToolCalls=0, stopReason=reason))


@pytest.mark.parametrize("calls", [1, 0.5, None, False, "0", float("nan"), 10**400])
def test_only_a_turn_known_to_have_called_nothing_is_stalled(calls: float | str | bool | None) -> None:
    """The count must be the number 0."""
    assert not is_stalled(ended("I'll run the tests.", turnToolCalls=calls))


def test_a_count_that_is_missing_is_not_zero() -> None:
    """A mount that does not count tools never causes a nudge."""
    assert not is_stalled(ended("I'll run the tests."))


def test_only_the_end_of_a_turn_can_be_stalled() -> None:
    """Other hooks never are, whatever their text."""
    assert not is_stalled(call(turnToolCalls=0))
    assert not is_stalled(turn_hook("turn_start", "I'll run the tests.", turnToolCalls=0))


def test_a_text_whose_end_was_cut_away_says_nothing() -> None:
    """When the true length is larger than the text, the last sentence is not known."""
    assert not is_stalled(ended("I'll run the tests.", turnToolCalls=0, assistantTextChars=20_000))
    assert is_stalled(ended("I'll run the tests.", turnToolCalls=0, assistantTextChars=19))
    assert not is_stalled(turn_hook("turn_end", None, turnToolCalls=0))


def test_the_rule_asks_for_one_continuation() -> None:
    """The rule is data with one effect."""
    registration = rule_registration(stalled_turn())
    assert registration.evaluate is not None
    effects = registration.evaluate(ended("I'll run the tests.", turnToolCalls=0), NOTHING)
    assert [type(effect) for effect in effects] == [RequestContinuation]  # type: ignore[union-attr]


@settings(deadline=None)
@given(st.text(max_size=300))
def test_no_text_makes_it_fail(text: str) -> None:
    """The predicate answers for every text, and the same each time."""
    assert announces_action(text) == announces_action(text)


@pytest.mark.parametrize(
    "piece", ["ask ", "if ", "not ", "I'll ", "run ", "a/", "and ", "npm ", ".", "!)", "- ", "run ./"]
)
def test_hostile_text_is_read_quickly(piece: str) -> None:
    """A text of full length, made to be slow, is read in time."""
    text = (piece * 16_000)[:15_970] + "I'll x " + piece
    started = time.process_time()
    announces_action(text)
    assert time.process_time() - started < 1
