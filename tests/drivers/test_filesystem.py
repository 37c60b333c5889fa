"""Behaviour of the filesystem tools: what they do, and that no path leads out of the root."""

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpose.contracts.errors import ConfigError, ToolError
from interpose.drivers.filesystem import FilesystemLimits, FilesystemTools
from interpose.drivers.results import told

OUTSIDE = "what stands outside"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root beside a folder with a secret."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text(OUTSIDE)
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


def names(folder: Path) -> list[str]:
    """What is in the folder."""
    return sorted(entry.name for entry in folder.iterdir())


def test_writes_and_reads_text(root: Path) -> None:
    """What was written is read back byte for byte, folders on the way are made."""
    tools = FilesystemTools(root)

    said = tools.execute_tool("write_file", {"path": "notes/today.md", "content": "Grüße\r\nzwei\n"})

    assert said == "wrote 14 bytes to notes/today.md"
    assert (root / "notes" / "today.md").read_bytes() == "Grüße\r\nzwei\n".encode()
    assert tools.execute_tool("read_file", {"path": "notes/today.md"}) == "Grüße\r\nzwei\n"
    assert tools.execute_tool("read_file", {"path": f"{root}/notes/./today.md"}) == "Grüße\r\nzwei\n"


def test_reads_a_slice_and_says_where_to_go_on(root: Path) -> None:
    """A slice has the asked lines and, when more follow, the offset of the next."""
    (root / "lines.txt").write_text("one\ntwo\nthree\n")
    tools = FilesystemTools(root)

    assert tools.execute_tool("read_file", {"path": "lines.txt", "offset": 2, "limit": 1}) == (
        "two\n[cut here: go on with offset 3]"
    )
    assert tools.execute_tool("read_file", {"path": "lines.txt", "offset": 3}) == "three\n"
    with pytest.raises(ToolError, match="it has 3 lines, so there is no line 9"):
        tools.execute_tool("read_file", {"path": "lines.txt", "offset": 9})


def test_a_large_file_is_read_in_slices_only(root: Path) -> None:
    """A file over the bound is refused with the way to read it; the slices make up the whole."""
    text = "".join(f"line {number}\n" for number in range(100))
    (root / "large.txt").write_text(text)
    tools = FilesystemTools(root, limits=FilesystemLimits(read_bytes=200))

    with pytest.raises(ToolError, match="at most 200 are read at once; give offset"):
        tools.execute_tool("read_file", {"path": "large.txt"})

    whole, offset = "", 1
    while True:
        piece = tools.execute_tool("read_file", {"path": "large.txt", "offset": offset, "limit": 1000})
        lines, cut, rest = piece.partition("[cut here: go on with offset ")
        whole += lines
        if not cut:
            break
        offset = int(rest.rstrip("]"))
    assert whole == text


@pytest.mark.parametrize(
    ("data", "words"),
    [(b"\xff\xfe", "it is not UTF-8 (byte 0xff at 0)"), (b"a\0\xff", "it is a binary file (byte 0xff at 2)")],
)
def test_what_is_no_text_is_not_read(root: Path, data: bytes, words: str) -> None:
    """The error says what is wrong and where."""
    (root / "data").write_bytes(data)

    with pytest.raises(ToolError) as failed:
        FilesystemTools(root).execute_tool("read_file", {"path": "data"})

    assert words in str(failed.value)


def test_if_exists_appends_or_refuses(root: Path) -> None:
    """`append` adds, `refuse` leaves the file alone, a replaced file keeps its permission bits."""
    tools = FilesystemTools(root)
    (root / "run.sh").write_text("one")
    (root / "run.sh").chmod(0o750)

    tools.execute_tool("write_file", {"path": "run.sh", "content": " two", "if_exists": "append"})
    assert (root / "run.sh").read_text() == "one two"

    with pytest.raises(ToolError, match=r"run\.sh: it exists already"):
        tools.execute_tool("write_file", {"path": "run.sh", "content": "x", "if_exists": "refuse"})
    tools.execute_tool("write_file", {"path": "run.sh", "content": "three"})
    assert ((root / "run.sh").read_text(), stat.S_IMODE((root / "run.sh").stat().st_mode)) == ("three", 0o750)
    assert names(root) == ["run.sh"]


