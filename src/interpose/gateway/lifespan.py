"""ASGI's lifespan events: an application is told before its first request, and behind its last one.

Knows: the events and their answers. Does not know: requests.
"""

import asyncio

from interpose.contracts.errors import MisuseError
from interpose.gateway.asgi import App, Message, Scope


class Lifespan:
    """The life of one application; start it once, and end it."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._events: asyncio.Queue[Message] = asyncio.Queue()
        self._answers: asyncio.Queue[Message] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Raises MisuseError when the application does not start, or what it raises."""
        scope: Scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}}
        self._task = asyncio.ensure_future(self._run(scope))
        answer = await self._told("lifespan.startup")
        if answer is None or answer["type"] != "lifespan.startup.complete":
            if self._task.done():
                await self._task  # which tells what went wrong
            self._task.cancel()
            raise MisuseError(f"the application did not start: {(answer or {}).get('message', 'it says nothing')}")

    async def end(self) -> None:
        """Raises what the application raises."""
        if self._task is not None and not self._task.done():
            await self._told("lifespan.shutdown")
            await self._task

    async def _run(self, scope: Scope) -> None:
        await self._app(scope, self._events.get, self._answers.put)

    async def _told(self, event: str) -> Message | None:
        """The application's answer to an event; None when it ended instead."""
        assert self._task is not None  # noqa: S101 - it was started
        self._events.put_nowait({"type": event})
        answer = asyncio.ensure_future(self._answers.get())
        await asyncio.wait((answer, self._task), return_when=asyncio.FIRST_COMPLETED)
        if answer.done():
            return answer.result()
        answer.cancel()
        return None
