"""launch.files."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from interpose.contracts.errors import StorageError
from interpose.launch.files import folders_open_to_others, notes_on_files, settings_dir, write_files


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


def test_settings_stay_in_the_usual_folder(open_to_all: Path) -> None:
    """Where that is private, and where no other folder is better."""
    preferred = open_to_all / "state" / "agents"

    assert settings_dir(preferred, {}) == preferred
    assert settings_dir(preferred, {"XDG_RUNTIME_DIR": str(open_to_all)}) == preferred
    assert settings_dir(Path("/usr/agents"), {"XDG_RUNTIME_DIR": str(open_to_all)}) == Path("/usr/agents")


def test_a_private_runtime_folder_is_used(open_to_all: Path, private: Path) -> None:
    """Settings then lie where nobody else may write."""
    found = settings_dir(open_to_all / "state" / "agents", {"XDG_RUNTIME_DIR": str(private)})

    assert found == private / "interpose"
    assert notes_on_files([found / "x.json"]) == ()


def test_a_folder_because_of_which_settings_are_skipped_is_named(open_to_all: Path) -> None:
    """Once, with the command that mends it."""
    notes = notes_on_files([open_to_all / "one.json", open_to_all / "two.json"])

    assert [note for note in notes if note.startswith(f"{open_to_all} can be written by others")] == [notes[-1]]
    assert notes[-1].endswith(f"chmod go-w {open_to_all}")


@pytest.fixture
def open_to_all(tmp_path: Path) -> Path:
    """A folder that group and others may write."""
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    return folder


@pytest.fixture
def private() -> Iterator[Path]:
    """A folder that nobody else may write, nor any above it; the temporary folder is none."""
    home = Path.home()
    if folders_open_to_others(home / "x"):
        pytest.skip(f"{home} can be written by others")
    with tempfile.TemporaryDirectory(dir=home, prefix=".interpose-test-") as folder:
        yield Path(folder)
