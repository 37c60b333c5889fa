"""Programs that run other programs: where the inner command starts.

Knows: the options of each that take a value, and what stands before the inner command. Does not know: files, policy.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from interpose.command.options import NO_OPTIONS, Options, may_be_option, parse_options
from interpose.command.reading import SimpleCommand, Word

SSH_OPTIONS = Options.of("BbcDEeFIiJLlmOopQRSWw")
"""The options of ssh(1) that take a value."""

_VERSION = re.compile(r"(?<=.)(?:@|[=<>~!]=|\[)")
_ASSIGNMENT = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*=")


@dataclass(frozen=True, slots=True)
class Wrapper:
    """How one wrapper is called: `before` operands stand ahead of the inner command, maybe after assignments.

    Attributes:
        takes: its options with a value.
        before: how many operands stand ahead of the inner command.
        assigns: whether assignments may stand there too.
        behind: words of which the first is followed by the inner command, whatever stands before it.
        elsewhere: options after which the inner command may run in another folder, ("*",) always; so for the next.
        joins: options after which the operands are put together and given to a shell.
        queries: options that run nothing.
        texts: options whose value is given to a shell.
        program: an option whose value is the inner program; the operands are its words.
        writes: options whose value is a file that is written; `reads` likewise.
        remote: whether the inner command runs on another machine or in a container.
        again: whether options are read once more behind the operands that stand ahead.
        each: whether every operand is a text of its own that is given to a shell.
        instead: options that take the place of the operands ahead.
        package: whether the inner program is written as a package, maybe with a version (`rimraf@5`).
    """

    takes: Options = NO_OPTIONS
    before: int = 0
    assigns: bool = False
    behind: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    joins: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    program: str | None = None
    writes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    remote: bool = False
    again: bool = False
    each: bool = False
    instead: tuple[str, ...] = ()
    package: bool = False


_MOST_OTHERS = 8
"""So many places where an inner command may start are read."""

NO_COMMAND = 1_000
"""So many operands ahead of the inner command that there is none."""


_SETARCH = Options.of("p", "pid")

WRAPPERS: dict[str, Wrapper] = {
    "sudo": Wrapper(
        Options.of(
            "CDghpRrtTuU", "close-from chdir group host prompt chroot role type command-timeout other-user user"
        ),
        assigns=True,
        elsewhere=("-D", "-R", "-i", "--chdir", "--chroot", "--login"),
        queries=("-l", "--list", "-v", "--validate", "-K", "-V", "--version"),
    ),
    "doas": Wrapper(Options.of("aCu")),
    "env": Wrapper(
        Options.of("uCa", "unset chdir argv0"), assigns=True, elsewhere=("-C", "--chdir"), queries=("--version",)
    ),
    "nice": Wrapper(Options.of("n", "adjustment")),
    "ionice": Wrapper(Options.of("cnpPu", "class classdata pid pgid uid")),
    "chrt": Wrapper(Options.of("TPDp"), before=1),
    "taskset": Wrapper(Options.of("p"), before=1),
    "nohup": Wrapper(Options()),
    "setsid": Wrapper(Options()),
    "stdbuf": Wrapper(Options.of("ioe", "input output error")),
    "time": Wrapper(Options.of("fo", "format output"), assigns=True, writes=("-o", "--output")),
    "timeout": Wrapper(Options.of("ks", "kill-after signal"), before=1),
    "gtimeout": Wrapper(Options.of("ks", "kill-after signal"), before=1),
    "command": Wrapper(Options(), queries=("-v", "-V")),
    "builtin": Wrapper(Options()),
    "exec": Wrapper(Options.of("a")),
    "coproc": Wrapper(Options(), assigns=True),
    "strace": Wrapper(Options.of("aAbeEIoOpPsSuUX", "output attach user columns trace"), writes=("-o", "--output")),
    "ltrace": Wrapper(Options.of("aAeFlnopsuwx", "output")),
    "chroot": Wrapper(Options(), before=1, elsewhere=("*",)),
    "unshare": Wrapper(Options.of("RwSG", "root wd setuid setgid"), elsewhere=("-R", "-w", "--root", "--wd")),
    "nsenter": Wrapper(Options.of("tSG", "target setuid setgid"), elsewhere=("*",)),
    "setpriv": Wrapper(Options.of("", "ruid euid rgid egid reuid regid groups inh-caps ambient-caps bounding-set")),
    "systemd-run": Wrapper(Options.of("uptEGH", "unit property uid gid setenv working-directory"), elsewhere=("*",)),
    "caffeinate": Wrapper(Options.of("tw")),
    "busybox": Wrapper(Options()),
    "toybox": Wrapper(Options()),
    "chronic": Wrapper(Options()),
    "fakeroot": Wrapper(Options.of("lsiub")),
    "xvfb-run": Wrapper(Options.of("efnspw")),
    "unbuffer": Wrapper(Options()),
    "rlwrap": Wrapper(Options.of("bcDfgHlmPqsSt")),
    "eatmydata": Wrapper(Options()),
    "proxychains": Wrapper(Options.of("f")),
    "proxychains4": Wrapper(Options.of("f")),
    "torsocks": Wrapper(Options()),
    "prlimit": Wrapper(Options.of("p")),
    "numactl": Wrapper(Options.of("iNmCpP")),
    "npx": Wrapper(Options.of("pwc", "package workspace call"), texts=("-c", "--call"), package=True),
    "bunx": Wrapper(Options.of("p", "package"), package=True),
    "pnpx": Wrapper(Options.of("p", "package"), package=True),
    "shx": Wrapper(),
    "cross-env": Wrapper(assigns=True),
    "cross-env-shell": Wrapper(assigns=True, joins=("*",)),
    "env-cmd": Wrapper(Options.of("fer", "file environments rc-file"), reads=("-f", "--file")),
    "pkexec": Wrapper(Options.of("u", "user"), elsewhere=("*",)),
    "setarch": Wrapper(_SETARCH, before=1),
    "linux32": Wrapper(_SETARCH),
    "linux64": Wrapper(_SETARCH),
    "valgrind": Wrapper(Options.of("q")),
    "nocache": Wrapper(Options.of("n")),
    "systemd-inhibit": Wrapper(Options.of("", "what who why mode")),
    "cpulimit": Wrapper(Options.of("lepP", "limit exe pid path")),
    "runcon": Wrapper(
        Options.of("turl", "type user role range"), before=1, instead=("-t", "-u", "-r", "-l", "--type", "--user")
    ),
    "proot": Wrapper(Options.of("rRbmqwkvS", "rootfs bind mount qemu cwd kernel-release"), elsewhere=("*",)),
    "faketime": Wrapper(Options.of("fp", "exclude-monotonic"), before=1),
    "dbus-run-session": Wrapper(Options.of("", "config-file dbus-daemon")),
    "dbus-launch": Wrapper(Options.of("", "config-file")),
    "trickle": Wrapper(Options.of("duwtlnL")),
    "softlimit": Wrapper(Options.of("acdflmoprst")),
    "gnice": Wrapper(Options.of("n", "adjustment")),
    "gnohup": Wrapper(),
    "genv": Wrapper(
        Options.of("uCa", "unset chdir argv0"), assigns=True, elsewhere=("-C", "--chdir"), queries=("--version",)
    ),
    "gstdbuf": Wrapper(Options.of("ioe", "input output error")),
    "start-stop-daemon": Wrapper(
        Options.of(
            "xapunsckKgdrNIPR",
            "exec startas pidfile user name signal chuid group chdir chroot nicelevel iosched procsched umask retry",
        ),
        elsewhere=("-d", "--chdir", "-r", "--chroot"),
    ),
    "hyperfine": Wrapper(
        Options.of(
            "wrmMspcPDLSNn",
            "warmup runs min-runs max-runs setup prepare cleanup conclude parameter-scan parameter-list shell style "
            "sort time-unit export-json export-csv export-markdown export-asciidoc output input command-name",
        ),
        each=True,
        texts=("-s", "--setup", "-p", "--prepare", "-c", "--cleanup", "--conclude"),
    ),
    "concurrently": Wrapper(Options.of("nscmp", "names success prefix prefix-colors max-processes"), each=True),
    "capsh": Wrapper(before=NO_COMMAND, behind=("--", "==")),
    "flock": Wrapper(Options.of("wE", "wait timeout conflict-exit-code"), before=1),
    "entr": Wrapper(joins=("-s",)),
    "ssh": Wrapper(SSH_OPTIONS, before=1, joins=("*",), remote=True, again=True),
    "screen": Wrapper(Options.of("cehpsStT"), queries=("-X", "-ls", "-list")),
    "nix-shell": Wrapper(
        Options.of("pAIE", "run command packages attr include expr option arg argstr"),
        before=NO_COMMAND,
        texts=("--run", "--command"),
    ),
    "uvx": Wrapper(
        Options.of("pwfiP", "from with with-editable python index index-url extra-index-url env-file"),
        reads=("--env-file",),
        package=True,
    ),
}

SHELLS = frozenset({"sh", "bash", "dash", "ash", "rbash"})
"""Shells whose language is read."""

OTHER_SHELLS = frozenset(
    {
        "zsh", "fish", "ksh", "ksh93", "mksh", "lksh", "oksh", "loksh", "posh", "csh", "tcsh", "elvish", "nu", "xonsh",
        "pwsh", "powershell", "yash", "osh", "ysh", "rc", "es",
    }
)  # fmt: skip
"""Shells whose language is not read."""

_SHELLS_ALONE = frozenset(
    {
        "ssh", "sudo", "doas", "chroot", "unshare", "nsenter", "setarch", "linux32", "linux64", "proot", "fakeroot",
        "pkexec", "setpriv",
    }
)  # fmt: skip
"""Programs that start a shell when they are given no command; sudo and doas only with an option."""


@dataclass(frozen=True, slots=True)
class Inner:
    """The command inside a wrapper: its words (none for a query), and how sure the place is.

    With `joined` the words are one text for a shell; `texts` are such texts by themselves. `others` are what the words
    may be instead, where the name of a container or machine is not known and might be an option.
    """

    words: tuple[Word, ...]
    assignments: tuple[Word, ...] = ()
    elsewhere: bool = False
    uncertain: bool = False
    writes: tuple[Word, ...] = ()
    reads: tuple[Word, ...] = ()
    texts: tuple[Word, ...] = ()
    joined: bool = False
    others: tuple[tuple[Word, ...], ...] = ()


def unwrap(wrapper: Wrapper, words: Sequence[Word]) -> Inner:
    """The command that a wrapper runs when called with `words`."""
    own, behind = _parted(words, wrapper.behind)
    parsed = parse_options(own, wrapper.takes, permute=False)
    elsewhere = "*" in wrapper.elsewhere or parsed.has(*wrapper.elsewhere)
    reads, texts = tuple(parsed.values(*wrapper.reads)), tuple(parsed.values(*wrapper.texts))
    if parsed.has(*wrapper.queries):
        return Inner((), elsewhere=elsewhere, reads=reads, texts=texts)
    if wrapper.each:
        operands = parse_options(own, wrapper.takes).operands
        return Inner((), elsewhere=elsewhere, reads=reads, texts=(*texts, *operands))
    rest = list(parsed.operands)
    uncertain = parsed.uncertain or any(may_be_option(word) for word in rest[: wrapper.before])
    before = 0 if wrapper.instead and parsed.has(*wrapper.instead) else wrapper.before
    ahead = rest[:before]
    rest = rest[before:] if behind is None else behind
    if wrapper.again and rest:
        more = parse_options(rest, wrapper.takes, permute=False)
        rest, texts = more.operands, (*texts, *more.values(*wrapper.texts))
    others: tuple[tuple[Word, ...], ...] = ()
    if wrapper.remote and uncertain and not any(word.many for word in (own if behind is not None else ahead)):
        starts = () if behind is not None else range(1, len(rest))
        others = tuple(tuple(rest[start:]) for start in starts if not rest[start].text.startswith("-"))
        uncertain = len(others) > _MOST_OTHERS
    assignments: list[Word] = []
    if wrapper.assigns and rest and rest[0].text == "-":
        rest = rest[1:]
    while wrapper.assigns and rest and _assigns(rest[0]):
        assignments.append(rest.pop(0))
    if wrapper.assigns and parsed.options and rest and rest[0].text == "-":
        rest = rest[1:]
    if wrapper.package and rest:
        rest[0] = _without_version(rest[0])
    if wrapper.program is not None:
        rest = [*parsed.values(wrapper.program)[-1:], *rest]
    return Inner(
        words=tuple(rest),
        assignments=tuple(assignments),
        elsewhere=elsewhere,
        uncertain=uncertain,
        writes=tuple(parsed.values(*wrapper.writes)),
        reads=reads,
        texts=texts,
        joined="*" in wrapper.joins or parsed.has(*wrapper.joins),
        others=() if uncertain else others,
    )


@dataclass(frozen=True, slots=True)
class ShellCall:
    """How a shell was started: with a text (`-c`), with a script file, or reading its input."""

    kind: Literal["text", "script", "input", "none", "uncertain"]
    word: Word | None = None
    arguments: tuple[Word, ...] = ()


def shell_call(words: Sequence[Word]) -> ShellCall:
    """What a call of sh or bash runs."""
    text = False
    index = 0
    reads_input = False
    while index < len(words):
        word = words[index]
        if word.dynamic and may_be_option(word):
            return ShellCall("uncertain", word)
        if not word.text.startswith(("-", "+")):
            break
        index += 1
        if word.text in ("-", "--"):
            break
        if word.text in ("--version", "--help"):
            return ShellCall("none")
        if word.text.startswith("--"):
            index += word.text in ("--rcfile", "--init-file")
            continue
        text |= "c" in word.text and word.text.startswith("-")
        reads_input |= "s" in word.text and word.text.startswith("-")
        index += word.text[-1] in "oO"
    operands = tuple(words[index:])
    if text:
        return ShellCall("text", operands[0], operands[1:]) if operands else ShellCall("none")
    if reads_input or not operands:
        return ShellCall("input", None, operands)
    return ShellCall("script", operands[0], operands[1:])


FindAction: TypeAlias = tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class FindCall:
    """What a find does: its starting points, the commands it runs, whether it deletes, and a name all must have."""

    roots: tuple[Word, ...]
    runs: tuple[FindAction, ...] = ()
    deletes: bool = False
    writes: tuple[Word, ...] = ()
    name: Word | None = None


_FIND_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_FIND_WRITES = frozenset({"-fprint", "-fprint0", "-fls", "-fprintf"})
_FIND_CHOICES = frozenset({"-o", "-or", "!", "-not", "(", ","})


def find_call(words: Sequence[Word]) -> FindCall:
    """Reads find's roots and actions."""
    index = 0
    while index < len(words) and words[index].text in ("-H", "-L", "-P"):
        index += 1
    start = index
    while index < len(words) and not words[index].text.startswith(("-", "(", "!")):
        index += 1
    roots = tuple(words[start:index]) or (Word("."),)
    tests = words[index:]
    texts = [word.text for word in tests]
    runs: list[FindAction] = []
    for position, text in enumerate(texts):
        if text in _FIND_RUNS:
            end = next((stop for stop in range(position + 1, len(texts)) if _ends(texts, stop)), len(texts))
            runs.append(tuple(tests[position + 1 : end]))
    names = [tests[position + 1] for position, text in enumerate(texts[:-1]) if text == "-name"]
    simple = len(names) == 1 and names[0].plain and not _FIND_CHOICES.intersection(texts)
    return FindCall(
        roots=roots,
        runs=tuple(runs),
        deletes="-delete" in texts,
        writes=tuple(tests[position + 1] for position, text in enumerate(texts[:-1]) if text in _FIND_WRITES),
        name=names[0] if simple else None,
    )


