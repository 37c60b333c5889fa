"""How far one rule reaches: MCP tools under each agent's own name for them, and agents that an agent starts."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from interpose.testing.upstream import Reply, Text, ToolUse
from tests.agents.players import CLAUDE_CODE, OPENCODE, Player
from tests.agents.scene import Scene
from tests.agents.test_judged import NO_DELETES, REFUSED_DELETE

pytestmark = pytest.mark.agents

SERVER = [sys.executable, str(Path(__file__).parent / "notes_server.py")]
NOTES_STAY = """
hooks:
  - id: notes-stay
    on: before_tool
    kind: effect
    tools: ["mcp:notes/remove"]
    effect: {kind: block_tool, reason: notes are kept}
"""
CLAUDE_WITH_NOTES = replace(
    CLAUDE_CODE,
    after=("--mcp-config", "mcp.json", "--strict-mcp-config", "--allowedTools", "mcp__notes__read"),
    files={"mcp.json": json.dumps({"mcpServers": {"notes": {"command": SERVER[0], "args": SERVER[1:]}}})},
)
OPENCODE_WITH_NOTES = replace(
    OPENCODE,
    files={"opencode.json": json.dumps({"mcp": {"notes": {"type": "local", "command": SERVER, "enabled": True}}})},
)


@pytest.mark.parametrize(
    ("player", "prefix"),
    [(CLAUDE_WITH_NOTES, "mcp__notes__"), (OPENCODE_WITH_NOTES, "notes_")],
    ids=["claude-code", "opencode"],
)
def test_an_mcp_tool_is_known_by_its_server(scene: Scene, player: Player, prefix: str) -> None:
    """The rule names server and tool; each agent writes them its own way; the server's other tool works."""
    scene.rules(NOTES_STAY)
    calls = (ToolUse(f"{prefix}read", {"name": "a"}), ToolUse(f"{prefix}remove", {"name": "a"}))

    ran = scene.run(player, "tidy the notes", [Reply(Text("Both."), *calls), Reply(Text("I see."))])

    assert (ran.code, len(ran.turns)) == (0, 2), ran.out
    second = ran.turns[1].body.decode()
    assert "the note was read" in second
    assert f"{prefix}remove was refused by notes-stay: notes are kept" in second
    assert ran.outcomes("tool.call") == [("mcp:notes/read", "allowed"), ("mcp:notes/remove", "refused")]


def test_an_agents_agent_is_judged(scene: Scene) -> None:
    """A call of a subagent's model is refused as the main one's would be, and its report tells the main one why."""
    scene.rules(NO_DELETES)
    player = replace(CLAUDE_CODE, after=("--allowedTools", "Bash", "Agent"))
    task = {"description": "tidy", "prompt": "tidy the folder", "subagent_type": "general-purpose"}
    script = [
        Reply(ToolUse("Agent", task | {"run_in_background": False})),
        Reply(Text("Tidying."), player.runs("rm -rf build")),
        Reply(Text("I could not.")),
        Reply(Text("Done.")),
    ]

    ran = scene.run(player, "delegate", script)

    assert (ran.code, len(ran.turns)) == (0, 4), ran.out
    assert (scene.work / "build").is_dir()
    assert ran.outcomes("tool.call") == [("agent", "allowed"), ("shell", "refused")]
    assert REFUSED_DELETE in ran.turns[2].body.decode()
    assert REFUSED_DELETE in ran.turns[3].body.decode()
    refused = next(record for record in ran.records if record.outcome == "refused")
    assert refused.session.startswith(f"{ran.records[0].session}/")
