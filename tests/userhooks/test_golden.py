"""Every way a hook file can be wrong: the file, and the words people get for it.

`golden/NAME.yaml` is read as `hooks.yaml` of a project; `golden/NAME.txt` holds the issues and the hooks that remain.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from interpose.userhooks.loading import HookFile, load_user_hooks

GOLDEN = Path(__file__).parent / "golden"


def story(path: Path) -> str:
    """What loading the file says, a line each."""
    loaded = load_user_hooks([HookFile("project", path)], root="/house", home="/home/ann")
    lines = [f"{issue.level}: {issue}".replace(str(path), "hooks.yaml") for issue in loaded.issues]
    lines.append("hooks: " + (", ".join(hook.id for hook in loaded.hooks) or "none"))
    if loaded.broken_files:
        lines.append("broken")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.yaml")), ids=lambda path: path.stem)
def test_each_wrong_file_gets_its_words(path: Path, golden: Callable[[str, Path], None]) -> None:
    """The issues name line, column, what was found and what is possible; valid siblings survive."""
    golden(story(path), path.with_suffix(".txt"))


def test_no_golden_stands_without_its_file() -> None:
    """A text without a YAML file would never be compared."""
    assert {path.stem for path in GOLDEN.glob("*.txt")} == {path.stem for path in GOLDEN.glob("*.yaml")}
