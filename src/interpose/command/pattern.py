"""Whether a reading runs a certain command.

Knows: command patterns, and when the answer is `Unknown`. Does not know: what follows from an answer.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise

from interpose.command.git import GLOBAL
from interpose.command.options import may_be_option, parse_options
from interpose.command.reading import ANY, Answer, Found, NotFound, Reading, SimpleCommand, Word
from interpose.contracts.decisions import Unknown

_OPERATOR = re.compile(r"[;&|]+|\d?>{1,2}.*|<.*|[^|]*;")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_PIPED_INTO = frozenset(
    {"sh", "bash", "dash", "zsh", "python", "python3", "perl", "ruby", "node", "xargs", "tee", "sudo"}
)
_EXPRESSION = re.compile(r"^\^|^\.\*$|\$$|\\|\.\+|\(.*\)|\.\*-")
"""What a word of a pattern hardly holds unless it is meant as a regular expression."""

_WHOLE_FLAGS = frozenset(
    {
        "find",
        "gfind",
        "java",
        "javac",
        "go",
        "terraform",
        "tofu",
        "openssl",
        "gcc",
        "g++",
        "clang",
        "ffmpeg",
        "xcodebuild",
    }
)
"""Programs whose options of several letters have one dash, so that `-delete` is not `-d -e -l …`."""

_SHORTENS = frozenset(
    {
        "rm", "cp", "mv", "ln", "chmod", "chown", "chgrp", "mkdir", "rmdir", "shred", "truncate", "touch", "tee", "sed",
        "grep", "tar", "install", "dd", "sort", "head", "tail", "find", "wget", "git", "rsync",
    }
)  # fmt: skip
"""Programs that accept the start of a long option for the whole."""

_FORMS = "write a program and its words, such as 'rm -r|-R|--recursive' or 'git push --force|-f'"


@dataclass(frozen=True, slots=True)
class CommandPattern:
    """A program and words that a command must have.

    `program` and each word hold alternatives; `*` stands for any characters. Words that start with a dash may stand
    anywhere before `--`, bundles and `--name=value` understood, the value of `--name=value` as the next word too; the
    others must occur in this order among the words that are no options.
    """

    text: str
    program: tuple[str, ...]
    flags: tuple[tuple[str, ...], ...]
    operands: tuple[tuple[str, ...], ...]

    @classmethod
    def parse(cls, text: str) -> "CommandPattern":
        """Reads a pattern. Raises ValueError that says where it is wrong and what is possible."""
        if not isinstance(text, str) or not text.strip():
            raise ValueError(f"a command pattern is empty: {_FORMS}")
        _refuse_other_languages(text)
        words: list[tuple[str, ...]] = []
        position = 0
        for part in text.split():
            position = text.index(part, position)
            words.append(_alternatives(text, part, position))
            position += len(part)
        if words[0][0].startswith("-"):
            raise ValueError(f"the command pattern {text!r} starts with an option at column 1: {_FORMS}")
        return cls(
            text,
            words[0],
            tuple(word for word in words[1:] if word[0].startswith("-")),
            tuple(word for word in words[1:] if not word[0].startswith("-")),
        )

    def match(self, reading: Reading) -> Answer:
        """Whether the reading runs such a command. Pure and thread-safe.

        `Found` wins over `Unknown`, which is the answer when a program is not known, when a word that matters is
        not, or when part of the text could not be read.
        """
        doubt: Unknown | None = None
        for command in reading.commands:
            answer = self._match_command(command)
            if isinstance(answer, Found):
                return answer
            if isinstance(answer, Unknown) and doubt is None:
                doubt = answer
        if doubt is not None:
            return doubt
        return Unknown(reading.unknown[0]) if reading.unknown else NotFound()

    def _match_command(self, command: SimpleCommand) -> Answer:
        if command.program.dynamic and command.program.text == ANY:
            return Unknown(f"which program {command.wrappers[-1]} runs cannot be told: quote what is one word")
        if command.program.dynamic:
            return Unknown(f"which program {command.program.text!r} is cannot be told")
        names = (command.name.casefold(), command.program.text.casefold())
        if not any(fnmatchcase(name, wanted.casefold()) for wanted in self.program for name in names):
            return NotFound()
        answers = [self._match_flags(command), self._match_operands(command)]
        if any(isinstance(answer, NotFound) for answer in answers):
            return NotFound()
        return next((answer for answer in answers if isinstance(answer, Unknown)), Found(command.text))

    def _match_flags(self, command: SimpleCommand) -> Answer:
        before = _before_dashes(command.words)
        doubt: Answer = Found(command.text)
        for wanted in self.flags:
            if any(_has_flag(command.name, before, flag) for flag in wanted):
                continue
            unsure = next((word for word in before if _could_be(word, wanted)), None)
            unsure = unsure or next((word for flag in wanted for word in _values(before, flag) if word.dynamic), None)
            if unsure is None:
                return NotFound()
            way_out = f"; put -- before it: {_with_dashes(command)}"
            if unsure.pattern is not None:
                way_out = f"; './{unsure.text}' is never one"
            doubt = Unknown(f"whether {unsure.text!r} is {'|'.join(wanted)} cannot be told{way_out}")
        return doubt

    def _match_operands(self, command: SimpleCommand) -> Answer:
        if not self.operands:
            return Found(command.text)
        words = _operands(command)
        if command.name == "git":
            if not words:
                return NotFound()
            if words[0].plain and not any(fnmatchcase(words[0].text, wanted) for wanted in self.operands[0]):
                return NotFound()
        return _subsequence(words, self.operands, command.text)


def _refuse_other_languages(text: str) -> None:
    """Raises ValueError for what looks like a regular expression, a shell text or a path."""
    for part in text.split():
        column = text.index(part) + 1
        if _OPERATOR.fullmatch(part):
            raise ValueError(
                f"the command pattern {text!r} has the shell's {part!r} at column {column}: a pattern is one command, "
                "and each command of a line is asked about by itself; write a pattern for each"
            )
        if _EXPRESSION.search(part) or (column == 1 and ".*" in part):
            raise ValueError(
                f"the command pattern {text!r} looks like a regular expression at column {column}: "
                f"patterns are plain words, '*' stands for any characters; {_FORMS}"
            )
        if part.startswith("$"):
            raise ValueError(
                f"the command pattern {text!r} names a variable at column {column}: words are seen with their values; "
                "use '*' for what may stand there"
            )
        _refuse_pipe(text, part, column)
    program = text.split()[0]
    if _ASSIGNMENT.match(program):
        raise ValueError(
            f"the command pattern {text!r} starts with an assignment: a program is found whatever stands before it; "
            f"leave {program!r} out"
        )
    for name in program.split("|"):
        if name.startswith(("/", "~")):
            raise ValueError(
                f"the command pattern {text!r} starts with a path: a program is known by its name in whatever folder "
                f"it lies; write {name.rstrip('/').rsplit('/', 1)[-1]!r}"
            )


def _refuse_pipe(text: str, part: str, column: int) -> None:
    """Raises ValueError for `x|sh` behind a program: `|` parts what one word may be, and is no pipe."""
    inputs = [word for word in part.split("|") if word in _PIPED_INTO]
    if column > 1 and inputs and len(inputs) < part.count("|") + 1:
        raise ValueError(
            f"the command pattern {text!r} seems to hold a pipe at column {column}: '|' parts what one word may be, "
            f"and each command of a line is asked about by itself; write a pattern for each, such as {inputs[0]!r}"
        )


def _alternatives(text: str, part: str, position: int) -> tuple[str, ...]:
    alternatives = tuple(part.split("|"))
    if not all(alternatives):
        raise ValueError(f"the command pattern {text!r} has an empty alternative at column {position + 1}: {_FORMS}")
    for quote in "'\"`":
        if quote in part:
            raise ValueError(
                f"the command pattern {text!r} has a quote at column {position + part.index(quote) + 1}: "
                "patterns are plain words, use * for what may stand there"
            )
    dashed = {alternative.startswith("-") for alternative in alternatives}
    if len(dashed) > 1:
        raise ValueError(
            f"the command pattern {text!r} mixes options and words at column {position + 1}: "
            "write two patterns, or only options in one place"
        )
    if part in ("-", "--"):
        raise ValueError(f"the command pattern {text!r} has a bare {part!r} at column {position + 1}: {_FORMS}")
    return alternatives


def _before_dashes(words: Sequence[Word]) -> list[Word]:
    before: list[Word] = []
    for word in words:
        if word.plain and word.text == "--":
            break
        before.append(word)
    return before


def _with_dashes(command: SimpleCommand) -> str:
    """The command with `--` ahead of all that is no option for sure."""
    texts = [f'"{word.text}"' if word.dynamic and word.text != ANY else word.text for word in command.words]
    options = [word.text for word in command.words if word.plain and word.text.startswith("-")]
    rest = [text for text in texts if text not in options and text != ANY]
    return " ".join((command.program.text, *options, "--", *rest))


def _values(words: Sequence[Word], flag: str) -> list[Word]:
    """The words that may be the value of an option which is asked for with one, as in `--context=prod*`."""
    option, equals, _ = flag.partition("=")
    if not equals:
        return []
    return [value for word, value in pairwise(words) if word.plain and fnmatchcase(word.text, option)]


def _has_flag(name: str, words: Sequence[Word], flag: str) -> bool:
    wanted = flag.partition("=")[2]
    if any(not value.dynamic and fnmatchcase(value.text, wanted) for value in _values(words, flag)):
        return True
    if flag.startswith("--"):
        return any(_is_long(name, word, flag) for word in words)
    if any(fnmatchcase(word.text, flag) for word in words if not word.dynamic):
        return True
    if flag[2:3] == "=":
        attached = [word.text[2:] for word in words if not word.dynamic and word.text.startswith(flag[:2])]
        return any(fnmatchcase(value, wanted) for value in attached)
    if name in _WHOLE_FLAGS or "*" in flag:
        return False
    bundles = [word.text for word in words if not word.dynamic and word.text[:1] == "-" and word.text[:2] != "--"]
    return all(any(letter in bundle[1:] for bundle in bundles) for letter in flag[1:])


def _is_long(name: str, word: Word, flag: str) -> bool:
    known = word.prefix if word.dynamic else word.text
    head = known.split("=", 1)[0]
    if word.dynamic and "=" not in known:
        return False
    if fnmatchcase(head, flag) or fnmatchcase(known, flag):
        return True
    exact = name == "git" and head == "--force"
    return name in _SHORTENS and not exact and len(head) > 2 and head.startswith("--") and flag.startswith(head)


def _could_be(word: Word, wanted: Sequence[str]) -> bool:
    """Whether a word that is not known, or a glob, may turn out to be one of the options."""
    if word.pattern is not None:
        pattern = word.pattern
        return any(fnmatchcase(flag, pattern) for flag in wanted)
    return may_be_option(word)


def _operands(command: SimpleCommand) -> list[Word]:
    """The words that are no options; git's own options before the subcommand and their values are skipped."""
    words: Sequence[Word] = command.words
    if command.name == "git":
        words = parse_options(words, GLOBAL, permute=False).operands
    operands: list[Word] = []
    dashes = False
    for word in words:
        if word.plain and word.text == "--" and not dashes:
            dashes = True
            continue
        if dashes or word.dynamic or not word.text.startswith("-") or word.text == "-":
            operands.append(word)
    return operands


