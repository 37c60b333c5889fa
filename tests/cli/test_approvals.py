"""interpose approvals: what waits, and the person's answer, on real terminals."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from interpose.assembly.folders import Folders
from interpose.contracts.digest import call_digest
from interpose.contracts.ports import ApprovalRequest
from interpose.kernel.clock import SystemClock
from interpose.trust.approvals import SqliteApprovals
from interpose.trust.questions import Question
from tests.e2e.processes import command, interpose
from tests.e2e.terminal import Terminal, on_terminal

pytestmark = pytest.mark.e2e

WAIT_S = 60.0


ASKER = """
import json, sys, threading
from pathlib import Path
from interpose.contracts.digest import call_digest
from interpose.contracts.ports import ApprovalRequest
from interpose.kernel.clock import SystemClock
from interpose.trust.approvals import SqliteApprovals

approvals = SqliteApprovals(Path(sys.argv[1]), clock=SystemClock())

def ask(text, timeout_s):
    arguments = {"command": text}
    request = ApprovalRequest("Bash", arguments, call_digest("Bash", arguments), "the program is hidden")
    print(json.dumps([text, approvals.ask(request, timeout_s=timeout_s)]), flush=True)

for line in sys.stdin:
    threading.Thread(target=ask, args=json.loads(line)).start()
