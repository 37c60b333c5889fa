"""interpose: the middleware layer for AI agents.

One engine stands between an agent and everything it touches. A handler may let an action pass, refuse it or
change it; everything is written to one journal. Two functions put a Python callable behind a project's policy:

    policy = interpose.load_policy()
    delete = interpose.protect(delete_files, policy=policy, tool="shell")

and `on` makes a handler of a function, which may answer `Continue`, `Cancel`, `Patch` or `Unknown`.

Importing this package starts nothing and loads no third-party package; each name is loaded at its first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interpose.assembly.middleware import default_middleware
    from interpose.assembly.protection import LoadedPolicy, load_policy, open_approvals, protect
    from interpose.contracts.decisions import Cancel, Continue, Patch, Unknown
    from interpose.contracts.errors import Refused
    from interpose.contracts.handlers import ShapeHandler
    from interpose.stages.front import on

__all__ = (
    "Cancel",
    "Continue",
    "LoadedPolicy",
    "Patch",
    "Refused",
    "ShapeHandler",
    "Unknown",
    "__version__",
    "default_middleware",
    "load_policy",
    "on",
    "open_approvals",
    "protect",
)

__version__ = "0.1.0"

_HOMES = {
    "Cancel": "interpose.contracts.decisions",
    "Continue": "interpose.contracts.decisions",
    "LoadedPolicy": "interpose.assembly.protection",
    "Patch": "interpose.contracts.decisions",
    "Refused": "interpose.contracts.errors",
    "ShapeHandler": "interpose.contracts.handlers",
    "Unknown": "interpose.contracts.decisions",
    "default_middleware": "interpose.assembly.middleware",
    "load_policy": "interpose.assembly.protection",
    "on": "interpose.stages.front",
    "open_approvals": "interpose.assembly.protection",
    "protect": "interpose.assembly.protection",
}


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """The public name, from its home; raises AttributeError for any other."""
    if name not in _HOMES:
        raise AttributeError(f"module 'interpose' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
