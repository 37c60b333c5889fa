"""docs/hooks.md says what is true: its tables against the code's."""

import re
from pathlib import Path

from interpose.catalog.names import CANONICAL_TOOLS, mcp_name
from interpose.catalog.table import AGENTS
from interpose.contracts.effects import HOOKS
from interpose.userhooks.vocabulary import APPLICABILITY, EFFECT_KEYS, KEYS

TEXT = (Path(__file__).parents[2] / "docs" / "hooks.md").read_text()
COLUMNS = ("claude-code", "codex", "gemini-cli", "opencode")


def rows(heading: str) -> list[list[str]]:
    """The cells of the table below a heading, its first two lines left out."""
    section = TEXT.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip().replace("\\", "") for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_the_table_of_tools_is_true() -> None:
    """Every name in it means what its row says, and every canonical tool has a row."""
    table = rows("Which tools")

    assert [row[0].strip("`") for row in table] == [*CANONICAL_TOOLS, "mcp:SERVER/TOOL"]
    for name, *cells in table[:-1]:
        for agent, cell in zip(COLUMNS, cells, strict=True):
            for wire_name in filter(None, cell.split(", ")):
                assert AGENTS[agent][wire_name].name == name.strip("`")
    for agent, spelling in zip(COLUMNS, table[-1][1:], strict=True):
        assert mcp_name(agent, spelling) == "mcp:SERVER/TOOL"


def test_the_table_of_effects_is_true() -> None:
    """Each effect with its keys and the events at which it may stand."""
    table = {row[0].split("`")[1]: row for row in rows("Effects")}

    assert set(table) == set(EFFECT_KEYS)
    for kind, keys in EFFECT_KEYS.items():
        _, said, *cells = table[kind]
        named = set(re.findall(r"`(\w+)`", said))
        assert named == {name for name in keys if kind != "block_tool" or name != "severity"}
        for event, cell in zip(HOOKS, cells, strict=False):
            assert (cell in ("yes", "in process")) == (kind in APPLICABILITY[event])


def test_the_table_of_keys_is_complete() -> None:
    """Every key once, with its closed set in words."""
    table = {row[0].strip("`"): row for row in rows("Keys")}

    assert set(table) == set(KEYS)
    for name, key in KEYS.items():
        assert [word for word in key.choices if f"`{word}`" not in table[name][1]] == []
        assert ("Required" in table[name][2]) == key.required
