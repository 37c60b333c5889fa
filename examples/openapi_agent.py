"""An agent that uses any API with an OpenAPI document, and asks before it changes something.

Runs by itself: the API is a small one on this machine, the model's messages are written out, and the person's answers
too. With `--ask` you are the person. Needs `pip install 'interpose[rest]'`.
"""

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from interpose.concerns.permission.console import ConsoleConsent
from interpose.concerns.permission.middleware import PermissionMiddleware
from interpose.drivers.rest import RestDriver

DOCUMENT = """
openapi: 3.1.0
info: {title: Shopping list, version: "1"}
servers: [{url: /api}]
paths:
  /items:
    get:
      operationId: listItems
      summary: What is on the list
    post:
      operationId: addItem
      summary: Put something on the list
      requestBody:
        required: true
        content:
          application/json:
            schema:
              type: object
              required: [name]
              properties: {name: {type: string}, amount: {type: integer, minimum: 1}}
  /items/{name}:
    delete:
      operationId: dropItem
      summary: Take something off the list
      parameters: [{name: name, in: path, required: true, schema: {type: string}}]
"""

MODEL_SAYS = (
    '{"tool": "listItems", "arguments": {}}',
    '{"tool": "addItem", "arguments": {"body": {"name": "flour", "amount": 2}}}',
    '{"tool": "dropItem", "arguments": {"name": "milk"}}',
    "Flour is on the list. I was not allowed to take the milk off.",
)


class ShoppingList(BaseHTTPRequestHandler):
    """The API."""

    items: dict[str, int] = {"milk": 1}  # noqa: RUF012 - the one list of this program

    def do_GET(self) -> None:
        """The document, or the items."""
        self._answer(200, DOCUMENT if self.path == "/openapi.yaml" else self.items)

    def do_POST(self) -> None:
        """One item more."""
        item = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.items[item["name"]] = item.get("amount", 1)
        self._answer(201, self.items)

    def do_DELETE(self) -> None:
        """One item less."""
        gone = self.items.pop(self.path.rpartition("/")[2], None)
        self._answer(404 if gone is None else 200, self.items)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
        """Says nothing."""

    def _answer(self, status: int, body: Any) -> None:
        data = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def running_api() -> Iterator[str]:
    """The URL of the API while the block runs."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), ShoppingList)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def person_says(tool_name: str, arguments: dict[str, Any]) -> bool:
    """The person who was asked, written out: reading and adding are fine, removing is not."""
    answer = not tool_name.startswith("drop")
    print(f"person: {tool_name} {json.dumps(arguments)}? {'yes' if answer else 'no'}")
    return answer


def main() -> None:
    consent = ConsoleConsent() if "--ask" in sys.argv else person_says
    with (
        running_api() as url,
        RestDriver(f"{url}/openapi.yaml", middleware=[PermissionMiddleware(consent=consent)]) as driver,
    ):
        print("tools: ", ", ".join(tool.name for tool in driver.list_tools()))
        messages = [{"role": "system", "content": driver.get_driver_system_message()}]
        for reply in MODEL_SAYS:  # a real agent asks its model here, with `messages`
            print("model: ", reply)
            response = driver.process_llm_response(reply)
            messages += response.messages
            if response.tool_calls:
                record = response.tool_calls[0]
                print("tool:  ", record.error or record.result_text)
        print("list:  ", json.dumps(ShoppingList.items))


if __name__ == "__main__":
    main()
