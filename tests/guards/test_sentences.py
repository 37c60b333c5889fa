"""The last line and the last sentence: found from the end, the same as when read from the start."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.guards.sentences import last_line, last_sentence, opened

_ENDS = re.compile(r"""(?<![.!?])[.!?]+["'\u201d\u2019)\]}\u00bb]*(?=\s|$)""")

PIECES = st.text(st.sampled_from(".!?\"')]} \t\n\u00a0\u2028ab\u201c\u201d\u00ab\u00bb-"), max_size=30)


@given(PIECES)
def test_the_last_sentence_is_the_one_that_is_read_last(line: str) -> None:
    """Whoever reads from the start, sentence by sentence, comes to the same one."""
    ends = [end.end() for end in _ENDS.finditer(line) if line[end.end() :].strip()]
    assert last_sentence(line) == opened(line[max(ends, default=0) :])


@given(PIECES)
def test_the_last_line_holds_something(text: str) -> None:
    """It is the last of those that are not blank."""
    assert last_line(text) == next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("", ""),
        ("One. Two", "Two"),
        ("One. Two.", "Two."),
        ("I open foo.ts now", "I open foo.ts now"),
        ('He said "Stop!" \u2013 then left...', "then left..."),
        ("Really?! (Yes.)", "Yes.)"),
    ],
)
def test_sentences_end_at_marks_before_white_space(line: str, sentence: str) -> None:
    """Closing quotes and brackets belong to the sentence that they end; opening ones are left out."""
    assert last_sentence(line) == sentence
