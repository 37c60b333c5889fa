"""command.gitindex: the names that git tracks, without running git."""

import subprocess
from pathlib import Path

import pytest

from interpose.command import NotFound, PathPatterns, match_paths, read_command
from interpose.command.gitindex import tracked_below
from interpose.command.reading import Found

IDENTITY = ("-c", "user.name=t", "-c", "user.email=t@example.org")


def git(folder: Path, *words: str) -> str:
    """Runs a real git there."""
    done = subprocess.run(["git", *IDENTITY, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def repository(folder: Path, version: int = 2) -> Path:
    """A repository with a tracked and an untracked file, and names that share starts, are long, or need care."""
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "config", "index.version", str(version))
    for name in ("a.py", "src/a.py", "src/ab.py", "src/deep/" + "x" * 180, "é ü.txt", "config/.env"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    git(folder, "add", ".")
    (folder / ".env").write_text("secret")
    return folder


@pytest.mark.parametrize("version", [2, 3, 4])
def test_the_index_is_read_as_git_reads_it(tmp_path: Path, version: int) -> None:
    """Every version of the format gives the names that `git ls-files` gives, from any folder inside."""
    root = repository(tmp_path / "r", version)
    (root / "later.py").write_text("")
    if version > 2:
        git(root, "add", "--intent-to-add", "later.py")  # an extended entry
    listed = [f"{root}/{name}" for name in git(root, "ls-files", "-z").split("\0") if name]

    assert tracked_below(str(root)) == listed
    assert tracked_below(str(root / "src")) == [name for name in listed if "/src/" in name]


def test_a_worktree_has_an_index_of_its_own(tmp_path: Path) -> None:
    """A `.git` file leads to the index of the worktree."""
    root = repository(tmp_path / "r")
    git(root, "commit", "-qm", "first")
    git(root, "worktree", "add", "-q", str(tmp_path / "w"))
    git(tmp_path / "w", "rm", "-q", "a.py")

    assert f"{tmp_path}/w/a.py" not in (tracked_below(str(tmp_path / "w")) or [])
    assert f"{root}/a.py" in (tracked_below(str(root)) or [])


def test_what_cannot_be_read_is_not_nothing(tmp_path: Path) -> None:
    """A damaged index is no answer; no repository and an empty one are the answer none."""
    root = repository(tmp_path / "r")
    (root / ".git" / "index").write_bytes(b"DIRC\0\0\0\2\0\0\0\5")

    assert tracked_below(str(root)) is None
    assert tracked_below(str(tmp_path)) == []
    (tmp_path / "new").mkdir()
    git(tmp_path / "new", "init", "-q")
    assert tracked_below(str(tmp_path / "new")) == []


@pytest.mark.parametrize("line", ["git stash", "git checkout .", "git reset --hard", "git restore ."])
def test_git_touches_what_it_tracks(tmp_path: Path, line: str) -> None:
    """An untracked `.env` is safe from these commands, a tracked one is not."""
    root = repository(tmp_path / "r")
    untracked = PathPatterns([".env", "!config/.env"], root=str(root))
    tracked = PathPatterns([".env"], root=str(root))
    reading = read_command(line, cwd=str(root))

    assert match_paths(reading, untracked, {"write"}) == NotFound()
    assert isinstance(match_paths(reading, tracked, {"write"}), Found)


def test_a_glob_of_every_name_means_the_names_that_are_there(tmp_path: Path) -> None:
    """`cat *` reads a key only where one lies; a glob that names keys is refused all the same."""
    (tmp_path / "a.py").write_text("")
    keys = PathPatterns(["*.pem"], root=str(tmp_path))

    assert match_paths(read_command("cat *", cwd=str(tmp_path)), keys, {"read"}) == NotFound()
    assert isinstance(match_paths(read_command("cat *.pem", cwd=str(tmp_path)), keys, {"read"}), Found)
    (tmp_path / "server.pem").write_text("")
    assert isinstance(match_paths(read_command("cat *", cwd=str(tmp_path)), keys, {"read"}), Found)
