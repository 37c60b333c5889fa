"""Which fields of the hook form name files.

Knows: names of fields. Does not know: what a path means, what a tool does to a file.
"""

from typing import Final

PATHS: Final = ("path", "paths", "include")
"""Where tools of the table name files."""

FOREIGN_PATHS: Final = (
    *PATHS,
    "file_path",
    "filePath",
    "filename",
    "file",
    "uri",
    "source",
    "destination",
)
"""Where tools that the table does not know, those of MCP servers among them, commonly name files."""
