"""userhooks.parse: limits, positions, and any bytes at all."""

import re
from pathlib import Path

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from interpose.userhooks.issues import Position
from interpose.userhooks.parse import VALUES_LIMIT, parse_hooks
from interpose.userhooks.syntax import DEPTH_LIMIT, SIZE_LIMIT_BYTES

GOLDEN = Path(__file__).parent / "golden"
_NUMBER = re.compile(r"'[-+]?(\.\d+|\d+(\.\d*)?)([eE][-+]?\d+)?'")
"""A text that is a number in YAML 1.2, and that YAML 1.1, and so PyYAML, may take for none and write without quotes."""

PIECES = [
    "- ",
    "id: a",
    "on: before_tool",
    "\n",
    "  ",
    "\t",
    "[",
    "]",
    "{",
    "}",
    "*a",
    "&a ",
    "!t ",
    "'",
    '"',
    "---",
    ": ",
]


def test_a_file_over_the_limit_is_not_parsed() -> None:
    """One byte too many is one issue; nothing of the file is used."""
    parsed = parse_hooks(b"#" * (SIZE_LIMIT_BYTES + 1), "hooks.yaml")

    assert [str(issue) for issue in parsed.issues] == [
        "hooks.yaml:1:1: the file is larger than 1,000,000 bytes (hooks are short; make it smaller)"
    ]
    assert parsed.broken
    assert not parse_hooks(b"#" * SIZE_LIMIT_BYTES, "hooks.yaml").broken


def test_a_million_brackets_are_one_issue() -> None:
    """Nesting is refused long before it could exhaust anything."""
    parsed = parse_hooks(b"[" * SIZE_LIMIT_BYTES, "hooks.yaml")

    assert len(parsed.issues) == 1
    assert f"more than {DEPTH_LIMIT} deep" in str(parsed.issues[0])


def test_many_values_are_one_issue() -> None:
    """A flat file with too many values is refused as an alias bomb is."""
    parsed = parse_hooks(b"- a\n" * (VALUES_LIMIT + 1), "hooks.yaml")

    assert parsed.broken
    assert f"more than {VALUES_LIMIT:,} values" in str(parsed.issues[0])


def test_words_that_yaml_once_took_for_booleans_are_texts() -> None:
    """`on` is a key, `no` and `yes` are words, a version is not a float of ours, and quotes make anything text."""
    parsed = parse_hooks(b'- {on: off, a: no, b: true, c: "5", d: 5, e: 1.5, f: ~, g: 1.2.3, h: 0x1f}', "hooks.yaml")

    assert parsed.entries[0].value == {
        "on": "off",
        "a": "no",
        "b": True,
        "c": "5",
        "d": 5,
        "e": 1.5,
        "f": None,
        "g": "1.2.3",
        "h": "0x1f",
    }


def test_positions_are_those_of_values_keys_and_the_nearest_thing_around() -> None:
    """Lines and columns count from 1; a place that does not exist stands where its nearest parent does."""
    entry = parse_hooks("hooks:\n  - id: é\n    tools: [a, bc]\n".encode(), "hooks.yaml").entries[0]

    assert entry.position(()) == Position(2, 5)
    assert entry.position(("id",)) == Position(2, 9)
    assert entry.position(("tools", 1)) == Position(3, 16)
    assert entry.position(("tools",), on_key=True) == Position(3, 5)
    assert entry.position(("tools", 1, "deeper")) == Position(3, 16)
    assert entry.position(("absent",), on_key=True) == Position(2, 5)


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_with_a_place(data: bytes) -> None:
    """Nothing raises; whatever is broken has exactly one reason to be so."""
    _holds_together(data)


@settings(deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_any_yaml_like_text_is_read_or_refused_with_a_place(text: str) -> None:
    """As for any bytes, with texts that come closer."""
    _holds_together(text.encode())


@settings(deadline=None)
@given(
    st.sampled_from([path.read_bytes() for path in sorted(GOLDEN.glob("*.yaml"))]).flatmap(
        lambda data: st.integers(0, len(data)).map(lambda end: data[:end])
    )
)
def test_a_file_cut_anywhere_is_read_or_refused_with_a_place(data: bytes) -> None:
    """A file that was written halfway does not raise."""
    _holds_together(data)


@settings(deadline=None)
@given(
    st.lists(
        st.dictionaries(
            st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Cn")), min_size=1),
            st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Cn")))
            | st.booleans()
            | st.integers(),
        )
    )
)
def test_what_another_writer_wrote_is_read_back(entries: list[dict[str, object]]) -> None:
    """PyYAML's own output gives the same values."""
    parsed = parse_hooks(yaml.safe_dump(entries).encode(), "hooks.yaml")

    is_read_otherwise = any(_NUMBER.search(str(entry)) or "<<" in entry or "\ufeff" in str(entry) for entry in entries)
    if not is_read_otherwise:
        assert [entry.value for entry in parsed.entries] == entries


def _holds_together(data: bytes) -> None:
    parsed = parse_hooks(data, "hooks.yaml")
    assert not (parsed.broken and parsed.entries)
    assert not parsed.broken or any(issue.level == "error" for issue in parsed.issues)
    lines = data.decode("utf-8", "replace").splitlines() or [""]
    for issue in (*parsed.issues, *(fault for entry in parsed.entries for fault in entry.faults)):
        assert issue.position.line <= len(lines) + 1
        assert "\n" not in str(issue)
