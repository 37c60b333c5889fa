"""Single files of a rooted folder: read, written, edited, moved and deleted.

Knows: text, sizes, and how a file is replaced so that nobody sees half of it. Does not know: tools, searches.
Every function may be called from any thread, many at once; two writers of one file leave one of the two texts.
"""

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO

from interpose.contracts.errors import ToolError
from interpose.drivers.filesystem.folder import Place, RootedFolder
from interpose.drivers.filesystem.limits import FilesystemLimits


def read_text(
    folder: RootedFolder, path: str, limits: FilesystemLimits, *, offset: int = 1, limit: int | None = None
) -> str:
    """The text from line `offset` (from 1) on, at most `limit` lines; the whole file unless told otherwise.

    Raises ToolError for a file that is not UTF-8, and for one too large that says how to read it in slices. A slice
    that was cut ends with a line in brackets that says where to go on.
    """
    with (
        folder.place(path) as place,
        folder.open_file(place, os.O_RDONLY) as descriptor,
        open(descriptor, "rb", closefd=False) as file,
    ):
        if offset != 1 or limit is not None:
            return _slice(file, place.shown, limits, offset, limit)
        data = file.read(limits.read_bytes + 1)
        if len(data) > limits.read_bytes:
            size = max(os.fstat(descriptor).st_size, len(data))
            raise ToolError(
                f"{place.shown}: it has {size:,} bytes and at most {limits.read_bytes:,} are read at once; "
                "give offset (the first line, from 1) and limit (how many lines)"
            )
        return _decoded(data, place.shown)


def write_text(
    folder: RootedFolder, path: str, content: str, limits: FilesystemLimits, *, if_exists: str = "replace"
) -> str:
    """Writes the text, making folders on the way; a sentence about what was done.

    `replace` swaps the whole file at once and keeps its permission bits, `append` adds to it, `refuse` fails when
    there is one. Raises ToolError for a text or a file that would be too large.
    """
    data = _encoded(content, path)
    _check_size(len(data), path, limits)
    with folder.place(path, create_parents=True) as place:
        match if_exists:
            case "append":
                total = _append(folder, place, data, limits)
                return f"appended {len(data):,} bytes to {place.shown} ({total:,} bytes now)"
            case "refuse":
                _create(folder, place, data)
            case _:
                _replace(folder, place, data)
        return f"wrote {len(data):,} bytes to {place.shown}"


def edit_text(
    folder: RootedFolder, path: str, old: str, new: str, limits: FilesystemLimits, *, replace_all: bool = False
) -> str:
    """Puts `new` in place of `old`, which must be there once unless `replace_all`; a sentence about what was done.

    Raises ToolError, the file untouched, when it is larger than what may be written, before or after.
    """
    if not old:
        raise ToolError(f"{path}: old is empty; give the text that is to be replaced")

    with folder.place(path) as place:
        with (
            folder.open_file(place, os.O_RDONLY) as descriptor,
            open(descriptor, "rb", closefd=False) as file,
        ):
            size = os.fstat(descriptor).st_size
            data = file.read(limits.write_bytes + 1)
            if len(data) > limits.write_bytes:
                raise ToolError(
                    f"{place.shown}: it has {size:,} bytes and at most {limits.write_bytes:,} are edited; "
                    "nothing was changed"
                )
            text = _decoded(data, place.shown)
        found = text.count(old)
        if found == 0:
            raise ToolError(
                f"{place.shown}: old is not in the file; read it and give the text exactly as it stands there"
            )
        if found > 1 and not replace_all:
            raise ToolError(
                f"{place.shown}: old is in the file {found} times; give more of what is around it, or replace_all"
            )
        data = _encoded(text.replace(old, new), place.shown)
        _check_size(len(data), place.shown, limits)
        _replace(folder, place, data)
        return f"replaced {found} {'place' if found == 1 else 'places'} in {place.shown}"


def move(folder: RootedFolder, source: str, destination: str, *, overwrite: bool = False) -> str:
    """Moves or renames a file, a link or a folder, making folders on the way; a sentence about what was done."""
    with folder.place(source, follow=False) as origin:
        # Looked at before the destination is: a source that is missing makes no folders and is named itself.
        os.stat(origin.name, dir_fd=origin.parent, follow_symlinks=False)
        with folder.place(destination, follow=False, create_parents=True) as target:
            if origin.is_root or target.is_root:
                raise ToolError("the root itself cannot be moved or replaced")
            if overwrite:
                os.rename(origin.name, target.name, src_dir_fd=origin.parent, dst_dir_fd=target.parent)
            else:
                _move_to_nothing(origin, target)
            return f"moved {origin.shown} to {target.shown}"


