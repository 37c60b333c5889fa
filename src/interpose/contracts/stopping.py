"""A StopIteration that nobody meant, as an error that names who raised it.

Knows: what Python makes of one. Does not know: who raised it.

Let through as it is it would end a generator around it, and no future takes one. Generators and coroutines make a
RuntimeError of it that names nobody (https://peps.python.org/pep-0479/); here both come to the same words.
"""

_REPLACED = frozenset({"generator raised StopIteration", "coroutine raised StopIteration"})


def stop_of(error: BaseException) -> StopIteration | None:
    """The StopIteration that an exception is, or that Python has replaced by it; None for any other."""
    if isinstance(error, StopIteration):
        return error
    cause = error.__cause__
    return cause if isinstance(cause, StopIteration) and str(error) in _REPLACED else None


def stopped(who: str | None, stop: StopIteration) -> RuntimeError:
    """What is raised in its place, with the notes that it had; the caller raises it `from` the StopIteration."""
    error = RuntimeError(f"{who} raised {stop!r}")
    for note in getattr(stop, "__notes__", ()):
        error.add_note(note)
    return error
