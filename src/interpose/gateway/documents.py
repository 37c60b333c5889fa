"""The text inside of files that stand in a content: documents, search results, files sent along as text.

Knows: the parts of all APIs that carry files. Does not know: what a file says that is no text, as pictures and PDFs.
Source: https://docs.anthropic.com/en/docs/build-with-claude/citations and
https://platform.openai.com/docs/guides/pdf-files and https://ai.google.dev/api/caching#Blob.
"""

import base64
import binascii
import re
from collections.abc import Iterable

from interpose.contracts.json import Json, JsonObject

_DATA_URL = re.compile(r"data:(?P<type>[^;,]*)(?P<rest>[^,]*),", re.IGNORECASE)
_TEXTUAL = ("json", "xml", "yaml", "javascript", "toml", "csv", "x-sh")
"""How types of text end that do not begin with `text/`."""


def document_text(part: Json) -> str | None:
    """The text of a part that carries a file; None for another part, and for a file that is no text."""
    match part:
        case {"type": "document", "source": dict(source)}:
            text = _source_text(source)
            return None if text is None else _joined([part.get("title"), part.get("context"), text])
        case {"type": "search_result", "content": content}:
            return _joined([part.get("title"), part.get("source"), _blocks_text(content)])
        case {"type": "input_file", "file_data": str(data)} | {"type": "file", "file": {"file_data": str(data)}}:
            return _file_text(data)
        case {"inlineData": dict(blob)} | {"inline_data": dict(blob)}:
            kind, said = blob.get("mimeType") or blob.get("mime_type"), blob.get("data")
            return _decoded(said) if _is_textual(kind) and isinstance(said, str) else None
        case _:
            return None


def _source_text(source: JsonObject) -> str | None:
    match source:
        case {"type": "text", "data": str(text)}:
            return text
        case {"type": "content", "content": content}:
            return _blocks_text(content)
        case {"type": "base64", "media_type": kind, "data": str(data)} if _is_textual(kind):
            return _decoded(data)
        case _:
            return None


def _blocks_text(content: Json) -> str:
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return _joined(block.get("text") for block in blocks if isinstance(block, dict))


def _file_text(data: str) -> str | None:
    """What a file's data says: a data URL, the bytes in base64, or, as servers take it too, the text itself."""
    url = _DATA_URL.match(data)
    if url is not None:
        if not _is_textual(url["type"] or "text/plain"):
            return None
        rest = data[url.end() :]
        return _decoded(rest) if "base64" in url["rest"].lower() else rest
    try:
        return base64.b64decode(data, validate=True).decode()
    except UnicodeDecodeError:
        return None
    except (binascii.Error, ValueError):
        return data


def _decoded(data: str) -> str:
    """The text of bytes in base64, in either alphabet; what is no base64 says what it says."""
    plain = data.strip().translate({ord("-"): "+", ord("_"): "/"})
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4)).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return data


def _is_textual(kind: Json) -> bool:
    if not isinstance(kind, str):
        return False
    plain = kind.partition(";")[0].strip().lower()
    return plain.startswith("text/") or plain.endswith(_TEXTUAL)


def _joined(texts: Iterable[Json]) -> str:
    return "\n".join(text for text in texts if isinstance(text, str) and text)
