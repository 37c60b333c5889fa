"""Importing any room starts nothing, and the core loads no third party."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import interpose

SOURCE = Path(__file__).resolve().parents[1] / "src" / "interpose"
ROOMS = sorted(path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists())
BARE = ("contracts", "kernel", "chain", "effects", "policy", "catalog", "concerns.policy", "concerns.hooks")
"""Rooms that load nothing but the standard library, each of their modules imported."""

LOADED_AT_ONCE = {"command": ["pathspec", "tree_sitter", "tree_sitter_bash", "typing_extensions"]}

PROBE = """
import importlib, json, pkgutil, socket, sys, threading

opened = []
original = socket.socket.__init__
def counted(self, *args, **kwargs):
    opened.append(1)
    original(self, *args, **kwargs)
socket.socket.__init__ = counted

before = set(sys.modules)
package = importlib.import_module(f"interpose.{sys.argv[1]}")
if sys.argv[2] == "whole":
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
print(json.dumps({
    "threads": threading.active_count(),
    "sockets": len(opened),
    "third_parties": sorted(name for name in loaded if name not in sys.stdlib_module_names and name != "interpose"),
}))
"""


def imported(room: str, extent: str) -> dict[str, object]:
    """What a fresh interpreter holds after the import."""
    done = subprocess.run([sys.executable, "-c", PROBE, room, extent], capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("room", ROOMS)
def test_importing_a_room_starts_nothing(room: str) -> None:
    """No thread, no socket, and no third party beyond the parser that `command` is made of."""
    found = imported(room, "alone")

    assert (found["threads"], found["sockets"]) == (1, 0)
    assert found["third_parties"] == LOADED_AT_ONCE.get(room, [])


@pytest.mark.parametrize("room", BARE)
def test_the_core_needs_no_third_party(room: str) -> None:
    """Every module of a core room imports on the standard library alone."""
    assert imported(room, "whole") == {"threads": 1, "sockets": 0, "third_parties": []}


def test_the_package_itself_loads_nothing() -> None:
    """`import interpose` is quick: its public names are loaded at their first use."""
    code = "import sys, interpose; print(sorted(m for m in sys.modules if m.startswith('interpose.')))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_public_names_are_complete() -> None:
    """Everything in `__all__` can be had and is listed, and nothing else by that way."""
    assert dir(interpose) == sorted(interpose.__all__)
    assert all(getattr(interpose, name) is not None for name in interpose.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = interpose.nothing
