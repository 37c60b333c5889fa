"""The moments at which an agent waits, each with its typed payload. A payload value is called a point.

Mounts make points from what they see, in the agent's own words: tool names and arguments as they came. The policy
turns them into the hook form with `catalog`, so every mount is read alike.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias

from interpose.contracts.effects import MetadataValue
from interpose.contracts.json import Json, JsonObject

Stage: TypeAlias = Literal[
    "turn.start",
    "tool.call",
    "tool.result",
    "turn.end",
    "compaction",
    "memory.save",
    "message.send",
    "llm.request",
    "llm.chunk",
    "llm.response",
    "stop",
]
STAGES: tuple[Stage, ...] = (
    "turn.start",
    "tool.call",
    "tool.result",
    "turn.end",
    "compaction",
    "memory.save",
    "message.send",
    "llm.request",
    "llm.chunk",
    "llm.response",
    "stop",
)

LlmStage: TypeAlias = Literal["llm.request", "llm.chunk", "llm.response"]
LLM_STAGES: tuple[LlmStage, ...] = ("llm.request", "llm.chunk", "llm.response")
"""The stages of the traffic between an agent and its model; no hook of the effect engine sees them."""

LlmProtocol: TypeAlias = Literal["anthropic", "chat", "responses", "gemini"]
"""Which API the traffic speaks: Messages, Chat Completions, Responses, generateContent."""
LLM_PROTOCOLS: tuple[LlmProtocol, ...] = ("anthropic", "chat", "responses", "gemini")

MountName: TypeAlias = Literal["process", "wire", "hooks", "mcp", "host"]
"""Where the agent was reached: a Python program, its model's wire, its own hooks, an MCP server, our own loop."""


@dataclass(frozen=True, slots=True)
class Context:
    """Who acts, and where. Strings are ids; None means that the mount cannot know it.

    Attributes:
        mount: where the agent was reached.
        session: one conversation of one agent.
        workspace: the canonical project root whose hooks judge; "" where only the user's hooks do.
        cwd: the folder that relative paths of the call start from; "" means the workspace.
        agent: which agent it is (`claude-code`, `codex`, `gemini-cli`, `opencode`, ...), for `catalog`.
        launch: the public id of the launch, never its secret.
        turn: one prompt and all that follows until the agent waits for the next.
        model: the model's name as the agent gave it.
        parent: the session that started this subagent; None for an agent that nobody started.
        subagent: the subagent's id.
    """

    mount: MountName
    session: str
    workspace: str = ""
    cwd: str = ""
    agent: str | None = None
    launch: str | None = None
    turn: str | None = None
    model: str | None = None
    parent: str | None = None
    subagent: str | None = None


@dataclass(frozen=True, slots=True)
class Annotation:
    """One line for a tool result: who wrote it, how urgent, and what it says; below the output unless `in_front`."""

    handler: str
    severity: Literal["info", "warn"]
    message: str
    in_front: bool = False


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that is proposed and has not run. `tool_name` and `arguments` are as the agent wrote them.

    `problem` says why the arguments cannot be trusted (unparsable, duplicate keys, not an object), else None;
    `arguments` is then empty and every guard that needs them says unknown.
    `leaf` is what the tool's own driver calls it, where drivers in front of it have put labels before its name: rules
    about the tool hold under both names. None where nobody has, or the mount cannot know.
    A shape handler sees the call in its hook form: `tool_name` is the canonical name, `aliases` the tool's other names,
    the agent's own first. A mount leaves `aliases` empty.
    """

    stage: ClassVar[Stage] = "tool.call"
    context: Context
    call_id: str
    tool_name: str
    arguments: JsonObject
    problem: str | None = None
    correlation_id: str | None = None
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict)
    leaf: str | None = None
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A result on its way back. `output` is the text the model would see, before anything is added to it.

    `annotations` are those the verdict of the call gave; they stand ahead of what the result's own judgement adds.
    `leaf` and `aliases` are as in the call.
    """

    stage: ClassVar[Stage] = "tool.result"
    context: Context
    call_id: str
    tool_name: str
    arguments: JsonObject
    output: str
    is_error: bool = False
    duration_ms: float | None = None
    details: JsonObject | None = None
    annotations: tuple[Annotation, ...] = ()
    problem: str | None = None
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict)
    leaf: str | None = None
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnStart:
    """The person's new message, before the model sees it."""

    stage: ClassVar[Stage] = "turn.start"
    context: Context
    prompt: str
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """The model's final answer of a turn."""

    stage: ClassVar[Stage] = "turn.end"
    context: Context
    text: str
    stop_reason: str | None = None
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Compaction:
    """The agent is about to shorten its history. Observe only: effects are discarded."""

    stage: ClassVar[Stage] = "compaction"
    context: Context
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LlmRequest:
    """A request to the model, before it is sent. `body` is the API's own, whole."""

    stage: ClassVar[Stage] = "llm.request"
    context: Context
    protocol: LlmProtocol
    body: JsonObject


@dataclass(frozen=True, slots=True)
class LlmChunk:
    """One event of a streamed reply, before it is sent on.

    `sequence` counts the events of the reply from 0; `event` is the name that the stream gave it, or None; `data` is
    its parsed data. A refused chunk is dropped.
    """

    stage: ClassVar[Stage] = "llm.chunk"
    context: Context
    protocol: LlmProtocol
    sequence: int
    event: str | None
    data: Json


@dataclass(frozen=True, slots=True)
class LlmResponse:
    """A whole reply of the model. `body` is the API's own; of a `streamed` one it is what its events came to."""

    stage: ClassVar[Stage] = "llm.response"
    context: Context
    protocol: LlmProtocol
    status: int
    body: JsonObject
    streamed: bool


HookPoint: TypeAlias = ToolCall | ToolResult | TurnStart | TurnEnd | Compaction
"""The points at which the effect engine has a hook."""

LlmPoint: TypeAlias = LlmRequest | LlmChunk | LlmResponse
"""The points of the traffic between an agent and its model."""

Point: TypeAlias = HookPoint | LlmPoint
