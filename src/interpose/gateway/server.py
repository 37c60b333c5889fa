"""The way in: with `connection`, the one place that knows the HTTP server.

Knows: binding, threads, draining. Does not know: what it serves.
"""

import asyncio
import contextlib
import errno
import socket
import threading
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Self, TypeAlias

from interpose.contracts.errors import ConfigError, MisuseError
from interpose.gateway.asgi import App
from interpose.gateway.connection import ClientConnection, Limits, Refusal
from interpose.gateway.handing import Handed, OtherWorkers, take_over
from interpose.gateway.lifespan import Lifespan
from interpose.gateway.service import Others, Service

START_TIMEOUT_S = 15.0
DEFAULT_LIMITS = Limits()
DRAIN_TIMEOUT_S = 10.0
"""How long open streams may go on after the server was told to stop."""

OnRefused: TypeAlias = Callable[[Refusal], None]
OnCut: TypeAlias = Callable[[], None]


class Server:
    """A bound address that serves `app` once it is told to. Signals are the caller's business.

    On the server's loop `on_refused` is told of each connection that is ended below the application, and `on_cut` is
    called when the time is over that open replies had to end. Raises ConfigError when the address cannot be bound.
    """

    def __init__(
        self,
        app: App,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        drain_timeout_s: float = DRAIN_TIMEOUT_S,
        limits: Limits = DEFAULT_LIMITS,
        on_refused: OnRefused | None = None,
        on_cut: OnCut | None = None,
    ) -> None:
        self._socket = bind(host, port)
        self._port = self._socket.getsockname()[1]
        self._url = url_of(self._socket)
        self._listens = listens_at(self._socket)
        self._running = _Running(app, limits, drain_timeout_s, on_refused, on_cut)

    @property
    def port(self) -> int:
        """The port that was bound."""
        return int(self._port)

    @property
    def url(self) -> str:
        """Where clients of this machine reach it."""
        return self._url

    @property
    def listens(self) -> str:
        """What it is bound to, as a URL; 0.0.0.0 and [::] are every address of this machine."""
        return self._listens

    @property
    def cut_off(self) -> int:
        """How many replies were cut off by the stop; known when it has ended."""
        return self._running.service.cut_off

    async def serve(self, on_started: Callable[[], None] | None = None) -> None:
        """Serves on the running loop until `stop`, then lets open streams end.

        `on_started` is called once requests are accepted.
        """
        await self._running.serve(self._socket, on_started)

    def stop(self) -> None:
        """Asks the server to take no more connections and to end when the open ones have. Any thread may call it."""
        self._running.stop()

    def close(self) -> None:
        """Gives the address back; for a server that never served."""
        self._socket.close()


class HandedServer:
    """Serves connections that another process hands over through `channel`, until that is closed; then it drains.

    As `worker` of `workers` it gives a connection back whose next request belongs to another one. `on_closed` is called
    when the channel is closed, and may take its time: on a thread of its own, while open replies run on.
    """

    def __init__(
        self,
        app: App,
        channel: socket.socket,
        *,
        worker: int = 0,
        workers: int = 1,
        drain_timeout_s: float = DRAIN_TIMEOUT_S,
        limits: Limits = DEFAULT_LIMITS,
        on_refused: OnRefused | None = None,
        on_cut: OnCut | None = None,
        on_closed: Callable[[], None] | None = None,
    ) -> None:
        self._channel = channel
        self._on_closed = on_closed
        others = OtherWorkers(channel, worker=worker, workers=workers) if workers > 1 else None
        self._running = _Running(app, limits, drain_timeout_s, on_refused, on_cut, others)

    @property
    def cut_off(self) -> int:
        """How many replies were cut off by the stop; known when it has ended."""
        return self._running.service.cut_off

    async def serve(self, on_started: Callable[[], None]) -> None:
        """Serves on the running loop. `on_started` is called once connections are taken."""
        loop = asyncio.get_running_loop()

        def take_all() -> None:
            with contextlib.suppress(OSError, RuntimeError):  # the channel or the loop has ended
                while (handed := take_over(self._channel)) is not None:
                    asyncio.run_coroutine_threadsafe(self._take(handed), loop)
            self._running.stop()
            if self._on_closed is not None:
                self._on_closed()

        def started() -> None:
            threading.Thread(target=take_all, name="interpose-channel", daemon=True).start()
            on_started()

        await self._running.serve(None, started)

    async def _take(self, handed: Handed) -> None:
        handed.connection.setblocking(False)
        made = partial(ClientConnection, self._running.service, initial=handed.data)
        await asyncio.get_running_loop().connect_accepted_socket(made, handed.connection)


async def serve(
    app: App,
    *,
    host: str,
    port: int,
    drain_timeout_s: float = DRAIN_TIMEOUT_S,
    on_bound: Callable[[Server], None] | None = None,
) -> None:
    """Binds and serves until `Server.stop`; `on_bound` is given the server before its first request.

    Raises ConfigError when the address cannot be bound.
    """
    server = Server(app, host=host, port=port, drain_timeout_s=drain_timeout_s)
    try:
        if on_bound is not None:
            on_bound(server)
        await server.serve()
    finally:
        server.close()


