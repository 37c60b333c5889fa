"""assembly.folders: which workspace a folder belongs to."""

from pathlib import Path

import pytest

from interpose.assembly.folders import canonical_root, user_folders


@pytest.mark.parametrize("mark", [".interpose", ".git"])
def test_the_nearest_marked_folder_is_the_root(tmp_path: Path, mark: str) -> None:
    """A folder below a marked one belongs to it, also through a symlink."""
    inner = tmp_path / "project" / "src" / "deep"
    inner.mkdir(parents=True)
    (tmp_path / "project" / mark).mkdir()
    (tmp_path / "alias").symlink_to(inner)

    assert canonical_root(inner) == str(tmp_path / "project")
    assert canonical_root(tmp_path / "alias") == str(tmp_path / "project")


def test_the_nearer_mark_wins(tmp_path: Path) -> None:
    """A repository inside a folder with hooks is a workspace of its own."""
    (tmp_path / ".interpose").mkdir()
    (tmp_path / "repository" / ".git").mkdir(parents=True)

    assert canonical_root(tmp_path / "repository") == str(tmp_path / "repository")


def test_an_unmarked_folder_is_its_own_root(tmp_path: Path) -> None:
    """Without a mark the folder itself is the workspace."""
    assert canonical_root(tmp_path) == str(tmp_path.resolve())


def test_variables_replace_the_platforms_folders(tmp_path: Path) -> None:
    """INTERPOSE_CONFIG_DIR and INTERPOSE_STATE_DIR are taken as they are."""
    folders = user_folders({"INTERPOSE_CONFIG_DIR": "/c", "INTERPOSE_STATE_DIR": "/s", "HOME": str(tmp_path)})

    assert (str(folders.user_hooks), str(folders.journal_db), folders.home) == (
        "/c/hooks.yaml",
        "/s/journal.db",
        tmp_path,
    )
