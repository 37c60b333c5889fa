"""`interpose tail`, `interpose journal` and `interpose explain`: what happened."""

from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from typing import Any

import click

from interpose.assembly.folders import Folders, user_folders
from interpose.cli.feed import coloured, local_zone, styled, worth_showing
from interpose.cli.output import console, counted, print_json
from interpose.contracts.errors import ConfigError
from interpose.contracts.journal import StoredRecord
from interpose.journal.codec import to_json
from interpose.journal.query import Filter, JournalReader
from interpose.journal.text import story_lines

_FILTERS = ("action", "session", "launch", "workspace", "tool", "outcome", "step", "handler")


def _filters(function: Callable[..., Any]) -> Callable[..., Any]:
    for name in reversed(_FILTERS):
        function = click.option(f"--{name}", help=f"Only lines with this {name}.")(function)
    return function


@click.command("journal")
@_filters
@click.option(
    "--last", "limit", type=click.IntRange(1), default=50, show_default=True, help="The newest so many lines."
)
@click.option("--all", "everything", is_flag=True, help="Every line, also those that only machines want.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line, for machines.")
def journal_command(*, limit: int, everything: bool, as_json: bool, **filters: str | None) -> None:
    """List what happened, oldest first."""
    with closing(_reader(user_folders())) as reader:
        newest, hidden = _newest(reader, _wanted(filters), limit, everything=everything or as_json)
    out = console()
    for stored in newest:
        _print(out, stored, as_json=as_json)
    if not newest and not as_json:
        more = f"; `--all` shows {counted(hidden, 'line')} for machines" if hidden else ""
        out.print(f"nothing is journalled that matches{more}", style="dim", markup=False)


@click.command("tail")
@_filters
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line, for machines.")
def tail_command(*, as_json: bool, **filters: str | None) -> None:
    """Follow the journal until Ctrl-C."""
    out = console()
    with closing(_reader(user_folders())) as reader, suppress(KeyboardInterrupt):
        seen = reader.last_seq()
        if as_json:
            print_json({"step": "started", "after": seen})
        while True:
            for stored in reader.follow(seen, _wanted(filters)):
                seen = stored.seq
                if as_json or worth_showing(stored.record):
                    _print(out, stored, as_json=as_json)


@click.command("explain")
@click.argument("action")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line, for machines.")
def explain_command(*, action: str, as_json: bool) -> None:
    """The whole story of one action: who saw it, what each said, what it cost, what came of it.

    ACTION is the id at the end of each line of `interpose journal`, such as a3k9x0q2mz, or the provider's id of a call.
    """
    with closing(_reader(user_folders())) as reader:
        story = reader.story(action) or _story_of_call(reader, action)
    if not story:
        raise ConfigError(f"action {action}", "is not in the journal", "`interpose journal` lists actions")
    if as_json:
        for stored in story:
            print_json(to_json(stored))
        return
    out = console()
    for line in story_lines(story, tz=local_zone()):
        out.print(coloured(line))


def _reader(folders: Folders) -> JournalReader:
    if not folders.journal_db.exists():
        raise ConfigError(
            str(folders.journal_db), "nothing has been journalled yet", "start with `interpose demo` or `up`"
        )
    return JournalReader(folders.journal_db)


def _story_of_call(reader: JournalReader, call_id: str) -> tuple[StoredRecord, ...]:
    found = reader.find(Filter(call_id=call_id), limit=1)
    return reader.story(found[0].record.action) if found else ()


def _wanted(filters: Mapping[str, str | None]) -> Filter:
    return Filter(**{name: value for name, value in filters.items() if value})  # type: ignore[arg-type]


def _newest(reader: JournalReader, wanted: Filter, limit: int, *, everything: bool) -> tuple[list[StoredRecord], int]:
    """The newest `limit` lines that people want, oldest first, and how many for machines alone were read past."""
    reach = limit if everything else limit * 8
    while True:
        found = reader.find(wanted, limit=reach)
        shown = [stored for stored in found if everything or worth_showing(stored.record)][:limit]
        if len(shown) == limit or len(found) < reach:
            return shown[::-1], len(found) - len(shown)
        reach *= 4


def _print(out: Any, stored: StoredRecord, *, as_json: bool) -> None:
    if as_json:
        print_json(to_json(stored))
        return
    out.print(styled(stored.record))