def test_what_would_be_too_large_is_not_written(root: Path) -> None:
    """Neither a text nor an appended file grows over the bound."""
    tools = FilesystemTools(root, limits=FilesystemLimits(write_bytes=4))
    tools.execute_tool("write_file", {"path": "a", "content": "123"})

    for arguments in ({"path": "b", "content": "12345"}, {"path": "a", "content": "45", "if_exists": "append"}):
        with pytest.raises(ToolError, match="it would have 5 bytes, at most 4 are written"):
            tools.execute_tool("write_file", arguments)
    assert names(root) == ["a"]


def test_edits_only_what_is_there_once(root: Path) -> None:
    """An edit needs the text once; absent, repeated or empty text changes nothing."""
    tools = FilesystemTools(root)
    (root / "a.py").write_text("x = 1\ny = 1\n")

    assert (
        tools.execute_tool("edit_file", {"path": "a.py", "old": "x = 1", "new": "x = 2"}) == "replaced 1 place in a.py"
    )
    for old, words in (("z", "old is not in the file"), (" = ", "in the file 2 times"), ("", "old is empty")):
        with pytest.raises(ToolError, match=words):
            tools.execute_tool("edit_file", {"path": "a.py", "old": old, "new": "-"})
    tools.execute_tool("edit_file", {"path": "a.py", "old": " = ", "new": "=", "replace_all": True})
    assert (root / "a.py").read_text() == "x=2\ny=1\n"


def test_lists_folders_links_and_sizes(root: Path) -> None:
    """A listing is sorted and shows what each entry is; depth goes further down."""
    (root / "b").mkdir()
    (root / "b" / "c.txt").write_text("12345")
    (root / "a.txt").write_text("1")
    (root / "link").symlink_to("a.txt")
    tools = FilesystemTools(root)

    assert tools.execute_tool("list_directory", {}) == "a.txt (1 bytes)\nb/\nlink@"
    assert tools.execute_tool("list_directory", {"depth": 2}).splitlines()[1:3] == ["b/", "b/c.txt (5 bytes)"]
    assert tools.execute_tool("list_directory", {"path": "b"}) == "b/c.txt (5 bytes)"


def test_searches_names_and_text(root: Path) -> None:
    """Names by pattern, lines by text; paths can be given to read_file as they are."""
    (root / "src" / "deep").mkdir(parents=True)
    (root / "src" / "a.py").write_text("import os\n# TODO: no\n")
    (root / "src" / "deep" / "b.py").write_text("todo\n")
    (root / "src" / "c.txt").write_text("TODO\n")
    (root / "src" / "d.bin").write_bytes(b"\0TODO")
    tools = FilesystemTools(root)

    assert tools.execute_tool("glob", {"pattern": "*.py"}) == "src/a.py\nsrc/deep/b.py"
    assert tools.execute_tool("glob", {"pattern": "deep/*", "path": "src"}) == "src/deep/b.py"
    assert tools.execute_tool("glob", {"pattern": "**/*.txt"}) == "src/c.txt"
    assert tools.execute_tool("grep", {"pattern": "TODO", "path": "src"}) == "src/a.py:2:# TODO: no\nsrc/c.txt:1:TODO"
    assert tools.execute_tool("grep", {"pattern": "todo", "glob": "*.py", "ignore_case": True}) == (
        "src/a.py:2:# TODO: no\nsrc/deep/b.py:1:todo"
    )
    assert tools.execute_tool("grep", {"pattern": "TODO", "path": "src/c.txt"}) == "src/c.txt:1:TODO"
    assert tools.execute_tool("grep", {"pattern": "absent"}) == "nothing found"
    (root / "odd.txt").write_bytes("a\u2028b\r\nTHERE\r\n".encode())
    assert tools.execute_tool("grep", {"pattern": "THERE"}) == "odd.txt:2:THERE"
    assert tools.execute_tool("read_file", {"path": "odd.txt", "offset": 2, "limit": 1}) == "THERE\r\n"


