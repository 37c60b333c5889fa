"""Who a request belongs to, what is judged once, and what outlives a process and a client's own edits."""

import http.client
import json
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from interpose.contracts.stages import Compaction, Point, ToolCall, ToolResult, TurnEnd, TurnStart
from interpose.contracts.verdict import Reminder, Verdict
from interpose.gateway.app import Gateway
from interpose.gateway.server import ThreadedServer
from interpose.gateway.sessions import SqliteLedgers
from interpose.gateway.settings import GatewaySettings, Upstreams
from interpose.kernel.clock import SystemClock
from interpose.testing.fakes import FakeLaunches, FakePolicy, FakeWorkspaces, allow, refuse
from interpose.testing.journal import MemoryJournal
from interpose.testing.upstream import Reply, ScriptedUpstream, Slow, Step, Text, ToolUse
from tests.e2e.apis import CASES, Case, every_case, every_stream
from tests.e2e.house import House, no_rm
from tests.e2e.talkers import APIS, Anthropic
from tests.e2e.test_lens import LINE, TOLD, assert_prefix_never_shrinks, histories

RM = {"command": "rm -rf build"}
CODEX = {"session_id": "s", "thread_id": "s", "turn_id": "t", "request_kind": "compaction"}


def asked(house: House, talker: Any, **headers: str) -> None:
    """Sends the talker's conversation with these headers."""
    status, _, body = house.raw(
        "POST", talker.path, json.dumps(talker.body()).encode(), {k.replace("_", "-"): v for k, v in headers.items()}
    )
    assert status == 200, body


def test_a_compaction_is_seen_and_is_no_turn() -> None:
    """Only the observing hook runs, and no answer to it is carried onward."""
    with House([Reply(Text("A summary."))], no_rm) as house:
        talker = APIS["responses"](house.url, stream=True)
        talker.history.append(talker.spoken("summarise"))
        asked(house, talker, session_id="s", x_codex_turn_metadata=json.dumps(CODEX))

        assert [type(point) for point in house.policy.points] == [Compaction]


def test_a_subagent_is_a_session_of_its_own() -> None:
    """It is linked to the session that started it, in its points and in the journal."""
    with House([Reply(Text("Main.")), Reply(Text("Sub."))], no_rm) as house:
        talker = APIS["anthropic"](house.url, stream=True)
        talker.history.append(talker.spoken("go"))
        asked(house, talker, x_claude_code_session_id="s")
        asked(house, talker, x_claude_code_session_id="s", x_claude_code_agent_id="a1")

        starts = [point.context for point in house.policy.points if isinstance(point, TurnStart)]
        assert [(context.session, context.parent, context.subagent) for context in starts] == [
            ("s", None, None),
            ("s/a1", "s", "a1"),
        ]
        house.until(lambda: [record.step for record in house.journal.records].count("request") == 2)
        lines = [record for record in house.journal.records if record.step == "request"]
        assert [(line.session, line.data.get("parent")) for line in lines] == [("s", None), ("s/a1", "s")]


@every_case
def test_a_request_that_is_sent_again_is_judged_once(case: Case) -> None:
    """A retry gets the same verdicts, and no guard counts it a second time."""
    answer = Reply(ToolUse("Bash", {"command": "ls"}, id="call_1"))
    with case.house([answer, answer], no_rm) as house:
        talker = case.talker(house)
        talker.says("go")
        del talker.history[1:]
        talker._ask()

        kinds = [type(point) for point in house.policy.points]
        assert kinds == [TurnStart, ToolCall]


@every_case
def test_two_requests_of_one_session_at_once(case: Case) -> None:
    """Two conversations share a session: each history gets what belongs to it."""
    gate = threading.Event()

    def model(request: Any) -> Reply:
        body = json.dumps(request.json)
        if TOLD in body:
            return Reply(Text("alpha ends" if "alpha" in body else "beta ends"))
        return Reply(ToolUse("Bash", {"command": f"rm -rf {'alpha' if 'alpha' in body else 'beta'}"}))

    script: list[Step] = [lambda request: Slow(model(request), gate)] * 8
    with case.house(script, no_rm) as house, ThreadPoolExecutor(2) as pool:
        one, two = case.talker(house), case.talker(house)
        first = pool.submit(one.says, "delete alpha")
        second = pool.submit(two.says, "delete beta")
        house.until(lambda: len(house.upstream.requests) == 2)
        gate.set()
        assert first.result().text.endswith("alpha ends")
        assert second.result().text.endswith("beta ends")
        one.says("more alpha")
        two.says("more beta")

        last = histories(house)[-2:]
        assert "rm -rf alpha" in last[0]
        assert "beta" not in last[0]
        assert "rm -rf beta" in last[1]
        assert "alpha" not in last[1]


