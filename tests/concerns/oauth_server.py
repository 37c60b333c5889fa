"""A real authorization server on loopback, scripted: it answers each device poll with the next step."""

import asyncio
import base64
import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

from aiohttp import web

from interpose.concerns.auth.authority import OAuthClient


class OAuthServer:
    """What a client asked and what it is told. Change the fields before a request; each grant writes down its form."""

    def __init__(self) -> None:
        self.url = ""
        self.forms: list[dict[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self.polls: list[str] = []
        self.device: dict[str, Any] = {
            "user_code": "WDJB-MJHT",
            "verification_uri": "https://login.example/device",
            "expires_in": 900,
            "interval": 5,
        }
        self.token: dict[str, Any] = {"token_type": "Bearer", "expires_in": 3600, "refresh_token": "refresh-1"}
        self.refresh_error: str | None = None
        self.raw: web.Response | None = None
        self._issued = 0
        self._challenges: dict[str, str] = {}

    def client(self, **fields: Any) -> OAuthClient:
        """This server as a client knows it."""
        return OAuthClient(
            "cli",
            f"{self.url}/token",
            authorization_endpoint=f"{self.url}/authorize",
            device_authorization_endpoint=f"{self.url}/device",
            **fields,
        )

    def grants(self) -> list[str]:
        """The grants that were asked for, in order."""
        return [form["grant_type"].rsplit(":", 1)[-1] for form in self.forms if "grant_type" in form]

    def authorize(self, query: dict[str, str]) -> str:
        """The person says yes: the address to which the browser is sent."""
        code = f"code-{len(self._challenges) + 1}"
        self._challenges[code] = query["code_challenge"]
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def application(self) -> web.Application:
        """The routes."""
        app = web.Application()
        app.add_routes([web.post("/device", self._on_device), web.post("/token", self._on_token)])
        return app

    async def _on_device(self, request: web.Request) -> web.Response:
        await self._note(request)
        if self.raw is not None:
            return self.raw
        number = sum("grant_type" not in form for form in self.forms)
        return web.json_response({"device_code": f"device-{number}", **self.device})

    async def _on_token(self, request: web.Request) -> web.Response:
        form = await self._note(request)
        if self.raw is not None:
            return self.raw
        match form["grant_type"]:
            case "refresh_token":
                return self._refused(self.refresh_error) if self.refresh_error else self._granted()
            case "authorization_code":
                return self._granted() if self._verifies(form) else self._refused("invalid_grant")
            case _:
                step = self.polls.pop(0)
                return self._granted() if step == "granted" else self._refused(step)

    async def _note(self, request: web.Request) -> dict[str, str]:
        fields = [(name, str(value)) for name, value in (await request.post()).items()]
        form = dict(fields)
        assert len(form) == len(fields), f"a parameter came twice: {fields}"  # RFC 6749 section 3.2
        self.forms.append(form)
        self.headers.append(dict(request.headers))
        return form

    def _verifies(self, form: dict[str, str]) -> bool:
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        return self._challenges.pop(form["code"], None) == challenge

    def _granted(self) -> web.Response:
        self._issued += 1
        return web.json_response({"access_token": f"access-{self._issued}", **self.token})

    def _refused(self, error: str) -> web.Response:
        return web.json_response({"error": error, "error_description": f"because {error}"}, status=400)


@contextmanager
def oauth_server() -> Iterator[OAuthServer]:
    """One, running in a thread of its own until the block ends."""
    server = OAuthServer()
    ready = threading.Event()
    loop = asyncio.new_event_loop()
    over = asyncio.Event()

    async def serve() -> None:
        runner = web.AppRunner(server.application())
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        ready.set()
        await over.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert ready.wait(10)
        yield server
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(10)
        loop.close()
