"""userhooks.schema: the schema is current, and agrees with the reading of the same file."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from interpose.contracts.effects import HOOKS
from interpose.userhooks.hooks import Source
from interpose.userhooks.loading import HookFile, check_hooks
from interpose.userhooks.normalise import normalise
from interpose.userhooks.parse import parse_hooks
from interpose.userhooks.schema import hooks_schema, hooks_schema_text
from interpose.userhooks.starter import STARTER
from interpose.userhooks.vocabulary import EFFECT_KEYS, KEYS

DOCS = Path(__file__).parents[2] / "docs"
GOLDEN = Path(__file__).parent / "golden"
SCHEMA = Draft202012Validator(hooks_schema())

WITH_PATTERNS = ("wrong-patterns", "other-languages")
"""Files whose entries are wrong by the inner grammar of patterns."""


def root_of(data: bytes) -> list[Any] | None:
    """The entries of a file whose YAML is right, else None."""
    parsed = parse_hooks(data, "hooks.yaml")
    if parsed.broken or any(entry.faults for entry in parsed.entries):
        return None
    return [entry.value for entry in parsed.entries]


def examples() -> list[str]:
    """Every YAML block of the reference."""
    return re.findall(r"```yaml\n(.*?)```", (DOCS / "hooks.md").read_text(), re.DOTALL)


def test_the_published_schema_is_the_current_one() -> None:
    """docs/hooks.schema.json is what the code makes; it is a schema."""
    Draft202012Validator.check_schema(hooks_schema())
    assert (DOCS / "hooks.schema.json").read_text() == hooks_schema_text()
    assert json.loads(hooks_schema_text()) == hooks_schema()


@pytest.mark.parametrize("example", [*examples(), STARTER])
def test_every_example_passes_both(example: str) -> None:
    """The schema and the reader find nothing wrong, and there is something to find it in."""
    hooks, issues = check_hooks(example.encode(), HookFile("project", Path("hooks.yaml")))

    assert [str(issue) for issue in issues] == []
    assert hooks
    assert [error.message for error in SCHEMA.iter_errors(root_of(example.encode()))] == []


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_schema_refuses_what_reading_refuses(path: Path) -> None:
    """Entry by entry, apart from the inner grammar of patterns, which only reading knows."""
    entries = root_of(path.read_bytes()) or []
    for entry in entries:
        refused = normalise(entry, Source("project", "hooks.yaml"))[0] is None
        assert (not SCHEMA.is_valid([entry])) == refused or path.stem in WITH_PATTERNS, entry


@pytest.mark.parametrize("event", HOOKS)
@pytest.mark.parametrize("kind", EFFECT_KEYS)
def test_the_schema_knows_which_effect_may_stand_where(event: str, kind: str) -> None:
    """The applicability map is in it."""
    fields = {name: key.choices[0] if key.choices else "words" for name, key in EFFECT_KEYS[kind].items()}  # type: ignore[index]
    entry = {"on": event, "kind": "effect", "effect": {"kind": kind, **fields}}

    assert SCHEMA.is_valid([entry]) == (normalise(entry, Source("project", "hooks.yaml"))[0] is not None)


def test_the_reference_names_every_word() -> None:
    """Each key, event, effect and field of an effect stands in docs/hooks.md."""
    text = (DOCS / "hooks.md").read_text()
    words = {*KEYS, *HOOKS, *EFFECT_KEYS, *(name for keys in EFFECT_KEYS.values() for name in keys)}

    assert [word for word in sorted(words) if f"`{word}`" not in text] == []