def _ends(texts: Sequence[str], position: int) -> bool:
    return texts[position] == ";" or (texts[position] == "+" and texts[position - 1] == "{}")


def _parted(words: Sequence[Word], marks: tuple[str, ...]) -> tuple[Sequence[Word], list[Word] | None]:
    """The words before the first of the marks, and those behind it; None when there is no mark."""
    for index, word in enumerate(words):
        if word.plain and word.text in marks:
            return words[:index], list(words[index + 1 :])
    return words, None


def starts_shell(command: SimpleCommand) -> bool:
    """Whether a wrapper that is given no command starts a shell, which then reads its input."""
    if command.name not in ("sudo", "doas"):
        return command.name in _SHELLS_ALONE
    wrapper = WRAPPERS[command.name]
    parsed = parse_options(command.words, wrapper.takes, permute=False)
    return parsed.has("-s", "-i", "--shell", "--login") and not parsed.has(*wrapper.queries)


def started(words: Sequence[Word]) -> tuple[Word, ...]:
    """What start-stop-daemon starts: the program of `--startas` or `--exec`, with the words behind `--`."""
    takes = WRAPPERS["start-stop-daemon"].takes
    own, behind = _parted(words, ("--",))
    parsed = parse_options(own, takes)
    programs = parsed.values("-a", "--startas") or parsed.values("-x", "--exec")
    starts = parsed.has("-S", "--start")
    return (*programs[-1:], *parsed.operands, *(behind or ())) if programs and starts else ()


def _without_version(package: Word) -> Word:
    """The program of a package: `rimraf@5` and `rimraf@$V` are `rimraf`, `@scope/x@1` is `@scope/x`."""
    known = package.prefix if package.dynamic else package.text
    name, *version = _VERSION.split(known, maxsplit=1)
    return Word(name) if version else package


def _assigns(word: Word) -> bool:
    return _ASSIGNMENT.match(word.prefix if word.dynamic else word.text) is not None