def test_searches_stop_at_their_bounds(root: Path) -> None:
    """What a search left out is said in the last line."""
    for number in range(5):
        (root / f"{number}.txt").write_text("hit\nhit\n")

    few = FilesystemTools(root, limits=FilesystemLimits(results=3))
    assert few.execute_tool("list_directory", {}).endswith("[more than 3 results; narrow the search]")
    assert few.execute_tool("grep", {"pattern": "hit"}).count("hit") == 3
    short = FilesystemTools(root, limits=FilesystemLimits(entries=2))
    assert short.execute_tool("glob", {"pattern": "*"}) == (
        "0.txt\n1.txt\n[stopped after 2 files and folders; start further down]"
    )
    quick = FilesystemTools(root, limits=FilesystemLimits(search_s=0))
    assert quick.execute_tool("glob", {"pattern": "*"}) == "[stopped after 0 s; start further down]"


def test_moves_and_never_overwrites_unasked(root: Path) -> None:
    """A move makes folders, refuses what is there, and replaces it when told to."""
    tools = FilesystemTools(root)
    (root / "a").write_text("a")
    (root / "b").write_text("b")
    (root / "folder").mkdir()

    with pytest.raises(ToolError, match="it exists already"):
        tools.execute_tool("move_file", {"source": "a", "destination": "b"})
    with pytest.raises(ToolError, match="it exists already"):
        tools.execute_tool("move_file", {"source": "folder", "destination": "b"})
    assert (root / "b").read_text() == "b"
    tools.execute_tool("move_file", {"source": "a", "destination": "b", "overwrite": True})
    tools.execute_tool("move_file", {"source": "b", "destination": "new/c"})
    tools.execute_tool("move_file", {"source": "folder", "destination": "other"})
    assert (root / "new" / "c").read_text() == "a"
    assert names(root) == ["new", "other"]
    with pytest.raises(ToolError, match="the root itself"):
        tools.execute_tool("move_file", {"source": ".", "destination": "x"})


def test_deletes_what_it_is_told_and_no_more(root: Path) -> None:
    """A full folder needs `recursive`; a link goes, what it points to stays; the root stays."""
    tools = FilesystemTools(root)
    (root / "full").mkdir()
    (root / "full" / "a").write_text("a")
    (root / "full" / "way-out").symlink_to(root.parent / "outside")
    (root / "link").symlink_to("full/a")

    with pytest.raises(ToolError, match="the folder is not empty; recursive deletes"):
        tools.execute_tool("delete_file", {"path": "full"})
    tools.execute_tool("delete_file", {"path": "link"})
    assert (root / "full" / "a").exists()
    tools.execute_tool("delete_file", {"path": "full", "recursive": True})
    assert names(root) == []
    assert (root.parent / "outside" / "secret.txt").exists()
    with pytest.raises(ToolError, match="the root itself cannot be deleted"):
        tools.execute_tool("delete_file", {"path": ".", "recursive": True})
    with pytest.raises(ToolError, match="gone: there is no such file or folder"):
        tools.execute_tool("delete_file", {"path": "gone"})


@pytest.mark.parametrize(
    "path",
    [
        "../outside/secret.txt",
        "a/../../outside/secret.txt",
        "/etc/passwd",
        "way-out/secret.txt",
        "secret-link",
        "up/outside/secret.txt",
        "chain/secret.txt",
        "root-prefix/secret.txt",
    ],
)
def test_no_path_leads_out(root: Path, path: str) -> None:
    """`..`, absolute paths and links in any place end in an error that says so, for reading and for writing."""
    (root / "a").mkdir()
    (root / "way-out").symlink_to(root.parent / "outside")
    (root / "secret-link").symlink_to("../outside/secret.txt")
    (root / "up").symlink_to("..")
    (root / "chain").symlink_to("way-out")
    (root.parent / "root-of-another").mkdir()
    (root / "root-prefix").symlink_to(f"{root}-of-another")
    tools = FilesystemTools(root)

    for tool, more in (("read_file", {}), ("write_file", {"content": "x"})):
        with pytest.raises(ToolError, match=r"out of the root|outside of the root"):
            tools.execute_tool(tool, {"path": path, **more})
    assert (root.parent / "outside" / "secret.txt").read_text() == OUTSIDE


