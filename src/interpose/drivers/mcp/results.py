"""Results of MCP tools as text for a model.

Knows: every kind of content block. Does not know: connections.
"""

import json
from typing import Any

import mcp_types as types

from interpose.contracts.errors import ToolError


def told(result: types.CallToolResult, tool: str, chars_most: int) -> str:
    """Text blocks as they are, a line for each block that is no text; structured content where there is nothing else.

    Raises ToolError with the same text when the tool says that it failed.
    """
    parts = [_block(block) for block in result.content]
    if not parts and result.structured_content is not None:
        parts = [json.dumps(result.structured_content, ensure_ascii=False, separators=(",", ":"))]
    text = "\n".join(parts)
    if len(text) > chars_most:
        text = f"{text[:chars_most]}\n[cut here: the result has {len(text):,} characters]"
    if result.is_error:
        raise ToolError(f"{tool} failed: {text}" if text else f"{tool} failed without a word")
    return text or "done"


def plain(result: types.CallToolResult, tool: str) -> dict[str, Any]:
    """The whole result as JSON values, `content` and `structuredContent`; ToolError when the tool says it failed."""
    if result.is_error:
        told(result, tool, chars_most=2_000)
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


def _block(block: types.ContentBlock) -> str:
    match block:
        case types.TextContent():
            return block.text
        case types.ImageContent() | types.AudioContent():
            return f"[{block.type} {block.mime_type}, {_size(block.data)} bytes, not shown]"
        case types.ResourceLink():
            words = f": {block.description}" if block.description else ""
            return f"[resource {block.name} at {block.uri}{words}]"
        case types.EmbeddedResource():
            return _resource(block.resource)


def _resource(resource: types.TextResourceContents | types.BlobResourceContents) -> str:
    if isinstance(resource, types.TextResourceContents):
        return f"[resource {resource.uri}]\n{resource.text}"
    return f"[resource {resource.uri}, {resource.mime_type or 'binary'}, {_size(resource.blob)} bytes, not shown]"


def _size(base64: str) -> str:
    return f"{len(base64) * 3 // 4 - base64[-2:].count('='):,}"
