"""Settings of concerns, checked when they are given: each that cannot be is named, with what was expected."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from interpose.concerns.auth.authority import OAuthClient
from interpose.concerns.auth.browser import BrowserCredentials
from interpose.concerns.auth.device import DeviceCodeCredentials
from interpose.concerns.auth.stores import FileTokenStore, MemoryTokenStore
from interpose.concerns.permission.approvals import ApprovalsConsent
from interpose.concerns.permission.console import ConsoleConsent
from interpose.concerns.policy.middleware import PolicyMiddleware
from interpose.contracts.errors import ConfigError
from interpose.contracts.stages import Context
from interpose.testing.fakes import FakePolicy

CONTEXT = Context("process", session="s1")


class Approvals:
    """Answers yes."""

    def ask(self, request: Any, *, timeout_s: float) -> bool:
        """Yes."""
        return True


def client(**given: Any) -> OAuthClient:
    """A client with one field changed."""
    endpoints = dict.fromkeys(
        ("token_endpoint", "authorization_endpoint", "device_authorization_endpoint"), "https://a.example/t"
    )
    return OAuthClient(**{"client_id": "me", **endpoints, **given})


def browser(**given: Any) -> BrowserCredentials:
    """Over that client."""
    return BrowserCredentials(**{"client": client(), "store": MemoryTokenStore(), **given})


def policy(**given: Any) -> PolicyMiddleware:
    """Over a fake."""
    return PolicyMiddleware(**{"policy": FakePolicy(), "context": CONTEXT, **given})


def consent(**given: Any) -> ApprovalsConsent:
    """Over one that says yes."""
    return ApprovalsConsent(**{"approvals": Approvals(), **given})


def test_the_usual_settings_are_taken() -> None:
    """So that what follows fails for what it changes."""
    for make in (client, browser, policy, consent):
        make()
    policy(context=lambda: CONTEXT)


@pytest.mark.parametrize(
    ("make", "setting", "values"),
    [
        (policy, "PolicyMiddleware(policy", [None, "policy", FakePolicy, object()]),
        (policy, "PolicyMiddleware(context", [None, "process", {}]),
        (policy, "PolicyMiddleware(judge_results", [None, 1, "no"]),
        (policy, "PolicyMiddleware(refused", ["text", 5]),
        (consent, "ApprovalsConsent(approvals", [None, Approvals, "text"]),
        (consent, "ApprovalsConsent(timeout_s", [0, -1, math.nan, math.inf, "5", True, None]),
        (consent, "ApprovalsConsent(reason", [None, 5]),
        (ConsoleConsent, "ConsoleConsent(device", ["", None, 5]),
        (FileTokenStore, "FileTokenStore(folder", ["", None, 5, b"a"]),
        (browser, "BrowserCredentials(client", [None, "client"]),
        (browser, "BrowserCredentials(port", [-1, 65_536, "80", True, None]),
        (browser, "BrowserCredentials(lifetime_s", [-1, math.nan, "5", None]),
        (browser, "BrowserCredentials(open_browser", ["firefox"]),
        (client, "OAuthClient.client_id", ["", None, 5]),
        (client, "OAuthClient.token_endpoint", ["", None, 5, "http://a.example", "https://[", "ftp://a"]),
        (client, "OAuthClient.authorization_endpoint", ["", 5, "http://a.example"]),
        (client, "OAuthClient.client_secret", ["", 5, b"sk-secret"]),
        (client, "OAuthClient.authentication", ["basic", 5]),
        (client, "OAuthClient.extra", [None, {"a": 1}, {1: "a"}, "text"]),
        (client, "OAuthClient.timeout_s", [0, -1, math.inf, "5", None]),
    ],
)
def test_a_setting_that_cannot_be_is_named(make: Callable[..., Any], setting: str, values: list[Any]) -> None:
    """When it is given; what may be a secret is not said."""
    name = setting.replace("(", ".").partition(".")[2]
    for value in values:
        with pytest.raises(ConfigError) as caught:
            make(**{name: value})
        assert str(caught.value).startswith(setting)
        assert "expected" in str(caught.value)
        assert "sk-secret" not in str(caught.value)


def test_a_device_code_needs_a_client() -> None:
    """Of this package."""
    nobody: Any = "client"
    with pytest.raises(ConfigError, match=r"^DeviceCodeCredentials\(client\): is 'client' \(expected an OAuthClient"):
        DeviceCodeCredentials(nobody, store=MemoryTokenStore())
