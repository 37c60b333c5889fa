"""Commands as a tool, within bounds of time and output.

Knows: how a command is run and its end told. Does not know: which commands are allowed; that is a middleware's work.
"""

from interpose.drivers.shell.driver import ShellDriver, ShellLimits, ShellTools

__all__ = ["ShellDriver", "ShellLimits", "ShellTools"]
