"""Which files a program touches, by its words.

Knows: the common file tools. Does not know: folders, the filesystem, programs that only run other programs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from interpose.command.options import NO_OPTIONS, Options, Parsed, parse_options, plain
from interpose.command.reading import Access, Depth, Word


class Use(NamedTuple):
    """One word that names a file, and what happens to it."""

    word: Word
    access: Access
    depth: Depth = "file"


@dataclass(frozen=True, slots=True)
class Tool:
    """A program whose operands are files.

    Attributes:
        takes: its options with a value.
        operands: what happens to each operand.
        skip: how many operands ahead of the files are something else.
        skip_unless: options that take the place of the skipped operands.
        deep: options that make it reach below folders; ("*",) always.
        writes: options whose value is written; `reads` likewise.
        also: further accesses of each operand.
    """

    operands: Access
    takes: Options = NO_OPTIONS
    skip: int = 0
    skip_unless: tuple[str, ...] = ()
    deep: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    also: tuple[Access, ...] = ()


def _read(short: str = "", long: str = "", **more: tuple[str, ...]) -> Tool:
    return Tool("read", Options.of(short, long), **more)  # type: ignore[arg-type]


_RECURSIVE = ("-r", "-R", "--recursive")
_GREP = Tool(
    "read",
    Options.of("efmABCdD", "regexp file max-count after-context before-context context include exclude exclude-dir"),
    skip=1,
    skip_unless=("-e", "-f", "--regexp", "--file"),
    deep=("-r", "-R", "--recursive", "--dereference-recursive"),
    reads=("-f", "--file"),
)
_RIPGREP = Tool(
    "read",
    Options.of("efgtTmABCrjMd", "regexp file glob type type-not max-count context replace threads max-depth iglob"),
    skip=1,
    skip_unless=("-e", "-f", "--regexp", "--file", "--files"),
    reads=("-f", "--file"),
)
_MODE = Tool("write", Options.of("", "reference from"), skip=1, skip_unless=("--reference",), deep=_RECURSIVE)
_EDITOR = Tool("read", Options.of("cSuUTtpsw"), also=("write",))
_SUM = _read("", "", reads=("-c", "--check"))

TOOLS: dict[str, Tool] = {
    **dict.fromkeys(
        ("cat", "tac", "less", "more", "nl", "bat", "batcat", "rev", "file", "zcat", "bzcat", "xzcat"), _read()
    ),
    **dict.fromkeys(("md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum", "cksum"), _SUM),
    **dict.fromkeys(("grep", "egrep", "fgrep", "zgrep"), _GREP),
    **dict.fromkeys(("rg", "ag", "ack"), _RIPGREP),
    **dict.fromkeys(("vi", "vim", "nvim", "view", "nano", "emacs", "ed", "ex", "code", "pico"), _EDITOR),
    **dict.fromkeys(("chmod", "chown", "chgrp", "chattr"), _MODE),
    "head": _read("nc", "lines bytes"),
    "tail": _read("ncs", "lines bytes sleep-interval pid"),
    "wc": _read("", "files0-from"),
    "base64": _read("w", "wrap"),
    "base32": _read("w", "wrap"),
    "hexdump": _read("nsef"),
    "hd": _read("nsef"),
    "od": _read("ANjtwS"),
    "strings": _read("nteT"),
    "cut": _read("dfcb", "delimiter fields characters bytes output-delimiter"),
    "paste": _read("d", "delimiters"),
    "column": _read("tsoNcl"),
    "diff": _read("UCWIxFX", "unified context exclude exclude-from", deep=_RECURSIVE),
    "cmp": _read("in"),
    "comm": _read(),
    "join": _read("tjeao12"),
    "fold": _read("w"),
    "fmt": _read("w"),
    "source": _read(),
    ".": _read(),
    "mapfile": _read("dnOsuCc"),
    "jq": Tool("read", Options.of("fL", "from-file"), skip=1, skip_unless=("-f", "--from-file"), reads=("-f",)),
    "yq": Tool("read", Options.of(), skip=1),
    "sort": _read("kStTo", "key buffer-size field-separator output temporary-directory", writes=("-o", "--output")),
    "split": _read("abCln"),
    "sudoedit": Tool("read", Options.of("ugh"), also=("write",)),
    "touch": Tool("write", Options.of("drt", "date reference time")),
    "truncate": Tool("write", Options.of("rs", "reference size")),
    "tee": Tool("write", Options.of()),
    "sponge": Tool("write", Options.of()),
    "mkdir": Tool("write", Options.of("m", "mode")),
    "mkfifo": Tool("write", Options.of("m", "mode")),
    "mknod": Tool("write", Options.of("m", "mode")),
    "setfacl": Tool("write", Options.of("mMxX", "modify remove set"), deep=("-R",)),
    "rm": Tool("remove", Options.of(), deep=_RECURSIVE),
    "rmdir": Tool("remove", Options.of()),
    "unlink": Tool("remove", Options.of()),
    "shred": Tool("write", Options.of("ns", "iterations size random-source"), also=("remove",)),
    "trash": Tool("remove", Options.of(), deep=("*",)),
    "trash-put": Tool("remove", Options.of(), deep=("*",)),
    "rimraf": Tool("remove", Options.of("", ""), deep=("*",)),
    "gzip": Tool("remove", Options.of("S", "suffix"), deep=("-r",), also=("read",)),
    "gunzip": Tool("remove", Options.of("S", "suffix"), deep=("-r",), also=("read",)),
    "bzip2": Tool("remove", Options.of(), also=("read",)),
    "bunzip2": Tool("remove", Options.of(), also=("read",)),
    "xz": Tool("remove", Options.of("SFCTM"), also=("read",)),
    "unxz": Tool("remove", Options.of("SFCTM"), also=("read",)),
    "zstd": Tool("read", Options.of("oDT"), writes=("-o",)),
}


def tool_files(name: str, words: Sequence[Word]) -> list[Use]:
    """The files that the program `name` uses when called with `words`; none for a program nobody knows."""
    special = _SPECIAL.get(name)
    if special is not None:
        return special(words)
    tool = TOOLS.get(name)
    return [] if tool is None else _tool(name, tool, words)


def _tool(name: str, tool: Tool, words: Sequence[Word]) -> list[Use]:
    parsed = parse_options(words, tool.takes)
    skip = 0 if tool.skip_unless and parsed.has(*tool.skip_unless) else tool.skip
    operands = parsed.operands[skip:]
    depth: Depth = "tree" if tool.deep == ("*",) or parsed.has(*tool.deep) else "file"
    if tool is _RIPGREP:
        depth = "tree" if parsed.has("--hidden", "-u", "--no-ignore", "-.") else "visible"
    if tool.operands == "read" and depth != "file" and not operands:
        operands = [Word(".")]
    uses = [Use(word, access, depth) for word in operands for access in (tool.operands, *tool.also)]
    uses += [Use(word, "write") for word in parsed.values(*tool.writes)]
    uses += [Use(word, "read") for word in parsed.values(*tool.reads)]
    if name == "uniq" and len(operands) > 1:
        uses[1] = Use(operands[1], "write")
    return uses


def _uniq(words: Sequence[Word]) -> list[Use]:
    operands = parse_options(words, Options.of("fsw", "skip-fields skip-chars check-chars")).operands
    accesses: tuple[Access, Access] = ("read", "write")
    return [Use(word, access) for word, access in zip(operands, accesses, strict=False)]


def _xxd(words: Sequence[Word]) -> list[Use]:
    operands = parse_options(words, Options.of("cglosRn")).operands
    accesses: tuple[Access, Access] = ("read", "write")
    return [Use(word, access) for word, access in zip(operands, accesses, strict=False)]


_COPIES = Options.of("tSmgogBfeT", "target-directory suffix mode group owner backup-dir exclude include rsh filter")


def _targets(parsed: Parsed) -> tuple[list[Word], list[Word]]:
    """Sources and places written; a target may be a folder, then the sources' names lie in it."""
    folders = parsed.values("-t", "--target-directory")
    sources = list(parsed.operands)
    if not folders:
        if len(sources) < 2:
            return sources, []
        folders = [sources.pop()]
    inside = [_inside(folder, source) for folder in folders for source in sources]
    return sources, [*folders, *inside]


