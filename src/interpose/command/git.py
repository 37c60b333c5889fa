"""git's global options, and the files its commands touch.

Knows: where the subcommand stands, pathspecs, `REVISION:path`. Does not know: the repository.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from interpose.command.options import Options, parse_options
from interpose.command.reading import Access, Depth, Word

GLOBAL = Options.of("Cc", "git-dir work-tree namespace super-prefix config-env exec-path attr-source list-cmds")
"""git's options before the subcommand that take a value (git(1)); `--exec-path` only with `=`, which is harmless."""

_READS = frozenset({"show", "diff", "blame", "annotate", "log", "cat-file", "add", "grep", "archive", "hash-object"})
_WRITES = frozenset({"checkout", "restore"})


@dataclass(frozen=True, slots=True)
class GitCall:
    """One git command: its subcommand (None when there is none), the words after it, and where it runs."""

    subcommand: Word | None
    words: tuple[Word, ...]
    folders: tuple[Word, ...]
    configured: tuple[Word, ...]
    uncertain: bool


def git_call(words: Sequence[Word]) -> GitCall:
    """Finds the subcommand behind the global options."""
    parsed = parse_options(words, GLOBAL, permute=False)
    folders = tuple(parsed.values("-C", "--work-tree"))
    configured = tuple(
        _from_environment(value) if option == "--config-env" else value
        for option, value in parsed.options
        if value is not None and option in ("-c", "--config-env")
    )
    if not parsed.operands:
        return GitCall(None, (), folders, configured, parsed.uncertain)
    return GitCall(parsed.operands[0], tuple(parsed.operands[1:]), folders, configured, parsed.uncertain)


def git_files(call: GitCall) -> list[tuple[Word, Access, Depth]]:
    """The files that the call is known to use, relative to its folder."""
    if call.subcommand is None or not call.subcommand.plain:
        return []
    here = Word(".")
    takes = Options.of("eosSbBmMcCUnLGOAF", "source message file author date pathspec-from-file output format")
    parsed = parse_options(call.words, takes)
    operands = parsed.operands
    match call.subcommand.text:
        case "rm":
            depth: Depth = "tree" if parsed.has("-r") else "file"
            return [] if parsed.has("--cached") else [(word, "remove", depth) for word in operands]
        case "mv" if len(operands) > 1:
            moved: list[tuple[Word, Access, Depth]] = [(word, "remove", "tree") for word in operands[:-1]]
            return [*moved, (operands[-1], "write", "file")]
        case "clean":
            forced = parsed.has("-f", "--force") and not parsed.has("-n", "--dry-run")
            return [(word, "remove", "existing") for word in operands or [here]] if forced else []
        case "reset" if parsed.has("--hard", "--merge", "--keep"):
            return [(here, "write", "tracked")]
        case "stash" if not operands or operands[0].text in ("push", "pop", "apply", "save"):
            untracked = parsed.has("-u", "-a", "--include-untracked", "--all")
            return [(here, "write", "tree" if untracked else "tracked")]
        case "restore" if parsed.has("-S", "--staged") and not parsed.has("-W", "--worktree"):
            return []
        case name if name in _WRITES:
            return [(word, "write", "tracked") for word in operands]
        case name if name in _READS:
            return [(_object_path(word), "read", "file") for word in operands]
        case _:
            return []


def _from_environment(setting: Word) -> Word:
    """A setting whose value is that of a variable, which is not known."""
    return Word(setting.text, dynamic=True, prefix=setting.prefix or setting.text.partition("=")[0] + "=")


def _object_path(word: Word) -> Word:
    """The path in `REVISION:path`, else the word."""
    if not word.plain or ":" not in word.text:
        return word
    return Word(word.text.split(":", 1)[1] or ".")
