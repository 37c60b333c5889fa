"""Behaviour of the shell tools: results, bounds, and that nothing a command started lives on."""

import asyncio
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.contracts.errors import ConfigError, ToolError
from interpose.drivers.shell import ShellLimits, ShellTools
from interpose.drivers.shell.output import Capped

STRAY = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for stream in (0, 1, 2):
            os.close(stream)
        with open("stray.new", "w") as file:
            file.write(str(os.getpid()))
        os.rename("stray.new", "stray")
        time.sleep(600)
    os._exit(0)
while not os.path.exists("stray"):
    time.sleep(0.01)
print("started")
"""
"""Leaves its session and its group, closes all outputs, and sleeps on."""


def is_alive(number: int) -> bool:
    """Whether the process runs; one that only waits to be collected does not."""
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{number}/stat")
    return not (status.exists() and status.read_text().rpartition(")")[2].split()[0] in "ZX")


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    """Whether it becomes true in time."""
    until = time.monotonic() + seconds
    while not holds() and time.monotonic() < until:
        time.sleep(0.005)
    return holds()


def test_runs_a_line_with_the_shell(tmp_path: Path) -> None:
    """Pipes and redirections work; the result has the exit code and both outputs apart."""
    tools = ShellTools(tmp_path)

    assert tools.execute_tool("run_command", {"command": "echo one | tr o 0; echo two >&2; exit 3"}) == (
        "exit code 3\n--- stdout ---\n0ne\n--- stderr ---\ntwo"
    )
    assert tools.execute_tool("run_command", {"command": "true"}) == "exit code 0"
    assert tools.execute_tool("run_command", {"command": "kill -9 $$"}) == "ended by signal 9"


def test_runs_a_program_without_a_shell(tmp_path: Path) -> None:
    """Words are given as they are: nothing is expanded."""
    tools = ShellTools(tmp_path, command_strings=False)

    assert [tool.name for tool in tools.list_tools()] == ["execute_command"]
    assert tools.execute_tool("execute_command", {"command": ["echo", "$HOME; * | cat"]}) == (
        "exit code 0\n--- stdout ---\n$HOME; * | cat"
    )
    with pytest.raises(ValueError, match="no tool 'run_command'"):
        tools.execute_tool("run_command", {"command": "true"})


def test_starts_in_the_root_or_inside(tmp_path: Path) -> None:
    """The folder is the root unless the call names one inside; outside is refused."""
    (tmp_path / "root" / "sub").mkdir(parents=True)
    (tmp_path / "root" / "way-out").symlink_to(tmp_path)
    tools = ShellTools(tmp_path / "root")

    assert tools.execute_tool("run_command", {"command": "pwd"}).endswith(f"\n{tools.root}")
    assert tools.execute_tool("run_command", {"command": "pwd", "cwd": "sub"}).endswith(f"\n{tools.root}/sub")
    for cwd in ("..", "/", "way-out"):
        with pytest.raises(ToolError, match=r"out of the root|outside of the root"):
            tools.execute_tool("run_command", {"command": "pwd", "cwd": cwd})


def test_a_command_gets_listed_variables_only(tmp_path: Path) -> None:
    """A secret in this program's environment does not reach a command; listed and given variables do."""
    own = "PYTEST_CURRENT_TEST"  # pytest sets it in this program's environment
    hidden = ShellTools(tmp_path, env={"GIVEN": "yes"})
    passed = ShellTools(tmp_path, pass_env=[own])

    assert own not in hidden.execute_tool("run_command", {"command": "env"})
    assert "\nGIVEN=yes" in hidden.execute_tool("run_command", {"command": "env"})
    assert f"\n{own}=" in passed.execute_tool("run_command", {"command": "env"})


def test_a_command_has_no_input(tmp_path: Path) -> None:
    """Reading its input ends at once instead of waiting for the person."""
    assert ShellTools(tmp_path).execute_tool("run_command", {"command": "cat; echo done"}).endswith("done")


def test_a_slow_command_is_killed_and_told(tmp_path: Path) -> None:
    """At its time limit a command dies with its children, and what it wrote is kept."""
    tools = ShellTools(tmp_path)
    command = "sleep 600 & echo $! > child; echo begun; wait"

    said = tools.execute_tool("run_command", {"command": command, "timeout_s": 0.5})

    assert said == "killed after 0.5 s, its time limit; this is what it wrote until then\n--- stdout ---\nbegun"
    child = int((tmp_path / "child").read_text())
    assert within(5, lambda: not is_alive(child))


def test_children_do_not_outlive_a_command(tmp_path: Path) -> None:
    """A child left in the background is killed when its command ends, which does not wait for it."""
    started = time.monotonic()

    said = ShellTools(tmp_path).execute_tool("run_command", {"command": "sleep 600 & echo $!"})

    assert time.monotonic() - started < 10
    assert within(5, lambda: not is_alive(int(said.splitlines()[-1])))


@pytest.mark.skipif(sys.platform != "linux", reason="processes that left their group are found on Linux only")
def test_a_child_that_left_the_group_is_killed(tmp_path: Path) -> None:
    """A daemon with a session of its own and closed outputs dies too."""
    said = ShellTools(tmp_path).execute_tool("execute_command", {"command": [sys.executable, "-c", STRAY]})

    assert said == "exit code 0\n--- stdout ---\nstarted"
    stray = int((tmp_path / "stray").read_text())
    assert within(5, lambda: not is_alive(stray))


