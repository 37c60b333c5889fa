"""Request bodies, edited as a tree of which only the touched branches are rewritten.

Knows: how to take a JSON object apart into raw members and back, how contents of messages are compared.
Does not know: any API's shape.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import TypeAlias

import msgspec

from interpose.contracts.json import Json, JsonObject
from interpose.gateway.api import Unreadable
from interpose.gateway.documents import document_text
from interpose.kernel.canonical import canonical_json, hash_of, lenient_hash
from interpose.wire.jsonbytes import read_json, tidied
from interpose.wire.repeats import repeated_key

RawObject: TypeAlias = dict[str, msgspec.Raw]

VALUES_MAX = 1_000_000
"""So many values a body may have: libraries read it in one go, and nothing else runs meanwhile."""

_OBJECT = msgspec.json.Decoder(RawObject)
_ARRAY = msgspec.json.Decoder(list[msgspec.Raw])


_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_SIGNS = (b"[", b"{", b",")
_SOMEWHERE = "a part of the body"
_NUMBERS = tuple(b"%c" % char for char in b"-0123456789")
_KINDS = {b'"': "a text", b"{": "an object", b"[": "an array", b"t": "a boolean", b"f": "a boolean", b"n": "null"}


class _Role(msgspec.Struct):
    role: str = ""


class _Model(msgspec.Struct):
    model: str | None = None


_ROLE = msgspec.json.Decoder(_Role)
_ROLES = msgspec.json.Decoder(list[_Role])
_MODEL = msgspec.json.Decoder(_Model)


def open_body(body: bytes, *, arguments: str = "") -> RawObject:
    """The members of a body. Raises Unreadable when it is not a JSON object, or can be read in two ways.

    Repeated keys under the key `arguments` are left to whoever reads those.
    """
    if _has_more_values(body, VALUES_MAX):
        raise Unreadable(f"the body has more than {VALUES_MAX} JSON values; put what is large into texts")
    try:
        body.decode()  # raw members are not checked otherwise
        members = _members(body)
    except UnicodeDecodeError as error:
        raise Unreadable(f"the body is not UTF-8: {error.reason} at byte {error.start}") from None
    except msgspec.ValidationError:
        raise Unreadable("the body is JSON, but not an object") from None
    except ValueError as error:
        raise _not_json(body, error) from None
    refuse_repeats(body, arguments=arguments)
    return members


def refuse_repeats(data: bytes | None, *, arguments: str = "") -> None:
    """Raises Unreadable when an object has a key twice: what we judge is not what another reader takes then."""
    try:
        key = repeated_key(data or b"", arguments=arguments)
    except ValueError as error:
        raise _not_json(data or b"", error) from None
    if key is not None:
        raise Unreadable(f"it can be read in two ways: it has the key {key!r} twice")


def read_event(data: bytes | None, out: list[bytes], call: re.Pattern[bytes]) -> Generator[bytes, None, JsonObject]:
    """The object that the data of a streamed event says; empty when it is none.

    Raises Unreadable, when what stood before it in `out` has left, where it can be read in two ways, or is no
    object and has a mark of a `call`: another reader may find one in it.
    """
    try:
        refuse_repeats(data)
        value = object_of(data)
        if not value:
            refuse_hidden(data, call)
    except Unreadable:
        yield from _left(out)
        raise
    return value


def read_in_one_way(data: bytes | None, out: list[bytes], *, arguments: str = "") -> Iterator[bytes]:
    """Refuses the repeats of a streamed event, when what stood before it in `out` has left."""
    try:
        refuse_repeats(data, arguments=arguments)
    except Unreadable:
        yield from _left(out)
        raise


def refuse_hidden(data: bytes | None, call: re.Pattern[bytes]) -> None:
    """Raises Unreadable where what is no JSON object has a mark of a `call`."""
    if data is not None and call.search(data) is not None:
        raise Unreadable("an event in which a call may stand is not a JSON object")


def open_object(raw: msgspec.Raw, name: str = _SOMEWHERE) -> RawObject:
    """The members of an inner object. Raises Unreadable with its `name` when it is something else."""
    try:
        return _OBJECT.decode(raw)
    except msgspec.DecodeError:
        raise Unreadable(f"{name} must be an object, and is {_kind_of(raw)}") from None


def open_array(raw: msgspec.Raw | None, name: str = _SOMEWHERE) -> list[msgspec.Raw]:
    """The items of an inner array; none for a missing one. Raises Unreadable with its `name` when it is no array."""
    if raw is None:
        return []
    try:
        return _ARRAY.decode(raw)
    except msgspec.DecodeError:
        raise Unreadable(f"{name} must be an array, and is {_kind_of(raw)}") from None


def listed(raw: msgspec.Raw | None, name: str) -> list[msgspec.Raw]:
    """As `open_array`; a single object is a list of one, as Google's readers take it, and null is none."""
    if raw is None or bytes(raw) == b"null":
        return []
    return [raw] if bytes(raw).startswith(b"{") else open_array(raw, name)


