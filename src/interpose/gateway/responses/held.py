"""One call of a streamed response on its way in: held as it came, read when it is complete.

Knows: what the events of one output item say, whether they say the same, and the events that may stand in their
place. Does not know: the order of items, verdicts.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from interpose.contracts.json import Json, JsonObject
from interpose.gateway.api import ProposedCall
from interpose.gateway.bodies import open_object, value_of
from interpose.gateway.responses.events import DELTAS, Event, call_events
from interpose.gateway.responses.items import commands_of_call, read_call, text_of_call
from interpose.wire.strictjson import join_pieces

_TEXT_MEMBERS = ("arguments", "input", "command")
_IDENTITY_MEMBERS = ("type", "id", "call_id", "name", "namespace")


@dataclass(slots=True)
class Held:
    """The events of one output item so far."""

    index: Json
    announced: Json = None
    raw: bytearray = field(default_factory=bytearray)
    numbers: list[int] = field(default_factory=list)
    _pieces: dict[Json, list[str]] = field(default_factory=dict)
    _texts: list[tuple[Json, str]] = field(default_factory=list)
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
        for member in _TEXT_MEMBERS:
            text = data.get(member)
            if isinstance(text, str) and str(data.get("type")).endswith(".done"):
                self._texts.append((part, text))

    def call(self, raw: msgspec.Raw) -> ProposedCall:
        """The call that the complete item `raw` proposes. Clients read different events, so all must say the same."""
        call = read_call(raw)
        if call.problem is None and not self._agrees(value_of(raw)):
            return ProposedCall(call.call_id, call.name, {}, "the events of the call say different things")
        return call

    def _agrees(self, item: Json) -> bool:
        if self._is_odd or not isinstance(item, dict):
            return False
        if isinstance(self.announced, dict):
            members = [name for name in _IDENTITY_MEMBERS if self.announced.get(name) is not None]
            if any(self.announced[name] != item.get(name) for name in members):
                return False
        commands = commands_of_call(item)
        final = dict(enumerate(commands)) if commands is not None else {0: text_of_call(item)}
        early = text_of_call(self.announced)
        streamed = [(part, join_pieces(pieces)) for part, pieces in self._pieces.items()]
        return all(
            final.get(part) == text for part, text in [*streamed, *self._texts, *([(0, early)] if early else [])]
        )

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
