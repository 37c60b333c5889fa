"""What the views of all APIs' requests do alike.

Knows: a body with a history in it, whose end the model has not seen yet. Does not know: how an API writes either.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import msgspec

from interpose.contracts.json import Json, JsonObject
from interpose.gateway.api import Edits, NewResult, NewTurn, ResultEdit, Resumed, Rewritten
from interpose.gateway.bodies import RawObject, content_digest, is_same, tools_of, value_of
from interpose.wire.jsonbytes import write_json

UNKNOWN_CALL = "the call that this result answers is not in the history"


def first_unseen(of_model: Sequence[bool], heard: Sequence[bool]) -> int:
    """Where what is new in a history begins: behind the last entry of the model that was answered.

    `heard` are the entries of the person and of tools. What the model, or a client in its name, says behind the last
    of them makes that no older: a client may begin the model's next reply for it.
    """
    last = max((at for at, is_heard in enumerate(heard) if is_heard), default=0)
    return max((at + 1 for at in range(last) if of_model[at]), default=0)


class ResultEdits:
    """The edits of a history's results, asked for in their order: equal ones of one call's id are told apart by it."""

    def __init__(self, edits: Edits) -> None:
        self._edits = edits
        self._ids = edits.edited_calls
        self._seen: Counter[tuple[str, str]] = Counter()

    def __bool__(self) -> bool:
        """Whether any result is edited."""
        return bool(self._ids)

    def next(self, call_id: str, content: Json) -> ResultEdit | None:
        """The edit of the next result, which has this content; None where it stays as it is."""
        if call_id not in self._ids:
            return None
        key = (call_id, content_digest(content))
        edit = self._edits.result_edit(*key, self._seen[key])
        self._seen[key] += 1
        return None if edit is None or edit.is_empty else edit


class ReadRequest(ABC):
    """The port `RequestView`, of a `history` that the model has seen up to `new_from`.

    What a subclass needs to find the newest prompt and the new results must be there before this is initialised.
    """

    def __init__(self, body: bytes, top: RawObject, history: list[bytes], new_from: int) -> None:
        self.body = body
        self._top = top
        self._history = history
        self._new_from = new_from
        self.model, self.is_streamed = self._model_and_form()
        self.length = len(history)
        newest = self._newest_prompt()
        self.turn = newest if newest and newest.position >= new_from else None
        self.turn_key = f"{newest.position}:{newest.digest}" if newest else None
        self.results: tuple[NewResult, ...] = tuple(self._new_results())

    @property
    def session(self) -> str | None:
        """As the port says: none."""
        return None

    @property
    def hint(self) -> str:
        """As the port says: OpenAI's APIs have a key for the cache, which programs share among conversations."""
        key = value_of(self._top.get("prompt_cache_key"))
        return key if isinstance(key, str) else ""

    @property
    def follows(self) -> tuple[str, ...]:
        """As the port says: none, where clients keep the history."""
        return ()

    @property
    def is_stored(self) -> bool:
        """As the port says: clients keep it."""
        return False

    @cached_property
    def tools(self) -> list[Json]:
        """As the port says."""
        return tools_of(self._top.get("tools"))

    def _model_and_form(self) -> tuple[str | None, bool]:
        """What the body says of the model's name, and whether it asks for a stream."""
        model = value_of(self._top.get("model"))
        return model if isinstance(model, str) else None, value_of(self._top.get("stream")) is True

    def unsent(self, edits: Edits, reply: JsonObject) -> Mapping[str, Resumed]:  # noqa: ARG002 - the port's
        """As the port says: nothing, where clients keep the history."""
        return {}

    def _edited_history(self, edits: Edits) -> list[bytes]:
        """The history as the model knows it; the client's own list in a session in which nothing was edited."""
        if not (edits.edited_calls or edits.edited_positions or edits.restores):
            return self._history
        return self._model_history(edits)

    @abstractmethod
    def _model_history(self, edits: Edits) -> list[bytes]:
        """The history as the model knows it; the same objects where that is what the client has."""

    @abstractmethod
    def _newest_prompt(self) -> NewTurn | None:
        """The person's newest message, seen or not."""

    def nth(self, result: NewResult) -> int:
        """As the port says."""
        before = next(at for at, one in enumerate(self.results) if one is result)
        told = [one for position in range(self._new_from) for one in self._told(position)]
        same = sum(one[0] == result.call_id and content_digest(one[1]) == result.digest for one in told)
        new = self.results[:before]
        return same + sum((one.call_id, one.digest) == (result.call_id, result.digest) for one in new)

    @abstractmethod
    def _new_results(self) -> Iterator[NewResult]:
        """The tool results that the model has not seen."""

    @abstractmethod
    def _told(self, position: int) -> Iterator[tuple[str, Json]]:
        """The results that stand there: the id of the call, and the content that their digest is made of."""

    def _with_history(self, key: str, history: list[bytes], choice: Mapping[str, msgspec.Raw]) -> Rewritten:
        """The body with this history under its key, and the members that say which tool to use; the client's own
        bytes when neither is new.
        """
        if not choice and is_same(history, self._history):
            return Rewritten(self.body)
        entries = msgspec.Raw(write_json([msgspec.Raw(entry) for entry in history]))
        return Rewritten(write_json({**self._top, key: entries, **choice}), choice_applied=bool(choice))


def let_go(choice: msgspec.Raw) -> msgspec.Raw:
    """An OpenAI tool choice without its force: a call that was refused must not be asked for again."""
    match value_of(choice):
        case {"type": "allowed_tools", "allowed_tools": {"mode": "required", **inner}, **others}:
            freed: Json = {"type": "allowed_tools", **others, "allowed_tools": {**inner, "mode": "auto"}}
        case {"type": "allowed_tools", "mode": "required", **others}:
            freed = {"type": "allowed_tools", **others, "mode": "auto"}
        case "none" | "auto" | None | {"type": "allowed_tools"}:
            return choice
        case _:
            freed = "auto"
    return msgspec.Raw(write_json(freed))
