"""trust.approvals: asking, waiting and answering, in one process and in many."""

import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from interpose.chain.chain import Chain
from interpose.concerns.permission.approvals import ApprovalsConsent
from interpose.concerns.permission.middleware import PermissionMiddleware
from interpose.contracts.digest import call_digest
from interpose.contracts.errors import StorageError
from interpose.contracts.ports import ApprovalRequest, Approvals
from interpose.kernel.clock import SystemClock
from interpose.kernel.ids import derived_id
from interpose.testing.journal import MemoryJournal
from interpose.trust.approvals import SqliteApprovals
from interpose.trust.questions import NotWaitingError, OtherDigestError, Question, UnknownQuestionError
from interpose.trust.store import KEPT_MAX, KEPT_S, WAITING_MAX, QuestionStore

WAIT_S = 60.0

ASKER = """
import sys
from pathlib import Path
from interpose.contracts.digest import call_digest
from interpose.contracts.ports import ApprovalRequest
from interpose.kernel.clock import SystemClock
from interpose.trust.approvals import SqliteApprovals
arguments = {"command": sys.argv[2]}
request = ApprovalRequest("Bash", arguments, call_digest("Bash", arguments), "because")
approvals = SqliteApprovals(Path(sys.argv[1]), clock=SystemClock())
print("asking", flush=True)
print(approvals.ask(request, timeout_s=60), flush=True)
"""


class MovedClock(SystemClock):
    """The machine's clock, moved by some seconds."""

    moved_s = 0.0

    def now(self) -> float:
        """The time, moved."""
        return super().now() + self.moved_s


def request(command: str = "ls", **told: str) -> ApprovalRequest:
    """A call that waits."""
    arguments = {"command": command}
    return ApprovalRequest("Bash", arguments, call_digest("Bash", arguments), **told)


@pytest.fixture
def state_db(tmp_path: Path) -> Path:
    """Where the questions are."""
    return tmp_path / "state" / "state.db"


@pytest.fixture
def journal() -> MemoryJournal:
    """What was told."""
    return MemoryJournal()


@pytest.fixture
def clock() -> MovedClock:
    """A clock that the test may move."""
    return MovedClock()


@pytest.fixture
def approvals(state_db: Path, journal: MemoryJournal, clock: MovedClock) -> Iterator[SqliteApprovals]:
    """The approvals of this process."""
    opened = SqliteApprovals(state_db, clock=clock, journal=journal)
    yield opened
    opened.close()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """Threads that ask."""
    with ThreadPoolExecutor(16) as threads:
        yield threads


def asked(
    pool: ThreadPoolExecutor, approvals: SqliteApprovals, wanted: ApprovalRequest, timeout_s: float = WAIT_S
) -> "tuple[Question, Future[bool | None]]":
    """The question as it waits, and the answer to come."""
    answer = pool.submit(approvals.ask, wanted, timeout_s=timeout_s)
    return until_waiting(approvals, wanted.digest), answer


def until_waiting(approvals: SqliteApprovals, digest: str) -> Question:
    """The waiting question about this call, once it is there."""
    end = time.monotonic() + WAIT_S
    while True:
        for question in approvals.waiting():
            if question.digest == digest:
                return question
        assert time.monotonic() < end, "nobody asked"
        threading.Event().wait(0.005)


@pytest.mark.parametrize(("yes", "state"), [(True, "allowed"), (False, "denied")])
def test_the_answer_reaches_who_asked(
    approvals: SqliteApprovals, pool: ThreadPoolExecutor, yes: bool, state: str
) -> None:
    """A yes is True, a no is False; the question says where it was answered and waits no more."""
    port: Approvals = approvals
    question, answer = asked(pool, approvals, request("make", reason="why", handler="h", agent="codex", session="s"))
    assert port is approvals
    assert (question.arguments, question.is_whole, question.reason) == ({"command": "make"}, True, "why")
    assert (question.handler, question.agent, question.session, question.pid) == ("h", "codex", "s", os.getpid())
    assert question.id.startswith("q-")

    approvals.answer(question.id, question.digest, yes=yes, who="here")

    assert answer.result(WAIT_S) is yes
    assert approvals.waiting() == ()
    settled = approvals.recent()[0]
    assert (settled.id, settled.state, settled.who) == (question.id, state, "here")


