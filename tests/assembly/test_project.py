"""assembly.project: a repository may tighten a setting and never loosen one."""

from pathlib import Path

import pytest

from interpose.assembly.folders import Folders
from interpose.assembly.project import ProjectSettings, project_settings
from interpose.assembly.runtime import Runtime
from interpose.journal.query import Filter, JournalReader


def write(root: Path, text: str | bytes) -> None:
    """The project's file."""
    (root / ".interpose").mkdir()
    data = text if isinstance(text, bytes) else text.encode()
    (root / ".interpose" / "config.toml").write_bytes(data)


def test_without_a_file_the_users_value_holds(tmp_path: Path) -> None:
    """In a project that says nothing, and where there is no project."""
    assert project_settings(str(tmp_path), ask_timeout_s=120) == ProjectSettings(120)
    assert project_settings(None, ask_timeout_s=120) == ProjectSettings(120)


def test_a_project_may_wait_for_a_shorter_time(tmp_path: Path) -> None:
    """Its value is in force, and nothing is wrong."""
    write(tmp_path, "[gateway]\nask_timeout_s = 30\n")

    assert project_settings(str(tmp_path), ask_timeout_s=120) == ProjectSettings(30)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[gateway]\nask_timeout_s = 300\n", "may only make it shorter"),
        ("[gateway]\nask_timeout_s = 0\n", "1 to 600 seconds"),
        ("[gateway]\nask_timeout_s = true\n", "1 to 600 seconds"),
        ("[gateway]\nask_timeout_s = nan\n", "1 to 600 seconds"),
        ('[gateway]\nask_timeout_s = "5"\n', "config.toml:2: gateway.ask_timeout_s"),
        ("[gateway]\nport = 1\n", "config.toml:2: gateway.port"),
        ('[upstreams]\nanthropic = "http://x"\n', "upstreams"),
        ("gateway = 5\n", "gateway"),
        ("[gateway\n", "cannot be read"),
        (b"\xff", "cannot be read"),
    ],
)
def test_what_a_project_may_not_say_changes_nothing(tmp_path: Path, text: str | bytes, named: str) -> None:
    """The user's value stays, and the file and the key are named."""
    write(tmp_path, text)

    found = project_settings(str(tmp_path), ask_timeout_s=120)

    assert found.ask_timeout_s == 120
    (problem,) = found.problems
    assert named in problem
    assert ".interpose/config.toml" in problem


def test_a_problem_is_journalled_when_the_policy_is_built(tmp_path: Path, folders: Folders) -> None:
    """A person finds out why a setting does nothing."""
    root = tmp_path / "project"
    root.mkdir()
    write(root, "[gateway]\nask_timeout_s = 300\n")

    with Runtime.open(folders) as runtime:
        runtime.workspaces.policy(str(root))
    reader = JournalReader(folders.journal_db)
    told = [stored.record.reason for stored in reader.find(Filter(workspace=str(root), step="problem"))]
    reader.close()

    assert any("may only make it shorter" in reason for reason in told)
