"""launch.files."""

from pathlib import Path

import pytest

from interpose.contracts.errors import StorageError
from interpose.launch.files import folders_open_to_others, write_files


def test_files_are_written_whole_and_closed_to_others(tmp_path: Path) -> None:
    """The folder is made 0700 and the file 0600; writing again replaces it and leaves nothing else behind."""
    path = tmp_path / "settings" / "x.json"

    write_files({path: "one"})
    write_files({path: "two"})

    assert path.read_text() == "two"
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert list(path.parent.iterdir()) == [path]


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """The message names the file and the way out."""
    (tmp_path / "file").write_text("")

    with pytest.raises(StorageError, match=r"x\.json: cannot be written .*look at the folder"):
        write_files({tmp_path / "file" / "x.json": ""})


def test_folders_that_others_may_write_are_found(tmp_path: Path) -> None:
    """An agent skips settings below such a folder, so it is named."""
    tmp_path.chmod(0o700)
    before = folders_open_to_others(tmp_path / "deep" / "x.json")
    tmp_path.chmod(0o770)

    assert folders_open_to_others(tmp_path / "deep" / "x.json") == (*before, tmp_path)