def test_links_inside_work(root: Path) -> None:
    """A link that stays inside is followed, relative or absolute; a write changes what it points to."""
    (root / "real").mkdir()
    (root / "real" / "a.txt").write_text("a")
    (root / "folder").symlink_to("real")
    (root / "file").symlink_to(root / "folder" / ".." / "real" / "a.txt")
    tools = FilesystemTools(root)

    assert tools.execute_tool("read_file", {"path": "folder/a.txt"}) == "a"
    tools.execute_tool("write_file", {"path": "file", "content": "b"})
    assert (root / "file").is_symlink()
    assert (root / "real" / "a.txt").read_text() == "b"
    (root / "circle").symlink_to("circle")
    with pytest.raises(ToolError, match="more than 40 links on the way"):
        tools.execute_tool("read_file", {"path": "circle"})


def test_pipes_and_folders_are_no_files(root: Path) -> None:
    """A named pipe neither blocks nor is read; a folder is called a folder."""
    os.mkfifo(root / "pipe")
    (root / "folder").mkdir()
    tools = FilesystemTools(root)

    with pytest.raises(ToolError, match="no regular file"):
        tools.execute_tool("read_file", {"path": "pipe"})
    with pytest.raises(ToolError, match="no regular file"):
        tools.execute_tool("write_file", {"path": "pipe", "content": "x"})
    for path in ("folder", ".", "folder/.."):
        with pytest.raises(ToolError, match="it is a folder"):
            tools.execute_tool("read_file", {"path": path})
        with pytest.raises(ToolError, match="it is a folder"):
            tools.execute_tool("write_file", {"path": path, "content": "x"})


SWAPPING = """
import ctypes, os
libc, here, exchange = ctypes.CDLL(None, use_errno=True), os.open(".", os.O_RDONLY), 2
libc.renameat2(here, b"here", here, b"there", exchange) and os._exit(1)
print("swapping", flush=True)
while True:
    libc.renameat2(here, b"here", here, b"there", exchange)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux swaps two names at once")
def test_a_component_swapped_during_calls_never_leads_out(root: Path) -> None:
    """While a folder and a link to the outside change places all the time, no read returns the outside."""
    (root / "here").mkdir()
    (root / "here" / "secret.txt").write_text("inside")
    (root / "there").symlink_to(root.parent / "outside")
    tools = FilesystemTools(root)
    seen: set[str] = set()

    with subprocess.Popen([sys.executable, "-c", SWAPPING], cwd=root, stdout=subprocess.PIPE) as swapping:
        assert swapping.stdout is not None
        if not swapping.stdout.readline():
            pytest.skip("this file system does not swap names")
        try:
            until = time.monotonic() + 1
            while time.monotonic() < until:
                try:
                    seen.add(tools.execute_tool("read_file", {"path": "here/secret.txt"}))
                except ToolError as error:
                    seen.add(str(error).partition(": ")[2])
        finally:
            swapping.kill()

    assert OUTSIDE not in seen
    assert "inside" in seen
    assert "here is a link that leads out of the root" in seen


def test_a_root_that_was_replaced_is_left_alone(root: Path) -> None:
    """When another folder takes the root's place, nothing is done in it."""
    tools = FilesystemTools(root)
    root.rename(root.parent / "moved")
    root.symlink_to(root.parent / "outside")

    with pytest.raises(ToolError):
        tools.execute_tool("read_file", {"path": "secret.txt"})

    root.unlink()
    root.mkdir()
    with pytest.raises(ToolError, match="replaced by another folder"):
        tools.execute_tool("list_directory", {})