def test_nobody_answers(approvals: SqliteApprovals) -> None:
    """After the time the answer is None and the question has expired; a late yes changes nothing and says so."""
    assert approvals.ask(request(), timeout_s=0.05) is None

    question = approvals.recent()[0]
    assert question.state == "expired"
    with pytest.raises(NotWaitingError, match="nobody answered in time"):
        approvals.answer(question.id, question.digest, yes=True, who="late")


def test_an_answer_is_to_the_call_that_was_shown(approvals: SqliteApprovals, pool: ThreadPoolExecutor) -> None:
    """Another digest, another id and a second answer are refused, each in its own words; the question goes on."""
    question, answer = asked(pool, approvals, request())

    with pytest.raises(OtherDigestError, match="another call"):
        approvals.answer(question.id, call_digest("Bash", {}), yes=True, who="x")
    with pytest.raises(UnknownQuestionError, match="q-none"):
        approvals.answer("q-none", question.digest, yes=True, who="x")
    assert not answer.done()

    approvals.answer(question.id, question.digest, yes=False, who="first")
    with pytest.raises(NotWaitingError, match="answered with no"):
        approvals.answer(question.id, question.digest, yes=True, who="second")
    assert answer.result(WAIT_S) is False


def test_one_of_many_answers_counts(approvals: SqliteApprovals, pool: ThreadPoolExecutor) -> None:
    """When many answer at once one of them settles it, and the others are told."""
    question, answer = asked(pool, approvals, request())

    def say(number: int) -> bool:
        try:
            approvals.answer(question.id, question.digest, yes=number % 2 == 0, who=str(number))
        except NotWaitingError:
            return False
        return True

    settled = list(pool.map(say, range(8)))

    assert settled.count(True) == 1
    assert answer.result(WAIT_S) is (approvals.find(question.id).state == "allowed")


def test_many_questions_wait_at_once(approvals: SqliteApprovals, pool: ThreadPoolExecutor) -> None:
    """Each gets its own answer."""
    answers = {number: asked(pool, approvals, request(f"run {number}")) for number in range(12)}

    for number, (question, _) in answers.items():
        approvals.answer(question.id, question.digest, yes=number % 3 == 0, who="t")

    assert [answer.result(WAIT_S) for _, answer in answers.values()] == [number % 3 == 0 for number in range(12)]


def test_a_call_that_is_given_up_is_withdrawn(approvals: SqliteApprovals, pool: ThreadPoolExecutor) -> None:
    """The one who asked takes the question back at once."""
    given_up = threading.Event()
    answer = pool.submit(approvals.ask, request(), timeout_s=WAIT_S, given_up=given_up)
    question = until_waiting(approvals, request().digest)

    given_up.set()

    assert answer.result(2) is None
    assert approvals.find(question.id).state == "withdrawn"


def test_stopping_takes_back_every_question(approvals: SqliteApprovals, pool: ThreadPoolExecutor) -> None:
    """A process that ends keeps nobody waiting, and asks no more."""
    waiting = [asked(pool, approvals, request(str(number))) for number in range(3)]
    with approvals.watching("t") as watch:
        watch.beat()
        assert approvals.can_ask()
        approvals.stop()
        assert not approvals.can_ask()

    assert [answer.result(2) for _, answer in waiting] == [None, None, None]
    assert {approvals.find(question.id).state for question, _ in waiting} == {"withdrawn"}


def test_secrets_are_masked_and_the_digest_is_over_the_real_ones(
    approvals: SqliteApprovals, pool: ThreadPoolExecutor, state_db: Path
) -> None:
    """No key is in the file, while the yes is for exactly the call that holds it."""
    secret = "sk-ant-api03-" + "x" * 40
    wanted = request(f"curl -H 'x-api-key: {secret}' u", reason=f"it has {secret}")

    question, answer = asked(pool, approvals, wanted)

    assert secret not in str(question)
    assert question.digest == wanted.digest
    assert secret.encode() not in b"".join(file.read_bytes() for file in state_db.parent.iterdir())
    assert stat.S_IMODE(state_db.stat().st_mode) == 0o600
    approvals.answer(question.id, wanted.digest, yes=True, who="t")
    assert answer.result(WAIT_S) is True