def _inside(folder: Word, source: Word) -> Word:
    name = source.text.rstrip("/").rsplit("/", 1)[-1]
    name = name.rsplit(":", 1)[-1] if _remote(source) else name
    text = f"{folder.text.rstrip('/')}/{name}"
    if folder.dynamic or source.dynamic:
        return Word(text, dynamic=True, prefix=folder.prefix, many=folder.many or source.many)
    if folder.pattern is None and source.pattern is None:
        return Word(text)
    inner = (source.pattern or name).rstrip("/").rsplit("/", 1)[-1]
    return Word(text, pattern=f"{(folder.pattern or folder.text).rstrip('/')}/{inner}")


def _copy(words: Sequence[Word]) -> list[Use]:
    parsed = parse_options(words, Options.of("tS", "target-directory suffix"))
    depth: Depth = "tree" if parsed.has(*_RECURSIVE, "-a", "--archive") else "file"
    sources, written = _targets(parsed)
    return [*(Use(word, "read", depth) for word in sources), *(Use(word, "write", depth) for word in written)]


def _move(words: Sequence[Word]) -> list[Use]:
    sources, written = _targets(parse_options(words, Options.of("tS", "target-directory suffix")))
    removed = [Use(word, access, "tree") for word in sources for access in ("read", "remove")]
    return [*removed, *(Use(word, "write") for word in written)]


