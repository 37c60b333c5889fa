"""The bytes of a hook file to plain values that remember where they stood.

Knows: YAML (the JSON subset of YAML 1.2: `on`, `yes` and `no` are texts), its traps and their limits.
Does not know: what a hook is.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import yaml
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
    StreamStartEvent,
)

from interpose.contracts.json import Json
from interpose.userhooks.issues import Issue, Place, Position, Step, choices, shown
from interpose.userhooks.syntax import DEPTH_LIMIT, TOO_DEEP, TOO_DEEP_WAY_OUT, BrokenFileError, decode, syntax_issue

VALUES_LIMIT: Final = 20_000
"""How many values a file may hold once its aliases are followed."""

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INT = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS: Final[Mapping[str, bool | None]] = {
    **dict.fromkeys(("null", "Null", "NULL", "~", "")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_TEXT_TAGS: Final = ("!", "tag:yaml.org,2002:str")
_TAGS: Final = (None, "!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")


@dataclass(frozen=True, slots=True)
class Entry:
    """One member of the list of hooks.

    Attributes:
        index: its place in the list, from 0.
        value: its plain value.
        start: the place of the entry in its file.
        values: where each value of the file stands, by its place.
        keys: where each key of the file stands, by the place of its value.
        faults: what is wrong with its YAML; an entry with faults is not used.
    """

    index: int
    value: Json
    start: Place
    values: Mapping[Place, Position]
    keys: Mapping[Place, Position]
    faults: tuple[Issue, ...] = ()

    def position(self, place: Place, *, on_key: bool = False) -> Position:
        """Where `place` of this entry stands, or the nearest thing around it."""
        full = self.start + place
        if on_key and full in self.keys:
            return self.keys[full]
        while full not in self.values:
            full = full[:-1]
        return self.values[full]


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """The entries of a file and what is wrong outside of them. `broken` means that nothing can be said of the rest."""

    entries: tuple[Entry, ...] = ()
    issues: tuple[Issue, ...] = ()
    broken: bool = False


def parse_hooks(data: bytes, path: str) -> ParsedFile:
    """Reads the bytes of one hook file; never raises for what is in them. `path` is the name that issues give.

    A pure function. Time and memory are bounded by the limits above, whatever the bytes.
    """
    try:
        text, notes = decode(data, path)
        root, tree = _build(text, path)
        entries, issues, broken = _entries(root, tree, path)
    except BrokenFileError as error:
        return ParsedFile(issues=(error.issue,), broken=True)
    return ParsedFile(entries, (*notes, *issues), broken)


@dataclass(frozen=True, slots=True)
class _Anchored:
    value: Json
    size: int
    faulty: bool


@dataclass(slots=True)
class _Tree:
    """What building a file has gathered."""

    path: str
    values: dict[Place, Position] = field(default_factory=dict)
    keys: dict[Place, Position] = field(default_factory=dict)
    faults: list[tuple[Place, Issue]] = field(default_factory=list)
    anchors: dict[str, "_Anchored"] = field(default_factory=dict)
    open_anchors: set[str] = field(default_factory=set)
    count: int = 0

    def fault(self, place: Place, event: Event, text: str, way_out: str = "") -> None:
        """Something wrong that leaves the rest of the file readable."""
        self.faults.append((place, Issue(self.path, _position(event), text, way_out)))

    def broken(self, event: Event, text: str, way_out: str = "") -> BrokenFileError:
        """Something wrong after which nothing can be said."""
        return BrokenFileError(Issue(self.path, _position(event), text, way_out))


def _build(text: str, path: str) -> tuple[Json, _Tree]:
    tree = _Tree(path)
    root: Json = None
    documents = 0
    try:
        events: Iterator[Event] = yaml.parse(text, Loader=_LOADER)
        for event in events:
            match event:
                case StreamStartEvent() | StreamEndEvent() | DocumentEndEvent():
                    continue
                case DocumentStartEvent():
                    documents += 1
                    if documents > 1:
                        raise tree.broken(event, "a second document starts here", "take the line '---' out")
                case _:
                    root = _value(event, events, (), tree)
    except yaml.YAMLError as error:
        raise BrokenFileError(syntax_issue(error, text, path)) from error
    return root, tree


def _value(event: Event, events: Iterator[Event], place: Place, tree: _Tree) -> Json:
    """The value that `event` starts; takes the rest of it from `events`."""
    tree.values[place] = _position(event)
    tree.count += 1
    if isinstance(event, AliasEvent):
        return _aliased(event, place, tree)

    anchor: str | None = getattr(event, "anchor", None)
    before, faults_before = tree.count, len(tree.faults)
    if anchor is not None:
        tree.open_anchors.add(anchor)
    match event:
        case ScalarEvent():
            value = _scalar(event, place, tree)
        case SequenceStartEvent():
            value = _sequence(event, events, place, tree)
        case MappingStartEvent():
            value = _mapping(event, events, place, tree)
        case _:
            raise tree.broken(event, "the file ends in the middle of a value")
    _limit(event, tree)
    if anchor is not None:
        tree.open_anchors.discard(anchor)
        tree.anchors[anchor] = _Anchored(value, tree.count - before + 1, len(tree.faults) > faults_before)
    return value


def _aliased(event: AliasEvent, place: Place, tree: _Tree) -> Json:
    if event.anchor in tree.open_anchors:
        raise tree.broken(event, f"the alias *{event.anchor} stands inside what it names", "write the value out")
    if event.anchor not in tree.anchors:
        raise tree.broken(event, f"the alias *{event.anchor} names nothing", "write '&NAME' before, or use quotes")
    anchored = tree.anchors[event.anchor]
    tree.count += anchored.size
    _limit(event, tree)
    if anchored.faulty:
        tree.fault(place, event, f"the alias *{event.anchor} names something that is wrong itself")
    return anchored.value


def _limit(event: Event, tree: _Tree) -> None:
    if tree.count > VALUES_LIMIT:
        raise tree.broken(
            event, f"the file holds more than {VALUES_LIMIT:,} values once aliases are followed", "write them out"
        )


def _scalar(event: ScalarEvent, place: Place, tree: _Tree) -> Json:
    text: str = event.value
    if event.tag is not None:
        if event.tag not in _TEXT_TAGS:
            tree.fault(place, event, f"the tag {event.tag} is not known here", "write the value without it")
        return text
    if not event.implicit[0]:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text) if len(text) < 100 else text
    return float(text) if _FLOAT.fullmatch(text) else text


def _sequence(event: SequenceStartEvent, events: Iterator[Event], place: Place, tree: _Tree) -> Json:
    _check_collection(event, place, tree)
    items: list[Json] = []
    for inner in events:
        if isinstance(inner, SequenceEndEvent):
            break
        items.append(_value(inner, events, (*place, len(items)), tree))
    return items


def _mapping(event: MappingStartEvent, events: Iterator[Event], place: Place, tree: _Tree) -> Json:
    _check_collection(event, place, tree)
    items: dict[str, Json] = {}
    for inner in events:
        if isinstance(inner, MappingEndEvent):
            break
        if not isinstance(inner, ScalarEvent):
            raise tree.broken(inner, "a key is a list, a mapping or an alias", "keys are plain words")
        key: str = inner.value
        position = _position(inner)
        if key in items:
            first = tree.keys[(*place, key)].line
            tree.fault(place, inner, f"the key {key!r} stands here a second time", f"the first is on line {first}")
        if key == "<<":
            tree.fault(place, inner, "merge keys ('<<') are not read", "write the keys out")
        tree.keys[(*place, key)] = position
        items[key] = _value(next(events), events, (*place, key), tree)
    return items


def _check_collection(event: SequenceStartEvent | MappingStartEvent, place: Place, tree: _Tree) -> None:
    if len(place) >= DEPTH_LIMIT:
        raise tree.broken(event, TOO_DEEP, TOO_DEEP_WAY_OUT)
    if event.tag not in _TAGS:
        tree.fault(place, event, f"the tag {event.tag} is not known here", "write the value without it")


def _entries(root: Json, tree: _Tree, path: str) -> tuple[tuple[Entry, ...], tuple[Issue, ...], bool]:
    """The hooks of the root, what is wrong around them, and whether they could not be found at all."""
    around: list[Issue] = []
    start: Place = ()
    items = root
    if isinstance(root, dict):
        start = ("hooks",)
        around += [
            Issue(path, tree.keys[key,], f"unknown key {key!r}", choices(key, ("hooks",)))
            for key in root
            if key != "hooks"
        ]
        if "hooks" not in root:
            looks_like_hook = bool({"on", "kind"} & set(root))
            way_out = "put '- ' before its first key" if looks_like_hook else "write 'hooks:' and a list"
            missing = Issue(path, tree.values[()], "the file is a mapping without the key 'hooks'", way_out)
            return (), (missing,) if looks_like_hook else (missing, *around), True
        items = root["hooks"]
    if items is None:
        items = []
    if not isinstance(items, list):
        where = "hooks" if start else "the file"
        text = f"{where} is {shown(items)}, expected a list of hooks"
        issue = Issue(path, tree.values[start], text, "start each hook with '- '")
        return (), (issue, *around), True
    around += [issue for place, issue in tree.faults if len(place) <= len(start)]
    broken = any(len(place) <= len(start) for place, _ in tree.faults)
    if broken:
        return (), tuple(around), True
    faults: dict[Step, list[Issue]] = {}
    for place, issue in tree.faults:
        if place[: len(start)] == start:
            faults.setdefault(place[len(start)], []).append(issue)
    entries = tuple(
        Entry(index, item, (*start, index), tree.values, tree.keys, tuple(faults.get(index, ())))
        for index, item in enumerate(items)
    )
    return entries, tuple(around), False


def _position(event: Event) -> Position:
    mark = event.start_mark
    return Position(mark.line + 1, mark.column + 1) if mark is not None else Position()
