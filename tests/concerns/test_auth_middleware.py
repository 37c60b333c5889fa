"""A challenge becomes a result that a model can read; nothing else is touched."""

import json
from typing import Any

import pytest

from interpose.concerns.auth.contract import SupportsAuth
from interpose.concerns.auth.middleware import AuthMiddleware
from interpose.contracts.auth import AuthChallenge
from interpose.contracts.errors import InterposeError
from tests.concerns.calls import Run, Tool, both


@both
def test_a_challenge_is_answered_in_band(run: Run) -> None:
    """JSON text with what is given, and without what is empty."""
    whole = AuthChallenge("Sign in.", url="https://example.org/device", code="ABCD-EFGH", scope="mail")
    assert json.loads(run([AuthMiddleware()], Tool(whole))) == {
        "auth_required": True,
        "message": "Sign in.",
        "url": "https://example.org/device",
        "code": "ABCD-EFGH",
        "scope": "mail",
    }
    bare = run([AuthMiddleware()], Tool(AuthChallenge("Sign in.", url="", code=None)))
    assert bare == '{"auth_required": true, "message": "Sign in."}'


@both
@pytest.mark.parametrize("error", [ValueError("mine"), InterposeError("ours"), KeyboardInterrupt()])
def test_everything_else_goes_on_unchanged(run: Run, error: BaseException) -> None:
    """Results and exceptions alike."""
    assert run([AuthMiddleware()], Tool({"x": 1})) == {"x": 1}
    with pytest.raises(type(error)) as caught:
        run([AuthMiddleware()], Tool(error))
    assert str(caught.value) == str(error)


@both
def test_a_challenge_that_is_only_a_cause_is_not_answered(run: Run) -> None:
    """A tool must let its challenge through."""
    wrapped: Any = ValueError("wrapped")
    wrapped.__cause__ = AuthChallenge("Sign in.")
    with pytest.raises(ValueError, match="wrapped"):
        run([AuthMiddleware()], Tool(wrapped))


@both
def test_a_challenge_of_an_outer_layer_is_not_the_tools(run: Run) -> None:
    """Innermost, the middleware catches what the tool raises and nothing from outside."""

    class Outer(AuthMiddleware):
        def flow(self, tool_name: str, arguments: Any) -> Any:
            yield tool_name, arguments
            raise AuthChallenge("from outside")

    with pytest.raises(AuthChallenge, match="from outside"):
        run([Outer(), AuthMiddleware()], Tool())


def test_it_is_found_by_its_contract() -> None:
    """An isinstance check answers, and the flag is the contract's."""
    assert isinstance(AuthMiddleware(), SupportsAuth)
    assert SupportsAuth.CAPABILITY == "auth"
