"""Options whose value is a command: of git, tar, ssh, rsync and others.

Knows: their names. Does not know: what the commands do.
"""

import re
from collections.abc import Sequence

from interpose.command.git import GitCall
from interpose.command.options import Options, parse_options
from interpose.command.reading import Word
from interpose.command.wrappers import SSH_OPTIONS

_GIT_COMMANDS = re.compile(
    r"core\.(?:pager|editor|sshcommand|fsmonitor|askpass|gitproxy|alternaterefscommand)|sequence\.editor|"
    r"diff\.external|(?:diff|difftool|mergetool|merge|filter|man|browser|trailer|guitool)\..*\."
    r"(?:command|cmd|textconv|clean|smudge|process|driver)|pager\..+|credential\.(?:.*\.)?helper|"
    r"gpg\.(?:.*\.)?program|gpg\.ssh\.defaultkeycommand|interactive\.difffilter|uploadpack\.packobjectshook|"
    r"remote\..*\.(?:uploadpack|receivepack)|sendemail\..*cmd|submodule\..*\.update|tar\..*\.command|"
    r"uploadarchive\..*|receive\.procreceiverefs|init\.defaulttemplatecmd"
)
_GIT_UNREAD = re.compile(r"alias\..*|include\.path|includeif\..*|core\.hookspath|init\.templatedir|protocol\..*allow")
_GIT_OPTIONS = {
    "difftool": ("-x", "--extcmd"),
    "grep": ("--open-files-in-pager"),
    "clone": ("-u", "--upload-pack"),
    "fetch": ("--upload-pack",),
    "pull": ("--upload-pack",),
    "fetch-pack": ("--upload-pack", "--exec"),
    "ls-remote": ("--upload-pack", "--exec"),
    "push": ("--receive-pack", "--exec"),
    "send-pack": ("--receive-pack", "--exec"),
    "archive": ("--exec",),
    "send-email": ("--sendmail-cmd", "--to-cmd", "--cc-cmd", "--header-cmd"),
}
_GIT_TAKES = {
    "difftool": Options.of("xt", "extcmd tool"),
    "grep": Options.of("eABCfm"),
    "clone": Options.of("uboc", "upload-pack branch origin config depth reference template"),
}
_GIT_LONG = Options.of("c", "upload-pack receive-pack exec sendmail-cmd to-cmd cc-cmd header-cmd config")
_HARMLESS = frozenset({"", "true", "false", "/dev/null", "always", "never", "user"})

_TAR_LETTERS = "fCTXbIFgKLNVH"
_TAR = ("-I", "--use-compress-program", "--to-command", "--rmt-command", "--rsh-command", "-F", "--info-script")
_TAR_OPTIONS = Options.of(
    _TAR_LETTERS,
    "file directory use-compress-program to-command rmt-command rsh-command info-script new-volume-script "
    "checkpoint-action files-from exclude exclude-from",
)
_SSH_COMMANDS = frozenset({"proxycommand", "localcommand", "knownhostscommand", "xauthlocation", "pkcs11provider"})

_RUNS: dict[str, tuple[Options, tuple[str, ...]]] = {
    "rsync": (Options.of("efBTM", "rsh rsync-path"), ("-e", "--rsh", "--rsync-path")),
    "split": (Options.of("abCln", "filter"), ("--filter",)),
    "sort": (Options.of("kStTo", "compress-program"), ("--compress-program",)),
    "man": (Options.of("PHCLmMSserEpRtT", "pager html"), ("-P", "--pager", "-H", "--html")),
    "rg": (Options.of("efgtTmABCrjMd", "pre hostname-bin"), ("--pre", "--hostname-bin")),
    "zip": (Options.of("xibtPnm", "unzip-command"), ("--unzip-command", "-TT")),
    "wget": (Options.of("oOaiPUeBtTwQAR", "use-askpass"), ("--use-askpass",)),
}


def run_texts(name: str, words: Sequence[Word]) -> list[Word]:
    """The texts that the program `name`, called with `words`, runs as commands here."""
    match name:
        case "tar" | "gtar" | "bsdtar":
            return _tar(words)
        case "ssh" | "scp" | "sftp":
            return _ssh(name, words)
        case _:
            takes, options = _RUNS.get(name, (None, ()))
            return [] if takes is None else parse_options(words, takes).values(*options)


