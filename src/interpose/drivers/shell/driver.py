"""The shell driver: commands run in a folder, within bounds.

Knows: the tools, the environment a command gets, how its end is told. Does not know: prompts, policy. The folder is
where commands start, not a wall around them: what a command may touch is for a policy or a sandbox to say.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Unpack

from interpose.contracts.drivers import Tool, ToolDriver, ToolParameter
from interpose.contracts.errors import ToolError
from interpose.contracts.settings import a_count, a_flag, an_environment, each_checked, refused, seconds, texts
from interpose.contracts.sheet import DriverBinding, DriverMeta
from interpose.drivers.arguments import check_arguments
from interpose.drivers.filesystem.folder import RootedFolder
from interpose.drivers.hosted import DriverOptions, HostedDriver, limits_of
from interpose.drivers.shell.running import MARK, Finished, run, run_async

PASSED_ENV: Final = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
"""Variables that a command gets from this program's own environment."""

_CWD: Final = ToolParameter(
    "cwd", "Folder to start in, relative to the root folder; the root folder when left out.", schema={"type": "string"}
)
_TIMEOUT: Final = ToolParameter(
    "timeout_s", "Seconds after which the command is killed.", schema={"type": "number", "minimum": 0.1}
)
_COMMAND: Final = Tool(
    "run_command",
    "Run a shell command",
    "Runs a command line with /bin/sh. It gets no input; whatever it left running is killed when it ends.",
    (ToolParameter("command", "The command line.", required=True, schema={"type": "string"}), _CWD, _TIMEOUT),
)
_PROGRAM: Final = Tool(
    "execute_command",
    "Run a program",
    "Runs a program with arguments, without a shell: no pipes, redirections, variables or patterns.",
    (
        ToolParameter(
            "command",
            "The program and its arguments, one word each.",
            required=True,
            schema={"type": "array", "items": {"type": "string"}},
        ),
        _CWD,
        _TIMEOUT,
    ),
)


@dataclass(frozen=True, slots=True)
class ShellLimits:
    """Bounds of one command. Raises ConfigError naming the field for what none of them can be.

    Attributes:
        timeout_s: seconds it may take unless the call says otherwise.
        timeout_most_s: the most that a call may ask for.
        output_bytes: kept of each of the two outputs, half from the beginning and half from the end.
    """

    timeout_s: float = 60.0
    timeout_most_s: float = 600.0
    output_bytes: int = 65_536

    def __post_init__(self) -> None:
        each_checked(self, {"timeout_s": seconds, "timeout_most_s": seconds, "output_bytes": a_count})
        if self.timeout_s > self.timeout_most_s:
            raise refused("ShellLimits.timeout_s", self.timeout_s, f"at most timeout_most_s, {self.timeout_most_s:g}")


class ShellTools(ToolDriver):
    """Runs commands in `root` or a folder inside it; the result is text with the exit code and both outputs.

    `run_command` takes a line for /bin/sh, `execute_command` a program and its arguments; without `command_strings`
    there is only the latter. A command gets the variables of `PASSED_ENV` and `pass_env` from this program, and those
    of `env`. One that takes too long is killed, and the result says so; `running` says which processes are killed with
    it, and which are not. A failing exit code is a result as well. Raises ToolError for what cannot be started,
    ValueError for an unknown tool, ConfigError for a setting that cannot be, such as a `root` that is no folder. Any
    thread may call, many at once.
    """

    meta = DriverMeta(
        "interpose.shell", "Shell", "1.0", bindings=(DriverBinding("shell", "posix"),), supported_llms=None
    )

    def __init__(
        self,
        root: str | Path,
        *,
        limits: ShellLimits | None = None,
        pass_env: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        command_strings: bool = True,
    ) -> None:
        self._folder = RootedFolder(root)
        self._limits = limits_of("ShellTools", limits, ShellLimits)
        self._passed = (*PASSED_ENV, *texts("ShellTools(pass_env=…)", pass_env, "the names of variables"))
        self._env = {} if env is None else an_environment("ShellTools(env=…)", env)
        strings = a_flag("ShellTools(command_strings=…)", command_strings)
        self._tools = (_COMMAND, _PROGRAM) if strings else (_PROGRAM,)

    @property
    def root(self) -> str:
        """The real path of the root folder."""
        return self._folder.path

    def list_tools(self) -> Sequence[Tool]:
        """The tools, always the same."""
        return self._tools

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> str:
        """Runs a command to its end."""
        argv, cwd, timeout_s = self._read(tool_name, arguments)
        finished = run(
            argv, cwd=cwd, env=self._environment(), timeout_s=timeout_s, output_bytes=self._limits.output_bytes
        )
        return _told(finished, timeout_s)

    async def execute_tool_async(self, tool_name: str, arguments: dict[str, Any]) -> str:
        """As `execute_tool`; when the caller is cancelled the command is killed first."""
        argv, cwd, timeout_s = self._read(tool_name, arguments)
        finished = await run_async(
            argv, cwd=cwd, env=self._environment(), timeout_s=timeout_s, output_bytes=self._limits.output_bytes
        )
        return _told(finished, timeout_s)

    def _read(self, tool_name: str, arguments: Mapping[str, Any]) -> tuple[list[str], str, float]:
        tool = next((tool for tool in self._tools if tool.name == tool_name), None)
        if tool is None:
            raise ValueError(f"there is no tool {tool_name!r} here, only {', '.join(one.name for one in self._tools)}")
        check_arguments(tool, arguments)
        timeout_s = arguments.get("timeout_s", self._limits.timeout_s)
        if not timeout_s <= self._limits.timeout_most_s:  # also for NaN
            given = "too long" if isinstance(timeout_s, int) else f"{timeout_s:g}"
            raise ToolError(f"{tool_name}: timeout_s is {given}, at most {self._limits.timeout_most_s:g} are given")
        command = arguments["command"]
        argv = ["/bin/sh", "-c", command] if tool is _COMMAND else _words(command)
        return argv, self._folder.real_path(arguments.get("cwd", ".")), float(timeout_s)

    def _environment(self) -> dict[str, str]:
        own = {name: os.environ[name] for name in self._passed if name in os.environ}
        own |= {name: value for name, value in os.environ.items() if name.startswith(MARK)}
        return {**own, **self._env}


class ShellDriver(HostedDriver):
    """`ShellTools` with prompts, extraction and a middleware list; further options are those of `BaseDriver`."""

    meta = replace(ShellTools.meta, supported_llms=("*",))

    def __init__(
        self,
        root: str | Path,
        *,
        limits: ShellLimits | None = None,
        pass_env: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        command_strings: bool = True,
        **options: Unpack[DriverOptions],
    ) -> None:
        tools = ShellTools(root, limits=limits, pass_env=pass_env, env=env, command_strings=command_strings)
        super().__init__(tools, options)


def _words(command: list[Any]) -> list[str]:
    if not command or not all(isinstance(word, str) for word in command) or not command[0]:
        raise ToolError(
            "execute_command: 'command' must be a list of at least one word, each a string, and the first a program"
        )
    return command


def _told(finished: Finished, timeout_s: float) -> str:
    match finished.ended:
        case "exited" if finished.exit_code < 0:
            parts = [f"ended by signal {-finished.exit_code}"]
        case "exited":
            parts = [f"exit code {finished.exit_code}"]
        case _:
            parts = [f"killed after {timeout_s:g} s, its time limit; this is what it wrote until then"]
    for name, text in (("stdout", finished.stdout), ("stderr", finished.stderr)):
        if text:
            parts.append(f"--- {name} ---\n{text.removesuffix(chr(10))}")
    return "\n".join(parts)
