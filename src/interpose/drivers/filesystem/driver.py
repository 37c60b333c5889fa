"""The filesystem driver: tools over one rooted folder.

Knows: which tool is which function. Does not know: prompts, how a model's reply is read.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias, Unpack

from interpose.contracts.drivers import Tool, ToolDriver
from interpose.contracts.settings import a_flag
from interpose.contracts.sheet import DriverBinding, DriverMeta
from interpose.drivers.arguments import check_arguments
from interpose.drivers.filesystem.files import delete, edit_text, move, read_text, write_text
from interpose.drivers.filesystem.folder import RootedFolder
from interpose.drivers.filesystem.limits import FilesystemLimits
from interpose.drivers.filesystem.searching import find_lines, find_names, list_folder
from interpose.drivers.filesystem.tools import READING, WRITING
from interpose.drivers.hosted import DriverOptions, HostedDriver, limits_of

_Run: TypeAlias = Callable[[Mapping[str, Any]], str]


class FilesystemTools(ToolDriver):
    """Reads and writes text files below `root`, and nowhere else, whatever links and `..` say.

    Every result is text; what cannot be done raises ToolError, an unknown tool ValueError. With `read_only` the tools
    that change files do not exist. Raises ConfigError for a setting that cannot be, such as a `root` that is no folder.
    Any thread may call, many at once.
    """

    meta = DriverMeta(
        "interpose.filesystem",
        "Filesystem",
        "1.0",
        bindings=(DriverBinding("filesystem", "posix"),),
        supported_llms=None,
    )

    def __init__(self, root: str | Path, *, read_only: bool = False, limits: FilesystemLimits | None = None) -> None:
        self._folder = RootedFolder(root)
        self._limits = limits_of("FilesystemTools", limits, FilesystemLimits)
        self._tools = READING if a_flag("FilesystemTools(read_only=…)", read_only) else (*READING, *WRITING)
        self._by_name = {tool.name: tool for tool in self._tools}
        self._runs: dict[str, _Run] = {
            "read_file": self._read,
            "list_directory": self._list,
            "glob": self._glob,
            "grep": self._grep,
            "write_file": self._write,
            "edit_file": self._edit,
            "move_file": lambda given: move(self._folder, **given),
            "delete_file": lambda given: delete(self._folder, **given),
        }

    @property
    def root(self) -> str:
        """The real path of the root folder."""
        return self._folder.path

    def list_tools(self) -> Sequence[Tool]:
        """The tools, always the same."""
        return self._tools

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> str:
        """Runs a tool; text, or ToolError with a sentence for the model."""
        tool = self._by_name.get(tool_name)
        if tool is None:
            raise ValueError(f"there is no tool {tool_name!r} here, only {', '.join(self._by_name)}")
        check_arguments(tool, arguments)
        return self._runs[tool_name](arguments)

    def _read(self, given: Mapping[str, Any]) -> str:
        return read_text(self._folder, limits=self._limits, **given)

    def _list(self, given: Mapping[str, Any]) -> str:
        return list_folder(self._folder, given.get("path", "."), self._limits, depth=given.get("depth", 1))

    def _glob(self, given: Mapping[str, Any]) -> str:
        return find_names(self._folder, given.get("path", "."), given["pattern"], self._limits)

    def _grep(self, given: Mapping[str, Any]) -> str:
        return find_lines(
            self._folder,
            given.get("path", "."),
            given["pattern"],
            self._limits,
            glob=given.get("glob"),
            ignore_case=given.get("ignore_case", False),
        )

    def _write(self, given: Mapping[str, Any]) -> str:
        return write_text(self._folder, limits=self._limits, **given)

    def _edit(self, given: Mapping[str, Any]) -> str:
        return edit_text(self._folder, limits=self._limits, **given)


class FilesystemDriver(HostedDriver):
    """`FilesystemTools` with prompts, extraction and a middleware list; further options are those of `BaseDriver`."""

    meta = replace(FilesystemTools.meta, supported_llms=("*",))

    def __init__(
        self,
        root: str | Path,
        *,
        read_only: bool = False,
        limits: FilesystemLimits | None = None,
        **options: Unpack[DriverOptions],
    ) -> None:
        super().__init__(FilesystemTools(root, read_only=read_only, limits=limits), options)
