"""What a middleware's `flow` does wrong, in words for its author.

Knows: what a flow may return and yield. Does not know: how a flow is run.
"""

import inspect
from collections.abc import AsyncGenerator
from typing import Any

from interpose.contracts.errors import MisuseError


def plain_answer(name: str, answer: Any) -> Any:
    """What the `flow` of the class `name` returned in place of a generator, when it is an answer.

    Raises MisuseError saying what to write for None, a coroutine and an async generator.
    """
    if isinstance(answer, AsyncGenerator) or inspect.iscoroutine(answer):
        if inspect.iscoroutine(answer):
            answer.close()  # else Python warns that nobody awaited it
        raise MisuseError(
            f"{name}.flow is an async function: write `def flow` and `yield tool_name, arguments`, which serves sync "
            "and async calls alike, or override on_execute_tool_async"
        )
    if answer is None:
        raise MisuseError(
            f"{name}.flow has no yield and returned None: `return (yield tool_name, arguments)` runs the tool, "
            "and any other value that it returns is the answer"
        )
    return answer


def no_call(name: str, yielded: Any) -> str:
    """In words, that the `flow` of the class `name` yielded something that is no call, and what to write."""
    return f"{name}.flow yielded {yielded!r:.80}: expected a name and arguments, `result = yield tool_name, arguments`"
