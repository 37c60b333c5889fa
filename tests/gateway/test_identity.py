"""gateway.identity."""

import json

from interpose.contracts.ports import Launch
from interpose.gateway.identity import Identity, identity_of
from interpose.gateway.routes import Headers

LAUNCH = Launch("l1", "/w", "launch-session", "codex", "/w", None, 0.0)


def of(*headers: tuple[str, str], launch: Launch | None = None) -> Identity:
    """The identity that the headers make."""
    return identity_of(Headers.of([(name.encode(), value.encode()) for name, value in headers]), launch)


def test_a_client_that_names_its_session() -> None:
    """The header counts; the launch's session is for those that send none, and a fresh one for the rest."""
    assert of(("x-claude-code-session-id", "s")) == Identity("s")
    assert of(("x-session-id", "s"), launch=LAUNCH) == Identity("s")
    assert of(launch=LAUNCH) == Identity("launch-session")
    assert of().session != of().session


def test_a_subagent_named_beside_its_session() -> None:
    """It is a session of its own, linked to the one that started it."""
    found = of(("x-claude-code-session-id", "s"), ("x-claude-code-agent-id", "a1"))

    assert found == Identity("s/a1", parent="s", subagent="a1")


def test_a_subagent_with_a_session_of_its_own() -> None:
    """Its parent is named in a header."""
    found = of(("x-session-id", "child"), ("x-parent-session-id", "main"))

    assert found == Identity("child", parent="main", subagent="child")


def test_what_codex_tells_of_a_turn() -> None:
    """Turn, thread and kind of request; the main thread is the session itself."""
    told = {"session_id": "s", "thread_id": "s", "turn_id": "t", "request_kind": "turn"}
    main = of(("session-id", "s"), ("x-codex-turn-metadata", json.dumps(told)))
    other = of(("session-id", "s"), ("x-codex-turn-metadata", json.dumps({**told, "thread_id": "c"})))
    short = of(("session-id", "s"), ("x-codex-turn-metadata", json.dumps({**told, "request_kind": "compaction"})))

    assert main == Identity("s", turn="t")
    assert other == Identity("s/c", parent="s", subagent="c", turn="t")
    assert short == Identity("s", turn="t", is_compaction=True)


def test_headers_that_say_nothing_sensible() -> None:
    """They are left out; a long name is cut."""
    for told in ("", "no json", "[]", '{"turn_id": 5, "session_id": [], "thread_id": null}', "{" * 5000):
        assert of(("session-id", "s"), ("x-codex-turn-metadata", told)) == Identity("s")
    assert len(of(("session-id", "s" * 5000)).session) == 200
