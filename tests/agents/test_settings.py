"""Settings that an agent is given, where others may write above them."""

from dataclasses import replace

import pytest

from interpose.testing.upstream import Reply, Text
from tests.agents.players import GEMINI_CLI
from tests.agents.scene import Scene

pytestmark = pytest.mark.agents


def test_gemini_cli_reads_them_from_the_runtime_folder(scene: Scene) -> None:
    """A state folder that the group may write, as many systems make it, does not keep it from starting."""
    runtime = scene.home / "run"
    runtime.mkdir(mode=0o700)
    state = scene.home / "shared" / "state"
    state.mkdir(parents=True)
    state.parent.chmod(0o775)
    places = {"INTERPOSE_STATE_DIR": str(state), "XDG_RUNTIME_DIR": str(runtime)}
    player = replace(GEMINI_CLI, environ={**GEMINI_CLI.environ, **places})

    ran = scene.run(player, "say something", [Reply(Text("The folder is tidy."))])

    assert (ran.code, len(ran.turns)) == (0, 1), ran.out
    assert "can be written by others" not in ran.out
    assert "2 judged, 0 refused" in ran.out


def test_a_folder_that_keeps_it_from_reading_them_is_named(scene: Scene) -> None:
    """Without a better folder the agent says no; the person is told which folder to mend, and how."""
    scene.folder.chmod(0o775)

    ran = scene.run(GEMINI_CLI, "say something", [])

    assert (ran.code, ran.turns) == (41, ())
    assert f"chmod go-w {scene.folder}" in ran.out.replace("\n", "")
