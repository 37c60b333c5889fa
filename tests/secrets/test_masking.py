"""secrets.masking."""

import json
import string
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.secrets.masking import MASK, mask_json, mask_text, may_hold_secrets

_WORD = string.ascii_letters + string.digits
_URL_SAFE = _WORD + "_-"


def _body(alphabet: str, size: int, most: int = 60) -> st.SearchStrategy[str]:
    return st.text(st.sampled_from(alphabet), min_size=size, max_size=most)


SECRETS = st.one_of(
    st.tuples(st.sampled_from(["sk-", "sk-proj-", "sk-ant-", "sk-ant-api03-"]), _body(_URL_SAFE, 24)),
    st.tuples(st.sampled_from(["ghp_", "gho_", "ghs_", "github_pat_"]), _body(_WORD, 20)),
    st.tuples(st.just("AKIA"), _body(string.ascii_uppercase + string.digits, 16, 16)),
    st.tuples(st.just("AIza"), _body(_URL_SAFE, 35, 35)),
    st.tuples(st.sampled_from(["xoxb-", "xoxp-"]), _body(_WORD, 24)),
    st.tuples(st.sampled_from(["Bearer ", "bearer "]), _body(_WORD, 20)),
    st.tuples(st.just("eyJ"), st.tuples(_body(_URL_SAFE, 20), _body(_URL_SAFE, 20)).map(".".join)),
    st.tuples(st.just("/l/"), _body(_URL_SAFE, 32, 32)),
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("key sk-ant-api03-abcdEFGHijklMNOPqrst-0 end", "key sk-ant-api03-abcd… end"),
        ("sk-proj-abcdefghijklmnopqrstuvwx", "sk-proj-abcd…"),
        ("ghp_abcdefghijklmnopqrst0123456789", "ghp_abcd…"),
        ("github_pat_11ABCDEFG0abcdefghijkl", "github_pat_11AB…"),
        ("AKIAIOSFODNN7EXAMPLE", "AKIAIOSF…"),
        ("?key=AIzaSyA1234567890abcdefghijklmnopqrstu&alt=sse", "?key=AIzaSyA1…&alt=sse"),
        ("xoxb-12345678901-abcdefghijkl", "xoxb-1234…"),
        ("Authorization: Bearer abcdefghijklmnop1234", "Authorization: Bearer abcd…"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dBjftJeZ4CVP", "eyJhbGc…"),
        ("http://127.0.0.1:4747/l/abcdefghijklmnopqrstuvwxyz012345/v1", "http://127.0.0.1:4747/l/abcd…/v1"),
        ("git clone https://me:hunter2@example.org/x.git", "git clone https://me:…@example.org/x.git"),
        ("OPENAI_API_KEY=0123456789abcdefgh python x.py", "OPENAI_API_KEY=0123… python x.py"),
        ("export DB_PASSWORD='hunter22'; run", "export DB_PASSWORD='…'; run"),
        (
            "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nb",
            "a\n-----BEGIN RSA PRIVATE KEY-----…\nb",
        ),
        ("-----BEGIN PRIVATE KEY-----\ncut in the mid", "-----BEGIN PRIVATE KEY-----…"),
    ],
)
def test_each_known_shape_is_masked(text: str, masked: str) -> None:
    """The head stays so that a person can tell which key it was; the body goes, the text around it stays."""
    assert mask_text(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "rm -rf build",
        "a risk-management-process-for-everybody",
        "echo $OPENAI_API_KEY",
        "TOKEN=$(cat file)",
        "https://example.org/a:b/c@d",
        "the bearer of news",
        "https://localhost:4747/v1/messages?x=1",
        "ls /l/short",
        "",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    """What is no secret is not touched."""
    assert mask_text(text) == text


@given(st.text(st.characters(exclude_characters=MASK)), SECRETS, st.text())
def test_a_secret_never_survives_whatever_stands_around_it(before: str, secret: tuple[str, str], after: str) -> None:
    """The body of a secret is not in the masked text, when it stands apart from the word before it."""
    prefix, body = secret

    masked = mask_text(f"{before} {prefix}{body} {after}")

    assert body not in masked or body in before or body in after
    assert prefix in masked


@given(json_values, SECRETS)
def test_masking_json_reaches_every_string_and_leaves_the_original(value: Any, secret: tuple[str, str]) -> None:
    """Keys and nested strings are masked in a copy; what holds no secret is equal to what it was."""
    token = "".join(secret)
    whole = {"plain": value, "deep": [{"list": [token]}, {token: 1}], "in text": f"see {token}"}
    before = json.dumps(whole)

    masked = mask_json(whole)

    assert json.dumps(whole) == before
    assert secret[1] not in json.dumps([masked["deep"], masked["in text"]], ensure_ascii=False)
    if not may_hold_secrets(json.dumps(value, ensure_ascii=False)):
        assert masked["plain"] == value


@given(st.text() | SECRETS.map("".join) | st.lists(SECRETS.map("".join)).map(", ".join))
def test_masking_twice_is_masking_once(text: str) -> None:
    """A masked text has nothing left to mask."""
    once = mask_text(text)

    assert mask_text(once) == once


@pytest.mark.parametrize("name", ["Authorization", "x-api-key", "PASSWORD", "client_secret", "Cookie"])
def test_a_field_with_a_telling_name_loses_its_value(name: str) -> None:
    """Even a secret without any shape goes when the field says what it is, and only strings go."""
    assert mask_json({name: "hunter2"}) == {name: "…"}
    assert mask_json({name: ["correct horse battery staple", 1, None]}) == {name: ["corr…", 1, None]}
    assert mask_json(mask_json({name: "correct horse battery staple"})) == {name: "corr…"}


def test_two_secret_keys_that_look_alike_both_stay() -> None:
    """No member of an object is lost when the masked names are the same."""
    masked = mask_json({"ghp_abcd0123456789012345": 1, "ghp_abcd9876543210987654": 2})

    assert masked == {"ghp_abcd…": 1, "ghp_abcd……": 2}


@pytest.mark.parametrize(
    "piece", ["eyJ", "sk-", "://a:", "a", "KEY", "TOKEN_", "-----BEGIN PRIVATE KEY-----", "bearer  "]
)
def test_a_long_text_costs_linear_time(piece: str) -> None:
    """A quarter of a million characters that nearly match take far less than a second of CPU."""
    text = piece * (250_000 // len(piece))
    started = time.process_time()

    mask_text(text + " end")

    assert time.process_time() - started < 1.0
