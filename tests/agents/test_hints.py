"""What `interpose up` prints, pasted into a shell, points the real agent."""

import shlex

import pytest

from interpose.launch.pointing import hint_lines
from interpose.testing.upstream import Reply, ScriptedUpstream, Text
from tests.agents.players import CLAUDE_CODE, CODEX, GEMINI_CLI, OPENCODE, Player
from tests.agents.scene import Model, Scene
from tests.e2e.processes import up

pytestmark = pytest.mark.agents

NAMES = {"Claude Code": CLAUDE_CODE, "Codex": CODEX, "Gemini CLI": GEMINI_CLI, "opencode": OPENCODE}


@pytest.mark.parametrize(("name", "player"), NAMES.items(), ids=list(NAMES))
def test_a_printed_line_points_the_agent(scene: Scene, name: str, player: Player) -> None:
    """The agent answers through the gateway that runs, as a launch of this folder, in a home that knows nothing."""
    model = Model([Reply(Text("The folder is tidy."))])
    with ScriptedUpstream([model] * 9) as upstream, up(scene.work, scene.environ(player, upstream.url)) as gateway:
        line = next(hint.line for hint in hint_lines(gateway.base_url) if hint.name == name)
        code, out = scene.ended(
            ["/bin/sh", "-c", f"{line} {shlex.join(player.command('go')[1:])}"], player, upstream.url
        )
        seen = gateway.line_with(step="request", agent=player.agent)

    assert (code, len(model.turns)) == (0, 1), out
    assert "The folder is tidy." in out
    assert seen["workspace"] == str(scene.work)
