"""contracts."""

import subprocess
import sys
from typing import get_args

from interpose.contracts.effects import EFFECT_KINDS, HOOKS, Effect, EffectKind, Hook


def test_contracts_import_nothing_but_the_standard_library() -> None:
    """Every module of `contracts` imports in an interpreter without site-packages."""
    source = "src"
    code = (
        "import sys, pkgutil, importlib; sys.path.insert(0, 'src'); import interpose.contracts as c;"
        "[importlib.import_module(m.name) for m in pkgutil.iter_modules(c.__path__, 'interpose.contracts.')]"
    )

    result = subprocess.run([sys.executable, "-S", "-I", "-c", code], capture_output=True, text=True, check=False)

    assert (result.returncode, result.stderr, source) == (0, "", "src")


def test_the_vocabulary_is_closed() -> None:
    """Five hooks and eight effects, in the order in which everything lists them."""
    assert HOOKS == get_args(Hook) == ("before_tool", "after_tool", "turn_start", "turn_end", "on_compaction")
    assert get_args(EffectKind) == EFFECT_KINDS
    assert {effect.kind for effect in get_args(Effect)} == set(EFFECT_KINDS)
    assert len(EFFECT_KINDS) == 8
