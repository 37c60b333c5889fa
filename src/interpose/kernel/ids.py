"""Ids that people can read aloud, and secrets that nobody can guess."""

import hashlib
import random
import secrets
import time
import zlib

_ALPHABET = b"0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's base 32: no i, l, o, u."""

_CHARACTER_OF = bytes(_ALPHABET[byte & 31] for byte in range(256))


def random_id(prefix: str, length: int = 8) -> str:
    """`prefix` and `length` characters (5 bits each), such as `l7f3ak29x`.

    The first two tell the moment, to some four seconds, and come again after an hour; of ten and more a third tells it
    to an eighth of a second. Ids made together stand together in an index, which then writes few pages. All others are
    random.
    """
    moment = time.time_ns() >> 27
    told = bytes((moment >> 10 & 31, moment >> 5 & 31, moment & 31)[: 3 if length >= 10 else 2])
    rest = random.getrandbits(8 * (length - len(told))).to_bytes(length - len(told))
    return prefix + (told + rest).translate(_CHARACTER_OF).decode()


def derived_id(prefix: str, *parts: str, length: int = 10) -> str:
    """The same id for the same parts, in every process: `prefix` and `length` characters of their digest.

    The first two are those of the first part alone, so that what belongs to it stands together in an index.
    """
    first, whole = parts[0].encode("utf-8", "surrogatepass"), "\0".join(parts).encode("utf-8", "surrogatepass")
    family = zlib.crc32(first)
    characters = bytes((family >> 5 & 31, family & 31)) + hashlib.blake2b(whole, digest_size=length - 2).digest()
    return prefix + characters.translate(_CHARACTER_OF).decode()


def secret_token() -> str:
    """A token of 32 URL-safe characters with 192 bits of randomness."""
    return secrets.token_urlsafe(24)


def digest_of_secret(secret: str) -> str:
    """What may be stored of a secret: its SHA-256 in hex."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
