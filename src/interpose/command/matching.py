"""Questions about a reading: does it run this command, does it use these files.

Knows: command patterns, and when the answer is `Unknown`. Does not know: what follows from an answer.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from glob import iglob
from itertools import islice
from pathlib import Path

from interpose.command.git import GLOBAL
from interpose.command.options import may_be_option, parse_options
from interpose.command.paths import PathPatterns
from interpose.command.reading import Access, Answer, FileUse, Found, NotFound, Reading, SimpleCommand, Word
from interpose.contracts.decisions import Unknown

GLOB_LIMIT = 1_000
"""How many paths that a glob finds are looked into."""

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
    anywhere before `--`, bundles and `--name=value` understood; the others must occur in this order among the words
    that are no options.
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
            if unsure is None:
                return NotFound()
            doubt = Unknown(f"whether {unsure.text!r} is {'|'.join(wanted)} cannot be told")
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


def match_paths(reading: Reading, patterns: PathPatterns, access: Iterable[Access]) -> Answer:
    """Whether the reading uses one of the files meant by `patterns` in one of these ways.

    A folder that is removed, moved or read as a whole counts when such a file is below it. `Unknown` when a file
    that a command uses is not known; programs that nobody knows never lead to it. Asks the filesystem; thread-safe.
    """
    wanted = frozenset(access)
    doubt: Unknown | None = None
    for use in reading.files:
        if use.access not in wanted:
            continue
        found = _uses(use, patterns)
        if isinstance(found, str):
            return Found(use.by, patterns.short(found))
        doubt = doubt or found
    if doubt is not None:
        return doubt
    return Unknown(reading.unknown[0]) if reading.unknown else NotFound()


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


def _has_flag(name: str, words: Sequence[Word], flag: str) -> bool:
    if flag.startswith("--"):
        return any(_is_long(name, word, flag) for word in words)
    if any(fnmatchcase(word.text, flag) for word in words if not word.dynamic):
        return True
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


def _uses(use: FileUse, patterns: PathPatterns) -> str | Unknown | None:
    """A file meant that the use touches; Unknown when that cannot be told."""
    if use.dynamic:
        return Unknown(f"which files {use.by!r} uses cannot be told ({use.path})")
    if use.pattern is not None:
        if not _is_every_name(use.pattern) and patterns.meets(use.pattern):
            return use.path
        return _found_by_glob(use, use.pattern, patterns)
    return _find(use, use.path, patterns)


def _find(use: FileUse, path: str, patterns: PathPatterns) -> str | Unknown | None:
    match use.depth:
        case "file":
            return patterns.find(path, "/")
        case "visible":
            return patterns.find(path, "/", contains=True, existing=True, visible=True, names=use.names)
        case "tracked":
            return patterns.find_tracked(path, "/")
        case "existing":
            return patterns.find(path, "/", contains=True, existing=True, names=use.names)
        case "tree":
            there = use.access == "read" or (use.access == "remove" and Path(path).is_dir())
            return patterns.find(path, "/", contains=True, existing=there, names=use.names)


def _is_every_name(pattern: str) -> bool:
    """Whether a glob says nothing about the names it means, as in `rm *`: only those that are there tell."""
    return set(pattern.rsplit("/", 1)[-1]) <= {"*", "?"}


def _found_by_glob(use: FileUse, pattern: str, patterns: PathPatterns) -> str | Unknown | None:
    """Whether the glob finds now a file meant, or a folder that holds one."""
    if use.depth == "file" and not _is_every_name(pattern):
        return None
    count = 0
    doubt: Unknown | None = None
    for path in islice(iglob(pattern, recursive=True), GLOB_LIMIT):  # noqa: PTH207 - a whole path, not a folder's glob
        count += 1
        found = _find(use, path, patterns)
        if isinstance(found, str):
            return found
        doubt = doubt or found
    if count == GLOB_LIMIT:
        return Unknown(f"{use.path} means too many files to look at")
    return doubt
