"""The calls that one choice of a chat stream is proposing, put together from their deltas.

Knows: how deltas of calls belong together, and how a choice looks whose calls were refused or changed.
Does not know: events, order of choices.
"""

from dataclasses import dataclass, field
from typing import Any

from interpose.contracts.json import Json, JsonObject
from interpose.contracts.verdict import Verdict
from interpose.gateway.api import ProposedCall, RefusedCall
from interpose.gateway.chat.calls import (
    LEGACY,
    entries_of,
    history_entry,
    legacy_with_arguments,
    read_call,
    read_legacy_call,
    with_arguments,
)
from interpose.gateway.marks import GAP, told
from interpose.gateway.proposed import DIFFER, CallIds, place_of, unknown_call
from interpose.gateway.wording import refused_line
from interpose.wire.strictjson import join_pieces

_PIECED = {"function": ("arguments", "name"), "custom": ("input", "name")}


@dataclass(slots=True)
class PartialCall:
    """One call on its way in: members as they came first, its text in pieces.

    `problem` says why its deltas are no call at all.
    """

    index: Json
    is_legacy: bool
    entry: dict[str, Any] = field(default_factory=dict)
    pieces: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    problem: str | None = None

    @property
    def is_ambiguous(self) -> bool:
        """Whether clients may read different tools: some take the first name that comes, some join them all."""
        return len(self.names) > 1

    def add(self, delta: JsonObject) -> None:
        """Takes one delta of this call. Members that come later join the earlier ones; texts are pieces."""
        for key, value in delta.items():
            if key in _PIECED and value is not None:
                self._add_body(key, value)
            elif value is not None and (key != "id" or not self.entry.get("id")):
                self.entry[key] = value

    def complete(self) -> dict[str, Any]:
        """The whole call, as a reply that is not streamed would have it."""
        entry = dict(self.entry)
        for key, (text_key, name_key) in _PIECED.items():
            if isinstance(entry.get(key), dict):
                given = entry[key].get(text_key)
                text = given if given is not None and not isinstance(given, str) else join_pieces(self.pieces)
                named = {name_key: _one_name(self.names)} if self.names else {}
                entry[key] = {**entry[key], text_key: text, **named}
        return entry

    def proposed(self) -> ProposedCall:
        """What is to be judged."""
        entry = self.complete()
        call = read_legacy_call(entry["function"]) if self.is_legacy else read_call(entry)
        return call if self.problem is None else unknown_call(call.call_id, entry.get("type"), self.problem)

    def named_by(self, ids: CallIds) -> ProposedCall:
        """As `proposed`, with an id that no other call of its choice has; the older form has none."""
        return ids.own(self.proposed(), "" if self.is_legacy else None)

    def refused(self, call: ProposedCall, line: str, place: int) -> RefusedCall:
        """The call as it was refused, `place` among those of its message; the older form has no id to answer."""
        return RefusedCall(call, line, None if self.is_legacy else history_entry(self.complete(), call, place))

    def _add_body(self, key: str, body: Json) -> None:
        if not isinstance(body, dict):
            self.problem = f"the {key} of the call is no object"
            return
        text_key, name_key = _PIECED[key]
        known = self.entry.setdefault(key, {})
        for name, value in body.items():
            if name == text_key and isinstance(value, str):
                self.pieces.append(value)
            elif name == name_key and isinstance(value, str):
                self.names += [value] if value else []
                known.setdefault(name, value)
            elif value is not None:
                if name == text_key and name in known:
                    self.problem = DIFFER
                known[name] = value
        is_text_mixed = known.get(text_key) is not None and any(self.pieces)
        if is_text_mixed or (self.names and not isinstance(known.get(name_key), str)):
            self.problem = DIFFER


