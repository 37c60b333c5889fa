"""Canonical paths and path patterns, on real folders."""

import os
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.command import PathPattern, PathPatterns, canonical_path, same_file
from interpose.command.globs import Names
from interpose.command.trees import TREE_LIMIT
from interpose.contracts.decisions import Unknown


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a few files and links in it."""
    root = tmp_path / "project"
    (root / "sub" / "deep").mkdir(parents=True)
    (root / ".env").write_text("KEY=1")
    (root / "sub" / "key.pem").write_text("x")
    (root / "link").symlink_to(root / "sub")
    (root / "alias").symlink_to(root / ".env")
    return root


@pytest.mark.parametrize(
    "text",
    ["a/b", "./a/b", "a//b", "a/./b", "a/x/../b", "/r/a/b", "//r/a/b", "/proc/self/cwd/a/b", "file:///r/a/b", "a/b/"],
)
def test_every_way_to_write_a_path_is_one(text: str) -> None:
    """Dots, slashes, URIs and the process's own folder make no difference."""
    assert canonical_path(text, cwd="/r") == "/r/a/b"


@pytest.mark.parametrize("text", ["~/a", "$HOME/a", "${HOME}/a", "file://localhost/h/a", "file:///h/%61"])
def test_home_and_uris(text: str) -> None:
    """Home is put in where it is known; a URI is decoded."""
    assert canonical_path(text, cwd="/r", home="/h") == "/h/a"


def test_home_is_a_name_where_it_is_not_known() -> None:
    """Without a home a tilde is a name like any other, and another's home always is."""
    assert canonical_path("~/a", cwd="/r") == "/r/~/a"
    assert canonical_path("~you/a", cwd="/r", home="/h") == "/r/~you/a"


def test_links_are_followed_as_far_as_they_exist(project: Path) -> None:
    """A link counts where it points, and `..` behind it starts from there."""
    cwd = str(project)
    assert canonical_path("link/key.pem", cwd=cwd) == f"{cwd}/sub/key.pem"
    assert canonical_path("link/new/file", cwd=cwd) == f"{cwd}/sub/new/file"
    assert canonical_path("link/../.env", cwd=cwd) == f"{cwd}/.env"
    assert canonical_path("alias", cwd=cwd) == f"{cwd}/.env"


def test_unicode_and_case() -> None:
    """Both forms of an accent are one, and case is no difference where the filesystem sees none."""
    composed, decomposed = "caf\u00e9", unicodedata.normalize("NFD", "caf\u00e9")
    assert canonical_path(decomposed, cwd="/r") == canonical_path(composed, cwd="/r")
    assert canonical_path("/R/.ENV", cwd="/r", blind=True) == canonical_path("/r/.env", cwd="/r", blind=True)
    assert canonical_path("/R/.ENV", cwd="/r", blind=False) == "/R/.ENV"


def test_a_path_that_cannot_exist_raises_nothing() -> None:
    """Zero bytes and endless links are kept as written."""
    assert canonical_path("a\0b/../c", cwd="/r") == "/r/c"


def test_same_file(project: Path) -> None:
    """Hard links and links are one file; files that do not exist never are."""
    os.link(project / ".env", project / "copy")
    assert same_file(str(project / "copy"), str(project / "alias"))
    assert not same_file(str(project / "copy"), str(project / "sub"))
    assert not same_file(str(project / "no"), str(project / "no"))