@every_case
def test_a_client_that_edits_its_history(case: Case) -> None:
    """What it drops is gone for the model too; what it keeps is put back; nothing is refused by the provider."""
    script: list[Step] = [
        Reply(Text("One."), ToolUse("Bash", RM)),
        Reply(Text("Not so.")),
        Reply(Text("Two."), ToolUse("Bash", {"command": "rm -rf dist"})),
        Reply(Text("Not so either.")),
        Reply(Text("Three.")),
    ]
    with case.house(script, no_rm) as house:
        talker = case.talker(house)
        talker.says("first")
        kept = len(talker.history)
        talker.says("second")
        del talker.history[kept:]
        said = talker.says("third")

        assert said.text == "Three."
        last = histories(house)[-1]
        assert "rm -rf build" in last
        assert "rm -rf dist" not in last
        assert LINE not in last


@contextmanager
def served(
    upstream: ScriptedUpstream, store: SqliteLedgers, journal: MemoryJournal, policy: FakePolicy
) -> Iterator[str]:
    """A gateway of its own over a shared store."""
    gateway = Gateway(
        GatewaySettings(upstreams=Upstreams(upstream.url, upstream.url, upstream.url)),
        workspaces=FakeWorkspaces(default=policy),
        launches=FakeLaunches(),
        journal=journal,
        clock=SystemClock(),
        ledgers=store,
    )
    with ThreadedServer(gateway) as server:
        yield server.url


@pytest.mark.parametrize("case", [case for case in CASES if case.stream], ids=lambda case: case.api)
def test_what_was_changed_outlives_the_process(case: Case, tmp_path: Path) -> None:
    """Another process puts the same history together, and says in the journal that it took it up."""

    def judge(point: Point) -> Verdict:
        if isinstance(point, TurnStart):
            return allow(point)._replace(reminders=(Reminder("r", "info", "be kind"),))
        return no_rm(point)

    script: list[Step] = [
        Reply(Text("One."), ToolUse("Bash", RM)),
        Reply(ToolUse("Read", {"file_path": "a"})),
        Reply(Text("Done.")),
    ]
    journal = MemoryJournal()
    policy = FakePolicy(judge)
    with ScriptedUpstream(script) as upstream:
        store = SqliteLedgers(tmp_path / "state.db", clock=SystemClock())
        with served(upstream, store, journal, policy) as url:
            talker = APIS[case.api](url, stream=True)
            ((call_id, _, _),) = talker.says("go").calls
        store.close()
        again = SqliteLedgers(tmp_path / "state.db", clock=SystemClock())
        with served(upstream, again, journal, policy) as url:
            talker.url = url
            said = talker.answers({call_id: "text"})
        again.close()

        assert said.text == "Done."
        prompts = upstream.prompts
        assert [prompt.cached_tokens for prompt in prompts[1:]] == [prompt.tokens for prompt in prompts[:-1]]
        restored = [record.reason for record in journal.records if record.outcome == "restored"]
        parts = 5 if case.api == "responses" else 2  # also the provider's own id, and our item by its id, twice
        assert restored == [f"{parts} parts of this session's history are known from another process"]


def test_a_line_of_ours_in_the_persons_words_is_no_line_of_ours() -> None:
    """Only what the model said is put back: a person may quote the refusal."""
    script: list[Step] = [
        Reply(Text("One."), ToolUse("Bash", RM)),
        Reply(Text("Not so.")),
        Reply(Text("Two.")),
        Reply(Text("Three.")),
    ]
    with House(script, no_rm, on_refusal="continue") as house:
        talker = Anthropic(house.url, stream=True)
        talker.says("go")
        talker.says(f"what is this: {LINE}")
        talker.says("more")

        assert histories(house)[-1].count(LINE) == 1
        assert_prefix_never_shrinks(house)


