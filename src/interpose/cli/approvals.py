"""`interpose approvals`: what waits for a person's yes, and the yes itself."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import click

from interpose.assembly.folders import user_folders
from interpose.cli.asking import UNNAMED, question_block, question_json, subject, visible
from interpose.cli.output import console, print_json, require_terminal
from interpose.kernel.clock import SystemClock
from interpose.trust.approvals import SqliteApprovals
from interpose.trust.questions import NotWaitingError, OtherDigestError, Question

if TYPE_CHECKING:
    from rich.table import Table

WHY = "a yes must come from a person"
NOT_WAITING = 1
"""The exit code when the question is settled, or about another call than the one that was shown."""

SUBJECT_CHARS = 70
SETTLED_COUNTED = 10
DIGEST_CHARS = 12
"""So many characters of a digest name it."""


@click.group("approvals", invoke_without_command=True)
@click.pass_context
def approvals_command(context: click.Context) -> None:
    """What waits for your yes, and your answer. Without a verb: `list`.

    approve, deny and watch need your own terminal and are refused to whatever a launched agent starts.
    """
    if context.invoked_subcommand is None:
        context.invoke(list_questions)


@approvals_command.command("list")
@click.option("--all", "everything", is_flag=True, help="What was settled within the last week, too.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per question, for machines.")
def list_questions(*, everything: bool = False, as_json: bool = False) -> None:
    """The calls that wait, the oldest first."""
    with _opened() as approvals:
        waiting = approvals.waiting()
        settled = approvals.recent(-1 if everything else SETTLED_COUNTED)
        watchers = approvals.watchers()
    listed = [*waiting, *(settled if everything else ())]
    if as_json:
        for question in listed:
            print_json(question_json(question))
        return
    out = console()
    if not waiting:
        out.print("nothing waits for your yes", style="dim")
    if listed:
        out.print(_table(listed))
    if not everything and settled:
        many = "" if len(settled) < SETTLED_COUNTED else " or more"
        out.print(f"{len(settled)}{many} settled within a week: `interpose approvals list --all`", style="dim")
    if waiting and not watchers:
        out.print("`interpose approvals watch` asks you about each; `approve ID` and `deny ID` answer one", style="dim")


@approvals_command.command("show")
@click.argument("question_id", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for machines.")
def show(*, question_id: str, as_json: bool) -> None:
    """Everything about one question. Secrets are masked."""
    with _opened() as approvals:
        question = approvals.find(question_id)
    if as_json:
        print_json(question_json(question))
        return
    out = console()
    out.print(question_block(question, now=time.time(), width=out.width), end="")


@approvals_command.command("approve")
@click.argument("question_id", metavar="ID")
@click.option("--digest", help=f"The digest that you were shown, or its first {DIGEST_CHARS} characters: asks no more.")
def approve(*, question_id: str, digest: str | None) -> None:
    """Let the call run. It is shown first; with the digest of what you have seen already it is not asked again."""
    require_terminal("approvals approve", why=WHY)
    with _opened() as approvals, _settled_as_exit_code():
        question = _waiting(approvals, question_id)
        _check(question, digest)
        out = console()
        out.print(question_block(question, now=time.time(), width=out.width), end="")
        if digest is None and not _confirmed():
            out.print(
                f"it still waits: `interpose approvals deny {question.id}` refuses it", style="note", markup=False
            )
            return
        approvals.answer(question.id, question.digest, yes=True, who="approvals approve")
    out.print(f"[allowed]it runs[/allowed] ({question.id})")


@approvals_command.command("deny")
@click.argument("question_id", metavar="ID")
def deny(*, question_id: str) -> None:
    """Refuse the call."""
    require_terminal("approvals deny", why=WHY)
    with _opened() as approvals, _settled_as_exit_code():
        question = _waiting(approvals, question_id)
        approvals.answer(question.id, question.digest, yes=False, who="approvals deny")
    console().print(f"[refused]refused[/refused] ({question.id})")


@approvals_command.command("watch")
def watch() -> None:
    """Ask about each call as it comes, as `interpose up` does at its own terminal. Ctrl-C ends it."""
    from interpose.cli.terminal import Prompt, Typed, may_prompt

    require_terminal("approvals watch", why=WHY)
    if not may_prompt():
        raise click.UsageError("`interpose approvals watch` does not work on this system: use approve and deny")
    out = console()
    with _opened() as approvals, suppress(KeyboardInterrupt), approvals.watching("approvals watch") as watching:
        watching.beat()
        out.print("calls that wait for your yes appear here (Ctrl-C ends)", style="dim")
        Prompt(approvals, SystemClock(), out, Typed(sys.stdin.fileno()), watching).run()


@contextmanager
def _opened() -> Iterator[SqliteApprovals]:
    approvals = SqliteApprovals(user_folders().state_db, clock=SystemClock())
    try:
        yield approvals
    finally:
        approvals.close()


@contextmanager
def _settled_as_exit_code() -> Iterator[None]:
    try:
        yield
    except (NotWaitingError, OtherDigestError) as error:
        click.echo(f"interpose: {error}", err=True)
        raise click.exceptions.Exit(NOT_WAITING) from error


def _waiting(approvals: SqliteApprovals, question_id: str) -> Question:
    question = approvals.find(question_id)
    if question.state != "waiting":
        raise NotWaitingError(question)
    return question


def _check(question: Question, digest: str | None) -> None:
    if digest is None:
        return
    if len(digest) < DIGEST_CHARS:
        raise click.UsageError(f"--digest takes {DIGEST_CHARS} characters or more, as `show` prints them")
    if not question.digest.startswith(digest):
        raise OtherDigestError(question.id, digest)


def _confirmed() -> bool:
    from interpose.cli.terminal import Typed

    Typed(sys.stdin.fileno()).forget()
    return click.confirm("Let it run?", default=None)


def _table(questions: list[Question]) -> "Table":
    from rich.table import Table
    from rich.text import Text

    now = time.time()
    table = Table(box=None, pad_edge=False)
    for heading in ("question", "agent", "tool", "what", "why", "answer"):
        table.add_column(heading, header_style="dim")
    for question in questions:
        waits = question.state == "waiting"
        answer = f"within {max(0.0, question.expires_at - now):.0f} s" if waits else _ended(question)
        cells = (
            question.id,
            question.agent or UNNAMED,
            question.tool_name,
            subject(question, SUBJECT_CHARS),
            question.reason,
        )
        table.add_row(*(Text(visible(cell)) for cell in (*cells, answer)), style="" if waits else "dim")
    return table


def _ended(question: Question) -> str:
    return f"{question.state} ({question.who})" if question.who else question.state
