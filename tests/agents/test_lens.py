"""Real agents and both histories: the model is told of refusals at once, changes stay, and nobody tries again."""

import pytest

from interpose.testing.upstream import Reply, Text, Thinking
from tests.agents.players import GOING_ON, JUDGED, Player
from tests.agents.scene import Ran, Scene, messages

pytestmark = pytest.mark.agents
by_all = pytest.mark.parametrize("player", JUDGED, ids=lambda player: player.name)
by_some = pytest.mark.parametrize("player", GOING_ON, ids=lambda player: player.name)

NO_DELETES = """
hooks:
  - id: no-deletes
    on: before_tool
    kind: effect
    command: rm -r|-R|--recursive
    effect: {kind: block_tool, reason: deletes are for people}
"""
REFUSED = "was refused by no-deletes: deletes are for people"
ONWARD = """
hooks:
  - id: run-the-tests
    on: turn_end
    kind: effect
    effect: {kind: request_continuation, message: Run the tests before you stop.}
"""
CHANGING = """
from interpose import Patch, on


@on("tool.call", tools=("shell",))
def other_words(call):
    if "notes.txt" in call.arguments["command"]:
        return Patch({**call.arguments, "command": "echo other-words"})
    return None
"""
WITHHOLDING = """
from interpose import Cancel, Patch, on


@on("tool.result", tools=("shell",))
def private(result):
    if "the notes of the test" in result.output:
        return Cancel("the notes are private")
    return Patch({"output": result.output + " (checked)"})
"""


def assert_only_grows(ran: Ran) -> None:
    """Each prompt begins with all of the one before it."""
    for earlier, later in zip(ran.turns, ran.turns[1:], strict=False):
        assert messages(later)[: len(messages(earlier))] == messages(earlier)


@by_all
def test_the_model_goes_on_behind_a_refusal(scene: Scene, player: Player) -> None:
    """The refusal is shown once and in full, what the model says to it follows, and the agent asked only once."""
    scene.rules(NO_DELETES)
    script = [
        Reply(Thinking("Away with it."), Text("Tidying."), player.runs("rm -rf build")),
        Reply(Text("Then I leave it.")),
    ]

    ran = scene.run(player, "tidy up", script)

    assert (ran.code, len(ran.turns)) == (0, 2), ran.out
    assert f"[interpose] {player.runs('').name} {REFUSED}" in ran.out
    assert "Then I leave it." in ran.out
    assert (scene.work / "build").is_dir()
    assert ran.outcomes("tool.call") == [("shell", "refused")]
    assert REFUSED in ran.turns[1].body.decode()
    assert_only_grows(ran)


@by_all
def test_a_refusal_and_a_call_behind_it(scene: Scene, player: Player) -> None:
    """The model tries another way within the same reply; that call runs, and both histories hold."""
    scene.rules(NO_DELETES)
    script = [
        Reply(Text("Tidying."), player.runs("rm -rf build")),
        Reply(Text("I look instead."), player.runs("cat notes.txt")),
        Reply(Text("I see.")),
    ]

    ran = scene.run(player, "tidy up", script)

    assert (ran.code, len(ran.turns)) == (0, 3), ran.out
    assert ran.outcomes("tool.call") == [("shell", "refused"), ("shell", "allowed")]
    third = ran.turns[2].body.decode()
    assert third.count(REFUSED) == 1
    assert "[interpose]" not in third
    assert "the notes of the test" in third
    assert_only_grows(ran)


@by_all
def test_a_changed_argument_is_what_runs(scene: Scene, player: Player) -> None:
    """The agent runs the changed command; the model's history has its own, and a note that it was changed."""
    scene.handlers(CHANGING)
    script = [Reply(player.runs("cat notes.txt")), Reply(Text("Seen."))]

    ran = scene.run(player, "look", script)

    assert (ran.code, len(ran.turns)) == (0, 2), ran.out
    second = ran.turns[1].body.decode()
    assert "other-words" in second
    assert "cat notes.txt" in second
    assert "this call ran with other arguments than yours" in second
    assert "the notes of the test" not in second
    assert ran.outcomes("tool.call") == [("shell", "patched")]


@by_all
def test_results_are_withheld_and_changed(scene: Scene, player: Player) -> None:
    """What a handler withholds the model never sees, in no later request; what it changes it sees changed."""
    scene.handlers(WITHHOLDING)
    script = [Reply(player.runs("cat notes.txt")), Reply(player.runs("echo fine")), Reply(Text("Done."))]

    ran = scene.run(player, "look", script)

    assert (ran.code, len(ran.turns)) == (0, 3), ran.out
    third = ran.turns[2].body.decode()
    assert "the notes of the test" not in third
    assert "was withheld by private: the notes are private" in third
    assert third.count("(checked)") == 1
    assert_only_grows(ran)


@by_all
def test_a_turn_is_carried_onward(scene: Scene, player: Player) -> None:
    """The agent gets one reply with the nudge and what the model said to it."""
    scene.rules(ONWARD)
    script = [Reply(Text("I wrote it.")), Reply(Text("The tests pass."))]

    ran = scene.run(player, "write it", script)

    assert (ran.code, len(ran.turns)) == (0, 2), ran.out
    assert "I wrote it." in ran.out or scene.kept("I wrote it.")  # Claude Code prints the last text alone
    for words in ("[interpose] the turn goes on: Run the tests before you stop.", "The tests pass."):
        assert words in ran.out
    assert "Run the tests before you stop." in ran.turns[1].body.decode()
    assert_only_grows(ran)


@by_some
def test_a_conversation_that_goes_on_keeps_both_histories(scene: Scene, player: Player) -> None:
    """Started anew, the agent sends its own history, and the model gets its own back."""
    scene.rules(NO_DELETES)
    script = [Reply(Text("Now."), player.runs("rm -rf build")), Reply(Text("Then not."))]
    scene.run(player, "tidy up", script)

    ran = scene.run(player.again(), "why?", [Reply(Text("It was refused."))])

    assert (ran.code, len(ran.turns)) == (0, 1), ran.out
    told = ran.turns[0].body.decode()
    assert told.count(REFUSED) == 1
    assert "[interpose]" not in told
    assert "rm -rf build" in told
