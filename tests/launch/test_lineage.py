"""launch.lineage."""

import subprocess
import sys
from pathlib import Path

import pytest

from interpose.launch.lineage import launch_above

PRINT = "from interpose.launch.lineage import launch_above; print(launch_above({}))"


def test_the_mark_of_a_launch_is_found_in_the_environment() -> None:
    """The variable that `interpose run` gives to the agent says which launch it is."""
    assert launch_above({"INTERPOSE_LAUNCH": "l1"}) == "l1"


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="there is no /proc here")
def test_taking_the_variable_out_hides_nothing() -> None:
    """A child of a marked process is found by what its parent was started with."""
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {PRINT!r}], env={{}})"

    done = subprocess.run(
        [sys.executable, "-c", outer], env={"INTERPOSE_LAUNCH": "l2"}, capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "l2"


def test_a_process_that_no_launch_started_has_none() -> None:
    """These tests are a person's."""
    assert launch_above({}) is None
