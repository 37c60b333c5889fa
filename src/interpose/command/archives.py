"""Which files the programs for archives read and write.

Knows: tar, zip and unzip. Does not know: what is in an archive: unpacking counts as writing the members that are
named and the folder they go to, not the names that may lie in the archive.
"""

from collections.abc import Sequence

from interpose.command.filters import excluded_names
from interpose.command.options import Options, parse_options, plain
from interpose.command.reading import Depth, Word
from interpose.command.uses import Use, inside_path


def tar_files(words: Sequence[Word]) -> list[Use]:
    """The files of a tar."""
    if not words:
        return []
    old = words[0].plain and not words[0].text.startswith("-")
    given = [Word("-" + words[0].text), *words[1:]] if old else list(words)
    if old and "f" in words[0].text and not words[0].text.endswith("f") and len(words) > 1:
        letters = words[0].text.replace("f", "") + "f"
        given = [Word("-" + letters), *words[1:]]
    parsed = parse_options(
        given,
        Options.of(
            "fCTXbIF", "file directory use-compress-program to-command files-from exclude exclude-from strip-components"
        ),
    )
    folders = parsed.values("-C", "--directory")
    archives = parsed.values("-f", "--file")
    place = folders[-1] if folders else Word(".")
    if parsed.has("-x", "--extract", "--get"):
        written = [place, *(inside_path(place, word) for word in parsed.operands)]
        return [*(Use(word, "read") for word in archives), *(Use(word, "write") for word in written)]
    if parsed.has("-t", "--list"):
        return [Use(word, "read") for word in archives]
    uses = [Use(inside_path(place, word), "read", "tree", excluded_names(parsed)) for word in parsed.operands]
    if parsed.has("--remove-files"):
        uses += [Use(inside_path(place, word), "remove", "tree") for word in parsed.operands]
    return [*uses, *(Use(word, "write") for word in archives)]


def zip_files(words: Sequence[Word]) -> list[Use]:
    """The files of a zip."""
    parsed = parse_options(words, Options.of("xibtPnm"))
    if not parsed.operands:
        return []
    archive, *rest = parsed.operands
    depth: Depth = "tree" if parsed.has("-r") else "file"
    return [Use(archive, "write"), *(Use(word, "read", depth) for word in rest)]


def unzip_files(words: Sequence[Word]) -> list[Use]:
    """The files of an unzip."""
    parsed = parse_options(words, Options.of("dxP"))
    if not parsed.operands:
        return []
    if parsed.has("-l", "-p", "-t", "-v", "-Z"):
        return [Use(parsed.operands[0], "read")]
    archive, *members = parsed.operands
    folders = parsed.values("-d") or plain(["."])
    written = [*folders, *(inside_path(folder, word) for folder in folders for word in members)]
    return [Use(archive, "read"), *(Use(word, "write") for word in written)]
