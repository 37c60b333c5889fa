"""contracts."""

import subprocess
import sys


def test_contracts_import_nothing_but_the_standard_library() -> None:
    """Every module of `contracts` imports in an interpreter without site-packages."""
    source = "src"
    code = (
        "import sys, pkgutil, importlib; sys.path.insert(0, 'src'); import interpose.contracts as c;"
        "[importlib.import_module(m.name) for m in pkgutil.iter_modules(c.__path__, 'interpose.contracts.')]"
    )

    result = subprocess.run([sys.executable, "-S", "-I", "-c", code], capture_output=True, text=True, check=False)

    assert (result.returncode, result.stderr, source) == (0, "", "src")