def test_read_only_has_no_tools_that_write(root: Path) -> None:
    """Without writing the tools do not exist, and calling one is an unknown name."""
    tools = FilesystemTools(root, read_only=True)

    assert [tool.name for tool in tools.list_tools()] == ["read_file", "list_directory", "glob", "grep"]
    with pytest.raises(ValueError, match="there is no tool 'write_file' here"):
        tools.execute_tool("write_file", {"path": "a", "content": "a"})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "the argument 'path' is missing (it takes path, offset, limit)"),
        ({"path": 3}, "the argument 'path' must be string, got int"),
        ({"path": "a", "offset": True}, "the argument 'offset' must be integer, got bool"),
        ({"path": "a", "offset": 0}, "the argument 'offset' must be at least 1, got 0"),
        ({"path": "a", "encoding": "latin-1"}, "there is no argument 'encoding'"),
        ({"path": "a\0b"}, "a path has no NUL in it"),
        ({"path": "\ud800"}, "it is not valid text"),
        ({"path": "a/" * 300}, "there is no such file or folder"),
    ],
)
def test_wrong_arguments_are_named(root: Path, arguments: dict[str, object], words: str) -> None:
    """The error names the tool or path, the argument and what was expected."""
    with pytest.raises(ToolError) as failed:
        FilesystemTools(root).execute_tool("read_file", arguments)

    assert words in str(failed.value)


def test_a_root_that_is_no_folder_is_a_configuration_error(root: Path) -> None:
    """The error names the root and the way out."""
    with pytest.raises(ConfigError, match="give a folder that exists"):
        FilesystemTools(root / "missing")
    (root / "file").write_text("")
    with pytest.raises(ConfigError, match="it is no folder"):
        FilesystemTools(root / "file")


COMPONENTS = st.sampled_from(["..", ".", "", "a", "b", "way-out", "up", "in", "secret.txt", "outside"])


@settings(max_examples=300, deadline=None)
@given(parts=st.lists(COMPONENTS, max_size=8), absolute=st.booleans())
def test_any_mixture_of_components_stays_inside(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str], *, absolute: bool
) -> None:
    """Whatever is made of dots, folders and links, a read never returns the secret."""
    place = tmp_path_factory.getbasetemp() / "mixture"
    if not place.exists():
        (place / "root" / "a" / "b").mkdir(parents=True)
        (place / "outside").mkdir()
        (place / "outside" / "secret.txt").write_text(OUTSIDE)
        (place / "root" / "way-out").symlink_to("../outside")
        (place / "root" / "a" / "up").symlink_to("../..")
        (place / "root" / "a" / "in").symlink_to("b/..")
    path = "/".join(parts)
    tools = FilesystemTools(place / "root")

    try:
        read = tools.execute_tool("read_file", {"path": f"{place / 'root'}/{path}" if absolute else path})
    except ToolError:
        return
    assert read != OUTSIDE


def test_an_edit_of_a_file_that_is_too_large_leaves_it_alone(root: Path) -> None:
    """A file with more than may be written is refused whole: an edit never writes back a part of it."""
    limits = FilesystemLimits(write_bytes=100)
    text = "head\n" + "x" * 200 + "\ntail\n"
    (root / "large.txt").write_text(text)

    with pytest.raises(ToolError, match=r"large\.txt: it has 211 bytes and at most 100 are edited; nothing was"):
        FilesystemTools(root, limits=limits).execute_tool("edit_file", {"path": "large.txt", "old": "head", "new": "h"})

    assert (root / "large.txt").read_text() == text
    assert names(root) == ["large.txt"]


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs files that do not tell their size")
def test_a_file_that_hides_its_size_is_never_cut_in_silence() -> None:
    """What is there counts, not what the file system says of it."""
    tools = FilesystemTools("/proc/self", limits=FilesystemLimits(read_bytes=10), read_only=True)

    with pytest.raises(ToolError, match="it has 11 bytes and at most 10 are read at once"):
        tools.execute_tool("read_file", {"path": "limits"})


