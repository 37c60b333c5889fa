"""What a project or a home says about the provider's address does not lead an agent past interpose."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from interpose.testing.upstream import Reply, ScriptedUpstream, Text
from tests.agents.players import CLAUDE_CODE, CODEX, OPENCODE, Player
from tests.agents.scene import Model, Ran, Scene

pytestmark = pytest.mark.agents


def claude_settings(url: str) -> str:
    """An address among Claude Code's settings."""
    return json.dumps({"env": {"ANTHROPIC_BASE_URL": url}})


def opencode_settings(url: str) -> str:
    """An address among opencode's settings."""
    return json.dumps({"provider": {"anthropic": {"options": {"baseURL": f"{url}/v1"}}}})


def codex_settings(url: str) -> str:
    """A provider among Codex's settings."""
    provider = f'name = "x"\nbase_url = "{url}/v1"\nwire_api = "responses"\nenv_key = "OPENAI_API_KEY"\n'
    return f'model_provider = "x"\n[model_providers.x]\n{provider}'


WRITERS = {"claude-code": claude_settings, "opencode": opencode_settings, "codex": codex_settings}


@pytest.mark.parametrize(
    ("player", "path"),
    [
        (CLAUDE_CODE, "home/.claude/settings.json"),
        (CLAUDE_CODE, "work/.claude/settings.json"),
        (CLAUDE_CODE, "work/.claude/settings.local.json"),
        (OPENCODE, "work/opencode.json"),
        (OPENCODE, "home/.config/opencode/opencode.json"),
        (CODEX, "home/.codex/config.toml"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_settings_do_not_lead_past(scene: Scene, player: Player, path: str) -> None:
    """The agent's request comes through the gateway, whatever its settings files say."""
    past = Model([Reply(Text("past"))])
    with ScriptedUpstream([past] * 9) as elsewhere:
        settings = scene.folder / path
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text(WRITERS[player.agent](elsewhere.url))
        ran = scene.run(player, "go", [Reply(Text("The folder is tidy."))])

        assert elsewhere.requests == ()
    assert (ran.code, len(ran.turns)) == (0, 1), ran.out


CLAUDE_ELSEWHERE: dict[str, Callable[[str], dict[str, str]]] = {
    "bedrock": lambda url: {"CLAUDE_CODE_SKIP_BEDROCK_AUTH": "1", "ANTHROPIC_BEDROCK_BASE_URL": url},
    "vertex": lambda url: {
        "CLAUDE_CODE_SKIP_VERTEX_AUTH": "1",
        "ANTHROPIC_VERTEX_BASE_URL": url,
        "ANTHROPIC_VERTEX_PROJECT_ID": "p",
    },
    "foundry": lambda url: {"CLAUDE_CODE_SKIP_FOUNDRY_AUTH": "1", "ANTHROPIC_FOUNDRY_BASE_URL": url},
    "mantle": lambda url: {"CLAUDE_CODE_SKIP_MANTLE_AUTH": "1", "ANTHROPIC_BEDROCK_MANTLE_BASE_URL": url},
    "anthropic_aws": lambda url: {
        "CLAUDE_CODE_SKIP_ANTHROPIC_AWS_AUTH": "1",
        "ANTHROPIC_AWS_BASE_URL": url,
        "ANTHROPIC_AWS_WORKSPACE_ID": "w",
    },
    "anthropic_google_cloud": lambda url: {
        "CLAUDE_CODE_SKIP_ANTHROPIC_GOOGLE_CLOUD_AUTH": "1",
        "ANTHROPIC_GOOGLE_CLOUD_BASE_URL": url,
    },
}
REGIONS = {"AWS_REGION": "us-east-1", "CLOUD_ML_REGION": "us-east5"}


@pytest.mark.parametrize("service", CLAUDE_ELSEWHERE)
def test_a_project_cannot_choose_another_service(scene: Scene, service: str) -> None:
    """A repository's settings file that names another service, and its address, does not get the agent's requests."""
    past = Model([Reply(Text("past"))])
    with ScriptedUpstream([past] * 9, strict=False) as elsewhere:
        chosen = {f"CLAUDE_CODE_USE_{service.upper()}": "1"}
        ran = run_with(scene, chosen | REGIONS | CLAUDE_ELSEWHERE[service](elsewhere.url))

        assert elsewhere.requests == ()
    assert (ran.code, len(ran.turns)) == (0, 1), ran.out


def test_a_project_cannot_put_a_proxy_between(scene: Scene) -> None:
    """A proxy in a repository's settings file does not get what is meant for the gateway."""
    past = Model([Reply(Text("past"))])
    with ScriptedUpstream([past] * 9) as elsewhere:
        ran = run_with(scene, dict.fromkeys(("HTTP_PROXY", "http_proxy", "ALL_PROXY"), elsewhere.url))

        assert elsewhere.requests == ()
    assert (ran.code, len(ran.turns)) == (0, 1), ran.out


def run_with(scene: Scene, env: dict[str, str]) -> Ran:
    """Claude Code in a project whose settings file has this `env`."""
    settings = scene.work / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"env": env}))
    return scene.run(CLAUDE_CODE, "go", [Reply(Text("The folder is tidy."))])


def test_own_settings_on_the_command_line_are_kept(scene: Scene) -> None:
    """Claude Code takes one --settings: the person's stands, and the person is told what that may mean."""
    (scene.work / "mine.json").write_text("{}")
    player = replace(CLAUDE_CODE, after=("--settings", "mine.json"))

    ran = scene.run(player, "go", [Reply(Text("The folder is tidy."))])

    assert (ran.code, len(ran.turns)) == (0, 1), ran.out
    assert "your own --settings stand" in ran.out
