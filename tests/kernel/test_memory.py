"""kernel.memory."""

import subprocess
import sys

SETTLED = """
import gc
from interpose.kernel.memory import settle

before = len(gc.get_objects())
settle()
assert len(gc.get_objects()) < before / 10, len(gc.get_objects())
assert gc.get_freeze_count() > 0 and gc.isenabled()
"""


def test_what_is_there_is_not_looked_through_again() -> None:
    """In a process of its own, since it holds for all of it."""
    subprocess.run([sys.executable, "-c", SETTLED], check=True, timeout=50)
