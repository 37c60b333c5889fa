"""kernel.ids and kernel.canonical."""

import pytest

from interpose.kernel.canonical import canonical_hash, canonical_json
from interpose.kernel.ids import derived_id, digest_of_secret, random_id, secret_token


def test_derived_ids_are_the_same_everywhere_and_differ_by_part() -> None:
    """Equal parts give equal ids; moving a character between parts gives another."""
    assert derived_id("a", "session", "call") == derived_id("a", "session", "call")
    assert derived_id("a", "session", "call") != derived_id("a", "sessionc", "all")


def test_random_ids_and_secrets_do_not_repeat() -> None:
    """A thousand of each are all different, and a secret is never its digest."""
    assert len({random_id("l") for _ in range(1000)}) == 1000
    assert len({secret_token() for _ in range(1000)}) == 1000
    assert digest_of_secret("x") != "x"


def test_canonical_form_ignores_key_order_only() -> None:
    """Key order does not change the hash; values do; NaN is refused."""
    assert canonical_json({"b": 1, "a": ["é"]}) == '{"a":["é"],"b":1}'
    assert canonical_hash({"b": 1, "a": 2}) == canonical_hash({"a": 2, "b": 1})
    assert canonical_hash({"a": 2}) != canonical_hash({"a": 2.5})
    with pytest.raises(ValueError, match="JSON compliant"):
        canonical_json(float("nan"))
