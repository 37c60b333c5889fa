"""A gateway between clients and a scripted upstream, on real sockets, for end-to-end tests."""

import http.client
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any
from urllib.parse import urlsplit

from interpose.contracts.stages import Point, ToolCall
from interpose.contracts.verdict import Verdict
from interpose.gateway.app import Gateway
from interpose.gateway.connection import Limits
from interpose.gateway.load import Load
from interpose.gateway.server import DEFAULT_LIMITS, ThreadedServer
from interpose.gateway.settings import GatewaySettings, Upstreams
from interpose.gateway.tracing import Tracing
from interpose.kernel.clock import SystemClock
from interpose.testing.fakes import FakeLaunches, FakePolicy, FakeWorkspaces, allow, refuse
from interpose.testing.journal import MemoryJournal
from interpose.testing.upstream import ScriptedUpstream, Step


def no_rm(point: Point) -> Verdict:
    """A policy with one rule."""
    if isinstance(point, ToolCall) and "rm -rf" in str(point.arguments):
        return refuse(point, "not recursively", "no-rm")
    return allow(point)


class House:
    """A gateway between the SDKs and a scripted upstream.

    A refusal is told to the person and ends the reply, unless `on_refusal` says otherwise: a script then has an entry
    for each request of the client's.
    """

    def __init__(
        self,
        script: list[Step],
        judge: Callable[[Point], Verdict] = no_rm,
        *,
        strict: bool = True,
        limits: Limits = DEFAULT_LIMITS,
        **settings: Any,
    ) -> None:
        self._limits = limits
        self.tracing: Tracing | None = None
        self.load = Load()
        self.policy = FakePolicy(judge)
        self.journal = MemoryJournal()
        self.launches = FakeLaunches()
        self.upstream = ScriptedUpstream(script, strict=strict)
        self._settings = {"on_refusal": "tell", **settings}
        self._stack = ExitStack()

    def __enter__(self) -> "House":
        upstream = self._stack.enter_context(self.upstream)
        urls = Upstreams(upstream.url, upstream.url, upstream.url)
        gateway = self.another(**{"upstreams": urls, **self._settings})
        server = ThreadedServer(gateway, drain_timeout_s=1, limits=self._limits, on_refused=gateway.refused)
        self.url = self._stack.enter_context(server).url
        return self

    def another(self, **settings: Any) -> Gateway:
        """One more gateway over the same parts."""
        return Gateway(
            GatewaySettings(**settings),
            workspaces=FakeWorkspaces(default=self.policy),
            launches=self.launches,
            journal=self.journal,
            clock=SystemClock(),
            tracing=self.tracing,
            load=self.load,
        )

    def __exit__(self, *exit_info: object) -> None:
        self._stack.close()

    def prefixed(self, **launch: Any) -> str:
        """The base URL of a new launch."""
        _, secret = self.launches.register(workspace="/w", **launch)
        return f"{self.url}/l/{secret}"

    def raw(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """One request without an SDK."""
        address = urlsplit(self.url)
        connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=10)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            response = connection.getresponse()
            return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
        finally:
            connection.close()

    def wire(self, data: bytes, *, timeout_s: float = 10) -> bytes:
        """What the gateway answers to raw bytes until it closes the connection, or is silent for `timeout_s`."""
        address = urlsplit(self.url)
        with socket.create_connection((str(address.hostname), address.port), timeout=timeout_s) as connection:
            connection.sendall(data)
            answer = b""
            with suppress(TimeoutError, ConnectionResetError):
                while chunk := connection.recv(65536):
                    answer += chunk
            return answer

    def until(self, holds: Callable[[], bool]) -> None:
        """Waits, bounded, until something that happens in another thread has happened."""
        end = time.monotonic() + 10
        while not holds():
            assert time.monotonic() < end, "it did not happen"
            threading.Event().wait(0.005)
