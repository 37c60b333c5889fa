"""gateway.upstream: which proxy a URL takes."""

import pytest

from interpose.gateway.question import proxy_fault, proxy_for

PROXIES = {"https": "http://me:p%40ss@proxy:3128", "http": "plain:8080", "no": "x.com, .y.com,*.z.com, w.com:8443"}


@pytest.mark.parametrize(
    ("url", "proxies", "expected"),
    [
        ("https://a.com/v1", PROXIES, "http://proxy:3128"),
        ("http://a.com/v1", PROXIES, "http://plain:8080"),
        ("https://x.com", PROXIES, None),
        ("https://api.x.com:8443/v1", PROXIES, None),
        ("https://ax.com", PROXIES, "http://proxy:3128"),
        ("https://api.y.com", PROXIES, None),
        ("https://api.z.com", PROXIES, None),
        ("https://w.com:8443", PROXIES, None),
        ("https://w.com", PROXIES, "http://proxy:3128"),
        ("https://a.com", {**PROXIES, "no": "*"}, None),
        ("https://a.com", {"all": "http://every:1"}, "http://every:1"),
        ("https://a.com", {}, None),
        ("http://127.0.0.1:11434", PROXIES, None),
        ("http://[::1]:11434", PROXIES, None),
        ("http://localhost", PROXIES, None),
    ],
)
def test_the_proxy_of_a_url(url: str, proxies: dict[str, str], expected: str | None) -> None:
    """By scheme, but for what NO_PROXY names and for this machine."""
    found = proxy_for(url, proxies)

    assert (found[0] if found else None) == expected


def test_a_login_travels_in_a_header() -> None:
    """It is decoded, and is not left in the address."""
    assert proxy_for("https://a.com", PROXIES) == (
        "http://proxy:3128",
        {"Proxy-Authorization": "Basic bWU6cEBzcw=="},
    )
    assert proxy_for("http://a.com", PROXIES) == ("http://plain:8080", {})


@pytest.mark.parametrize(
    ("proxies", "words"),
    [
        ({"https": "socks5://me:secret@localhost:1080"}, "HTTPS_PROXY names a SOCKS proxy"),
        ({"all": "SOCKS5H://localhost:1080"}, "ALL_PROXY names a SOCKS proxy"),
        ({"https": "ftp://localhost"}, "HTTPS_PROXY names a proxy that speaks ftp"),
    ],
)
def test_a_proxy_that_takes_no_http_is_named(proxies: dict[str, str], words: str) -> None:
    """With its variable and the way out, and without its login."""
    fault = proxy_fault("https://a.com/v1", proxies) or ""

    assert fault.startswith(words)
    assert "NO_PROXY" in fault
    assert "secret" not in fault


@pytest.mark.parametrize("proxies", [{}, PROXIES, {"all": "socks5://x:1", "https": "http://y:1"}, {"all": "y:1"}])
def test_other_proxies_have_no_fault(proxies: dict[str, str]) -> None:
    """Also one without a scheme; SOCKS for other schemes does not matter."""
    assert proxy_fault("https://a.com/v1", proxies) is None
