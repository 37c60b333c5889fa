"""A tool that needs a sign-in, over two turns: the model is told what the person must do, and then it works.

Runs by itself: the authorization server is a small one on this machine, and the model's messages are written out.
Needs `pip install 'interpose[auth]'`.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs
from urllib.request import urlopen

from interpose.concerns.auth.authority import OAuthClient
from interpose.concerns.auth.device import DeviceCodeCredentials
from interpose.concerns.auth.middleware import AuthMiddleware
from interpose.concerns.auth.stores import MemoryTokenStore
from interpose.contracts.auth import CredentialProvider
from interpose.contracts.drivers import Tool, ToolParameter
from interpose.contracts.sheet import DriverMeta
from interpose.drivers.driver import BaseDriver

CALL = '{"tool": "entries", "arguments": {"day": "today"}}'


class Calendar(BaseDriver):
    """One tool. It asks for its token and lets a challenge through."""

    meta = DriverMeta("calendar", "Calendar", "1.0.0")

    def __init__(self, credentials: CredentialProvider) -> None:
        super().__init__(middleware=[AuthMiddleware()])
        self._credentials = credentials

    def list_tools(self) -> list[Tool]:
        """The tool."""
        return [Tool("entries", "What is in the calendar", parameters=(ToolParameter("day", required=True),))]

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> Any:
        """The entries, had with a token."""
        token = self._credentials.get_token("calendar.read")
        return {tool_name: [f"{arguments['day']} 09:30 stand-up"], "seen_with": token}


class AuthorizationServer(BaseHTTPRequestHandler):
    """Knows one device code; a GET is the person who says yes."""

    signed_in = threading.Event()

    def do_GET(self) -> None:
        """The person has opened the page and entered the code."""
        self.signed_in.set()
        self._answer(200, {})

    def do_POST(self) -> None:
        """A new code, or the token once the person has been there."""
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        if "grant_type" not in form:
            page = f"http://{self.headers['Host']}/page"
            self._answer(
                200,
                {
                    "device_code": "d1",
                    "user_code": "WDJB-MJHT",
                    "verification_uri": page,
                    "expires_in": 600,
                    "interval": 0,
                },
            )
        elif self.signed_in.is_set():
            self._answer(200, {"access_token": "token-1", "token_type": "Bearer", "expires_in": 3600})
        else:
            self._answer(400, {"error": "authorization_pending"})

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Quiet."""


@contextmanager
def authorization_server() -> Iterator[str]:
    """Its address, while the block runs."""
    with ThreadingHTTPServer(("127.0.0.1", 0), AuthorizationServer) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def main() -> None:
    with authorization_server() as url:
        client = OAuthClient("example", f"{url}/token", device_authorization_endpoint=f"{url}/device")
        calendar = Calendar(DeviceCodeCredentials(client, store=MemoryTokenStore()))

        print("person: What is on today?")
        first = calendar.process_llm_response(CALL)
        challenge = json.loads(first.tool_call_result or "")
        print("tool:  ", challenge["message"].replace(url, "http://login.example"))
        print("model:  Please sign in there; the code is", challenge["code"])

        urlopen(challenge["url"], timeout=10).close()  # noqa: S310 - our own server; here the person signs in

        print("person: Done.")
        second = calendar.process_llm_response(CALL)
        print("tool:  ", second.tool_call_result)
        print("model:  A stand-up at 09:30.")


if __name__ == "__main__":
    main()
