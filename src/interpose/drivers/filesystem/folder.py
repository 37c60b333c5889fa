"""A folder that no path leads out of.

Knows: how a path is walked, one component at a time, each opened below the one before without following links; a link
is read and walked like the path itself, so it works as long as it stays inside. Nothing is looked at first and opened
later: a component that is swapped for a link in between makes the walk fail.
Does not know: what is done with the files. Hard links to files outside are files like any other.
"""

import errno
import os
import re
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from interpose.contracts.errors import ConfigError, ToolError
from interpose.contracts.settings import a_path

DEPTH_MOST: Final = 200
"""Components of one path, links resolved."""
LINKS_MOST: Final = 40
"""Links followed for one path."""

FOLDER_FLAGS: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
"""To open a folder, and nothing that a link points to."""

_ESCAPED: Final = re.compile(r"\\u(dc[89a-f][0-9a-f])")
"""How a byte of a file's name that is no text is written in a result."""

_FILE: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a path led: `name` in the open folder `parent`. The root itself is the name `.`; `shown` is for people."""

    parent: int
    name: str
    shown: str

    @property
    def is_root(self) -> bool:
        """Whether this is the rooted folder itself."""
        return self.name == "."


class RootedFolder:
    """The root, and ways into it. Raises ConfigError when `root` is no folder. Any thread may use it, many at once."""

    def __init__(self, root: str | Path) -> None:
        if os.open not in os.supports_dir_fd:
            raise ConfigError("the filesystem driver", "this platform cannot open files below an open folder")

        given = a_path("root", root, "the path of a folder, such as '.' for the current one")
        self.path = os.path.realpath(given)
        self._given = os.path.abspath(given)  # noqa: PTH100 - links must stay: it is compared with what models write
        try:
            found = os.stat(self.path)  # noqa: PTH116 - beside the os.open calls it belongs to
        except OSError as error:
            raise ConfigError(f"root {str(root)!r}", f"{error.strerror}", "give a folder that exists") from error
        if not stat.S_ISDIR(found.st_mode):
            raise ConfigError(f"root {str(root)!r}", "it is no folder", "give a folder")
        self._identity = (found.st_dev, found.st_ino)

    @contextmanager
    def place(self, path: str, *, follow: bool = True, create_parents: bool = False) -> Iterator[Place]:
        r"""Walks `path`; the open folder is good until the block ends.

        Without `follow` a link as the last component is the place itself. Raises ToolError when the path leads out of
        the root, or to nothing on the way. OSErrors inside the block come out as ToolErrors about `path`. Folders that
        were made on the way and are empty go again when the block fails.

        A name that no text can hold is written with `\udc..` for each byte that is none, as results show it; it is
        meant where there is no file whose name is spelled that way.
        """
        with ExitStack() as folders, told(path):
            walk = _Walk(self, path, folders)
            try:
                yield walk.to_the_end(follow=follow, create_parents=create_parents)
            except BaseException:
                walk.take_back()
                raise

    @contextmanager
    def open_file(self, place: Place, flags: int, mode: int = 0o666) -> Iterator[int]:
        """An open regular file. Raises ToolError for anything else, never blocking on a pipe or a device."""
        if place.is_root:
            raise ToolError(f"{place.shown}: it is a folder")
        descriptor = os.open(place.name, flags | _FILE, mode, dir_fd=place.parent)
        try:
            kind = os.fstat(descriptor).st_mode
            if not stat.S_ISREG(kind):
                what = "a folder" if stat.S_ISDIR(kind) else "no regular file"
                raise ToolError(f"{place.shown}: it is {what}")
            yield descriptor
        finally:
            os.close(descriptor)

    @contextmanager
    def open_folder(self, place: Place) -> Iterator[int]:
        """The open folder at `place`; an OSError with ENOTDIR when it is none."""
        descriptor = os.open(place.name, FOLDER_FLAGS, dir_fd=place.parent)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def real_path(self, path: str) -> str:
        """The absolute path of a folder inside, links resolved, for a program that is started there.

        It was inside when it was looked at; who starts a program confines what the program does by other means.
        """
        with self.place(path) as place, self.open_folder(place):
            return os.path.normpath(os.path.join(self.path, place.shown))  # noqa: PTH118 - text in, text out

    def open_root(self) -> int:
        """A descriptor that the caller closes. Raises ToolError when the root is not the folder it was."""
        descriptor = os.open(self.path, FOLDER_FLAGS)
        found = os.fstat(descriptor)
        if (found.st_dev, found.st_ino) != self._identity:
            os.close(descriptor)
            raise ToolError(f"the root {self.path} was replaced by another folder; nothing is done in it")
        return descriptor

    def inside(self, absolute: str) -> str | None:
        """What is left of an absolute path below the root, "" for the root, None when it is elsewhere."""
        for root in (self.path, self._given):
            if absolute == root or root == "/":
                return absolute.removeprefix(root)
            if absolute.startswith(root + "/"):
                return absolute[len(root) + 1 :]
        return None


@contextmanager
def told(path: str) -> Iterator[None]:
    """Makes a ToolError about `path` of an OSError inside the block."""
    try:
        yield
    except OSError as error:
        raise ToolError(f"{path}: {_reason(error)}") from error


def _reason(error: OSError) -> str:
    match error.errno:
        case errno.ENOENT:
            return "there is no such file or folder"
        case errno.EEXIST:
            return "it exists already"
        case errno.ENOTDIR:
            return "a component of it is no folder"
        case errno.EISDIR:
            return "it is a folder"
        case errno.ENOTEMPTY:
            return "the folder is not empty"
        case errno.EACCES | errno.EPERM:
            return "permission denied"
        case errno.ELOOP:
            return "it changed while it was being opened; nothing was done"
        case errno.ENXIO:
            return "it is no regular file"
        case _:
            return error.strerror or type(error).__name__


class _Walk:
    """One path on its way down: the open folders from the root to here, and what is still to come."""

    def __init__(self, folder: RootedFolder, path: str, opened: ExitStack) -> None:
        self._folder = folder
        self._path = path
        self._opened = opened
        self._todo = deque(self._parts(path))
        self._names: list[str] = []
        root = folder.open_root()
        opened.callback(os.close, root)
        self._folders = [root]
        self._links = 0
        self._made: list[tuple[int, str]] = []

    def to_the_end(self, *, follow: bool, create_parents: bool) -> Place:
        while self._todo:
            part = self._todo.popleft()
            if part == "..":
                self._step_up()
                continue
            part = self._meant(part)
            if (follow or self._todo) and self._is_link(part):
                continue
            if not self._todo:
                return Place(self._folders[-1], part, "/".join([*self._names, part]))
            self._step_down(part, create=create_parents)
        return self._where_it_stands()

    def take_back(self) -> None:
        """Removes the folders that were made, as far as they are empty."""
        for parent, name in reversed(self._made):
            with suppress(OSError):
                os.rmdir(name, dir_fd=parent)

    def _parts(self, path: str) -> list[str]:
        try:
            encoded = os.fsencode(path)
        except UnicodeEncodeError as error:
            raise ToolError(f"{path!r}: it is not valid text") from error
        if os.fsdecode(encoded) != path:
            # Two spellings of one name: a rule about the plain one would not see this one.
            raise ToolError(f"{path!r}: it spells a character byte by byte; write the character itself")
        if b"\0" in encoded:
            raise ToolError(f"{path!r}: a path has no NUL in it")

        below = self._folder.inside(os.path.normpath(path)) if path.startswith("/") else path
        if below is None:
            raise ToolError(f"{path}: it is outside of the root; give a path relative to it, such as notes/today.md")
        return [part for part in below.split("/") if part not in ("", ".")]

    def _meant(self, part: str) -> str:
        """The name with its bytes that are no text, where that is there and the name as it is spelled is not."""
        if _ESCAPED.search(part) is None or self._is_there(part):
            return part
        raw = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), part)
        is_only_spelling = os.fsdecode(os.fsencode(raw)) == raw
        return raw if is_only_spelling and self._is_there(raw) else part

    def _is_there(self, part: str) -> bool:
        try:
            os.stat(part, dir_fd=self._folders[-1], follow_symlinks=False)
        except OSError:
            return False
        return True

    def _step_up(self) -> None:
        if not self._names:
            raise ToolError(f"{self._path}: it leads out of the root")
        self._names.pop()
        self._folders.pop()

    def _step_down(self, part: str, *, create: bool) -> None:
        if len(self._names) >= DEPTH_MOST:
            raise ToolError(f"{self._path}: it is more than {DEPTH_MOST} folders deep")
        try:
            descriptor = os.open(part, FOLDER_FLAGS, dir_fd=self._folders[-1])
        except FileNotFoundError:
            if not create:
                raise
            os.mkdir(part, dir_fd=self._folders[-1])
            self._made.append((self._folders[-1], part))
            descriptor = os.open(part, FOLDER_FLAGS, dir_fd=self._folders[-1])
        self._opened.callback(os.close, descriptor)
        self._folders.append(descriptor)
        self._names.append(part)

    def _is_link(self, part: str) -> bool:
        """Whether `part` is a link; then what it says is the next part of the way."""
        try:
            target = os.readlink(part, dir_fd=self._folders[-1])
        except OSError:
            return False  # no link, or nothing: opening it says which

        self._links += 1
        if self._links > LINKS_MOST:
            raise ToolError(f"{self._path}: more than {LINKS_MOST} links on the way")
        if target.startswith("/"):
            below = self._folder.inside(target)
            if below is None:
                raise ToolError(f"{self._path}: {'/'.join([*self._names, part])} is a link that leads out of the root")
            del self._folders[1:], self._names[:]
            target = below
        self._todo.extendleft(reversed([each for each in target.split("/") if each not in ("", ".")]))
        return True

    def _where_it_stands(self) -> Place:
        if not self._names:
            return Place(self._folders[0], ".", ".")
        return Place(self._folders[-2], self._names[-1], "/".join(self._names))
