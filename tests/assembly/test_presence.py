"""assembly.presence: finding the gateway that runs."""

import json
import os
import stat
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from interpose.assembly.folders import Folders
from interpose.assembly.presence import Presence, announce, find_gateway, find_gateways, withdraw


class Healthy(BaseHTTPRequestHandler):
    """Answers as a gateway of this process does."""

    def do_GET(self) -> None:
        """The answer."""
        body = json.dumps({"name": "interpose", "pid": os.getpid()}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None:
        """Says nothing."""


def test_a_gateway_that_answers_is_found_and_a_withdrawn_one_is_not(folders: Folders) -> None:
    """The note is for the user alone; only the process that wrote it is believed."""
    folders.state.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Healthy)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        here = Presence(os.getpid(), f"http://127.0.0.1:{server.server_port}", "0")
        announce(folders, here)
        mode = stat.S_IMODE((folders.state / "gateways" / f"{os.getpid()}.json").stat().st_mode)

        assert (find_gateway(folders), mode) == (here, 0o600)
        assert find_gateways(folders) == (here,)

        announce(folders, Presence(1, here.url, "0"))
        assert find_gateway(folders) == here  # the note of another process is not believed, ours still is
        withdraw(folders, 1)
        withdraw(folders, os.getpid())
        assert find_gateway(folders) is None
        assert list((folders.state / "gateways").iterdir()) == []
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_note_without_a_gateway_is_not_believed(folders: Folders) -> None:
    """A process that died, a note that is not JSON, and no note at all are the same: none runs."""
    folders.state.mkdir()

    assert find_gateway(folders) is None
    assert find_gateways(folders) == ()
    announce(folders, Presence(1, "http://127.0.0.1:9", "0"))
    assert find_gateway(folders) is None
    (folders.state / "gateways" / "1.json").write_text("{")
    assert find_gateway(folders) is None
