"""Files below one folder as tools: read, list, search, write, edit, move, delete.

Knows: the rooted folder and its tools. Does not know: who may do what; that is a middleware's work.
"""

from interpose.drivers.filesystem.driver import FilesystemDriver, FilesystemTools
from interpose.drivers.filesystem.limits import FilesystemLimits

__all__ = ["FilesystemDriver", "FilesystemLimits", "FilesystemTools"]