class ThreadedServer:
    """A server in a thread of its own: `with ThreadedServer(app, host="127.0.0.1", port=0) as server: server.url`.

    Leaving waits for open streams, at most `drain_timeout_s`. Raises ConfigError when the address cannot be bound.
    """

    def __init__(
        self,
        app: App,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        drain_timeout_s: float = DRAIN_TIMEOUT_S,
        limits: Limits = DEFAULT_LIMITS,
        on_refused: OnRefused | None = None,
        on_cut: OnCut | None = None,
    ) -> None:
        self._server = Server(
            app,
            host=host,
            port=port,
            drain_timeout_s=drain_timeout_s,
            limits=limits,
            on_refused=on_refused,
            on_cut=on_cut,
        )
        self._thread = threading.Thread(target=self._run, name="interpose-gateway", daemon=True)
        self._started = threading.Event()
        self._fault: BaseException | None = None

    @property
    def url(self) -> str:
        """Where clients of this machine reach it."""
        return self._server.url

    @property
    def listens(self) -> str:
        """What it is bound to, as a URL; 0.0.0.0 and [::] are every address of this machine."""
        return self._server.listens

    @property
    def port(self) -> int:
        """The port that was bound."""
        return self._server.port

    @property
    def cut_off(self) -> int:
        """How many replies were cut off by the stop; known when it has ended."""
        return self._server.cut_off

    def start(self) -> Self:
        """Starts the thread and waits until requests are accepted. Raises MisuseError when that fails."""
        self._thread.start()
        if not self._started.wait(START_TIMEOUT_S) or self._fault is not None:
            self.stop()
            raise MisuseError(f"the server did not start: {self._fault or 'it takes too long'}") from self._fault
        return self

    def stop(self) -> None:
        """Stops and waits for the thread; idempotent."""
        self._server.stop()
        if self._thread.is_alive():
            self._thread.join()
        self._server.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=loop_factory()) as runner:
                runner.run(self._server.serve(self._started.set))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the thread's end; told to whoever waits in `start`
            self._fault = error
        finally:
            self._started.set()


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens there. Raises ConfigError when that cannot be."""
    where = f"port {port} on {host}"
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise ConfigError(where, f"no such address: {error}", "choose another host") from error
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(2048)
    except OSError as error:
        made.close()
        if error.errno == errno.EADDRINUSE:
            raise ConfigError(
                where, "is taken by another program", "stop that one, or choose another port with --port"
            ) from error
        raise ConfigError(where, f"cannot be used: {error.strerror}", "choose another port with --port") from error
    made.setblocking(False)
    return made


def url_of(bound: socket.socket) -> str:
    """Where clients of this machine reach a socket that listens."""
    host, port = bound.getsockname()[:2]
    return _url({"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), port)  # noqa: S104 - what is bound, not what to bind


def listens_at(bound: socket.socket) -> str:
    """What a socket that listens is bound to, as a URL."""
    host, port = bound.getsockname()[:2]
    return _url(host, port)


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Makes uvloop's loops where it is installed; None leaves the choice to asyncio."""
    try:
        import uvloop  # noqa: PLC0415 - not there on every platform
    except ImportError:
        return None
    return uvloop.new_event_loop


class _Running:
    """An application while it is served, from its start to its end."""

    def __init__(
        self,
        app: App,
        limits: Limits,
        drain_timeout_s: float,
        on_refused: OnRefused | None,
        on_cut: OnCut | None,
        others: Others | None = None,
    ) -> None:
        self.service = Service(app, limits, on_refused or _nobody_listens, on_cut, others)
        self._drain_timeout_s = drain_timeout_s
        self._is_stopped = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped: asyncio.Event | None = None

    def stop(self) -> None:
        """Any thread may call it, at any time."""
        self._is_stopped = True
        if self._loop is not None and self._stopped is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._stopped.set)

    async def serve(self, listener: socket.socket | None, on_started: Callable[[], None] | None) -> None:
        self._stopped, self._loop = asyncio.Event(), asyncio.get_running_loop()
        lifespan = Lifespan(self.service.app)
        await lifespan.start()
        try:
            await self._serve(self._loop, listener, on_started)
        finally:
            await self.service.stop(self._drain_timeout_s)
            await lifespan.end()

    async def _serve(
        self, loop: asyncio.AbstractEventLoop, listener: socket.socket | None, on_started: Callable[[], None] | None
    ) -> None:
        accepting: asyncio.AbstractServer | None = None
        if listener is not None:
            accepting = await loop.create_server(partial(ClientConnection, self.service), sock=listener, backlog=2048)
        try:
            if on_started is not None:
                on_started()
            if not self._is_stopped and self._stopped is not None:
                await self._stopped.wait()
        finally:
            if accepting is not None:
                accepting.close()


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _nobody_listens(_refusal: Refusal) -> None:
    """Where the server was given nobody to tell."""