@pytest.mark.skipif(sys.platform != "linux", reason="processes that left their group are found on Linux only")
def test_a_run_inside_a_run_is_killed_with_it(tmp_path: Path) -> None:
    """A program that runs commands by the same means leaves none when its own run is killed."""
    inner = (
        "from interpose.drivers.shell import ShellTools\n"
        "ShellTools('.').execute_tool('run_command', {'command': 'echo $$ > new; mv new pid; exec sleep 600'})"
    )
    outer = ShellTools(tmp_path, env={"INNER": inner})

    said = outer.execute_tool(
        "run_command",
        {"command": f'{sys.executable} -c "$INNER" & while [ ! -e pid ]; do sleep 0.02; done', "timeout_s": 50},
    )

    assert said == "exit code 0"
    assert within(5, lambda: not is_alive(int((tmp_path / "pid").read_text())))


def test_long_outputs_keep_both_ends(tmp_path: Path) -> None:
    """The beginning and the end are there, the middle is counted; a program that floods is not held up."""
    tools = ShellTools(tmp_path, limits=ShellLimits(output_bytes=20))

    said = tools.execute_tool("run_command", {"command": "printf begin; head -c 5000000 /dev/zero; printf end"})

    assert said.startswith("exit code 0\n--- stdout ---\nbegin\0\0\0\0\0\n[4,999,988 bytes left out here]\n")
    assert said.endswith("\0end")


def test_what_cannot_be_started_is_named(tmp_path: Path) -> None:
    """A missing program, a NUL, a wrong word and a limit too large each have their sentence."""
    tools = ShellTools(tmp_path)

    for tool, arguments, words in (
        ("execute_command", {"command": ["no-such-program-here"]}, "no-such-program-here could not be started"),
        ("execute_command", {"command": ["echo", "a\0b"]}, "echo could not be started: embedded null byte"),
        ("execute_command", {"command": []}, "must be a list of at least one word"),
        (
            "execute_command",
            {"command": [""]},
            "must be a list of at least one word, each a string, and the first a pr",
        ),
        ("run_command", {"command": "true", "timeout_s": 10**400}, "timeout_s is too long, at most 600 are given"),
        ("execute_command", {"command": ["a", 1]}, "must be a list of at least one word, each a string"),
        ("run_command", {"command": ["ls"]}, "'command' must be string, got list"),
        ("run_command", {"command": "true", "timeout_s": 1e9}, "at most 600 are given"),
        ("run_command", {"command": "true", "timeout_s": float("nan")}, "at most 600 are given"),
        ("run_command", {"command": "true", "timeout_s": 0}, "must be at least 0.1"),
    ):
        with pytest.raises(ToolError) as failed:
            tools.execute_tool(tool, arguments)
        assert words in str(failed.value)
    with pytest.raises(ConfigError, match="give a folder that exists"):
        ShellTools(tmp_path / "missing")


def test_async_runs_side_by_side(tmp_path: Path) -> None:
    """Two commands that wait for each other both come to their end."""
    tools = ShellTools(tmp_path)
    meet = "touch {0}; while [ ! -e {1} ]; do sleep 0.01; done; echo met"

    async def both() -> tuple[str, str]:
        return await asyncio.gather(
            tools.execute_tool_async("run_command", {"command": meet.format("a", "b"), "timeout_s": 20}),
            tools.execute_tool_async("run_command", {"command": meet.format("b", "a"), "timeout_s": 20}),
        )

    assert list(asyncio.run(both())) == ["exit code 0\n--- stdout ---\nmet"] * 2


def test_a_cancelled_caller_leaves_no_command(tmp_path: Path) -> None:
    """When the awaiting task is cancelled the command is dead before the cancellation arrives."""
    tools = ShellTools(tmp_path)

    async def cancel() -> bool:
        task = asyncio.ensure_future(
            tools.execute_tool_async("run_command", {"command": "echo $$ > new; mv new pid; exec sleep 600"})
        )
        assert await asyncio.to_thread(within, 20, (tmp_path / "pid").exists)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return is_alive(int((tmp_path / "pid").read_text()))

    assert asyncio.run(cancel()) is False


@given(st.lists(st.binary(max_size=40), max_size=12), st.integers(min_value=0, max_value=64))
def test_capped_output_counts_every_byte(pieces: list[bytes], most: int) -> None:
    """However the output is cut into pieces: whole when it fits, else the very ends and the number between."""
    whole = b"".join(pieces)
    capped = Capped(most)
    for piece in pieces:
        capped.add(piece)

    text = capped.text()

    if len(whole) <= most:
        assert text == whole.decode("utf-8", "replace")
        return
    assert f"\n[{len(whole) - most:,} bytes left out here]\n" in text


def test_capped_output_cuts_between_characters() -> None:
    """A character that the cut goes through is left out, not made a question mark."""
    capped = Capped(7)
    capped.add("äöüßäöüß".encode())

    assert capped.text() == "ä\n[9 bytes left out here]\nüß"
