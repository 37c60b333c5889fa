"""Real agents, unmodified, through `interpose run`: what is judged, and how the agent bears it."""

import json

import pytest

from interpose.testing.upstream import Failure, Reply, Text, Thinking
from tests.agents.players import GOING_ON, JUDGED, Player
from tests.agents.scene import Scene, messages

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
  - id: no-secrets
    on: before_tool
    kind: effect
    path: .env
    effect: {kind: block_tool, reason: secrets stay here}
"""
REFUSED_DELETE = "was refused by no-deletes: deletes are for people"
REFUSED_READ = "was refused by no-secrets: secrets stay here"
TOLD = """
hooks:
  - id: run-the-tests
    on: turn_start
    kind: prompt
    message: Run the tests — “all” of them.
  - id: look-closely
    on: after_tool
    kind: effect
    tools: [shell]
    effect: {kind: annotate_tool_result, severity: warn, message: Look — closely.}
"""
REMINDER = "<system-reminder>\nRun the tests — “all” of them.\n</system-reminder>"
ANNOTATION = "[interpose:warn] Look — closely."


@by_all
def test_a_text_arrives(scene: Scene, player: Player) -> None:
    """One request, the agent's own key, the provider's own path, and the model's words on the screen."""
    ran = scene.run(player, "say something", [Reply(Text("The folder is tidy."))])

    assert (ran.code, len(ran.turns)) == (0, 1), ran.out
    assert "The folder is tidy." in ran.out
    (request,) = ran.turns
    assert request.path.startswith("/v1")
    keys = [request.headers.get(name, "") for name in ("x-api-key", "authorization", "x-goog-api-key")]
    assert any("dummy" in key for key in keys)


@by_all
def test_a_tool_round_passes(scene: Scene, player: Player) -> None:
    """The call runs, the model reads its result, and both are in the journal under canonical names, in one turn."""
    script = [Reply(Thinking("Look."), Text("I will look."), player.runs("cat notes.txt")), Reply(Text("Seen."))]

    ran = scene.run(player, "look", script)

    assert (ran.code, len(ran.turns)) == (0, 2), ran.out
    assert "the notes of the test" in ran.turns[1].body.decode()
    assert "Seen." in ran.out
    assert ran.outcomes("tool.call") == [("shell", "allowed")]
    assert ran.outcomes("tool.result") == [("shell", "allowed")]
    assert len({record.turn for record in ran.records if record.stage in ("tool.call", "tool.result")}) == 1


@by_all
def test_a_refused_call_leaves_its_neighbours(scene: Scene, player: Player) -> None:
    """Of two calls in one reply one is refused and the other runs; the model reads both in a history that holds."""
    scene.rules(NO_DELETES)
    script = [
        Reply(Text("Both."), player.runs("rm -rf build"), player.runs("cat notes.txt")),
        Reply(Text("I see.")),
    ]

    ran = scene.run(player, "tidy up", script)

    assert (ran.code, len(ran.turns)) == (0, 2), ran.out
    second = ran.turns[1].body.decode()
    line = f"[interpose] {player.runs('').name} {REFUSED_DELETE}"
    assert line in ran.out or scene.kept(line)  # Claude Code prints the last message alone
    assert second.count(REFUSED_DELETE) == 1
    assert "the notes of the test" in second
    assert "[interpose]" not in second
    assert ran.outcomes("tool.call") == [("shell", "refused"), ("shell", "allowed")]


@by_all
def test_a_read_is_refused_by_its_path(scene: Scene, player: Player) -> None:
    """The agent's own read tool and a shell that reads are the same to a rule; the secret reaches nobody."""
    scene.rules(NO_DELETES)

    reads = Reply(player.reads(scene.work / ".env"), player.runs("cat ./build/../.env"))

    ran = scene.run(player, "read it", [reads, Reply(Text("Then not."))])

    assert (ran.code, len(ran.turns)) == (0, 2), ran.out
    assert ran.out.count(REFUSED_READ) >= 1
    assert "sesame" not in ran.out
    assert ran.outcomes("tool.call") == [("read", "refused"), ("shell", "refused")]


@by_all
def test_what_the_model_was_told_stays_byte_for_byte(scene: Scene, player: Player) -> None:
    """A reminder and an annotation stand in every later request as they first stood, so a cached prefix grows."""
    scene.rules(TOLD)
    script = [Reply(player.runs("cat notes.txt")), Reply(player.runs("ls")), Reply(Text("Done."))]

    ran = scene.run(player, "look", script)

    assert (ran.code, len(ran.turns)) == (0, 3), ran.out
    for request, results in zip(ran.turns, range(3), strict=True):
        told = request.body.decode()
        assert told.count(json.dumps(REMINDER, ensure_ascii=False)[1:-1]) == 1
        assert told.count(ANNOTATION) == results
    for earlier, later in zip(ran.turns, ran.turns[1:], strict=False):
        assert messages(later)[: len(messages(earlier))] == messages(earlier)


@by_some
def test_the_providers_error_is_shown_once(scene: Scene, player: Player) -> None:
    """An error keeps its shape through the gateway: the agent shows the provider's words and does not try again."""
    ran = scene.run(player, "go", [Failure(403, "this key has no model")])

    assert ran.code != 0
    assert "this key has no model" in ran.out
    assert len(ran.turns) == 1
    # A request for a title may run beside it and end later.
    assert [record.data["status"] for record in ran.records if record.step == "request"].count(403) == 1
