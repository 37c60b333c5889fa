"""Which names below a folder a program looks at, by its options.

Knows: the include and exclude options of grep, ripgrep, tar and rsync. Does not know: files. A filter that is not
understood is none: then every name counts.
"""

from interpose.command.globs import Names
from interpose.command.options import Parsed
from interpose.command.reading import Word


def grep_names(parsed: Parsed) -> Names | None:
    """The names that `--include`, `--exclude` and `--exclude-dir` of grep leave; the last that matches decides."""
    given = [(option, value) for option, value in parsed.options if option in ("--include", "--exclude")]
    if any(option == "--include" and not _known(value) for option, value in given):
        return None
    rules = tuple((option == "--include", value.text) for option, value in given if value is not None and _known(value))
    folders = tuple(word.text.rstrip("/") for word in parsed.values("--exclude-dir") if _known(word))
    return Names(rules, folders) if rules or folders else None


def ripgrep_names(parsed: Parsed) -> Names | None:
    """The names that `-g` of ripgrep leaves; a glob that takes names in reaches hidden ones too."""
    rules: list[tuple[bool, str]] = []
    folders: list[str] = []
    if parsed.has("--iglob"):
        return Names(((True, "*"),))
    for word in parsed.values("-g", "--glob"):
        glob = word.text.removeprefix("!").removeprefix("**/").removesuffix("/**")
        takes_in = not word.text.startswith("!")
        if takes_in and (not _known(word) or "/" in glob):
            return Names(((True, "*"),))
        if takes_in:
            rules.append((True, glob))
        elif _known(word) and "/" not in glob.rstrip("/"):
            rules.append((False, glob.rstrip("/")))
            folders.append(glob.rstrip("/"))
    return Names(tuple(rules), tuple(folders)) if rules or folders else None


def excluded_names(parsed: Parsed) -> Names | None:
    """The names that `--exclude` of tar and rsync leaves; one with a slash inside is a place, not a name."""
    words = [word for word in parsed.values("--exclude") if _known(word)]
    names = [word.text for word in words if "/" not in word.text]
    folders = [*names, *(word.text[:-1] for word in words if word.text.endswith("/") and word.text.count("/") == 1)]
    return Names(tuple((False, name) for name in names), tuple(folders)) if folders else None


def _known(word: Word | None) -> bool:
    return word is not None and not word.dynamic
