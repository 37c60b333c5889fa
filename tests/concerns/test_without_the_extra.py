"""What works without `interpose[auth]`, and what is said where it does not."""

import subprocess
import sys

import pytest

MISSING = "import sys, importlib; sys.modules.update(httpx=None, authlib=None, keyring=None); importlib.import_module"


def imported(module: str) -> subprocess.CompletedProcess[str]:
    """The import of a module in an interpreter without the extra's packages."""
    code = f"{MISSING}('interpose.concerns.{module}')"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("module", ["auth.device", "auth.browser", "auth.keyrings"])
def test_a_connector_names_the_extra(module: str) -> None:
    """One error, with what to install."""
    assert imported(module).stderr.strip().endswith("more packages: pip install 'interpose[auth]'")


@pytest.mark.parametrize(
    "module",
    ["auth.middleware", "auth.static", "auth.stores", "auth.callback", "permission.console", "hooks.middleware"],
)
def test_the_rest_needs_nothing(module: str) -> None:
    """The middlewares, static tokens and the stores of our own."""
    assert imported(module).stderr == ""
