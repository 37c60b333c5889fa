"""Behaviour of reading calls: which files a call names that moves or deletes one."""

from typing import Any

import pytest

from interpose.catalog.reading import read_call
from interpose.command.reading import Reading
from tests.guards.making import call, reader


@pytest.mark.parametrize(
    ("wire_name", "arguments", "written"),
    [
        ("move_file", {"source": "kept.db", "destination": "b"}, {"/house/kept.db", "/house/b"}),
        ("files__move_file", {"source": "kept.db", "destination": "b"}, {"/house/kept.db", "/house/b"}),
        ("delete_file", {"path": "kept.db", "recursive": True}, {"/house/kept.db"}),
    ],
)
def test_moving_and_deleting_write_every_file_they_name(
    wire_name: str, arguments: dict[str, Any], written: set[str]
) -> None:
    """A rule about writing a file holds for whatever makes it go away, the place it is moved from among them."""
    form = read_call("process", wire_name, arguments)

    read = reader().read(call(form.name, form.input))

    assert form.name == "write"
    assert isinstance(read, Reading)
    assert {use.path for use in read.files if use.access == "write"} == written