def value_of(raw: msgspec.Raw | None) -> Json:
    """The plain value; None for a missing one. Raises Unreadable when it cannot be read."""
    if raw is None:
        return None
    try:
        return read_json(bytes(raw))
    except ValueError as error:
        raise Unreadable(f"a part of the body cannot be read: {error}") from None


def object_of(data: bytes | None) -> JsonObject:
    """The object that the data of an event says; empty when it is none."""
    if data is None:
        return {}
    try:
        value: Json = read_json(data)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def role_of(raw: msgspec.Raw) -> str:
    """The role of a message; "" when it has none."""
    try:
        return _ROLE.decode(raw).role
    except msgspec.DecodeError:
        return ""


def roles_of(messages: Sequence[bytes], raw: msgspec.Raw | None) -> list[str]:
    """The roles of these messages, the items of `raw`; "" for those that have none."""
    try:
        return [message.role for message in _ROLES.decode(raw or b"[]")]
    except msgspec.DecodeError:
        return [role_of(msgspec.Raw(message)) for message in messages]


def model_of(body: bytes) -> str | None:
    """The model that a body names, or None; for bodies that are not read any further."""
    try:
        return _MODEL.decode(body).model
    except (msgspec.DecodeError, RecursionError):
        return None


def raw_text(text: str) -> msgspec.Raw:
    """A string as a raw member."""
    return msgspec.Raw(msgspec.json.encode(text))


def root_of(messages: Sequence[bytes], roles: Sequence[str]) -> str:
    """The same for all requests of one conversation: what the person said first, wherever marks of a cache stand."""
    first = next((message for message, role in zip(messages, roles, strict=True) if role == "user"), b"")
    if not first:
        return ""
    return content_digest(value_of(open_object(msgspec.Raw(first)).get("content")))


def is_same(new: Sequence[object], old: Sequence[object]) -> bool:
    """Whether the two lists hold the very same objects."""
    return new is old or (len(new) == len(old) and all(one is other for one, other in zip(new, old, strict=True)))


def spoken(roles: list[str]) -> int:
    """How many of the messages are the person's or the model's."""
    return sum(role in ("user", "assistant") for role in roles)


def tools_of(raw: msgspec.Raw | None) -> list[Json]:
    """The items of a list of tools; none when there is no list, or one that cannot be read."""
    try:
        tools = value_of(raw)
    except Unreadable:
        return []
    return tools if isinstance(tools, list) else []


def named(entries: Iterable[Json]) -> tuple[str, ...]:
    """The names of a list of tools, each once; what has none is left out."""
    names = [entry.get("name") for entry in entries if isinstance(entry, dict)]
    return tuple(dict.fromkeys(name for name in names if isinstance(name, str) and name))


def content_digest(content: Json) -> str:
    """Equal for contents that say the same.

    Clients move `cache_control` marks, and turn a string into a list with one text block, between two requests.
    """
    if isinstance(content, str):
        return hash_of(f'[{{"text":{canonical_json(content)},"type":"text"}}]')
    return lenient_hash(_comparable(content))


def content_text(content: Json) -> str:
    """The text that the model sees of a content: a string, or its text blocks and files joined by line ends."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [item.get("text") if _is_text(item) else document_text(item) for item in content]
    return "\n".join(text for text in texts if isinstance(text, str))


def _not_json(body: bytes, error: ValueError) -> Unreadable:
    """What a person is told of a body that is not JSON; the library's own words only where they help."""
    if not body.strip():
        return Unreadable("the body is empty, and no JSON")
    if body.startswith(BOM_UTF8):
        return Unreadable("the body is not JSON: it begins with a byte order mark (EF BB BF), which must be left out")
    return Unreadable(f"the body is not JSON: {error}")


def _left(out: list[bytes]) -> Iterator[bytes]:
    if out:
        yield b"".join(out)
        out.clear()


def _members(body: bytes) -> RawObject:
    try:
        return _OBJECT.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return _OBJECT.decode(tidied(body))


def _has_more_values(body: bytes, limit: int) -> bool:
    """Whether there are more values than that: by a look that is cheap, and where that may be wrong, by another."""
    if len(body) <= limit or _signs(body) <= limit:
        return False
    found = at = 0
    for strings, string in enumerate(_STRING.finditer(body)):
        found += _signs(body[at : string.start()])
        at = string.end()
        if found > limit or strings > 2 * limit:
            return True
    return found + _signs(body[at:]) > limit


def _signs(data: bytes) -> int:
    """Where a value may begin."""
    return sum(data.count(sign) for sign in _SIGNS)


def _is_text(item: Json) -> bool:
    return isinstance(item, dict) and item.get("type") == "text"


def _kind_of(raw: msgspec.Raw) -> str:
    """What a value is, as a person calls it."""
    first = bytes(raw).lstrip()[:1]
    return _KINDS.get(first, "a number" if first in _NUMBERS else "no JSON")


def _comparable(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _comparable(item) for key, item in value.items() if key != "cache_control"}
    if isinstance(value, list):
        return [_comparable(item) for item in value]
    return value