def _link(words: Sequence[Word]) -> list[Use]:
    sources, written = _targets(parse_options(words, Options.of("tS", "target-directory suffix")))
    other_names: tuple[Access, ...] = ("read", "write")
    return [
        *(Use(word, access) for word in sources for access in other_names),
        *(Use(word, "write") for word in written),
    ]


def _install(words: Sequence[Word]) -> list[Use]:
    parsed = parse_options(words, Options.of("tSmgo", "target-directory suffix mode group owner strip-program"))
    if parsed.has("-d", "--directory"):
        return [Use(word, "write") for word in parsed.operands]
    sources, written = _targets(parsed)
    return [*(Use(word, "read") for word in sources), *(Use(word, "write") for word in written)]


def _remote_copy(words: Sequence[Word]) -> list[Use]:
    parsed = parse_options(words, Options.of("cDFiJloPSXeBfTM", "rsh exclude include filter exclude-from backup-dir"))
    if len(parsed.operands) < 2:
        return []
    *sources, target = parsed.operands
    uses = [Use(word, "read", "tree") for word in sources if not _remote(word)]
    if parsed.has("--remove-source-files"):
        uses += [Use(word, "remove", "tree") for word in sources if not _remote(word)]
    if _remote(target):
        return uses
    if parsed.has("--delete"):
        uses.append(Use(target, "remove", "tree"))
    return [*uses, Use(target, "write", "tree"), *(Use(_inside(target, word), "write", "tree") for word in sources)]


def _remote(word: Word) -> bool:
    head = word.text.split("/", 1)[0]
    return ":" in head or "@" in head


def _dd(words: Sequence[Word]) -> list[Use]:
    uses: list[Use] = []
    for word in words:
        known = word.prefix if word.dynamic else word.text
        for key, access in (("if=", "read"), ("of=", "write")):
            if known.startswith(key):
                cut = len(key)
                value = Word(word.text[cut:], word.dynamic, word.prefix[cut:], word.suffix, pattern=None)
                uses.append(Use(value, access))  # type: ignore[arg-type]
        if word.dynamic and "=" not in known:
            uses.append(Use(word, "write"))
    return uses