def _subsequence(words: Sequence[Word], wanted: Sequence[Sequence[str]], text: str) -> Answer:
    """Whether the words hold the wanted ones in order; a word that is not known may be any of them."""
    if _holds(words, wanted, guess=False):
        return Found(text)
    if _holds(words, wanted, guess=True):
        return Unknown(f"a word of {text!r} that matters is not known")
    return NotFound()


def _holds(words: Sequence[Word], wanted: Sequence[Sequence[str]], *, guess: bool) -> bool:
    position = 0
    for word in words:
        if guess and word.many:
            return True
        if position < len(wanted) and _is_word(word, wanted[position], guess=guess):
            position += 1
    return position == len(wanted)


def _is_word(word: Word, wanted: Sequence[str], *, guess: bool) -> bool:
    if word.plain:
        return any(fnmatchcase(word.text, alternative) for alternative in wanted)
    if "*" in wanted:
        return True
    if not guess:
        return False
    if word.pattern is not None:
        pattern = word.pattern
        return any(fnmatchcase(alternative, pattern) for alternative in wanted)
    return any(_compatible(word, alternative) for alternative in wanted)


def _compatible(word: Word, wanted: str) -> bool:
    if "*" in wanted:
        return True
    return wanted.startswith(word.prefix) and wanted.endswith(word.suffix)