@pytest.mark.parametrize(
    ("patterns", "path", "found"),
    [
        ([".env"], ".env", True),
        ([".env"], "a/b/.env", True),
        ([".env"], "/elsewhere/.env", True),
        ([".env"], ".envrc", False),
        ([".env"], ".env/inner", True),
        (["**/*.pem"], "a/b.pem", True),
        (["**/*.pem"], "b.pem", True),
        (["a/b"], "a/b", True),
        (["a/b"], "x/a/b", False),
        (["a/b"], "/elsewhere/a/b", False),
        (["a/b"], "a/b/c", True),
        (["./a"], "a", True),
        (["./a"], "x/a", False),
        (["a/"], "a", True),
        (["a/"], "a/c", True),
        (["notes/**"], "notes/x/y", True),
        (["notes/**"], "other", False),
        (["~/.ssh"], "/h/.ssh/id", True),
        (["~/.ssh"], ".ssh/id", False),
        (["$HOME/.ssh/*"], "~/.ssh/id", True),
        (["/etc/passwd"], "/etc/passwd", True),
        (["/etc/passwd"], "etc/passwd", True),
        (["/etc/*.conf"], "/etc/x.conf", True),
        (["../other/**"], "../other/x", True),
        (["../other/**"], "other/x", False),
        ([".env*", "!.env.example"], ".env.local", True),
        ([".env*", "!.env.example"], ".env.example", False),
        ([".env*", "!.env.example", ".env.example"], ".env.example", True),
        (["**"], "anything", True),
        (["build"], "src/x", False),
    ],
)
def test_patterns(patterns: list[str], path: str, found: bool) -> None:
    """Patterns mean what they mean in gitignore; home, absolute and parent paths are paths."""
    assert PathPatterns(patterns, root="/r/build", home="/h").match(path, "/r/build") is found


def test_the_root_itself_is_no_match_for_a_name_above_it() -> None:
    """A root below a folder called like a pattern does not match as a whole."""
    assert not PathPatterns(["build"], root="/r/build", home="/h").match("x", "/r/build")


def test_case_is_ignored_on_both_sides_where_the_filesystem_ignores_it() -> None:
    """Pattern and path are folded alike."""
    assert PathPatterns(["Secrets/.ENV"], root="/r", blind=True).match("secrets/.env", "/r")
    assert not PathPatterns(["Secrets/.ENV"], root="/r", blind=False).match("secrets/.env", "/r")


def test_links_to_a_file_meant_are_found(project: Path) -> None:
    """A link made a moment ago is seen, a hard link too."""
    patterns = PathPatterns([".env"], root=str(project))
    assert not patterns.match("fresh", str(project))
    os.link(project / ".env", project / "fresh")
    (project / "soft").symlink_to("fresh")
    assert patterns.match("fresh", str(project))
    assert patterns.match("soft", str(project))
    assert patterns.match("alias", str(project))


def test_a_link_with_a_protected_name_is_not_the_file_it_points_to(project: Path) -> None:
    """A pattern names places: the file behind a link counts at its own place."""
    (project / "sub" / "x.pem").symlink_to(project / "plain")
    assert not PathPatterns(["plain2"], root=str(project)).match("sub/x.pem", str(project))


def test_folders_contain(project: Path) -> None:
    """A folder contains what exists below it, and what a pattern names there."""
    patterns = PathPatterns([".env", "**/*.pem"], root=str(project))
    cwd = str(project)
    assert patterns.match(".", cwd, contains=True)
    assert patterns.match("..", cwd, contains=True)
    assert patterns.match("sub", cwd, contains=True)
    assert not patterns.match("sub/deep", cwd, contains=True)
    assert not patterns.match(".", cwd)
    (project / ".env").unlink()
    (project / "sub" / "key.pem").unlink()
    assert patterns.match(".", cwd, contains=True)
    assert not patterns.match(".", cwd, contains=True, existing=True)


def test_visible_names_only(project: Path) -> None:
    """What starts with a dot does not count where a search passes it by."""

    def find(pattern: str) -> object:
        patterns = PathPatterns([pattern], root=str(project))
        return patterns.find(".", str(project), contains=True, existing=True, visible=True)

    assert find(".env") is None
    assert find("**/*.pem") == f"{project}/sub/key.pem"


@pytest.mark.parametrize(
    ("patterns", "glob", "found"),
    [
        ([".env"], "/r/.e*", True),
        ([".env"], "/r/*", False),
        ([".env"], "/r/a/.en?", True),
        ([".env"], "/r/.[de]nv", True),
        (["**/*.pem"], "/r/*.p*", True),
        (["**/*.pem"], "/r/*.key", False),
        (["a/b"], "/r/a/*", True),
        (["a/b"], "/r/*/b", True),
        (["a/b"], "/r/x*/b", False),
        (["a/b"], "/r/**/b", True),
        (["a"], "/r/a/*.o", True),
        (["/etc/passwd"], "/etc/pass*", True),
    ],
)
def test_globs_meet_patterns(patterns: list[str], glob: str, found: bool) -> None:
    """A glob is found when it can mean a file meant; a wildcard does not mean a leading dot."""
    assert PathPatterns(patterns, root="/r").meets(glob) is found