def delete(folder: RootedFolder, path: str, *, recursive: bool = False) -> str:
    """Deletes a file, a link (not what it points to) or a folder; a sentence about what was done.

    A folder that is not empty needs `recursive`. Links inside it are deleted, never followed.
    """
    with folder.place(path, follow=False) as place:
        if place.is_root:
            raise ToolError("the root itself cannot be deleted")
        kind = os.stat(place.name, dir_fd=place.parent, follow_symlinks=False).st_mode
        if not stat.S_ISDIR(kind):
            os.unlink(place.name, dir_fd=place.parent)
            return f"deleted {place.shown}"
        if recursive:
            shutil.rmtree(place.name, dir_fd=place.parent)
            return f"deleted the folder {place.shown} and all that was in it"
        try:
            os.rmdir(place.name, dir_fd=place.parent)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            raise ToolError(f"{place.shown}: the folder is not empty; recursive deletes all that is in it") from error
        return f"deleted the empty folder {place.shown}"


def _slice(file: BinaryIO, shown: str, limits: FilesystemLimits, offset: int, limit: int | None) -> str:
    taken: list[bytes] = []
    room = limits.read_bytes
    number = 0
    for line in _lines(file, shown, limits):
        number += 1
        if number < offset:
            continue
        if len(taken) == limit or len(line) > room:
            return _decoded(b"".join(taken), shown) + f"[cut here: go on with offset {number}]"
        taken.append(line)
        room -= len(line)
    if number < offset and number:
        raise ToolError(f"{shown}: it has {number} lines, so there is no line {offset}")
    return _decoded(b"".join(taken), shown)


def _lines(file: BinaryIO, shown: str, limits: FilesystemLimits) -> Iterator[bytes]:
    scanned = 0
    while line := file.readline(limits.read_bytes + 1):
        scanned += len(line)
        if len(line) > limits.read_bytes:
            raise ToolError(f"{shown}: it has a line of more than {limits.read_bytes:,} bytes, which cannot be shown")
        if scanned > limits.scan_bytes:
            raise ToolError(f"{shown}: the slice lies behind the first {limits.scan_bytes:,} bytes, which is too far")
        yield line


def _decoded(data: bytes, shown: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        what = "a binary file" if b"\0" in data else "not UTF-8"
        raise ToolError(
            f"{shown}: it is {what} (byte 0x{data[error.start]:02x} at {error.start:,}), and only text is read"
        ) from error


def _encoded(content: str, shown: str) -> bytes:
    try:
        return content.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ToolError(
            f"{shown}: the text has half a surrogate pair at {error.start}, which no file can hold"
        ) from error


def _check_size(size: int, shown: str, limits: FilesystemLimits) -> None:
    if size > limits.write_bytes:
        raise ToolError(f"{shown}: it would have {size:,} bytes, at most {limits.write_bytes:,} are written")


def _create(folder: RootedFolder, place: Place, data: bytes) -> None:
    with folder.open_file(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as descriptor:
        _write_all(descriptor, data)


def _append(folder: RootedFolder, place: Place, data: bytes, limits: FilesystemLimits) -> int:
    with folder.open_file(place, os.O_WRONLY | os.O_CREAT | os.O_APPEND) as descriptor:
        total = os.fstat(descriptor).st_size + len(data)
        _check_size(total, place.shown, limits)
        _write_all(descriptor, data)
    return total


def _replace(folder: RootedFolder, place: Place, data: bytes) -> None:
    """A new file beside the old one takes its name, so that readers see the old text or the new, never a part."""
    if place.is_root:
        raise ToolError(f"{place.shown}: it is a folder")
    mode = _mode_of_present(folder, place)
    fresh = Place(place.parent, f".{secrets.token_hex(8)}.new", place.shown)
    try:
        with folder.open_file(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as descriptor:
            if mode is not None:
                os.fchmod(descriptor, mode)
            _write_all(descriptor, data)
        os.rename(fresh.name, place.name, src_dir_fd=place.parent, dst_dir_fd=place.parent)
    except BaseException:
        with suppress(OSError):
            os.unlink(fresh.name, dir_fd=place.parent)
        raise


def _mode_of_present(folder: RootedFolder, place: Place) -> int | None:
    """The permission bits of the file that is there, which must be one that may be written; None without one."""
    try:
        with folder.open_file(place, os.O_WRONLY) as descriptor:
            return stat.S_IMODE(os.fstat(descriptor).st_mode)
    except FileNotFoundError:
        return None


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _move_to_nothing(origin: Place, target: Place) -> None:
    kind = os.stat(origin.name, dir_fd=origin.parent, follow_symlinks=False).st_mode
    if stat.S_ISREG(kind):
        # A second name first: unlike a rename this cannot replace a file that appears in the meantime.
        os.link(origin.name, target.name, src_dir_fd=origin.parent, dst_dir_fd=target.parent, follow_symlinks=False)
        os.unlink(origin.name, dir_fd=origin.parent)
        return

    try:
        os.stat(target.name, dir_fd=target.parent, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(origin.name, target.name, src_dir_fd=origin.parent, dst_dir_fd=target.parent)
        return
    raise ToolError(f"{target.shown}: it exists already; overwrite replaces it")