def test_the_journal_tells_the_question_and_who_answered(
    approvals: SqliteApprovals, pool: ThreadPoolExecutor, journal: MemoryJournal
) -> None:
    """Both lines belong to the call's own action, so that `explain` shows them."""
    question, answer = asked(pool, approvals, request(session="s1", call_id="c1", handler="guard.x", reason="odd"))
    approvals.answer(question.id, question.digest, yes=True, who="terminal of up")
    answer.result(WAIT_S)

    first, second = journal.records
    assert {first.action, second.action} == {derived_id("a", "s1", "c1")}
    assert (first.step, first.handler, first.outcome, first.phase) == ("notice", "guard.x", "waiting", "ask")
    assert question.id in first.reason
    assert "odd" not in first.reason  # the policy's own line says it
    assert first.data["input"] == {"command": "ls"}
    assert (second.step, second.handler, second.answer) == ("answer", "terminal of up", "continue")


def test_a_question_of_no_handler_has_its_reason_in_the_journal(
    approvals: SqliteApprovals, journal: MemoryJournal
) -> None:
    """Nobody else tells it; silence is told, too."""
    approvals.ask(request(reason="it publishes"), timeout_s=0.01)

    first, second = journal.records
    assert first.reason.endswith("it publishes")
    assert (second.answer, "nobody answered in time" in second.reason) == ("cancel", True)


def test_somebody_is_there_only_while_a_terminal_watches(
    approvals: SqliteApprovals, state_db: Path, clock: MovedClock
) -> None:
    """A watcher of any process counts for five seconds after it was last seen, and not after it left."""
    other = SqliteApprovals(state_db, clock=SystemClock())
    assert not approvals.can_ask()

    with other.watching("approvals watch") as watch:
        assert not approvals.can_ask()
        watch.beat()
        assert approvals.can_ask()
        assert [found.place for found in approvals.watchers()] == ["approvals watch"]
        clock.moved_s = 6.0
        assert not approvals.can_ask()
        clock.moved_s = 0.0
        assert approvals.can_ask()

    assert not approvals.can_ask()
    other.close()


