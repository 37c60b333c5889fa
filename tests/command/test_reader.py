"""The limits of reading, its memory, and that nothing makes it raise."""

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpose.command import CommandReader, Reading, read_command


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("echo " + "x" * 65_536, "bytes"),
        ("( " * 201 + "a" + " )" * 201, "deeper than 200"),
        ("echo " + "$(echo " * 150 + ")" * 150, "deeper than 200"),
        ("a\0b", "zero byte"),
        ("a\rb", "carriage return"),
        ("rm 'x", "not understood"),
        ("for i in {1..20}; do " * 4 + "a" + "; done" * 4, "steps"),
        ("for i in {1..20}; do " * 9 + "X=1" + "; done" * 9, "steps"),
        ("while a; do " * 60 + "b x; " * 9_000 + "done; " * 60, "steps"),
        ("a " + "{1..99}{1..99} " * 100 + "{1..99} " * 100, "words"),
    ],
)
def test_limits_are_unknown_with_a_reason(text: str, reason: str) -> None:
    """Too long, too deep, too much and not understood are answers, not errors."""
    assert reason in read_command(text, cwd="/w").unknown[0]


def test_long_chains_are_no_nesting() -> None:
    """A thousand commands joined by `&&` are read."""
    reading = read_command(" && ".join(f"a{number}" for number in range(1_000)), cwd="/w")
    assert (len(reading.commands), reading.unknown) == (1_000, ())


def test_a_reading_is_remembered_by_everything_it_depends_on() -> None:
    """The same question gives the same value; another folder, home or variable another one."""
    reader = CommandReader(remember=2)
    first = reader.read("rm $X", cwd="/w")
    assert reader.read("rm $X", cwd="/w") is first
    assert reader.read("rm $X", cwd="/w", env={"X": "a"}).files[0].path == "/w/a"
    assert reader.read("rm ~", cwd="/w", home="/h").files[0].path == "/h"
    assert reader.read("rm $X", cwd="/w") is not first


def test_variables_of_the_environment_reach_inner_shells() -> None:
    """A value that is sure is put in, also in a shell that is started."""
    reading = read_command("""rm "$X"; sh -c 'rm "$X"'""", cwd="/w", env={"X": "a"})
    assert [command.text for command in reading.commands if command.name == "rm"] == ["rm a", "rm a"]


def test_many_threads_read_at_once() -> None:
    """One reader serves all threads with the same answers."""
    reader = CommandReader(remember=4)
    texts = [f"cd d{number} && rm -r x | tee log" for number in range(20)]
    expected = [read_command(text, cwd="/w") for text in texts]
    results: list[list[Reading]] = []

    def work() -> None:
        results.append([reader.read(text, cwd="/w") for text in texts])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert results == [expected] * 4


TOKENS = st.sampled_from(
    [
        " ", "\n", ";", "&", "|", "&&", "(", ")", "{", "}", "$(", "${", "$((", "`", '"', "'", "\\", "<<E", "\nE\n", ">",
        "<(", "if ", "then ", "fi", "for x in ", "do ", "done", "case x in ", "esac", "$X", "$@", "f() ", "rm ", "cd ",
        "eval ", "sh -c ", "x", "=", "X=", "*", "~", "#", "[[", "]]", "!", "xargs ", "find ", "-exec ", "\\;", "git ",
        "é",
    ]
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(TOKENS, max_size=25).map("".join) | st.text(max_size=40))
def test_no_text_raises(text: str) -> None:
    """Whatever the text, there is a reading."""
    assert isinstance(read_command(text, cwd="/w", home="/h"), Reading)


def test_a_folder_that_is_not_known() -> None:
    """Without a folder relative paths are not known, absolute ones are."""
    reading = read_command("rm x /y", cwd="")
    assert [(use.path, use.dynamic) for use in reading.files] == [("x", True), ("/y", False)]


@given(st.text(st.sampled_from("rm -/$'\"\\;|<>()` \ud800\udc80x\n"), max_size=30))
def test_half_a_character_is_unknown(text: str) -> None:
    """No program is given it as it is, so nothing is said about such a text."""
    halves = any("\ud800" <= character <= "\udfff" for character in text)
    unknown = read_command(text, cwd="/w", home="/h").unknown
    assert (unknown == ("the text holds half a Unicode character",)) is halves


@pytest.mark.parametrize("start", ["{", "a{1..", "x={0", "{\\\n"])
@pytest.mark.parametrize("sign", ["\U0010ffff", "\U0004462e", "\u65e5", "\u0100"])
def test_what_would_end_the_process_is_unknown(start: str, sign: str) -> None:
    """The grammar reads outside its memory there, so it is never asked; Latin letters and quotes behind it are fine."""
    assert read_command(f"echo {start}{sign}}}", cwd="/w").unknown
    assert read_command(f"echo {start.rstrip()}\u00e9}}", cwd="/w").commands


def test_misuse_is_told_at_once() -> None:
    """No text and a relative folder are mistakes of the caller, and say what is wanted."""
    with pytest.raises(TypeError, match="is a str, not NoneType"):
        read_command(None, cwd="/w")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'w' is relative"):
        read_command("ls", cwd="w")