approvals.stop()
"""


class Asking:
    """Calls that wait, asked by a process that started none of those that answer."""

    def __init__(self, state_db: Path) -> None:
        self.approvals = SqliteApprovals(state_db, clock=SystemClock())
        self.process = subprocess.Popen(
            [sys.executable, "-c", ASKER, str(state_db)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._answers: dict[str, Future[bool | None]] = {}
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def about(self, text: str, timeout_s: float = WAIT_S) -> "tuple[Question, Future[bool | None]]":
        """A question about this command, and the answer to come."""
        answer: Future[bool | None] = Future()
        self._answers[text] = answer
        assert self.process.stdin is not None
        print(json.dumps([text, timeout_s]), file=self.process.stdin, flush=True)
        digest = call_digest("Bash", {"command": text})
        end = time.monotonic() + WAIT_S
        while True:
            for question in self.approvals.waiting():
                if question.digest == digest:
                    return question, answer
            assert time.monotonic() < end
            threading.Event().wait(0.01)

    def close(self) -> None:
        """Takes back what waits."""
        self.approvals.close()
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(WAIT_S)
        self._reader.join(WAIT_S)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            text, answer = json.loads(line)
            self._answers[text].set_result(answer)


@pytest.fixture
def asking(folders: Folders) -> Iterator[Asking]:
    """Somebody who asks."""
    somebody = Asking(folders.state_db)
    yield somebody
    somebody.close()


def test_nothing_waits(tmp_path: Path, environ: dict[str, str]) -> None:
    """An empty list says so, and is nothing at all for machines."""
    told = interpose("approvals", cwd=tmp_path, env=environ)
    machines = interpose("approvals", "list", "--json", cwd=tmp_path, env=environ)

    assert (told.returncode, told.stdout) == (0, "nothing waits for your yes\n")
    assert (machines.returncode, machines.stdout) == (0, "")


def test_what_waits_is_listed_and_shown(tmp_path: Path, environ: dict[str, str], asking: Asking) -> None:
    """Waiting ones first, settled ones with --all, everything of one with show; machines get JSON."""
    old, _ = asking.about("echo old")
    asking.approvals.answer(old.id, old.digest, yes=False, who="t")
    question, _ = asking.about('"$TOOL" x')

    listed = interpose("approvals", "list", cwd=tmp_path, env=environ).stdout
    everything = interpose("approvals", "list", "--all", "--json", cwd=tmp_path, env=environ).stdout
    shown = interpose("approvals", "show", question.id, cwd=tmp_path, env=environ).stdout
    machines = json.loads(interpose("approvals", "show", question.id, "--json", cwd=tmp_path, env=environ).stdout)

    assert "1 call for your yes" in interpose("status", cwd=tmp_path, env=environ).stdout
    assert question.id in listed
    assert '"$TOOL" x' in listed
    assert "approvals watch" in listed
    assert old.id not in listed
    assert "1 settled within a week" in listed
    assert [json.loads(line)["id"] for line in everything.splitlines()] == [question.id, old.id]
    assert 'command    "$TOOL" x' in shown
    assert machines["digest"] == question.digest


def test_a_person_approves_after_seeing_the_call(tmp_path: Path, environ: dict[str, str], asking: Asking) -> None:
    """The call is shown, the person says y, and whoever asked has the yes within a second."""
    question, answer = asking.about("make release")

    with Terminal(command("approvals", "approve", question.id), cwd=tmp_path, env=environ) as terminal:
        terminal.until("command +make release")
        terminal.until(r"Let it run\?")
        assert not answer.done()
        terminal.type("y\n")
        assert answer.result(5) is True
        assert terminal.ended() == 0

    assert asking.approvals.find(question.id).who == "approvals approve"


def test_a_person_may_name_the_digest_that_was_seen(tmp_path: Path, environ: dict[str, str], asking: Asking) -> None:
    """Then it is not asked again; another digest is refused."""
    question, answer = asking.about("make release")

    def approve(digest: str) -> tuple[int, str]:
        words = command("approvals", "approve", question.id, "--digest", digest)
        return on_terminal(words, cwd=tmp_path, env=environ)

    wrong, short, right = approve("0" * 12), approve("0"), approve(question.digest[:12])

    assert (wrong[0], short[0], right[0]) == (1, 2, 0), (wrong, short, right)
    assert "another call" in wrong[1]
    assert answer.result(5) is True


def test_a_person_thinks_again(tmp_path: Path, environ: dict[str, str], asking: Asking) -> None:
    """A no to approve leaves the call waiting, and deny refuses it."""
    question, answer = asking.about("make release")

    with Terminal(command("approvals", "approve", question.id), cwd=tmp_path, env=environ) as terminal:
        terminal.until(r"Let it run\?")
        terminal.type("n\n")
        terminal.until("it still waits")
        assert terminal.ended() == 0
    assert not answer.done()

    code, shown = on_terminal(command("approvals", "deny", question.id), cwd=tmp_path, env=environ)
    assert code == 0, shown
    assert answer.result(5) is False


def test_an_answer_that_comes_too_late_says_why(tmp_path: Path, environ: dict[str, str], asking: Asking) -> None:
    """Answered, expired and unknown are told apart, with the way out and an exit code."""
    answered, _ = asking.about("a")
    asking.approvals.answer(answered.id, answered.digest, yes=True, who="terminal of up")
    expired, waited = asking.about("b", timeout_s=0.2)
    assert waited.result(WAIT_S) is None

    def end(verb: str, question_id: str) -> tuple[int, str]:
        code, shown = on_terminal(command("approvals", verb, question_id), cwd=tmp_path, env=environ)
        return code, " ".join(shown.split())

    code, shown = end("approve", answered.id)
    assert (code, "answered with yes (terminal of up)" in shown) == (1, True), shown
    code, shown = end("deny", expired.id)
    assert (code, "nobody answered in time" in shown) == (1, True), shown
    code, shown = end("deny", "q-none")
    assert (code, "approvals list --all" in shown) == (2, True), shown


def test_a_damaged_state_is_named(tmp_path: Path, environ: dict[str, str], folders: Folders) -> None:
    """One line with the file and the way out, and the exit code of the manual."""
    folders.state.mkdir(mode=0o700)
    folders.state_db.write_bytes(b"not a database" * 100)

    done = interpose("approvals", cwd=tmp_path, env=environ)

    assert done.returncode == 3
    assert str(folders.state_db) in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("verb", [("approve", "q-1"), ("deny", "q-1"), ("watch",)])
def test_without_a_terminal_nobody_answers(tmp_path: Path, environ: dict[str, str], verb: tuple[str, ...]) -> None:
    """The error says that a yes must come from a person."""
    done = interpose("approvals", *verb, cwd=tmp_path, env=environ)

    assert done.returncode == 2
    assert "a yes must come from a person" in done.stderr


def test_what_a_launched_agent_starts_cannot_answer(tmp_path: Path, environ: dict[str, str], asking: Asking) -> None:
    """Not even on a terminal that it made, with the mark taken out of its environment."""
    question, answer = asking.about("make release")
    script = tmp_path / "agent.py"
    script.write_text(
        "import os, pty, sys\n"
        "os.environ.pop('INTERPOSE_LAUNCH')\n"
        f"words = {command('approvals', 'approve', question.id, '--digest', question.digest)!r}\n"
        "code = pty.spawn(words)\n"
        "sys.exit(os.waitstatus_to_exitcode(code))\n"
    )

    code, shown = on_terminal(command("run", "--quiet", "--", sys.executable, str(script)), cwd=tmp_path, env=environ)

    assert code == 2, shown
    assert "not for agents" in shown
    assert not answer.done()


def test_a_watch_asks_about_each_call_as_it_comes(tmp_path: Path, environ: dict[str, str], asking: Asking) -> None:
    """One after the other with a count; y allows, n refuses, anything else is asked again; Ctrl-C ends it."""
    with Terminal(command("approvals", "watch"), cwd=tmp_path, env=environ) as terminal:
        terminal.until("appear here")
        _until(asking.approvals.can_ask)
        terminal.type("y\n")  # before any question: no answer to what comes next
        first, first_answer = asking.about("make one")
        terminal.until(r"make one.*Let it run\? \[y/n\] ")
        second, second_answer = asking.about("make two")
        terminal.type("what\n")
        terminal.until(r"s left.*Let it run\? \[y/n\] ")
        terminal.type("Y\n")
        terminal.until("it runs")
        assert first_answer.result(5) is True
        terminal.until(r"make two.*Let it run\? \[y/n\] ")
        terminal.type("n\n")
        terminal.until("refused")
        assert second_answer.result(5) is False
        terminal.type("\x03")
        assert terminal.ended() == 0

    assert not asking.approvals.can_ask()
    assert {asking.approvals.find(one.id).who for one in (first, second)} == {"approvals watch"}


def test_two_that_wait_are_counted(tmp_path: Path, environ: dict[str, str], asking: Asking) -> None:
    """A question that is answered elsewhere leaves the terminal, and the next one comes and needs its own answer."""
    first, _ = asking.about("make one")
    _, answer = asking.about("make two")

    with Terminal(command("approvals", "watch"), cwd=tmp_path, env=environ) as terminal:
        terminal.until(r"\(1 of 2\).*make one.*Let it run\? \[y/n\] ")
        asking.approvals.answer(first.id, first.digest, yes=False, who="somewhere else")
        terminal.until(r"answered with no \(somewhere else\)")
        terminal.type("y\n")  # meant for the question that went away: no answer to the next one
        terminal.until(r"make two.*Let it run\? \[y/n\] ")
        with pytest.raises(TimeoutError):
            answer.result(0.5)
        terminal.type("y\n")
        assert answer.result(5) is True
        terminal.type("\x03")
        assert terminal.ended() == 0


def test_a_watch_whose_terminal_goes_away_ends(tmp_path: Path, environ: dict[str, str], asking: Asking) -> None:
    """Nobody is there any more."""
    with Terminal(command("approvals", "watch"), cwd=tmp_path, env=environ) as terminal:
        terminal.until("appear here")
        _until(asking.approvals.can_ask)
        terminal.type("\x04")  # the end of the input
        terminal.until("no more questions")
        assert not asking.approvals.can_ask()
        assert terminal.ended() == 0


def test_a_question_that_nobody_waits_for_any_more_leaves_the_terminal(
    tmp_path: Path, environ: dict[str, str], asking: Asking
) -> None:
    """The process that asked was killed; the person is told and nothing is asked about it."""
    asking.about("make far")
    with Terminal(command("approvals", "watch"), cwd=tmp_path, env=environ) as terminal:
        terminal.until(r"make far.*Let it run\? \[y/n\] ")
        asking.process.kill()
        asking.process.wait(10)
        terminal.until("the process that asked has ended")
        terminal.type("\x03")
        assert terminal.ended() == 0


def test_a_program_cannot_answer_its_own_question(tmp_path: Path, environ: dict[str, str], folders: Folders) -> None:
    """What the asking process started is refused, on a terminal too; the question goes on waiting."""
    approvals = SqliteApprovals(folders.state_db, clock=SystemClock())
    arguments = {"command": "make mine"}
    request = ApprovalRequest("Bash", arguments, call_digest("Bash", arguments))
    answers: list[bool | None] = []
    asker = threading.Thread(target=lambda: answers.append(approvals.ask(request, timeout_s=WAIT_S)))
    asker.start()
    _until(lambda: bool(approvals.waiting()))
    (question,) = approvals.waiting()

    words = command("approvals", "approve", question.id, "--digest", question.digest)
    code, shown = on_terminal(words, cwd=tmp_path, env=environ)

    assert code == 2, shown
    assert "a yes must come from a person" in shown
    assert [waiting.id for waiting in approvals.waiting()] == [question.id]
    approvals.close()
    asker.join(WAIT_S)
    assert answers == [None]


def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < end, "it did not happen"
        threading.Event().wait(0.01)