def test_turn_ends_carry_what_was_said_and_why() -> None:
    """The point has the text of the last reply and the API's own word for its end."""
    with House([Reply(Text("Half of"), stop_reason="max_tokens")], no_rm) as house:
        talker = Anthropic(house.url, stream=True)
        talker.history.append(talker.spoken("go"))
        asked(house, talker)

        (end,) = [point for point in house.policy.points if isinstance(point, TurnEnd)]
        assert (end.text, end.stop_reason) == ("Half of", "max_tokens")
        assert not any(isinstance(point, ToolResult) for point in house.policy.points)


def test_tools_of_the_providers_own_are_told_once() -> None:
    """What runs where nobody judges it is in the journal, once a session."""
    with House([Reply(Text("One.")), Reply(Text("Two."))], no_rm) as house:
        talker = Anthropic(house.url, stream=True)
        talker.more = {"tools": [{"type": "web_search_20250305", "name": "web_search"}, {"name": "Bash"}]}
        talker.says("go")
        talker.says("on")

        told = [record.reason for record in house.journal.records if record.outcome == "unseen"]
        assert told == ["was offered web_search_20250305, which runs at the provider and is not judged"]


def unnamed_sessions(house: House) -> list[str]:
    """The sessions of the prompts that were judged, in order."""
    return [point.context.session for point in house.policy.points if isinstance(point, TurnStart)]


@pytest.mark.parametrize(
    ("api", "told"),
    [
        ("anthropic", {"metadata": {"user_id": json.dumps({"device_id": "d", "session_id": "named"})}}),
        ("anthropic", {"metadata": {"user_id": "user_0ab_account_1_session_named"}}),
        ("responses", {"client_metadata": {"session_id": "named"}}),
        ("responses", {"conversation": {"id": "named"}}),
    ],
)
def test_the_clients_metadata_name_the_session(api: str, told: dict[str, Any]) -> None:
    """Where no header does; a subagent's header still counts."""
    with House([Reply(Text("One.")), Reply(Text("Two.")), Reply(Text("Three."))], no_rm, strict=False) as house:
        talker = APIS[api](house.url, stream=True)
        talker.more = told
        talker.history.append(talker.spoken("go"))
        body = json.dumps({**talker.body(), **told}).encode()
        for headers in ({}, {"x-claude-code-agent-id": "a1"}, {"x-session-id": "other"}):
            assert house.raw("POST", talker.path, body, headers)[0] == 200

        assert unnamed_sessions(house) == ["named", "named/a1", "other"]


@every_stream
def test_a_conversation_that_nobody_names_is_a_session(case: Case) -> None:
    """Found again by what the person said first, also from another launch of the workspace; others have their own."""
    script: list[Step] = [Reply(Text("One.")), Reply(Text("Two.")), Reply(Text("Else."))]
    with case.house(script, no_rm) as house:
        talker = case.talker(house)
        talker.session = None
        talker.url = house.prefixed()
        talker.says("go")
        talker.url = house.prefixed()
        talker.says("on")
        other = case.talker(house)
        other.session = None
        other.url = talker.url
        other.says("something else")

        first, again, elsewhere = unnamed_sessions(house)
        assert first == again
        assert elsewhere != first


def test_a_launch_of_one_agent_has_sessions_of_its_own() -> None:
    """Agents that begin each conversation with the same words are told apart as far as that goes."""
    with House([Reply(Text("One.")), Reply(Text("Two.")), Reply(Text("Three."))], no_rm) as house:
        first, second = (house.prefixed(agent="gemini-cli") for _ in range(2))
        for url, words in ((first, "go"), (second, "go"), (first, "else")):
            talker = Anthropic(url, stream=True)
            talker.session = None
            talker.says(words)

        assert len(set(unnamed_sessions(house))) == 3


@every_stream
def test_what_was_refused_is_known_to_another_launch(case: Case) -> None:
    """The model's history is put together again, though the client names nothing and its address changed."""
    script: list[Step] = [Reply(Text("One."), ToolUse("Bash", RM)), Reply(Text("Not so.")), Reply(Text("Two."))]
    with case.house(script, no_rm) as house:
        talker = case.talker(house)
        talker.session = None
        talker.url = house.prefixed()
        talker.says("go")
        talker.url = house.prefixed()
        talker.says("on")

        assert_prefix_never_shrinks(house)
        assert LINE not in histories(house)[-1]


@every_case
def test_a_retry_whose_call_has_another_id_counts_once(case: Case) -> None:
    """The model proposes the same call anew; of two equal calls in one reply each counts."""
    calls = [Reply(*(ToolUse("Bash", {"command": "ls"}, id=f"call_{n}{m}") for m in range(2))) for n in range(3)]
    with case.house([*calls], no_rm) as house:
        talker = case.talker(house)
        talker.session = None
        for _ in range(3):
            said = talker.says("go")
            assert len(said.calls) == 2
            talker.history.clear()

        assert [type(point) for point in house.policy.points] == [TurnStart, ToolCall, ToolCall]