def git_texts(call: GitCall) -> tuple[list[Word], list[str]]:
    """The texts that a git is told to run, by settings or options, and why others cannot be read."""
    texts: list[Word] = []
    doubts: list[str] = []
    subcommand = call.subcommand.text if call.subcommand is not None and call.subcommand.plain else ""
    takes = _GIT_TAKES.get(subcommand, _GIT_LONG)
    parsed = parse_options(call.words, takes)
    settings = [*call.configured, *(parsed.values("-c", "--config") if subcommand == "clone" else ())]
    for word in settings:
        _setting(word, texts, doubts)
    if subcommand == "config" and len(parsed.operands) > 1:
        operands = [word for word in parsed.operands if word.text != "set"]
        _stored(operands, texts, doubts)
    texts += parsed.values(*_GIT_OPTIONS.get(subcommand, ()))
    if subcommand == "grep":
        texts += [Word(word.text[2:], word.dynamic) for word in call.words if word.text[:2] == "-O" and word.text[2:]]
    doubts += [f"git runs what stands in {word.text[:60]!r}" for word in call.words if word.text.startswith("ext::")]
    return texts, doubts


def _setting(word: Word, texts: list[Word], doubts: list[str]) -> None:
    """`KEY=VALUE` of `git -c`, or `KEY=VARIABLE` of `--config-env`."""
    known = word.prefix if word.dynamic else word.text
    key, equals, value = known.partition("=")
    key = key.lower()
    if word.dynamic and not equals:
        doubts.append("git -c sets an alias or something that is not known")
    elif _GIT_UNREAD.fullmatch(key) and value not in _HARMLESS:
        doubts.append(f"git -c {key} may make git run what is not known")
    elif _GIT_COMMANDS.fullmatch(key) and word.dynamic:
        doubts.append(f"the value of git's {key} is run, and is not known")
    elif _GIT_COMMANDS.fullmatch(key) and value not in _HARMLESS:
        texts.append(Word(value.removeprefix("!")))


def _stored(operands: Sequence[Word], texts: list[Word], doubts: list[str]) -> None:
    """`git config KEY VALUE`: what it stores runs with a later git."""
    if len(operands) < 2 or not operands[0].plain:
        return
    key, value = operands[0].text.lower(), operands[1]
    if key.startswith("alias.") and value.plain:
        shell = value.text.startswith("!")
        texts.append(Word(value.text[1:] if shell else f"git {value.text}"))
    elif _GIT_COMMANDS.fullmatch(key) and value.text not in _HARMLESS:
        texts.append(Word(value.text.removeprefix("!"), value.dynamic))
    elif _GIT_UNREAD.fullmatch(key) and value.text not in _HARMLESS:
        doubts.append(f"git config {key} may make git run what is not known")


def _tar(words: Sequence[Word]) -> list[Word]:
    given = list(words)
    if given and given[0].plain and not given[0].text.startswith("-"):
        letters, *rest = given
        old: list[Word] = []
        for letter in letters.text:
            old.append(Word(f"-{letter}"))
            if letter in _TAR_LETTERS and rest:
                old.append(rest.pop(0))
        given = [*old, *rest]
    parsed = parse_options(given, _TAR_OPTIONS)
    texts = [
        value
        for option, value in parsed.options
        if value is not None and (option in _TAR or any(len(option) > 4 and name.startswith(option) for name in _TAR))
    ]
    for option, value in parsed.options:
        if value is None or not option.startswith("--checkpoint-a"):
            continue
        if value.dynamic:
            texts.append(value)
        elif value.text.startswith("exec="):
            texts.append(Word(value.text.removeprefix("exec=")))
    return texts


def _ssh(name: str, words: Sequence[Word]) -> list[Word]:
    takes = SSH_OPTIONS if name == "ssh" else Options.of("cDFiJloPSXBbRs")
    parsed = parse_options(words, takes, permute=name != "ssh")
    options = list(parsed.options)
    if name == "ssh":
        options += parse_options(parsed.operands[1:], takes, permute=False).options
    texts: list[Word] = []
    for option, value in options:
        if value is None:
            continue
        key, _, text = value.text.strip().replace("=", " ", 1).partition(" ")
        if option == "-o" and value.dynamic and not key.strip("\"' ").isalpha():
            texts.append(value)
        elif option == "-o" and key.lower() in _SSH_COMMANDS and text.strip() not in ("none", "no"):
            texts.append(Word(text.strip(), value.dynamic))
        elif option == "-S" and name != "ssh":
            texts.append(value)
    return texts
