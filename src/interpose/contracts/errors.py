"""Exceptions for misuse and broken peers; outcomes are values.

InterposeError
├── AuthChallenge       the person must act before a tool can run (contracts/auth.py)
├── ConfigError         a setting or file says something impossible
├── MisuseError         a caller broke a contract
├── Refused             a protected callable was refused by the policy
├── StorageError        the journal or the state cannot be opened
├── ToolError           a tool could not do what it was asked
└── UnknownToolError    a driver does not offer the tool
    └── ToolNameError   what was given can be no tool's name
"""

from collections.abc import Iterable


class InterposeError(Exception):
    """The root of everything interpose raises on purpose; its text is made for people.

    `retry_helps` says whether the model may be told to correct its call: not where only a person can repair it.
    """

    retry_helps = True


class ConfigError(InterposeError):
    """A setting or a file says something impossible. `where` names the file, line or field; `way_out` what to do."""

    retry_helps = False

    def __init__(self, where: str, problem: str, way_out: str = "") -> None:
        self.where = where
        self.problem = problem
        self.way_out = way_out
        super().__init__(f"{where}: {problem}" + (f" ({way_out})" if way_out else ""))


class MisuseError(InterposeError):
    """A caller broke a contract, such as calling `call_next` after its middleware has returned."""

    retry_helps = False


class Refused(InterposeError):  # noqa: N818 - an outcome that a caller may expect, not an error of ours
    """The policy refused a call of a protected function; the function did not run.

    `reason` is the handler's own text, `handler` its id, `action` what `interpose explain` takes.
    """

    def __init__(self, *, tool: str, handler: str, reason: str, action: str) -> None:
        self.tool = tool
        self.handler = handler
        self.reason = reason
        self.action = action
        super().__init__(f"{tool} was refused by {handler}: {reason}")


class StorageError(InterposeError):
    """The journal or the state cannot be opened or written. Its text names the file and the way out."""


class ToolError(InterposeError):
    """A tool could not do what it was asked. Its text is made for the model: what happened and what would work."""


class UnknownToolError(InterposeError, ValueError):
    """A driver was asked for a tool that it does not offer. `available` are the names that it does, sorted."""

    def __init__(self, tool: str, available: Iterable[str]) -> None:
        self.tool = tool
        self.available = tuple(sorted(available))
        super().__init__(f"there is no tool {tool!r} (there are: {', '.join(self.available) or 'none'})")


class ToolNameError(UnknownToolError):
    """A caller gave what can be no tool's name, so that nobody offers it. `tool` is what was given."""

    def __init__(self, tool: object, problem: str) -> None:
        super().__init__(tool if isinstance(tool, str) else repr(tool), ())
        self.args = (f"the caller gave {problem}",)
