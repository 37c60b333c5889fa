"""kernel.ids and kernel.canonical."""

import pytest

from interpose.kernel.canonical import canonical_hash, canonical_json
from interpose.kernel.ids import derived_id, digest_of_secret, random_id, secret_token


def test_derived_ids_are_the_same_everywhere_and_differ_by_part() -> None:
    """Equal parts give equal ids; moving a character between parts gives another."""
    assert derived_id("a", "session", "call") == derived_id("a", "session", "call")
    assert derived_id("a", "session", "call") != derived_id("a", "sessionc", "all")


def test_ids_that_belong_together_begin_alike() -> None:
    """Ids of one moment, and those derived from one first part, stand together in an index."""
    assert len({random_id("a", 10)[:3] for _ in range(500)}) <= 2
    assert len({derived_id("a", "session", str(number))[:3] for number in range(500)}) == 1
    assert len({derived_id("a", f"session {number}", "call")[:3] for number in range(500)}) > 100


def test_ids_have_the_length_that_was_asked_for() -> None:
    """Prefix and so many characters that nobody misreads."""
    for made in (random_id("l"), derived_id("t", "a", "b", length=8)):
        assert len(made) == 9
        assert not set(made[1:]) & set("ilou")


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
