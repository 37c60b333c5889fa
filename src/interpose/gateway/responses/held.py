"""One call of a streamed response on its way in: held as it came, read when it is complete.

Knows: what the events of one output item say, whether they say the same, and the events that may stand in their
place. Does not know: the order of items, verdicts.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from interpose.catalog.names import UNKNOWN_PREFIX
from interpose.contracts.json import Json, JsonObject
from interpose.gateway.api import ProposedCall
from interpose.gateway.bodies import open_object, value_of
from interpose.gateway.proposed import DIFFER, unknown_call
from interpose.gateway.responses.events import DELTAS, Event, call_events
from interpose.gateway.responses.items import commands_of_call, qualified, read_call, text_of_call
from interpose.wire.strictjson import join_pieces

_TEXT_MEMBERS = ("arguments", "input", "command")
_NAME_MEMBERS = ("type", "name", "namespace")
_ID_MEMBERS = ("id", "call_id")


@dataclass(slots=True)
class Held:
    """The events of one output item so far."""

    index: Json
    announced: Json = None
    raw: bytearray = field(default_factory=bytearray)
    numbers: list[int] = field(default_factory=list)
    _pieces: dict[Json, list[str]] = field(default_factory=dict)
    _texts: list[tuple[Json, str]] = field(default_factory=list)
    _names: list[Json] = field(default_factory=list)
    _is_odd: bool = False

    @property
    def call_id(self) -> str:
        """The id of the call as it was announced."""
        return str(self._announced("call_id") or self._announced("id") or "")

    @property
    def name(self) -> str:
        """The tool as it was announced."""
        return str(self._announced("name") or self._announced("type") or "")

    def add(self, raw: bytes, data: JsonObject) -> None:
        """Takes one more event of this item."""
        self.raw += raw
        number = data.get("sequence_number")
        if isinstance(number, int):
            self.numbers.append(number)
        delta = data.get("delta")
        part = data.get("command_index", 0)
        if isinstance(delta, str):
            self._pieces.setdefault(part, []).append(delta)
        elif delta is not None:
            self._is_odd = True
        if not str(data.get("type")).endswith(".done"):
            return
        self._texts += [(part, data[member]) for member in _TEXT_MEMBERS if isinstance(data.get(member), str)]
        self._names += [data["name"]] if data.get("name") else []

    def call(self, raw: msgspec.Raw) -> ProposedCall:
        """The call that the complete item `raw` proposes. Clients read different events, so all must say the same."""
        call = read_call(raw)
        item = value_of(raw)
        if call.name.startswith(UNKNOWN_PREFIX) or not isinstance(item, dict):
            return call
        if not self._is_named_by(item):
            return unknown_call(call.call_id, item.get("type"), DIFFER)
        if call.problem is None and not self._agrees(item):
            return ProposedCall(call.call_id, call.name, {}, DIFFER)
        return call

    def _is_named_by(self, item: JsonObject) -> bool:
        """Whether all events name the tool that the item names."""
        names = (item.get("name"), qualified(item.get("namespace"), item.get("name")))
        return all(name in names for name in self._names) and self._announces(item, _NAME_MEMBERS)

    def _agrees(self, item: JsonObject) -> bool:
        if self._is_odd or not self._announces(item, _ID_MEMBERS):
            return False
        commands = commands_of_call(item)
        final = dict(enumerate(commands)) if commands is not None else {0: text_of_call(item)}
        early = text_of_call(self.announced)
        streamed = [(part, join_pieces(pieces)) for part, pieces in self._pieces.items()]
        return all(
            final.get(part) == text for part, text in [*streamed, *self._texts, *([(0, early)] if early else [])]
        )

    def _announces(self, item: JsonObject, members: tuple[str, ...]) -> bool:
        """Whether each of the members that were announced is the item's."""
        said = {name: self._announced(name) for name in members}
        return all(value is None or value == item.get(name) for name, value in said.items())

    def _announced(self, name: str) -> Json:
        return self.announced.get(name) if isinstance(self.announced, dict) else None


def rewritten_events(raw: msgspec.Raw, announced: Json, index: Json) -> Iterator[Event]:
    """The events of a call with other arguments; `raw` is the whole item."""
    item = value_of(raw)
    is_streamed = item.get("type") in DELTAS
    begun = dict(announced if isinstance(announced, dict) and is_streamed else item)
    if "status" in begun:
        begun["status"] = "in_progress"
    if is_streamed:
        begun[DELTAS[item["type"]][1]] = ""
    yield "response.output_item.added", {"output_index": index, "item": begun}
    for kind, fields in call_events(item) if is_streamed else ():
        yield kind, {"item_id": item.get("id"), "output_index": index, **fields}
    yield "response.output_item.done", {"output_index": index, "item": open_object(raw)}
