"""What a proposed call must have, whichever API it comes from: a name, and an id that stands for it alone.

Knows: complete calls. Does not know: any API's shape, verdicts.
"""

import re
from collections import Counter
from dataclasses import replace

from interpose.catalog.names import UNKNOWN_PREFIX, trimmed
from interpose.contracts.json import Json
from interpose.gateway.api import ProposedCall

_PLACE = re.compile(r"0|[1-9][0-9]{0,8}")

DIFFER = "the events of the call say different things"
"""What is wrong with a call that one client may read otherwise than another."""


def unknown_call(call_id: str, kind: Json, problem: str) -> ProposedCall:
    """A call of which nothing can be read but what its API calls it."""
    return ProposedCall(call_id, f"{UNKNOWN_PREFIX}{kind if isinstance(kind, str) else ''}", {}, problem)


def with_name(call: ProposedCall, kind: str) -> ProposedCall:
    """The call; one that names no tool is a call of its `kind` that cannot be read."""
    return call if trimmed(call.name) else unknown_call(call.call_id, kind, "the call names no tool")


def name_in(value: Json) -> str:
    """The tool that a member names; "" for what is no text, which programs turn into names of their own kinds."""
    return value if isinstance(value, str) else ""


def place_of(index: Json) -> int | str:
    """The place that an index names: to many programs 0, 0.0 and "0" are one."""
    match index:
        case int() if not isinstance(index, bool):
            return index
        case float() if index.is_integer():
            return int(index)
        case str() if _PLACE.fullmatch(index):
            return int(index)
        case _:
            return str(index)


class CallIds:
    """The ids of one reply's calls. Not for several threads."""

    def __init__(self) -> None:
        self._taken: Counter[str] = Counter()

    def own(self, call: ProposedCall, call_id: str | None = None) -> ProposedCall:
        """The call; one whose id stands for another call cannot be read, since a result could answer either.

        It is judged and told of under an id of ours. `call_id` is the id that the provider gave it, where that is not
        the call's; "" is none.
        """
        given = call.call_id if call_id is None else call_id
        if not given:
            return call
        self._taken[given] += 1
        if self._taken[given] == 1:
            return call
        problem = "the id of the call stands for another call of the same reply"
        return replace(call, call_id=f"{given}#{self._taken[given]}", arguments={}, problem=problem)
