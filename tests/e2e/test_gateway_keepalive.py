"""Signs of life while a verdict waits: what each API's clients bear, and no other byte changed."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import anthropic
import openai
import pytest

from interpose.contracts.stages import Point, ToolCall
from interpose.contracts.verdict import Verdict
from interpose.gateway.faults import keep_alive
from interpose.testing.fakes import FakePolicy, allow
from interpose.testing.upstream import RawStream, Reply, Text, ToolUse
from tests.e2e.house import House

pytestmark = pytest.mark.e2e

LS = ToolUse("Bash", {"command": "ls"}, id="call_ls")
MESSAGES: Any = [{"role": "user", "content": "look"}]
PING = b'event: ping\ndata: {"type": "ping"}\n\n'
COMMENT = b": interpose waits for a verdict\n\n"


class SlowPolicy(FakePolicy):
    """Answers calls only when its gate is open."""

    def __init__(self) -> None:
        super().__init__(allow)
        self.gate = threading.Event()

    async def judge_async(self, point: Point) -> Verdict:
        """As the port says, later."""
        if isinstance(point, ToolCall):
            await asyncio.to_thread(self.gate.wait, 10)
        return self.judge(point)


def waited(house: House, policy: SlowPolicy, path: str, body: bytes, sign: bytes) -> tuple[bytes, bytes]:
    """The bytes of a streamed reply whose verdict came after three signs of life, and the reply without them."""
    request = b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % (
        path.encode(),
        len(body),
    )
    answer: list[bytes] = []
    waiting = threading.Thread(target=lambda: answer.append(house.wire(request + body)))
    waiting.start()
    threading.Timer(0.5, policy.gate.set).start()
    waiting.join(10)
    plain = unchunked(answer[0].partition(b"\r\n\r\n")[2])
    return plain, plain.replace(sign, b"")


def unchunked(data: bytes) -> bytes:
    """The body without its transfer encoding."""
    body = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        body += data[: int(size, 16)]
        data = data[int(size, 16) + 2 :]
    return body


@pytest.mark.parametrize(("path", "sign"), [("/v1/messages", PING), ("/v1/chat/completions", COMMENT)])
def test_signs_of_life_stand_between_events(path: str, sign: bytes) -> None:
    """They come while the verdict waits, and without them the reply is what the upstream sent."""
    body = b'{"model": "m", "stream": true, "messages": [{"role": "user", "content": "look"}]}'
    policy = SlowPolicy()
    house = House([Reply(Text("I will."), LS)], keep_alive_s=0.05)
    house.policy = policy
    with house:
        slow, without = waited(house, policy, path, body, sign)
    with House([Reply(Text("I will."), LS)], allow) as quick:
        _, _, direct = quick.raw("POST", path, body)

    assert slow.count(sign) >= 3
    assert without == direct.replace(sign, b"")  # the upstream pings, too


def test_real_clients_bear_them() -> None:
    """Both SDKs read the reply as if nothing had been said meanwhile."""

    def ask_anthropic(url: str) -> Any:
        with (
            anthropic.Anthropic(base_url=url, api_key="k", max_retries=0, timeout=10) as client,
            client.messages.stream(model="m", max_tokens=9, messages=MESSAGES) as events,
        ):
            return events.get_final_message().content[0].input  # type: ignore[union-attr]

    def ask_chat(url: str) -> Any:
        with openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0, timeout=10) as client:
            chunks = list(client.chat.completions.create(model="m", messages=MESSAGES, stream=True))
            return [call.id for chunk in chunks for c in chunk.choices for call in c.delta.tool_calls or [] if call.id]

    def ask(client: Callable[[str], Any]) -> Any:
        policy = SlowPolicy()
        house = House([Reply(LS)], keep_alive_s=0.05)
        house.policy = policy
        with house:
            threading.Timer(0.3, policy.gate.set).start()
            return client(house.url)

    assert ask(ask_anthropic) == {"command": "ls"}
    assert ask(ask_chat) == ["call_ls"]


def test_a_long_call_is_no_silence_either() -> None:
    """While the upstream writes a call that is held, the client is shown life between its pieces."""
    gates = [threading.Event() for _ in range(3)]
    start = b'data: {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "c", "function": {"name": '
    pieces: list[bytes | threading.Event] = [start + b'"Bash", "arguments": ""}}]}}]}\n\n']
    for gate in gates:
        piece = b'{"index": 0, "function": {"arguments": " "}}'
        pieces += [gate, b'data: {"choices": [{"index": 0, "delta": {"tool_calls": [' + piece + b"]}}]}\n\n"]
    with House([RawStream([*pieces, b"data: [DONE]\n\n"])], allow, keep_alive_s=0.05) as house:
        for number, gate in enumerate(gates):
            threading.Timer(0.15 * (number + 1), gate.set).start()
        body = b'{"model": "m", "stream": true, "messages": [{"role": "user", "content": "look"}]}'
        _, _, answer = house.raw("POST", "/v1/chat/completions", body)

    assert answer.count(COMMENT) in (2, 3)


def test_gemini_clients_bear_none() -> None:
    """A comment breaks them, so they get nothing."""
    assert keep_alive("gemini") is None
    assert keep_alive("responses") == COMMENT
