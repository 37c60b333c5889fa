"""The steps of a concern that asks and acts, driven in the thread of a call or on a loop.

Knows: that steps yield what they want and get what came of it. Does not know: what is asked, or whom.
"""

from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeVar

from interpose.contracts.tools import Arguments, CallNext, CallNextAsync

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Act:
    """Wanted: the rest of the list, with these."""

    tool_name: str
    arguments: Arguments


def driven(steps: Generator[Any, Any, R], ask: Callable[[Any], Any], call_next: CallNext | None = None) -> R:
    """What the steps return; `ask` answers whatever else they yield. Steps that only ask need no `call_next`.

    What asking or acting raises is raised at the yield: the steps deny, or raise it on.
    """
    try:
        wanted = next(steps)
        while True:
            try:
                if isinstance(wanted, Act):
                    assert call_next is not None  # noqa: S101 - asking alone does not act
                    answer = call_next(wanted.tool_name, wanted.arguments)
                else:
                    answer = ask(wanted)
            except BaseException as error:  # noqa: BLE001 - handed to the steps, which deny or raise it on
                wanted = steps.throw(error)
            else:
                wanted = steps.send(answer)
    except StopIteration as stop:
        returned: R = stop.value
        return returned


async def driven_async(
    steps: Generator[Any, Any, R], ask: Callable[[Any], Awaitable[Any]], call_next: CallNextAsync | None = None
) -> R:
    """As `driven`, awaited."""
    try:
        wanted = next(steps)
        while True:
            try:
                if isinstance(wanted, Act):
                    assert call_next is not None  # noqa: S101 - asking alone does not act
                    answer = await call_next(wanted.tool_name, wanted.arguments)
                else:
                    answer = await ask(wanted)
            except BaseException as error:  # noqa: BLE001 - handed to the steps, which deny or raise it on
                wanted = steps.throw(error)
            else:
                wanted = steps.send(answer)
    except StopIteration as stop:
        returned: R = stop.value
        return returned
