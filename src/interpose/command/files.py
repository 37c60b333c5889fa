"""Which files a program touches, by its words.

Knows: the common file tools. Does not know: folders, the filesystem, programs that only run other programs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from interpose.command.archives import tar_files, unzip_files, zip_files
from interpose.command.filters import grep_names, ripgrep_names
from interpose.command.options import NO_OPTIONS, Options, Parsed, parse_options
from interpose.command.reading import Access, Depth, Word
from interpose.command.transfers import (
    copied_files,
    curl_files,
    docker_files,
    kubectl_files,
    openssl_files,
    settings_files,
    ssh_files,
    wget_files,
)
from interpose.command.uses import Use, inside


@dataclass(frozen=True, slots=True)
class Tool:
    """A program whose operands are files.

    Attributes:
        takes: its options with a value.
        operands: what happens to each operand.
        skip: how many operands ahead of the files are something else.
        skip_unless: options that take the place of the skipped operands.
        deep: options that make it reach below folders, ("*",) always; `reach` is how far.
        writes: options whose value is written; `reads` likewise.
        also: further accesses of each operand.
    """

    operands: Access
    takes: Options = NO_OPTIONS
    skip: int = 0
    skip_unless: tuple[str, ...] = ()
    deep: tuple[str, ...] = ()
    reach: Depth = "tree"
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
_MODE = Tool(
    "write",
    Options.of("", "reference from"),
    skip=1,
    skip_unless=("--reference",),
    deep=_RECURSIVE,
    reach="existing",
)
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
    "setfacl": Tool("write", Options.of("mMxX", "modify remove set"), deep=("-R",), reach="existing"),
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
    depth: Depth = tool.reach if tool.deep == ("*",) or parsed.has(*tool.deep) else "file"
    names = grep_names(parsed) if tool is _GREP else None
    if tool is _RIPGREP:
        if parsed.has("--files"):
            return [Use(word, "read") for word in parsed.values(*tool.reads)]
        names = ripgrep_names(parsed) if name == "rg" else None
        hidden = parsed.has("--hidden", "-u", "--no-ignore", "-.") or (names is not None and names.takes_in)
        depth = "tree" if hidden else "visible"
    if tool.operands == "read" and depth != "file" and not operands:
        operands = [Word(".")]
    uses = [Use(word, access, depth, names) for word in operands for access in (tool.operands, *tool.also)]
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
    return sources, [*folders, *(inside(folder, source) for folder in folders for source in sources)]


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
    "rsync": copied_files,
    "scp": copied_files,
    "dd": _dd,
    "docker": docker_files,
    "podman": docker_files,
    "nerdctl": docker_files,
    "openssl": openssl_files,
    "kubectl": kubectl_files,
    "oc": kubectl_files,
    "node": settings_files,
    "bun": settings_files,
    "deno": settings_files,
    "ssh": ssh_files,
    "sed": _sed,
    "gsed": _sed,
    "awk": _awk,
    "gawk": _awk,
    "mawk": _awk,
    "perl": _perl,
    "tar": tar_files,
    "gtar": tar_files,
    "bsdtar": tar_files,
    "zip": zip_files,
    "unzip": unzip_files,
    "curl": curl_files,
    "wget": wget_files,
    "patch": _patch,
    "uniq": _uniq,
    "xxd": _xxd,
}
