"""Telling options from operands, as getopt does.

Knows: bundles, values, `--`, long options. Does not know: what a program's options mean.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from interpose.command.reading import Word


@dataclass(frozen=True, slots=True)
class Options:
    """Which options of a program take a value: letters of short ones, names of long ones (dashes included)."""

    short: str = ""
    long: frozenset[str] = frozenset()

    @classmethod
    def of(cls, short: str = "", long: str = "") -> "Options":
        """From letters, and names separated by spaces and written without dashes."""
        return cls(short, frozenset(f"--{name}" for name in long.split()))


_DIGITS = ("$$", "$#", "$?")
"""Expansions that are numbers and never start with a dash."""

NO_OPTIONS = Options()


@dataclass(slots=True)
class Parsed:
    """The words of a command told apart. `first` is the index of the first operand (or of the end)."""

    options: list[tuple[str, Word | None]] = field(default_factory=list)
    operands: list[Word] = field(default_factory=list)
    first: int = 0
    uncertain: bool = False

    def has(self, *names: str) -> bool:
        """Whether one of the options (`-r`, `--recursive`) is given; a long one may be shortened."""
        return any(given in names or _shortened(given, names) for given, _ in self.options)

    def values(self, *names: str) -> list[Word]:
        """The values of these options, in order."""
        return [value for given, value in self.options if value is not None and given in names]


def parse_options(words: Sequence[Word], takes: Options, *, permute: bool = True) -> Parsed:
    """Tells options from operands; without `permute` everything from the first operand on is one.

    `uncertain` is set when a word that is not known might be an option.
    """
    parsed = Parsed(first=len(words))
    index = 0
    while index < len(words):
        word = words[index]
        if word.plain and word.text == "--":
            parsed.operands.extend(words[index + 1 :])
            parsed.first = min(parsed.first, index + 1)
            return parsed
        if not _is_option(word):
            parsed.uncertain |= may_be_option(word)
            parsed.first = min(parsed.first, index)
            if not permute:
                parsed.operands.extend(words[index:])
                return parsed
            parsed.operands.append(word)
            index += 1
            continue
        index = _take(words, index, takes, parsed)
    return parsed


def may_be_option(word: Word) -> bool:
    """Whether a word that is not known could turn out to be an option."""
    if not word.dynamic or (not word.prefix and not word.many and word.text.startswith(_DIGITS)):
        return False
    return (word.many and not word.each) or not word.prefix or word.prefix.startswith("-")


def plain(texts: Iterable[str]) -> list[Word]:
    """Texts as words that are known."""
    return [Word(text) for text in texts]


def _is_option(word: Word) -> bool:
    known = word.prefix if word.dynamic else word.text
    return len(known) > 1 and known.startswith("-")


def _take(words: Sequence[Word], index: int, takes: Options, parsed: Parsed) -> int:
    """Reads the option at `index`; the index after it and its value."""
    word = words[index]
    text = word.text
    following = words[index + 1] if index + 1 < len(words) else None
    if text.startswith("--"):
        name, equals, value = text.partition("=")
        if equals:
            parsed.options.append((name, _rest(word, value)))
            return index + 1
        if name in takes.long:
            parsed.options.append((name, following))
            return index + 2
        parsed.options.append((name, None))
        return index + 1
    for position, letter in enumerate(text[1:], start=1):
        if letter not in takes.short:
            parsed.options.append((f"-{letter}", None))
            continue
        if position + 1 < len(text):
            parsed.options.append((f"-{letter}", _rest(word, text[position + 1 :])))
            return index + 1
        parsed.options.append((f"-{letter}", following))
        return index + 2
    return index + 1


def _rest(word: Word, text: str) -> Word:
    if word.plain:
        return Word(text)
    cut = len(word.text) - len(text)
    return Word(text, word.dynamic, word.prefix[cut:], word.suffix, word.many, pattern=text if word.pattern else None)


def _shortened(given: str, names: Sequence[str]) -> bool:
    return len(given) > 3 and given.startswith("--") and any(name.startswith(given) for name in names)
