"""The filesystem tools as a model sees them.

Knows: names, words and schemas; the names and arguments are those that the catalogue of tools reads, so that a policy
about files holds for them. Does not know: how they are done.
"""

from typing import Any, Final

from interpose.contracts.drivers import Tool, ToolParameter

_PATH: Final = "Path of the file, relative to the root folder."


def _text(name: str, description: str, *, required: bool = True, **schema: Any) -> ToolParameter:
    return ToolParameter(name, description, required, {"type": "string", **schema})


def _flag(name: str, description: str) -> ToolParameter:
    return ToolParameter(name, description, schema={"type": "boolean", "default": False})


def _number(name: str, description: str) -> ToolParameter:
    return ToolParameter(name, description, schema={"type": "integer", "minimum": 1})


READING: Final[tuple[Tool, ...]] = (
    Tool(
        "read_file",
        "Read a file",
        "Returns the text of a UTF-8 file: all of it, or `limit` lines from line `offset` on.",
        (
            _text("path", _PATH),
            _number("offset", "First line to return, from 1."),
            _number("limit", "How many lines to return at most."),
        ),
    ),
    Tool(
        "list_directory",
        "List a folder",
        "Lists files and folders. Folders end with /, links with @, files have their size.",
        (
            _text("path", "The folder, relative to the root folder; the root folder when left out.", required=False),
            _number("depth", "How many levels of folders to list; 1 when left out."),
        ),
    ),
    Tool(
        "glob",
        "Find files by name",
        "Lists the files whose name fits a shell pattern such as *.py, or whose path does when the pattern has a /.",
        (_text("pattern", "The pattern."), _text("path", "Folder to start from.", required=False)),
    ),
    Tool(
        "grep",
        "Find text in files",
        "Lists the lines that contain a text, as path:line number:line. The text is taken as it is, not as a pattern.",
        (
            _text("pattern", "The text to look for."),
            _text("path", "File or folder to look in; the root folder when left out.", required=False),
            _text("glob", "Only files whose name fits this shell pattern, such as *.py.", required=False),
            _flag("ignore_case", "Whether upper and lower case are the same."),
        ),
    ),
)
"""Tools that change nothing."""

WRITING: Final[tuple[Tool, ...]] = (
    Tool(
        "write_file",
        "Write a file",
        "Writes a whole text to a file; folders on the way are made.",
        (
            _text("path", _PATH),
            _text("content", "The text."),
            _text(
                "if_exists",
                "What to do with a file that is there: replace it (when left out), append to it, or refuse.",
                required=False,
                enum=["replace", "append", "refuse"],
            ),
        ),
    ),
    Tool(
        "edit_file",
        "Edit a file",
        "Replaces a text in a file by another one. The old text must be in the file exactly once, unless replace_all.",
        (
            _text("path", _PATH),
            _text("old", "The text that is there, exactly, with its line breaks and indentation."),
            _text("new", "The text that takes its place."),
            _flag("replace_all", "Whether to replace the old text everywhere in the file."),
        ),
    ),
    Tool(
        "move_file",
        "Move a file or folder",
        "Moves or renames a file or folder; folders on the way are made.",
        (
            _text("source", "What to move, relative to the root folder."),
            _text("destination", "Where to, the new name included."),
            _flag("overwrite", "Whether to replace a file that is there."),
        ),
    ),
    Tool(
        "delete_file",
        "Delete a file or folder",
        "Deletes a file, a link or an empty folder.",
        (
            _text("path", "What to delete, relative to the root folder."),
            _flag("recursive", "Whether to delete a folder with all that is in it."),
        ),
    ),
)
"""Tools that change files."""