def _sed(words: Sequence[Word]) -> list[Use]:
    parsed = parse_options(words, Options.of("efl", "expression file line-length"))
    scripts = parsed.has("-e", "-f", "--expression", "--file")
    operands = parsed.operands if scripts else parsed.operands[1:]
    in_place = parsed.has("-i", "--in-place")
    uses = [Use(word, access) for word in operands for access in (("read", "write") if in_place else ("read",))]
    uses += [Use(word, "read") for word in parsed.values("-f", "--file")]
    texts = parsed.values("-e", "--expression") if scripts else parsed.operands[:1]
    for script in texts:
        uses += _sed_script(script)
    return uses


def _sed_script(script: Word) -> list[Use]:
    """Files that a sed script names: `w FILE` (also after s///) and `r FILE`."""
    uses: list[Use] = []
    for line in script.text.replace(";", "\n").splitlines():
        head, _, name = line.strip().rpartition(" ")
        if name and head[-1:] in ("w", "W"):
            uses.append(Use(Word(name), "write"))
        if name and head[-1:] in ("r", "R"):
            uses.append(Use(Word(name), "read"))
    return uses


def _awk(words: Sequence[Word]) -> list[Use]:
    parsed = parse_options(words, Options.of("fFvi", "file field-separator assign include"), permute=False)
    files = parsed.values("-f", "--file")
    operands = parsed.operands if files else parsed.operands[1:]
    uses = [Use(word, "read") for word in operands if word.dynamic or "=" not in word.text]
    if any(word.text == "inplace" for word in parsed.values("-i")):
        uses += [Use(word, "write") for word in operands]
    return [*uses, *(Use(word, "read") for word in files)]


def _perl(words: Sequence[Word]) -> list[Use]:
    parsed = parse_options(words, Options.of("eEIM"), permute=False)
    if not parsed.has("-i") or not parsed.has("-e", "-E"):
        return []
    return [Use(word, access) for word in parsed.operands for access in ("read", "write")]


def _tar(words: Sequence[Word]) -> list[Use]:
    if not words:
        return []
    old = words[0].plain and not words[0].text.startswith("-")
    given = [Word("-" + words[0].text), *words[1:]] if old else list(words)
    if old and "f" in words[0].text and not words[0].text.endswith("f") and len(words) > 1:
        letters = words[0].text.replace("f", "") + "f"
        given = [Word("-" + letters), *words[1:]]
    parsed = parse_options(
        given, Options.of("fCTXb", "file directory files-from exclude exclude-from strip-components")
    )
    folders = parsed.values("-C", "--directory")
    archives = parsed.values("-f", "--file")
    place = folders[-1] if folders else Word(".")
    if parsed.has("-x", "--extract", "--get"):
        return [*(Use(word, "read") for word in archives), Use(place, "write", "tree")]
    if parsed.has("-t", "--list"):
        return [Use(word, "read") for word in archives]
    uses = [Use(_inside_path(place, word), "read", "tree") for word in parsed.operands]
    if parsed.has("--remove-files"):
        uses += [Use(_inside_path(place, word), "remove", "tree") for word in parsed.operands]
    return [*uses, *(Use(word, "write") for word in archives)]


def _inside_path(folder: Word, word: Word) -> Word:
    if folder.text == "." or word.text.startswith("/"):
        return word
    text = f"{folder.text.rstrip('/')}/{word.text}"
    if folder.dynamic or word.dynamic:
        return Word(text, dynamic=True, prefix=folder.prefix)
    return Word(text, pattern=f"{folder.pattern or folder.text}/{word.pattern or word.text}" if word.pattern else None)


def _zip(words: Sequence[Word]) -> list[Use]:
    parsed = parse_options(words, Options.of("xibtPnm"))
    if not parsed.operands:
        return []
    archive, *rest = parsed.operands
    depth: Depth = "tree" if parsed.has("-r") else "file"
    return [Use(archive, "write"), *(Use(word, "read", depth) for word in rest)]