def test_a_glob_below_a_named_folder_is_found_only_when_asked_for() -> None:
    """A glob may lead through a folder that a pattern names; its own name may still be none that is meant."""
    patterns = PathPatterns(["secrets"], root="/r")
    assert patterns.meets("/r/secrets/*.py")
    assert not patterns.meets("/r/secrets/*.py", below=False)


def test_names_below_may_be_filtered(project: Path) -> None:
    """Only names that are taken count, and folders that are passed by are not entered."""
    patterns = PathPatterns([".env", "*.pem"], root=str(project))

    def find(names: Names) -> object:
        return patterns.find(".", str(project), contains=True, existing=True, names=names)

    assert find(Names(((True, "*.py"),))) is None
    assert find(Names(((True, "*.p*"),))) == f"{project}/sub/key.pem"
    assert find(Names(((False, ".env"),), ("sub",))) is None
    assert find(Names((), ("sub",))) == f"{project}/.env"


def test_the_last_name_rule_that_matches_decides() -> None:
    """As grep has it; what no rule matches counts unless the first rule takes in."""
    assert [Names(((True, "*.c"), (False, "x*"))).takes(name) for name in ("a.c", "x.c", "a.h")] == [True, False, False]
    assert [Names(((False, "x*"), (True, "*.c"))).takes(name) for name in ("x.c", "x.h", "a.h")] == [True, False, True]


def test_folders_that_are_taken_back_are_not_looked_into(project: Path) -> None:
    """A negation at the end prunes its folders; one that is followed by a pattern, or covers only some, does not."""
    certificate = project / "node_modules" / "x" / "ca.pem"
    certificate.parent.mkdir(parents=True)
    certificate.write_text("public")
    (project / "sub" / "key.pem").unlink()

    def find(*patterns: str) -> object:
        found = PathPatterns(patterns, root=str(project))
        return found.find(".", str(project), contains=True, existing=True)

    assert find("*.pem", "!**/node_modules/**") is None
    assert find("*.pem", "!node_modules") is None
    assert find("*.pem", "!node_modules/*.pem") == str(certificate)
    assert find("*.pem", "!node_modules", "ca.pem") == str(certificate)
    assert not PathPatterns(["*.pem", "!node_modules"], root=str(project)).meets(f"{project}/node_modules/x/*.pem")


def test_a_pruned_tree_may_be_large_and_another_is_unknown(tmp_path: Path) -> None:
    """What is pruned is never counted; too many names elsewhere are no answer, unless the file comes first."""
    large = tmp_path / "node_modules"
    large.mkdir()
    for index in range(TREE_LIMIT + 1):
        (large / str(index)).touch()

    def find(*patterns: str) -> object:
        return PathPatterns(patterns, root=str(tmp_path)).find(".", str(tmp_path), contains=True, existing=True)

    assert find(".env", "!node_modules") is None
    assert isinstance(find(".env"), Unknown)
    (tmp_path / ".env").touch()
    assert find(".env") == f"{tmp_path}/.env"


@pytest.mark.parametrize("text", ["", "!", "/", "  ", "a\nb", "a\0b", "[a"])
def test_a_wrong_pattern_is_refused(text: str) -> None:
    """The error names the pattern."""
    with pytest.raises(ValueError, match="path pattern"):
        PathPattern.parse(text)


NAMES = st.text(st.sampled_from("ab.é*?[]~ "), min_size=1, max_size=5)


@given(st.lists(NAMES | st.sampled_from(["..", ".", ""]), max_size=6))
def test_canonical_is_canonical(parts: list[str]) -> None:
    """A canonical path is absolute, has no dots, and is its own canonical form."""
    path = canonical_path("/".join(parts), cwd="/nowhere/x", home="/h")
    assert path.startswith("/")
    assert not {"..", ".", ""} & set(path[1:].split("/")) or path == "/"
    assert canonical_path(path, cwd="/other") == path
