"""Ids that people can read aloud, and secrets that nobody can guess."""

import hashlib
import random
import secrets

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no i, l, o, u


def random_id(prefix: str, length: int = 8) -> str:
    """`prefix` and `length` random characters (5 bits each), such as `l7f3ak29x`."""
    return prefix + _characters(random.getrandbits(5 * length), length)


def derived_id(prefix: str, *parts: str, length: int = 10) -> str:
    """The same id for the same parts, in every process: `prefix` and `length` characters of their digest."""
    digest = hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return prefix + _characters(int.from_bytes(digest, "big"), length)


def secret_token() -> str:
    """A token of 32 URL-safe characters with 192 bits of randomness."""
    return secrets.token_urlsafe(24)


def digest_of_secret(secret: str) -> str:
    """What may be stored of a secret: its SHA-256 in hex."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _characters(number: int, length: int) -> str:
    return "".join(_ALPHABET[number >> 5 * place & 31] for place in range(length))
