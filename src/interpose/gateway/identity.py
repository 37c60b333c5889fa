"""Whose request it is: session, subagent and turn, as the client's own headers and the launch tell them.

Never guessed from what is said. Who names nothing in headers or body has a session for each conversation.
Knows: the clients' headers. Does not know: bodies, histories.
Sources: headers recorded from Claude Code 2.1, Codex 0.171, opencode 1.18.
"""

from typing import NamedTuple

from interpose.contracts.json import Json, JsonObject
from interpose.contracts.ports import Launch
from interpose.gateway.routes import SESSION_HEADERS, Headers, session_of
from interpose.kernel.ids import derived_id, random_id
from interpose.wire.jsonbytes import read_json

SUBAGENT_HEADER = b"x-claude-code-agent-id"
PARENT_HEADER = b"x-parent-session-id"
TURN_HEADER = b"x-codex-turn-metadata"
"""JSON: the ids of session, thread and turn, and what kind of request it is."""

_TELLING = (*SESSION_HEADERS, SUBAGENT_HEADER, PARENT_HEADER, TURN_HEADER)
_ID_CHARS = 200
_COMPACTION = "compaction"


class Identity(NamedTuple):
    """Whose request it is.

    Attributes:
        session: one conversation of one agent; a subagent has its own.
        parent: the session that started this subagent, else None.
        subagent: the subagent's id, else None.
        turn: the client's id of the turn, or None.
        is_compaction: whether the client says that the request only shortens its history.
    """

    session: str
    parent: str | None = None
    subagent: str | None = None
    turn: str | None = None
    is_compaction: bool = False


def identity_of(headers: Headers, launch: Launch | None, named: str | None = None) -> Identity:
    """Whose request these headers and this launch make it; `named` is the session where no header names one."""
    session = _short(session_of(headers) or named) or (launch.session if launch else "") or random_id("s", 12)
    if not headers.has(*_TELLING):
        return Identity(session)
    told = _told(headers)
    turn = told.get("turn_id")
    parent, subagent = _subagent(headers, told, session)
    return Identity(
        session=f"{parent}/{subagent}" if parent is not None and parent == session else session,
        parent=parent,
        subagent=subagent,
        turn=_short(turn) if isinstance(turn, str) and turn else None,
        is_compaction=told.get("request_kind") == _COMPACTION,
    )


def unnamed(workspace: str, *conversation: str) -> str:
    """The session of a conversation that nobody names: the same one in each process and launch of the workspace."""
    return derived_id("s", workspace, *conversation, length=12)


def _subagent(headers: Headers, told: JsonObject, session: str) -> tuple[str | None, str | None]:
    """The parent session and the subagent's id. Some clients name it beside the session, some give it its own."""
    named = headers.get(SUBAGENT_HEADER)
    if named:
        return session, _short(named)
    parent = headers.get(PARENT_HEADER)
    if parent:
        return _short(parent), session
    root, thread = told.get("session_id"), told.get("thread_id")
    if isinstance(root, str) and isinstance(thread, str) and root and thread and root != thread:
        return session, _short(thread)
    return None, None


def _told(headers: Headers) -> JsonObject:
    text = headers.get(TURN_HEADER)
    if not text:
        return {}
    try:
        value: Json = read_json(text.encode("latin-1"))
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _short(name: str | None) -> str:
    return (name or "")[:_ID_CHARS]
