"""What every test may ask for: a home of its own, and golden files."""

import difflib
from collections.abc import Callable
from pathlib import Path

import pytest

from interpose.assembly.folders import Folders


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update-golden` writes golden files anew."""
    parser.addoption("--update-golden", action="store_true", help="write golden files anew")


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
