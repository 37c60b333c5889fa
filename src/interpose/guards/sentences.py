"""The last thing a text says.

Knows: lines, sentences, closing marks. Does not know: what a sentence means. Everything here is pure and takes time
in proportion to the text.
"""

import re
from typing import Final

_CLOSERS: Final = "\"'\u201d\u2019)\\]}\u00bb"
_SENTENCE_END_REVERSED: Final = re.compile(rf"\s[{_CLOSERS}]*+[.!?]")
_QUESTION: Final = re.compile(rf"\?[{_CLOSERS}]*$")
_OPENING: Final = " \t\r\n\f\v\"'\u201c\u201d\u2018\u2019\u00ab([{-\u2013\u2014"


LINE_CHARS: Final = 800
"""How much of a last line is looked at, from its end."""


def last_line(text: str) -> str:
    """The last line that holds something, trimmed, its end where it is long; "" when there is none."""
    text = text.rstrip()[-LINE_CHARS:]
    return text.splitlines()[-1].strip() if text else ""


def last_sentence(line: str) -> str:
    """The last sentence of a line without the quotes, brackets and dashes ahead of it.

    A sentence ends at a full stop, exclamation or question mark that white space or the end follows, so `foo.ts` is
    one word.
    """
    line = line.rstrip()
    has_ends = "." in line or "!" in line or "?" in line
    end = _SENTENCE_END_REVERSED.search(line[::-1]) if has_ends else None  # from the end: the last one is near it
    return opened(line if end is None else line[-end.start() - 1 :])


def opened(text: str) -> str:
    """The text without the quotes, brackets and dashes ahead of it, trimmed."""
    return text.lstrip(_OPENING).strip()


def is_question(sentence: str) -> bool:
    """Whether the sentence asks something."""
    return _QUESTION.search(sentence) is not None