def test_the_same_words_in_a_new_conversation_begin_a_new_turn() -> None:
    """Others have gone on from them since, so they are no retry: what lasted a turn is over."""

    def model(request: Any) -> Reply:
        has_result = "tool_result" in json.dumps(request.json["messages"][-1])
        return Reply(Text("Done.")) if has_result else Reply(ToolUse("Bash", {"command": "ls"}))

    with House([model] * 4, no_rm) as house:
        for _ in range(2):
            talker = Anthropic(house.url, stream=True)
            talker.session = None
            ((call_id, _, _),) = talker.says("go").calls
            talker.answers({call_id: "a.txt"})

        turns = [point.context.turn for point in house.policy.points if isinstance(point, ToolCall)]
        assert len(turns) == len(set(turns)) == 2
        assert len(set(unnamed_sessions(house))) == 1


def test_a_refused_prompt_is_judged_again_under_another_policy() -> None:
    """A retry hears the same refusal; when the handlers were published anew it is asked for anew."""
    refusing = [True]

    def judge(point: Point) -> Verdict:
        return refuse(point, "late", "hours") if refusing[0] and isinstance(point, TurnStart) else allow(point)

    with House([Reply(Text("Hello."))], judge) as house:
        talker = Anthropic(house.url, stream=True)
        talker.session = None
        for expected in ("[interpose] the turn was refused by hours: late",) * 2:
            assert talker.says("hi").text == expected
            talker.history.clear()
        assert len(unnamed_sessions(house)) == 1
        refusing[0] = False
        house.policy.generation = 1
        assert talker.says("hi").text == "Hello."
        assert "withheld" not in histories(house)[-1]


COUNTS = {
    "anthropic": ("/v1/messages/count_tokens", None),
    "responses": ("/v1/responses/input_tokens", None),
    "gemini": ("/v1beta/models/m:countTokens", None),
    "gemini-inner": ("/v1beta/models/m:countTokens", "generateContentRequest"),
}


@pytest.mark.parametrize("name", COUNTS)
def test_tokens_are_counted_of_the_models_history(name: str) -> None:
    """With what was withheld left out; nothing is judged for it, and what cannot be read passes as it is."""

    def judge(point: Point) -> Verdict:
        if isinstance(point, ToolResult):
            return refuse(point, "a secret", "secrets")
        return no_rm(point)

    path, inner = COUNTS[name]
    script: list[Step] = [
        Reply(Text("One."), ToolUse("Bash", RM)),
        Reply(ToolUse("Read", {"file_path": "a"})),
        Reply(Text("Done.")),
    ]
    with House(script, judge, on_refusal="continue", strict=False) as house:
        talker = APIS[name.removesuffix("-inner")](house.url, stream=True)
        ((call_id, _, _),) = talker.says("go").calls
        talker.answers({call_id: "hunter2"})
        points = house.policy.points
        body = json.dumps({inner: talker.body()} if inner else talker.body()).encode()
        for sent in (body, b"not json"):
            house.raw("POST", path, sent, {"x-session-id": "one"})

        told, odd = house.upstream.requests[-2:]
        assert house.policy.points == points
        assert odd.body == b"not json"
        counted = json.dumps(told.json)
        assert "hunter2" not in counted
        assert (counted.count(TOLD), LINE in counted) == (1, False)
        history = {"anthropic": "messages", "responses": "input"}.get(name, "contents")
        before = house.upstream.requests[-3].json[history]
        assert (told.json[inner] if inner else told.json)[history][: len(before)] == before


@pytest.mark.parametrize("chunked", [True, False])
def test_a_count_that_is_too_large_passes_as_it_comes(chunked: bool) -> None:
    """Nobody needs to judge it, so it is not held in memory either."""
    big = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x" * 4000}]}).encode()
    head = b"transfer-encoding: chunked" if chunked else b"content-length: %d" % len(big)
    sent = b"%x\r\n%s\r\n0\r\n\r\n" % (len(big), big) if chunked else big
    with House([], no_rm, body_bytes=1000, strict=False) as house:
        answer = house.wire(
            b"POST /v1/messages/count_tokens HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n"
            + head
            + b"\r\n\r\n"
            + sent
        )

        assert answer.startswith(b"HTTP/1.1 200")
        assert house.upstream.requests[-1].body == big


