"""Records as lines for people: one record as one line, one action as a story.

Knows: which words say what happened, and which part of a line is what, so that a screen can colour it.
Does not know: colours, terminals, widths of screens.

Nothing in a record can move a cursor or forge a line: what is not printable is shown as its escape.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any, Literal, TypeAlias

from interpose.contracts.journal import Record, StoredRecord

Role: TypeAlias = Literal["time", "good", "bad", "warn", "name", "dim", "plain"]
"""What a piece of a line is: when, how it ended, who, what is of less weight, and the rest."""

SUBJECT_CHARS = 100
"""How much of a command, path or prompt stands on a line."""

_TOLD_FIRST = ("command", "path", "file_path", "url", "query", "pattern", "prompt", "description")
_EFFECT_TEXTS = ("severity", "path", "tool_name", "key", "reason", "message")
_ENDINGS: Mapping[str, Role] = {
    "allowed": "good",
    "refused": "bad",
    "patched": "warn",
    "off": "warn",
    "failed": "bad",
    "gap": "bad",
    "problem": "bad",
    "cancel": "bad",
    "unknown": "warn",
    "patch": "warn",
    "not judged yet": "warn",
    "unjudged": "warn",
    "switched": "warn",
}


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a line that is shown in one manner."""

    text: str
    role: Role = "plain"


Line: TypeAlias = tuple[Piece, ...]


def plain(line: Line) -> str:
    """The line without any manner."""
    return "".join(piece.text for piece in line).rstrip()


def record_line(record: Record, *, tz: tzinfo = UTC) -> Line:
    """One record as one line: when, what happened, where, who, on what, said by whom and why, how long it took."""
    word = _word(record)
    pieces = [
        Piece(_time(record.at, tz) + "  ", "time"),
        Piece(f"{word:<14}  ", _ENDINGS.get(word, "plain")),
        Piece(f"{_safe(record.stage):<11}  ", "dim"),
    ]
    told = [Piece(_who(record), "dim"), *_said(record), Piece(_duration(record), "dim")]
    if record.step == "verdict" or word == "unjudged":
        told.append(Piece(_safe(record.action), "dim"))
    pieces += _joined(told)
    return tuple(pieces)


def story_lines(story: Sequence[StoredRecord], *, tz: tzinfo = UTC) -> tuple[Line, ...]:
    """The whole story of one action: what it was, who saw it, what each said and did, how long it took, how it ended.

    `story` is what `JournalReader.story` gives; nothing at all makes no line.
    """
    if not story:
        return ()

    records = [stored.record for stored in story]
    return (*_heading(records), (), *_events(records, tz), (), *_ending(records))


def subject(record: Record) -> str:
    """What the record is about, in at most 100 printable characters: a command, path, prompt or request; "" if none."""
    data = record.data
    if record.step == "request":
        words = (data.get("method"), data.get("path"), data.get("status"))
        return _cut(" ".join(str(word) for word in words if word is not None))
    asked = data.get("input")
    if isinstance(asked, Mapping) and asked:
        told = next((asked[name] for name in _TOLD_FIRST if isinstance(asked.get(name), str)), None)
        return _cut(told if told is not None else _json(asked))
    if isinstance(data.get("prompt"), str):
        return _cut(f"“{data['prompt']}”")
    if isinstance(data.get("output"), str):
        return f"{data.get('chars', len(data['output']))} characters"
    return ""


def _heading(records: Sequence[Record]) -> Iterator[Line]:
    def first(name: str) -> str:
        return next((_safe(str(getattr(record, name))) for record in records if getattr(record, name)), "")

    tool, wire_name = first("tool"), first("wire_name")
    asked = next((found for record in records if (found := subject(record))), "")
    facts = {
        "what": f"{tool} ({wire_name})" if wire_name and wire_name != tool else tool or first("stage"),
        "asked": asked,
        "agent": first("agent"),
        "seen at": first("mount"),
        "workspace": first("workspace"),
        "session": first("session"),
        "launch": first("launch"),
        "call": first("call_id"),
    }
    yield (Piece("action     ", "dim"), Piece(first("action"), "name"))
    for name, value in facts.items():
        if value:
            yield (Piece(f"{name:<11}", "dim"), Piece(value))


def _events(records: Sequence[Record], tz: tzinfo) -> Iterator[Line]:
    stage = None
    for record in records:
        if record.stage != stage:
            stage = record.stage
            yield (Piece(f"at {_safe(stage)}" if stage else "around it", "name"),)
        word = _word(record)
        head = [Piece(f"  {_time(record.at, tz, exact=True)}  ", "time"), Piece(word, _ENDINGS.get(word, "plain"))]
        said = [Piece(_duration(record), "dim"), *_source(record)]
        yield (*head, *_joined([Piece(""), *_reasoned(record), *said]))
        for detail in _details(record.data):
            yield (Piece(" " * 16 + detail, "dim"),)