@pytest.mark.parametrize("size", [99, 100, 101])
def test_an_edit_never_loses_what_it_did_not_replace(root: Path, size: int) -> None:
    """Around the limit an edit either keeps every other byte or does nothing."""
    text = "a" + "x" * (size - 2) + "z"
    (root / "f").write_text(text)

    try:
        FilesystemTools(root, limits=FilesystemLimits(write_bytes=100)).execute_tool(
            "edit_file", {"path": "f", "old": "a", "new": "b"}
        )
    except ToolError:
        assert (root / "f").read_text() == text
        return

    assert (root / "f").read_text() == "b" + text[1:]


@pytest.mark.parametrize(
    ("path", "named"),
    [("newdir/../../x", "it leads out of the root"), ("a/b/c/../../../../x", "it leads out of the root")],
)
def test_a_refused_write_leaves_no_folder(root: Path, path: str, named: str) -> None:
    """Folders that were made for a path that leads out are gone again."""
    with pytest.raises(ToolError, match=named):
        FilesystemTools(root).execute_tool("write_file", {"path": path, "content": "x"})

    assert names(root) == []


def test_a_failed_move_leaves_no_folder_and_keeps_full_ones(root: Path) -> None:
    """Only what the call made itself is taken back."""
    (root / "kept").mkdir()
    (root / "folder").mkdir()
    tools = FilesystemTools(root)

    with pytest.raises(ToolError):
        tools.execute_tool("move_file", {"source": "folder", "destination": "folder/new/inside"})
    with pytest.raises(ToolError, match=r"^gone: there is no such file"):
        tools.execute_tool("move_file", {"source": "gone", "destination": "new/place"})
    with pytest.raises(ToolError, match=r"^kept/gone: there is no such file"):
        tools.execute_tool("move_file", {"source": "kept/gone", "destination": "x", "overwrite": True})

    assert names(root) == ["folder", "kept"]
    assert names(root / "folder") == []


def test_a_name_that_is_no_text_can_be_sent_and_given_back(root: Path) -> None:
    """A listing that went through a message names a file so that every tool finds it again."""
    raw = os.fsencode(root) + b"/d\xff/f\xfe.txt"
    file = Path(os.fsdecode(raw))
    file.parent.mkdir()
    file.write_text("needle")
    tools = FilesystemTools(root)

    listed = told(tools.execute_tool("glob", {"pattern": "*.txt"}))

    assert listed.encode() == rb"d\udcff/f\udcfe.txt"
    assert tools.execute_tool("read_file", {"path": listed}) == "needle"
    assert told(tools.execute_tool("grep", {"pattern": "needle", "path": listed})).endswith(":1:needle")
    tools.execute_tool("edit_file", {"path": listed, "old": "needle", "new": "pin"})
    assert tools.execute_tool("read_file", {"path": listed}) == "pin"
    tools.execute_tool("move_file", {"source": listed, "destination": "plain.txt"})
    assert tools.execute_tool("read_file", {"path": "plain.txt"}) == "pin"


def test_a_name_that_only_looks_escaped_is_the_file_of_that_name(root: Path) -> None:
    """A file whose name is spelled with a backslash comes before one whose name that spelling could mean."""
    (root / r"\udcff").write_text("spelled")
    Path(os.fsdecode(os.fsencode(root) + b"/\xff")).write_text("raw")

    assert FilesystemTools(root).execute_tool("read_file", {"path": r"\udcff"}) == "spelled"


@pytest.mark.parametrize("spelling", ["\udcc3\udcb6.txt", r"\udcc3\udcb6.txt"])
def test_a_name_has_one_spelling_only(root: Path, spelling: str) -> None:
    """The bytes of a character do not stand for the character: rules about the name would not see it."""
    (root / "ö.txt").write_text("guarded")

    with pytest.raises(ToolError):
        FilesystemTools(root).execute_tool("read_file", {"path": spelling})