@every_stream
@pytest.mark.parametrize("session", ["named", None])
def test_what_was_withheld_stays_so_in_a_history_that_is_cut(case: Case, session: str | None) -> None:
    """A client may drop the beginning, by which a conversation is known, and move all the rest."""

    def careful(point: Point) -> Verdict:
        if isinstance(point, TurnStart | ToolResult) and "hunter2" in str(point):
            return refuse(point, "a password", "secrets")
        return allow(point)

    script: list[Step] = [Reply(Text("Hi.")), Reply(ToolUse("Read", {"file_path": "a"})), *[Reply(Text("Done."))] * 2]
    with case.house(script, careful, strict=False) as house:
        talker = case.talker(house)
        talker.session = session
        talker.says("hello")
        talker.says("the password is hunter2")
        ((call_id, _, _),) = talker.says("go").calls
        talker.answers({call_id: "hunter2 indeed"})
        del talker.history[:2]
        talker.says("more")

        assert "hunter2" in json.dumps(talker.history)
        assert all("hunter2" not in body for body in histories(house))
        assert house.upstream.requests[-1].json != house.upstream.requests[-2].json


@every_stream
def test_a_client_that_hangs_up_after_a_refusal_keeps_both_histories(case: Case) -> None:
    """The line has left, and the model was about to be told: the next request has the call and its error."""
    gate = threading.Event()
    script: list[Step] = [
        Reply(Text("a"), ToolUse("Bash", RM)),
        Slow(Reply(Text("b")), gate),
        Reply(Text("c")),
    ]
    with case.house(script, no_rm) as house:
        talker = case.talker(house)
        talker.history.append(talker.spoken("go"))
        address = urlsplit(house.url)
        connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=10)
        connection.request("POST", talker.path, json.dumps(talker.body()), {"x-session-id": "one"})
        response = connection.getresponse()
        raw = b""
        while LINE.encode() not in raw:
            raw += response.read1()
        house.until(lambda: len(house.upstream.requests) == 2)
        response.close()
        connection.close()
        gate.set()
        talker.history += _interrupted(case.api, raw)
        talker.says("next")

        last = histories(house)[-1]
        assert TOLD in last
        assert LINE not in last
        asked, after = (
            request.json for request in house.upstream.requests[1:]
        )  # the model may read them the other way
        key = next(name for name in ("messages", "contents", "input") if name in asked)
        assert after[key][: len(asked[key])] == asked[key]


def _interrupted(api: str, raw: bytes) -> list[Any]:
    """What an agent keeps of a reply that was broken off behind the refusal."""
    text = f"a\n\n{LINE}"
    match api:
        case "anthropic":
            blocks = [{"type": "text", "text": "a"}, {"type": "text", "text": LINE}]
            return [{"role": "assistant", "content": blocks}]
        case "chat":
            return [{"role": "assistant", "content": text}]
        case "responses":
            ids = dict.fromkeys(found.decode() for found in re.findall(rb'"id":\s*"(msg_[^"]+)"', raw))
            return [
                {
                    "type": "message",
                    "id": item_id,
                    "status": "completed",
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": said, "annotations": [], "logprobs": []}],
                }
                for item_id, said in zip(ids, ("a", LINE), strict=True)
            ]
        case _:
            return [{"role": "model", "parts": [{"text": text}]}]


@every_case
def test_calls_whose_ids_a_provider_counts_anew(case: Case) -> None:
    """Only the call that was changed gets the model's own arguments back, not another one with its id."""

    def changing(point: Point) -> Verdict:
        if isinstance(point, ToolCall) and point.arguments.get("command") == "del x":
            return allow(point)._replace(outcome="patched", arguments={"command": "trash x"})
        return allow(point)

    script: list[Step] = [
        Reply(ToolUse("Bash", {"command": "del x"}, id="call_0")),
        Reply(ToolUse("Read", {"file_path": "a"}, id="call_0")),
        Reply(Text("Done.")),
    ]
    with case.house(script, changing, strict=False) as house:
        talker = case.talker(house)
        talker.says("go")
        talker.answers({"call_0": "one"})
        talker.answers({"call_0": "two"})

        last = histories(house)[-1]
        assert last.count("del x") == 1
        assert "file_path" in last
