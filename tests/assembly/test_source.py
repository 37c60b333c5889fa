"""assembly.source: where in a file a key stands, and what is told of one that is wrong."""

import tomllib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.assembly.settings import File
from interpose.assembly.source import Source
from interpose.assembly.upstreams import UpstreamTable
from interpose.contracts.errors import ConfigError


def told(text: str) -> str:
    """What is told of a file with this text."""
    with pytest.raises(ConfigError) as caught:
        Source("c.toml", text).read(tomllib.loads(text), File, also="and more")
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[gateway]\nport = "x"\n', "c.toml:2: gateway.port: expected a whole number, found text"),
        (
            '# port\n\n[ gateway ] # here\n"port" = 1.5\n',
            "c.toml:4: gateway.port: expected a whole number, found a number",
        ),
        ('gateway.traces = "yes"\n', "c.toml:1: gateway.traces: expected true or false, found text"),
        ('gateway = { port = "x" }\n', "c.toml:1: gateway.port: expected a whole number, found text"),
        ("gateway = 5\n", "c.toml:1: gateway: expected a table, found a whole number"),
        ("[[gateway]]\nport = 1\n", "c.toml:1: gateway: expected a table, found a list"),
        ('[gateway.clients]\nci = "a"\nno = 5\n', "c.toml:3: gateway.clients.no: expected text, found a whole number"),
        ('[guards]\noff = [\n  "a",\n  3,\n]\n', "c.toml:2: guards.off[1]: expected text, found a whole number"),
        ('[handlers]\nfiles = "a.py"\n', "c.toml:2: handlers.files: expected a list, found text"),
        (
            "[gateway]\nbody_bytes = true\n",
            "c.toml:2: gateway.body_bytes: expected a whole number, found true or false",
        ),
        ("[gateway]\nprot = 1\n", "c.toml:2: gateway.prot: is not known; possible: gateway.host, gateway.port, "),
        ("[gatway]\n", "c.toml:1: gatway: is not known; possible: gateway, upstreams, guards, handlers, and more"),
        ('[guards]\noff = ["""\noff = 1\n""", 3]\n', "c.toml: guards.off[1]: expected text"),
    ],
)
def test_a_mistake_is_named_where_it_stands(text: str, said: str) -> None:
    """The file, the line where only one can be meant, the key, what was expected and what was found."""
    assert told(text).startswith(said)
    assert "config show" in told(text)


def test_what_a_table_with_a_free_name_says() -> None:
    """Its keys are named as they stand in the file."""
    text = '[upstreams.local]\nretries = "3"\n'
    with pytest.raises(ConfigError, match=r"c\.toml:2: upstreams\.local\.retries: expected a whole number, found text"):
        Source("c.toml", text).read({"retries": "3"}, UpstreamTable, "upstreams.local")
    with pytest.raises(ConfigError, match=r"c\.toml: upstreams\.local\.api: expected text, found a list"):
        Source("c.toml").read({"api": []}, UpstreamTable, "upstreams.local")


def test_what_the_library_says_otherwise_is_told_as_it_says_it() -> None:
    """A message of another form still names the file and the table."""

    class Small(msgspec.Struct):
        tag: bytes = b""

    with pytest.raises(ConfigError, match=r"^c\.toml: t: Invalid base64"):
        Source("c.toml").read({"tag": "?"}, Small, "t")


@given(text=st.text(alphabet="[]=\"'\n ab.#", max_size=60), key=st.sampled_from(["a", "a.b", "b", "a.a.b"]))
def test_any_text_has_lines(text: str, key: str) -> None:
    """Looking for a key in what is no TOML, too, never fails, and finds a line of the text."""
    place = Source("f", text).place(key)

    assert place == f"f: {key}" or 1 <= int(place.split(":")[1]) <= len(text.splitlines())
