"""What every test may ask for: a home of its own, and golden files; and what the summary says."""

import difflib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from interpose.assembly.folders import Folders

_DESELECTED = pytest.StashKey[int]()


def pytest_configure() -> None:
    """An example may take its time: how long it takes says how busy the machine is, not what is right."""
    settings.register_profile("any-machine", deadline=None)
    settings.load_profile("any-machine")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update-golden` writes golden files anew."""
    parser.addoption("--update-golden", action="store_true", help="write golden files anew")


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Counts what is left out, here or in a worker, which tells the process that writes the summary."""
    if not items:
        return
    config = items[0].config
    config.stash[_DESELECTED] = config.stash.get(_DESELECTED, 0) + sum("agents" in item.keywords for item in items)
    if hasattr(config, "workeroutput"):
        config.workeroutput["deselected_agents"] = config.stash[_DESELECTED]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Takes over a worker's count; every worker has the same."""
    node.config.stash[_DESELECTED] = getattr(node, "workeroutput", {}).get("deselected_agents", 0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Says how many tests of real agents were left out, also where workers ran the others."""
    count = config.stash.get(_DESELECTED, 0)
    if count and config.getoption("markexpr") == "not agents":
        terminalreporter.write_line(f"{count} tests of real agents not run here: make agents")


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    """Config, state and home folders of a user who exists for this test only."""
    home = tmp_path / "home"
    home.mkdir()
    return Folders(config=tmp_path / "config", state=tmp_path / "state", home=home)


@pytest.fixture
def environ(folders: Folders) -> dict[str, str]:
    """The bare environment of a process of that user."""
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(folders.home),
        "INTERPOSE_CONFIG_DIR": str(folders.config),
        "INTERPOSE_STATE_DIR": str(folders.state),
        "NO_COLOR": "1",
        "COLUMNS": "120",
    }


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, Path], None]:
    """Compares a text with a golden file, or writes the file when asked to."""

    def compare(text: str, path: Path) -> None:
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        expected = path.read_text(encoding="utf-8") if path.exists() else ""
        difference = "\n".join(
            difflib.unified_diff(expected.splitlines(), text.splitlines(), "golden", "now", lineterm="")
        )
        assert expected == text, f"{path.name} differs:\n{difference}"

    return compare
