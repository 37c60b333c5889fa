"""kernel.processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from interpose.kernel.processes import ancestors, environment_of, is_running, process_mark

on_linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc here")


def sleeper(**environment: str) -> "subprocess.Popen[bytes]":
    """A child that says that it runs and then waits for its input to end."""
    child = subprocess.Popen(
        [sys.executable, "-c", "import sys; print('up', flush=True); sys.stdin.read()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"up\n"
    return child


def test_a_process_runs_until_it_ends() -> None:
    """A child is there, is not there once it was killed, even before anybody waits for it, nor after that."""
    child = sleeper()
    mark = process_mark(child.pid)
    assert is_running(child.pid, mark)
    assert is_running(os.getpid())

    child.kill()
    if Path("/proc/self/stat").exists():
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not is_running(child.pid, mark)
    child.communicate(timeout=10)
    assert not is_running(child.pid, mark)


@on_linux
def test_a_later_process_with_the_same_number_is_another() -> None:
    """The mark holds when the process started."""
    space, _, started = process_mark(os.getpid()).rpartition(" ")

    assert is_running(os.getpid(), f"{space} {started}")
    assert not is_running(os.getpid(), f"{space} {int(started) + 1}")


@on_linux
def test_what_another_container_numbered_counts_as_running() -> None:
    """A number means nothing outside its own namespace, and not knowing is not dead."""
    assert is_running(999_999_999, "pid:[1] 77")
    assert not is_running(999_999_999)


@on_linux
def test_ancestors_lead_to_the_first_process() -> None:
    """The nearest comes first; a process that is not there has none."""
    child = sleeper()

    above = list(ancestors(child.pid))
    child.communicate(timeout=10)

    assert above[0] == os.getpid()
    assert above[1] == os.getppid()
    assert list(ancestors(999_999_999)) == []


@on_linux
def test_the_environment_of_a_child_can_be_read() -> None:
    """It is the one that the child was started with; nothing for a process that is not there."""
    child = sleeper(MARK="a=b")

    found = environment_of(child.pid)
    child.communicate(timeout=10)

    assert found["MARK"] == "a=b"
    assert environment_of(999_999_999) == {}
    assert process_mark(999_999_999) == ""
