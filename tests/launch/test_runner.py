"""launch.runner."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from interpose.launch.runner import Ended, run_agent

RUN = (
    "import sys, os; from interpose.launch.runner import run_agent; sys.exit(run_agent(sys.argv[1:], os.environ).code)"
)
WAITS = """
import os, signal
waited_for = {signal.SIGTERM, signal.SIGHUP, signal.SIGINT}
signal.pthread_sigmask(signal.SIG_BLOCK, waited_for)
os.write(1, b"ready\\n")
os.write(1, b"%d\\n" % signal.sigwait(waited_for))
os._exit(40)
"""


def _python(code: str) -> Ended:
    return run_agent([sys.executable, "-c", code], {"MARK": "5"})


def test_the_exit_code_is_the_childs() -> None:
    """Also when a signal ended it: 128 and the number; the environment is what was given and nothing else."""
    assert _python("raise SystemExit(7)") == Ended(7)
    assert _python("import os, signal; os.kill(os.getpid(), signal.SIGKILL)") == Ended(137)
    assert _python("import os; raise SystemExit(int(os.environ['MARK']) + ('HOME' in os.environ))") == Ended(5)


def test_a_command_that_is_not_there_is_127_with_a_message(tmp_path: Path) -> None:
    """What a shell would say, with a way out."""
    assert run_agent(["no-such-agent"], {"PATH": "/bin"}) == Ended(
        127, "no-such-agent: command not found (install it, or give its whole path)"
    )
    assert run_agent([str(tmp_path / "none")], {}).code == 127


def test_a_command_that_cannot_run_is_126_with_the_reason(tmp_path: Path) -> None:
    """A file without the right mode, a script whose interpreter is missing, a folder that is not there."""
    plain, script = tmp_path / "plain", tmp_path / "script"
    plain.write_text("")
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o700)

    assert run_agent([str(plain)], {}) == Ended(126, f"{plain}: cannot be run (permission denied)")
    assert run_agent([str(script)], {}).code == 126
    gone = run_agent(["true"], {"PATH": "/bin"}, cwd=tmp_path / "gone")
    assert gone.code == 126
    assert "gone: this folder is not there" in str(gone.message)


def test_the_child_starts_in_its_folder(tmp_path: Path) -> None:
    """Relative paths of the agent start where the person is."""
    code = f"import os; raise SystemExit(0 if os.getcwd() == {os.path.realpath(tmp_path)!r} else 1)"

    assert run_agent([sys.executable, "-c", code], {}, cwd=tmp_path).code == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_for_us_alone_is_passed_on(number: signal.Signals) -> None:
    """The child hears it, ends in its own way, and its code is ours."""
    code, heard = _signalled(number, to_group=False)

    assert (code, heard) == (40, f"{int(number)}\n")


def test_ctrl_c_is_the_childs_to_answer() -> None:
    """The terminal tells the whole group; we stay until the child has ended and give its code."""
    assert _signalled(signal.SIGINT, to_group=True) == (40, f"{int(signal.SIGINT)}\n")


def test_handlers_are_given_back_and_another_thread_may_run_too() -> None:
    """Outside of a run, signals mean what they meant before."""
    before = signal.getsignal(signal.SIGTERM)
    codes = list[int]()

    thread = threading.Thread(target=lambda: codes.append(_python("raise SystemExit(3)").code))
    thread.start()
    thread.join(20)

    assert _python("pass").code == 0
    assert codes == [3]
    assert signal.getsignal(signal.SIGTERM) is before


def _signalled(number: signal.Signals, *, to_group: bool) -> tuple[int, str]:
    with subprocess.Popen(
        [sys.executable, "-c", RUN, sys.executable, "-c", WAITS],
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": "src"},
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        if to_group:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        heard = process.stdout.read()
        return process.wait(20), heard
