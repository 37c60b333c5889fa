"""A scene for each test."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.agents import cache_dir
from tests.agents.scene import Scene


@pytest.fixture
def scene() -> Iterator[Scene]:
    """A scene outside of the temporary folder, which others may write: Gemini CLI reads no settings file there."""
    scratch = cache_dir() / "scratch"
    scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=scratch, ignore_cleanup_errors=True) as folder:
        yield Scene(Path(folder))