@dataclass(slots=True)
class Choice:
    """What one choice of the stream has said so far about calls."""

    calls: list[PartialCall] = field(default_factory=list)
    raw: bytearray = field(default_factory=bytearray)
    frame: JsonObject | None = None
    role: Json = None
    has_text: bool = False
    is_late: bool = False
    has_late_piece: bool = False
    has_late_text: bool = False
    """Whether a text came when the choice was finished or a call had been refused."""
    stop_reason: Json = None
    closed: set[Json] = field(default_factory=set)
    ids: CallIds = field(default_factory=CallIds)
    released: int = 0
    refused: int = 0
    _has_guessed: bool = False
    """Whether a call was told from another by more than its place, as not all clients do."""

    @property
    def goes_on_behind(self) -> bool:
        """Whether anything came behind what was the end."""
        return self.has_late_text or self.has_late_piece

    def add(self, delta: JsonObject) -> None:
        """Takes the calls of one delta; what would change a call that has been judged is left out."""
        self.role = self.role or delta.get("role")
        for entry in entries_of(delta.get("tool_calls")):
            self._add_entry(entry)
        if not isinstance(delta.get(LEGACY), dict):
            return
        if LEGACY in self.closed:
            self.has_late_piece = True
            return
        self._slot(LEGACY, is_legacy=True).add({"function": delta[LEGACY]})

    def spoke(self) -> None:
        """Notes a text."""
        self.has_text = True
        self.has_late_text = self.has_late_text or self.is_late or self.refused > 0

    def is_ambiguous(self, calls: list[PartialCall]) -> bool:
        """Whether clients may put these calls together otherwise than they are judged."""
        return any(call.is_ambiguous for call in calls) or (self._has_guessed and len(calls) > 1)

    def take(self) -> list[PartialCall]:
        """The calls that are held, which are then nobody's but the caller's."""
        calls, self.calls = self.calls, []
        self.closed.update(call.index for call in calls)
        return calls

    def _add_entry(self, entry: JsonObject) -> None:
        given = entry.get("index")
        index = self._guessed_index(entry) if given is None else place_of(given)
        slot = next((call for call in reversed(self.calls) if call.index == index), None)
        is_another = slot is not None and _is_another(slot, entry)
        self._has_guessed = self._has_guessed or is_another or index != given or not isinstance(given, int)
        if is_another:
            slot = PartialCall(index, is_legacy=False)
            self.calls.append(slot)
        if slot is None and index in self.closed:
            self.has_late_piece = True
            return
        (slot or self._slot(index, is_legacy=False)).add(entry)

    def _guessed_index(self, entry: JsonObject) -> Json:
        """Servers that leave the index out start a call with its id."""
        if not self.calls:
            return 0
        last = self.calls[-1]
        begins = bool(entry.get("id")) and entry.get("id") != last.entry.get("id")
        return len(self.calls) if begins else last.index

    def _slot(self, index: Json, *, is_legacy: bool) -> PartialCall:
        for call in self.calls:
            if call.index == index:
                return call
        self.calls.append(PartialCall(index, is_legacy))
        return self.calls[-1]


def refused_calls(
    choice: Choice, calls: list[PartialCall], proposed: list[ProposedCall], verdicts: list[Verdict]
) -> list[RefusedCall]:
    """Those of the calls that were refused, with the lines that are told of them."""
    before = choice.released + choice.refused
    return [
        call.refused(one, refused_line(one.name, verdict), before + place)
        for place, (call, one, verdict) in enumerate(zip(calls, proposed, verdicts, strict=True))
        if not verdict.allowed
    ]


def rewritten_deltas(
    choice: Choice, calls: list[PartialCall], verdicts: list[Verdict], lines: list[str]
) -> tuple[list[dict[str, Any]], int]:
    """The deltas that stand in the place of the held ones, and how many calls are left in them.

    The lines of those refused are told as content, ahead of the calls that are left, which are counted anew from where
    they were.
    """
    deltas: list[dict[str, Any]] = []
    if lines:
        deltas.append({"content": told(GAP.join(lines), has_text=choice.has_text)})
        choice.has_text = True
    left = 0
    for call, verdict in zip(calls, verdicts, strict=True):
        if verdict.allowed:
            deltas.append(_delta(call, verdict.arguments, choice.released + left))
            left += 1
    if deltas and choice.role is not None:
        deltas[0] = {"role": choice.role, **deltas[0]}
    return deltas, left


def _delta(call: PartialCall, arguments: JsonObject | None, index: int) -> dict[str, Any]:
    entry = call.complete()
    if call.is_legacy:
        function = entry["function"]
        return {LEGACY: function if arguments is None else legacy_with_arguments(function, arguments)}
    if arguments is not None:
        entry = with_arguments(entry, arguments)
    return {"tool_calls": [{**entry, "index": index}]}


def _one_name(pieces: list[str]) -> str:
    """The name that stands in one delta or several: some servers repeat it, some cut it."""
    return pieces[0] if len(set(pieces)) == 1 else join_pieces(pieces)


def _is_another(slot: PartialCall, entry: JsonObject) -> bool:
    """Whether a delta begins a second call under an index that is taken, as some servers write parallel calls."""
    call_id = entry.get("id")
    return bool(call_id) and bool(slot.entry.get("id")) and call_id != slot.entry["id"]