def _ending(records: Sequence[Record]) -> Iterator[Line]:
    verdicts = [record for record in records if record.step == "verdict"]
    # A refusal is what a person asks about, even when something was judged after it.
    verdict = next((record for record in verdicts if record.outcome == "refused"), verdicts[-1] if verdicts else None)
    ending = [Piece("nothing was judged", "warn")]
    if verdict is not None:
        word = _word(verdict)
        ending = _joined([Piece(word, _ENDINGS.get(word, "plain")), *_reasoned(verdict)])
    yield (Piece("came of it  ", "dim"), *ending)
    for record in records:
        if record.step not in ("applied", "failed"):
            continue
        is_told = verdict is not None and record.reason == verdict.reason
        then = (
            [Piece(_word(record)), Piece(_safe(record.outcome))]
            if is_told
            else [Piece(_word(record)), *_reasoned(record)]
        )
        yield (Piece("then        ", "dim"), *_joined([piece for piece in then if piece.text]))


def _word(record: Record) -> str:
    match record.step:
        case "verdict":
            return _safe(record.outcome) or "judged"
        case "answer":
            return _safe(record.answer) or "answer"
        case "problem" if record.outcome:
            return _safe(record.outcome)
        case "skipped" if record.outcome == "unjudged":
            return "unjudged"
        case step:
            return step.replace("_", " ")


def _who(record: Record) -> str:
    who = record.agent or record.mount
    return _safe(f"{who}/{record.launch}" if who and record.launch else who or record.launch)


def _said(record: Record) -> Iterator[Piece]:
    yield Piece(" ".join(word for word in (_safe(record.tool or record.wire_name), subject(record)) if word))
    yield from _reasoned(record)
    effects = [] if record.reason else [told for told in _details(record.data) if record.step == "answer"]
    if effects:
        yield Piece(effects[0] + (f" (and {len(effects) - 1} more)" if effects[1:] else ""))


def _reasoned(record: Record) -> Iterator[Piece]:
    if record.handler:
        yield Piece(
            "by " + _safe(record.handler) + (" (observed only)" if record.outcome == "observed" else ""), "name"
        )
    if record.outcome and record.step not in ("verdict", "answer", "problem") and record.outcome != _word(record):
        yield Piece(_safe(record.outcome))
    if record.reason:
        yield Piece(_safe(record.reason))


def _source(record: Record) -> Iterator[Piece]:
    source = ", ".join(_safe(word) for word in (record.kind, record.phase) if word)
    if source:
        yield Piece(f"({source})", "dim")


def _details(data: Mapping[str, Any]) -> Iterator[str]:
    for name in ("effects", "annotations", "reminders"):
        values = data.get(name)
        for value in values if isinstance(values, list | tuple) else ():
            if isinstance(value, Mapping):
                yield _safe(f"{value.get('kind') or name.removesuffix('s')}: {_texts(value)}")
    changes = data.get("changes")
    for name, sides in changes.items() if isinstance(changes, Mapping) else ():
        if isinstance(sides, Mapping):
            yield _safe(f"{name}: {_short(sides.get('before'))} → {_short(sides.get('after'))}")
    for name in ("problem", "continuation", "tool_choice"):
        value = data.get(name)
        if value:
            yield _safe(f"{name.replace('_', ' ')}: {value if isinstance(value, str) else _json(value)}")


def _texts(value: Mapping[str, Any]) -> str:
    return ", ".join(str(value[name]) for name in _EFFECT_TEXTS if value.get(name)) or "-"


def _short(value: Any) -> str:
    """A value before or after a change; a dash where there was none."""
    if value is None:
        return "-"
    return _cut(value if isinstance(value, str) else _json(value))


def _joined(pieces: Sequence[Piece]) -> list[Piece]:
    joined: list[Piece] = []
    for piece in pieces:
        if piece.text or not joined:
            joined += [Piece("  "), piece] if joined else [piece]
    return joined


def _time(at: float, tz: tzinfo, *, exact: bool = False) -> str:
    try:
        moment = datetime.fromtimestamp(at, tz)
    except (OverflowError, OSError, ValueError):
        return "--:--:--.---" if exact else "--:--:--"
    return moment.strftime("%H:%M:%S") + (f".{moment.microsecond // 1000:03}" if exact else "")


def _duration(record: Record) -> str:
    return f"{record.duration_ms:.1f} ms" if record.duration_ms else ""


def _cut(text: str) -> str:
    safe = _safe(text[: 4 * SUBJECT_CHARS])
    return safe if len(safe) <= SUBJECT_CHARS else safe[: SUBJECT_CHARS - 1] + "…"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _safe(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _escape(character) for character in text)


def _escape(character: str) -> str:
    match character:
        case "\n":
            return "⏎"
        case "\t":
            return " "
        case _:
            return character.encode("unicode_escape").decode()