def test_a_watcher_that_was_killed_does_not_count(approvals: SqliteApprovals, state_db: Path) -> None:
    """Its row is fresh, but its process is not there."""
    code = (
        "import os, sys; from pathlib import Path\n"
        "from interpose.kernel.clock import SystemClock\n"
        "from interpose.trust.approvals import SqliteApprovals\n"
        "with SqliteApprovals(Path(sys.argv[1]), clock=SystemClock()).watching('w') as watch:\n"
        "    watch.beat(); print('beat', flush=True); sys.stdin.read()\n"
    )
    watcher = subprocess.Popen(
        [sys.executable, "-c", code, str(state_db)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert watcher.stdout is not None
    assert watcher.stdout.readline() == b"beat\n"
    assert approvals.can_ask()

    watcher.kill()
    watcher.communicate(timeout=10)

    assert not approvals.can_ask()


def asker(state_db: Path, command: str) -> "subprocess.Popen[str]":
    """A process of its own that asks."""
    return subprocess.Popen(
        [sys.executable, "-c", ASKER, str(state_db), command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_many_processes_ask_and_one_answers(approvals: SqliteApprovals, state_db: Path) -> None:
    """Each process gets the answer to its own question."""
    askers = {name: asker(state_db, name) for name in ("a", "b", "c", "d")}

    for name in askers:
        question = until_waiting(approvals, request(name).digest)
        approvals.answer(question.id, question.digest, yes=name in "ac", who="t")
    said = {name: process.communicate(timeout=WAIT_S)[0].splitlines()[-1] for name, process in askers.items()}

    assert said == {"a": "True", "b": "False", "c": "True", "d": "False"}


def test_a_process_that_was_killed_leaves_its_question_as_gone(approvals: SqliteApprovals, state_db: Path) -> None:
    """Nobody is shown a question that leads nowhere, and answering it says why."""
    process = asker(state_db, "x")
    question = until_waiting(approvals, request("x").digest)

    process.kill()
    process.communicate(timeout=WAIT_S)

    assert approvals.waiting() == ()
    assert approvals.find(question.id).state == "gone"
    with pytest.raises(NotWaitingError, match="has ended"):
        approvals.answer(question.id, question.digest, yes=True, who="t")


def test_stopping_takes_back_what_ones_own_workers_ask(state_db: Path) -> None:
    """The process that ends does not wait for theirs, and leaves alone what others ask."""
    approvals = SqliteApprovals(state_db, clock=SystemClock())
    worker, other = asker(state_db, "w"), asker(state_db, "o")
    mine, theirs = (until_waiting(approvals, request(name).digest) for name in "wo")

    approvals.stop([worker.pid])

    assert worker.communicate(timeout=WAIT_S)[0].splitlines()[-1] == "None"
    assert (approvals.find(mine.id).state, approvals.find(theirs.id).state) == ("withdrawn", "waiting")
    approvals.answer(theirs.id, theirs.digest, yes=True, who="t")
    assert other.communicate(timeout=WAIT_S)[0].splitlines()[-1] == "True"
    approvals.close()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc here")
def test_what_the_asking_process_started_cannot_answer(
    approvals: SqliteApprovals, pool: ThreadPoolExecutor, state_db: Path
) -> None:
    """A child of the one that asks is refused, and so is its child; the question goes on waiting."""
    question, answer = asked(pool, approvals, request())
    code = (
        "import sys; from pathlib import Path\n"
        "from interpose.kernel.clock import SystemClock\n"
        "from interpose.trust.approvals import SqliteApprovals\n"
        "from interpose.trust.questions import OwnQuestionError\n"
        "try: SqliteApprovals(Path(sys.argv[1]), clock=SystemClock()).answer(*sys.argv[2:], yes=True, who='child')\n"
        "except OwnQuestionError as error: print(error)\n"
    )
    child = [sys.executable, "-c", code, str(state_db), question.id, question.digest]
    grandchild = [sys.executable, "-c", "import subprocess, sys; subprocess.run(sys.argv[1:])", *child]

    for words in (child, grandchild):
        done = subprocess.run(words, capture_output=True, text=True, timeout=WAIT_S, check=True)
        assert "a yes must come from a person" in done.stdout

    assert not answer.done()
    approvals.stop()
    assert answer.result(WAIT_S) is None


def test_without_a_journal_nobody_is_told(state_db: Path) -> None:
    """Asking and failing work all the same."""
    approvals = SqliteApprovals(state_db, clock=SystemClock())
    assert approvals.ask(request(), timeout_s=0.01) is None
    approvals.close()
    assert not approvals.can_ask()
    with pytest.raises(StorageError):
        approvals.waiting()


def test_a_question_whose_time_is_over_is_settled_by_looking(state_db: Path) -> None:
    """Nobody is shown what cannot be answered, even if whoever asked sleeps; damage is named, not shown."""
    store = QuestionStore(state_db)
    old = store.add(request("old"), now=1_000.0, timeout_s=10)
    new = store.add(request("new"), now=1_005.0, timeout_s=10)
    assert old is not None
    assert new is not None

    assert [question.id for question in store.waiting(1_013.0)] == [new.id]
    assert [question.state for question in store.recent(5)] == ["expired"]

    with sqlite3.connect(state_db) as other:
        other.execute("UPDATE questions SET arguments = '{' WHERE id = ?", (new.id,))
    other.close()
    with pytest.raises(StorageError, match=new.id):
        store.find(new.id)
    store.close()


def test_a_damaged_file_asks_nobody(approvals: SqliteApprovals, state_db: Path, journal: MemoryJournal) -> None:
    """Nobody can be asked, the journal says why once, and asking raises what consumers take for a no."""
    with sqlite3.connect(state_db) as other:
        other.execute("DROP TABLE questions")
        other.execute("DROP TABLE watchers")
    other.close()

    assert not approvals.can_ask()
    assert not approvals.can_ask()
    with pytest.raises(StorageError, match=r"state\.db"):
        approvals.ask(request(), timeout_s=1)

    assert [record.step for record in journal.records] == ["problem"]
    assert "state.db" in journal.records[0].reason


def test_a_file_that_is_damaged_while_a_question_waits_gives_no_yes(
    approvals: SqliteApprovals, pool: ThreadPoolExecutor, state_db: Path
) -> None:
    """Whoever waits is told, and not with a yes."""
    _, answer = asked(pool, approvals, request())
    with sqlite3.connect(state_db) as other:
        other.execute("DROP TABLE questions")
    other.close()

    with pytest.raises(StorageError, match=r"state\.db"):
        answer.result(WAIT_S)


def test_a_yes_that_was_written_for_another_call_is_no_yes(
    approvals: SqliteApprovals, pool: ThreadPoolExecutor, state_db: Path
) -> None:
    """The digest is compared where the call waits, too; a row that vanished is no yes either."""
    first, answer = asked(pool, approvals, request("a"))
    second, other_answer = asked(pool, approvals, request("b"))
    with sqlite3.connect(state_db) as other:
        other.execute("UPDATE questions SET state = 'allowed', digest = 'other' WHERE id = ?", (first.id,))
        other.execute("DELETE FROM questions WHERE id = ?", (second.id,))
    other.close()

    assert answer.result(WAIT_S) is False
    assert other_answer.result(WAIT_S) is None


def test_what_is_kept_is_bounded(state_db: Path) -> None:
    """Settled questions go after a week or beyond two thousand; more than two hundred do not wait at once."""
    store = QuestionStore(state_db)
    now = time.time()
    old = store.add(request("old"), now=now - 2 * KEPT_S, timeout_s=1)
    assert old is not None
    store.settle(old.id, "denied", now=now - 2 * KEPT_S)
    for number in range(WAITING_MAX):
        assert store.add(request(str(number)), now=now, timeout_s=60) is not None

    assert store.find(old.id) is None
    assert store.add(request("one more"), now=now, timeout_s=60) is None
    for question in store.waiting(now):
        store.settle(question.id, "denied", now=now)
    assert KEPT_MAX > len(store.recent(10_000)) == WAITING_MAX
    store.close()


def test_too_many_questions_are_not_asked(approvals: SqliteApprovals, state_db: Path, journal: MemoryJournal) -> None:
    """The call is refused at once, and the journal says why."""
    store = QuestionStore(state_db)
    for number in range(WAITING_MAX):
        store.add(request(str(number)), now=time.time(), timeout_s=60)

    with approvals.watching("t") as watch:
        watch.beat()
        assert not approvals.can_ask()
    assert approvals.ask(request(), timeout_s=60) is None

    assert f"{WAITING_MAX} questions wait" in journal.records[-1].reason
    store.close()


def test_a_consent_may_be_asked_through_it(approvals: SqliteApprovals, pool: ThreadPoolExecutor) -> None:
    """`PermissionMiddleware` runs a tool after a person's yes, and refuses it after a no."""
    consent = ApprovalsConsent(approvals, timeout_s=WAIT_S, reason="it writes")
    chain = Chain([PermissionMiddleware(consent=consent)])

    def run(path: str) -> "Future[object]":
        return pool.submit(chain.call, "write", {"path": path}, lambda *_: "written")

    for path, yes in (("a", True), ("b", False)):
        result = run(path)
        question = until_waiting(approvals, call_digest("write", {"path": path}))
        assert question.reason == "it writes"
        approvals.answer(question.id, question.digest, yes=yes, who="t")
        assert (result.result(WAIT_S) == "written") is yes


def test_waiting_costs_little(approvals: SqliteApprovals, pool: ThreadPoolExecutor) -> None:
    """Questions that wait take next to no processor time: nobody spins."""
    waiting = [asked(pool, approvals, request(str(number)))[1] for number in range(8)]
    before = time.process_time()

    threading.Event().wait(1.0)

    assert time.process_time() - before < 0.5
    approvals.stop()
    assert [answer.result(WAIT_S) for answer in waiting] == [None] * 8
