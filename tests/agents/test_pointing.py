"""Codex and Gemini CLI, unmodified, through `interpose run`: pointed right, with their own settings untouched."""

import pytest

from interpose.testing.upstream import Failure, Reply, Text
from tests.agents.players import CODEX, OWN_SHAPE, Player
from tests.agents.scene import Scene

pytestmark = [pytest.mark.agents, pytest.mark.parametrize("player", OWN_SHAPE, ids=lambda player: player.name)]

PATHS = {"codex": "/v1/responses", "gemini-cli": "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"}
OWN_SETTINGS = (".codex/config.toml", ".gemini/settings.json")


def test_a_text_arrives(scene: Scene, player: Player) -> None:
    """The provider sees its own path and the agent's key; the agent's own settings are not touched."""
    ran = scene.run(player, "say something", [Reply(Text("The folder is tidy."))])

    assert (ran.code, len(ran.turns)) == (0, 1), ran.out
    assert "The folder is tidy." in ran.out
    (request,) = ran.turns
    assert request.path == PATHS[player.agent]
    assert "dummy" in (request.headers.get("x-goog-api-key") or request.headers.get("authorization") or "")
    assert [name for name in OWN_SETTINGS if (scene.home / name).exists()] == []


def test_the_providers_error_is_shown_once(scene: Scene, player: Player) -> None:
    """An error keeps its shape through the gateway: the agent shows the provider's words and does not try again."""
    ran = scene.run(player, "go", [Failure(400, "this key has no model")])

    assert ran.code != 0
    assert "this key has no model" in ran.out
    assert len(ran.turns) == 1
    if player is CODEX:
        assert "invalid_request_error" in ran.out