def _unzip(words: Sequence[Word]) -> list[Use]:
    parsed = parse_options(words, Options.of("dxP"))
    if not parsed.operands:
        return []
    if parsed.has("-l", "-p", "-t", "-v", "-Z"):
        return [Use(parsed.operands[0], "read")]
    folders = parsed.values("-d") or plain(["."])
    return [Use(parsed.operands[0], "read"), *(Use(word, "write", "tree") for word in folders)]


_CURL = Options.of(
    "oTdFKHXubAecrwmECDPQYyzhUtx",
    "output upload-file data data-binary data-raw data-urlencode form config header request user cookie cookie-jar "
    "user-agent url cert key cacert max-time connect-timeout retry proxy referer range write-out output-dir json",
)


def _curl(words: Sequence[Word]) -> list[Use]:
    parsed = parse_options(words, _CURL)
    uses = [Use(word, "write") for word in parsed.values("-o", "--output", "-c", "--cookie-jar", "-D")]
    uses += [Use(word, "read") for word in parsed.values("-T", "--upload-file", "-K", "--config")]
    folder = (parsed.values("--output-dir") or plain(["."]))[-1]
    if parsed.has("-O", "--remote-name", "--remote-name-all", "-J"):
        urls = [*parsed.operands, *parsed.values("--url")]
        uses += [Use(_inside(folder, _url_name(word)), "write") for word in urls]
    sent = parsed.values("-d", "--data", "--data-binary", "--data-urlencode", "-F", "--form", "--json")
    for word in sent:
        at = max(word.text.find("@"), word.text.find("<"))
        if at >= 0:
            uses.append(Use(Word(word.text[at + 1 :].split(";", 1)[0], word.dynamic), "read"))
    return uses


def _url_name(word: Word) -> Word:
    path = word.text.split("?", 1)[0].split("#", 1)[0]
    return Word(path.rsplit("/", 1)[-1] or "index.html", word.dynamic)


_WGET = Options.of(
    "oOaiPUeBtTwQAR",
    "output-file output-document append-output input-file directory-prefix user-agent execute header post-file "
    "post-data body-file tries timeout",
)


def _wget(words: Sequence[Word]) -> list[Use]:
    parsed = parse_options(words, _WGET)
    named = parsed.values("-O", "--output-document")
    uses = [Use(word, "write") for word in (*named, *parsed.values("-o", "--output-file", "-a", "--append-output"))]
    uses += [Use(word, "read") for word in parsed.values("-i", "--input-file", "--post-file", "--body-file")]
    if not named:
        folder = (parsed.values("-P", "--directory-prefix") or plain(["."]))[-1]
        uses += [Use(_inside(folder, _url_name(word)), "write") for word in parsed.operands]
    return uses


def _patch(words: Sequence[Word]) -> list[Use]:
    parsed = parse_options(words, Options.of("pidoBDFrVYz", "strip input directory output reject-file"))
    uses = [Use(word, "read") for word in (*parsed.values("-i", "--input"), *parsed.operands[1:])]
    uses += [Use(word, "write") for word in parsed.values("-o", "--output")]
    return [*uses, *(Use(word, access) for word in parsed.operands[:1] for access in ("read", "write"))]


_SPECIAL: dict[str, Callable[[Sequence[Word]], list[Use]]] = {
    "cp": _copy,
    "gcp": _copy,
    "mv": _move,
    "ln": _link,
    "install": _install,
    "rsync": _remote_copy,
    "scp": _remote_copy,
    "dd": _dd,
    "sed": _sed,
    "gsed": _sed,
    "awk": _awk,
    "gawk": _awk,
    "mawk": _awk,
    "perl": _perl,
    "tar": _tar,
    "gtar": _tar,
    "bsdtar": _tar,
    "zip": _zip,
    "unzip": _unzip,
    "curl": _curl,
    "wget": _wget,
    "patch": _patch,
    "uniq": _uniq,
    "xxd": _xxd,
}
