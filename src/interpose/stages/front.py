"""The front door for handlers in Python: `@on("tool.call", tools="shell")` above a function.

Knows: how a function becomes a `ShapeHandler`. Does not know: who publishes it.
"""

from collections.abc import Callable, Iterable
from inspect import getdoc

from interpose.contracts.decisions import OnUnknown
from interpose.contracts.effects import Mode
from interpose.contracts.errors import MisuseError
from interpose.contracts.handlers import Shape, ShapeHandler
from interpose.contracts.stages import LlmProtocol, Stage
from interpose.stages.validation import checked


def on(
    *stages: Stage,
    id: str | None = None,  # noqa: A002 - the word that links, journal and refusals use
    tools: str | Iterable[str] | None = None,
    agents: str | Iterable[str] | None = None,
    protocols: LlmProtocol | Iterable[LlmProtocol] | None = None,
    fail_closed: bool = False,
    timeout_s: float | None = None,
    before: str | Iterable[str] = (),
    after: str | Iterable[str] = (),
    on_unknown: OnUnknown = "ask",
    mode: Mode = "enforce",
    can_change: bool = True,
) -> Callable[[Shape], ShapeHandler]:
    """Makes a `ShapeHandler` of the function below it, which is asked at `stages`; its name then stands for that.

    `id` is the function's name unless given, the description its docstring's first line; the rest is as in
    `ShapeHandler`, and one name may stand for a tuple of one. The function itself is `.run`. Raises MisuseError that
    names the field and what is possible.
    """
    if len(stages) == 1 and callable(stages[0]):
        raise MisuseError('@on needs the stages it is for: write @on("tool.call")')

    def handler(run: Shape) -> ShapeHandler:
        return checked(
            ShapeHandler(
                id=getattr(run, "__name__", type(run).__name__) if id is None else id,
                stages=stages,
                run=run,
                tools=_several(tools),
                agents=_several(agents),
                protocols=_protocols(protocols),
                fail_closed=fail_closed,
                timeout_s=timeout_s,
                before=_several(before) or (),
                after=_several(after) or (),
                on_unknown=on_unknown,
                mode=mode,
                can_change=can_change,
                description=(getdoc(run) or "").partition("\n")[0],
            )
        )

    return handler


def _several(given: str | Iterable[str] | None) -> tuple[str, ...] | None:
    if given is None or isinstance(given, str):
        return None if given is None else (given,)
    return tuple(given)


def _protocols(given: LlmProtocol | Iterable[LlmProtocol] | None) -> tuple[LlmProtocol, ...] | None:
    if given is None or isinstance(given, str):
        return None if given is None else (given,)
    return tuple(given)
