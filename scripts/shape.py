"""The shape of the house: sizes and the mirror of rooms and tests. Exits 1 and names each fault.

A module has at most 500 lines, a contract 250, a function 60, unless EXEMPT names it with its present size; an
exemption that is larger than needed is a fault too, so the list can only shrink.
"""

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "interpose"
MODULE_LINES, CONTRACT_LINES, FUNCTION_LINES = 500, 250, 60
EXEMPT: dict[str, int] = {}


def sizes() -> dict[str, tuple[int, int]]:
    """Each module and function with its size and limit."""
    found: dict[str, tuple[int, int]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        text = path.read_text()
        found[name] = (text.count("\n"), CONTRACT_LINES if name.startswith("contracts/") else MODULE_LINES)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                found[f"{name}:{node.name}"] = (lines, FUNCTION_LINES)
    return found


def faults() -> list[str]:
    """One line for each size over its limit, stale exemption, and room without tests."""
    measured = sizes()
    lines = [
        f"{name}: {size} lines, at most {limit}"
        for name, (size, limit) in measured.items()
        if size > limit and EXEMPT.get(name) != size
    ]
    lines += [
        f"EXEMPT[{name!r}] = {size}, but it is {measured.get(name, (0, 0))[0]} (set it, or take it out)"
        for name, size in EXEMPT.items()
        if measured.get(name, (0, 0))[0] != size
    ]
    rooms = [path for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"]
    lines += [f"{room.name}: no tests/{room.name}" for room in rooms if not (ROOT / "tests" / room.name).is_dir()]
    return lines


if __name__ == "__main__":
    found_faults = faults()
    print("\n".join(found_faults) or "shape: every module and function within its limits, every room with tests")
    sys.exit(bool(found_faults))
