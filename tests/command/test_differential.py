"""What a real bash runs must have been read: each line runs in an empty folder among programs that only record.

Lines run inside a namespace of their own where the system allows it: no network, everything else read-only.
"""

import os
import random
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
import yaml

from interpose.command import FileUse, Reading, SimpleCommand, Word, read_command
from interpose.command.files import tool_files

CORPUS = Path(__file__).parent / "corpus.yaml"
GENERATED = 1_000
SEED = 20_260

REAL = (
    "env",
    "nice",
    "nohup",
    "timeout",
    "xargs",
    "setsid",
    "stdbuf",
    "find",
    "tee",
    "touch",
    "mkdir",
    "cp",
    "mv",
    "rm",
)
"""Programs that record and then do their work."""

SHELLS = ("bash", "sh")
FAKE_WRAPPERS = {"sudo": "ughpCDRrtTU", "doas": "uC", "chronic": "", "fakeroot": ""}
"""Programs that record, skip their options (the letters take a value) and run the rest."""

PLAIN = ("a", "b", "build", "cat", "curl", "deploy", "git", "grep", "ls", "make", "npm", "python3", "sed", "sort")
BUILTINS = frozenset(
    {
        "cd", "echo", "printf", "export", "declare", "local", "readonly", "typeset", "unset", "set",
        "shift", "true", "false", "test", "eval", "exec", "read", "command", "builtin", "exit",
        "return", "break", "continue", "trap", "pushd", "popd", "wait", "time", "coproc", ":",
        ".", "source", "[", "let", "pwd", "mapfile",
    }
)  # fmt: skip
EXECUTING = frozenset({*REAL, *SHELLS, *FAKE_WRAPPERS, "eval", "command", "builtin", "time", "exec", "coproc"})
"""Wrappers that do run the command inside them here."""

RECORD = """#!/bin/sh
{ printf '%s\\0' "$#" "${0##*/}" "$@"; } >> "$RECORD_LOG"
"""
SKIP = """while [ $# -gt 0 ]; do case "$1" in
  --) shift; break;; *=*) export "$1"; shift;; -*) case "%s" in *"${1#-}"*) shift;; esac; shift;; *) break;;
esac; done
[ $# -eq 0 ] || exec "$@"
"""
DRIVER = """
mount --bind "$1" "$1" 2>/dev/null && mount -o remount,bind,ro / 2>/dev/null
for folder in "$1"/runs/*; do
  cd "$folder/cwd" || exit 1
  unset OLDPWD
  PATH="$1/bin" HOME="$folder/home" RECORD_LOG="$folder/log" \\
    "$2" -s KILL 10 "$3" --norc --noprofile "$folder/line" </dev/null \\
    9>&1 >"$folder/out" 2>"$folder/err" | cat >/dev/null
done
"""


@dataclass(frozen=True)
class Ran:
    """What one line did: each recorded program with its words, and the files that it left, seen from its folder."""

    commands: tuple[tuple[str, ...], ...]
    files: frozenset[str]
    errors: str


def recorders(folder: Path, names: Sequence[str]) -> None:
    """Fills `folder` with recording programs."""
    folder.mkdir()
    for name in dict.fromkeys((*PLAIN, *names)):
        (folder / name).write_text(RECORD)
    for name in REAL:
        (folder / name).write_text(f'{RECORD}exec {shutil.which(name)} "$@"\n')
    for name in SHELLS:
        (folder / name).write_text(f'{RECORD}exec {shutil.which("bash")} --norc --noprofile "$@"\n')
    for name, letters in FAKE_WRAPPERS.items():
        (folder / name).write_text(RECORD + SKIP % letters)
    for path in folder.iterdir():
        path.chmod(0o755)


def run_lines(folder: Path, lines: Sequence[str], names: Sequence[str]) -> list[Ran]:
    """Runs each line in a folder of its own below `folder`."""
    recorders(folder / "bin", names)
    for index, line in enumerate(lines):
        place = folder / "runs" / f"{index:05}"
        (place / "cwd").mkdir(parents=True)
        (place / "home").mkdir()
        (place / "line").write_text(line + "\n")
    script = folder / "driver"
    script.write_text(DRIVER)
    bash = shutil.which("bash")
    assert bash is not None
    sandbox = ["unshare", "-Urmn", "--map-root-user"]
    usable = (
        shutil.which("unshare") and subprocess.run([*sandbox, "true"], check=False, capture_output=True).returncode == 0
    )
    timeout = shutil.which("timeout")
    assert timeout is not None
    command = [*(sandbox if usable else []), bash, str(script), str(folder), timeout, bash]
    subprocess.run(command, check=True, capture_output=True, timeout=120, env={"LC_ALL": "C", "PATH": os.defpath})
    return [_result(folder / "runs" / f"{index:05}") for index in range(len(lines))]


def _result(place: Path) -> Ran:
    log = place / "log"
    fields = log.read_bytes().split(b"\0")[:-1] if log.exists() else []
    texts = [field.decode("utf-8", "surrogateescape") for field in fields]
    commands = []
    while texts:
        count = int(texts[0])
        commands.append(tuple(texts[1 : count + 2]))
        texts = texts[count + 2 :]
    files = frozenset(
        path.relative_to(place).as_posix() for top in ("cwd", "home") for path in (place / top).rglob("*")
    )
    return Ran(tuple(dict.fromkeys(commands)), files, (place / "err").read_text(errors="replace"))


def fits(words: Sequence[Word], ran: Sequence[str]) -> bool:
    """Whether words as read can have become these words."""
    if not words:
        return not ran
    word = words[0]
    if word.many:
        return any(fits(words[1:], ran[count:]) for count in range(len(ran) + 1))
    if not ran or not _fits_word(word, ran[0]):
        return False
    return fits(words[1:], ran[1:]) or (word.pattern is not None and fits(words, ran[1:]))


def _fits_word(word: Word, text: str) -> bool:
    if word.plain:
        return word.text == text
    if word.pattern is not None:
        return word.text == text or fnmatchcase(text, word.pattern)
    return text.startswith(word.prefix) and text.endswith(word.suffix)


def is_run_of(command: SimpleCommand, ran: Sequence[str]) -> bool:
    """Whether a command as read can have become this program with these words."""
    if command.program.dynamic:
        return fits((command.program, *command.words), ran)
    return command.name == ran[0] and fits(command.words, ran[1:])


def may_write(use: FileUse, path: str) -> bool:
    """Whether a use as read can have made the file at this absolute path."""
    if use.access != "write":
        return False
    if use.dynamic:
        return True
    if use.pattern is not None:
        return fnmatchcase(path, use.pattern) or path == use.path
    real = str(Path(use.path).resolve())
    return path == real or (use.depth == "tree" and path.startswith(real.rstrip("/") + "/"))


def faults(line: str, place: Path, ran: Ran) -> Iterator[str]:
    """How what ran differs from what was read."""
    reading = read_command(line, cwd=str(place / "cwd"), home=str(place / "home"))
    for seen in ran.commands:
        if not any(is_run_of(command, seen) for command in reading.commands):
            yield f"ran unread: {seen}"
    made = {str(place / name) for name in ran.files}
    for path in made:
        below = any(other.startswith(path + "/") for other in made)
        if not below and not any(may_write(use, path) for use in reading.files):
            yield f"wrote unread: {path}"
    if is_straight(reading, ran):
        yield from missing(reading, ran, made)


def is_straight(reading: Reading, ran: Ran) -> bool:
    """Whether all that was read must have happened: no branch, no name that is not known, no file that was missing."""
    return not (reading.branching or any(use.dynamic for use in reading.files) or ran.errors)


def makes_files(command: SimpleCommand) -> bool:
    """Whether the command itself, not a redirection, is read as making files, which a recorder does not do."""
    uses = tool_files(command.name, command.words)
    return command.name in ("git", "patch", "apply_patch") or any(use.access != "read" for use in uses)


def missing(reading: Reading, ran: Ran, made: set[str]) -> Iterator[str]:
    """What was read but did not happen."""
    for command in reading.commands:
        outside = command.name in BUILTINS or "/" in command.program.text or not EXECUTING.issuperset(command.wrappers)
        if not outside and not any(is_run_of(command, seen) for seen in ran.commands):
            yield f"read but not run: {command.text}"
    if any(makes_files(command) for command in reading.commands):
        return
    for use in reading.files:
        if use.access == "write" and use.pattern is None and use.path not in made:
            yield f"read as written, but is not there: {use.path}"


def readable(line: str) -> bool:
    """Whether a line may run here: read as complete, and without absolute paths or ways out of its folder."""
    reading = read_command(line, cwd="/w/cwd", home="/w/home")
    words = [word.text for command in reading.commands for word in (command.program, *command.words)]
    texts = [text.removeprefix("/w/home") for text in (*words, *(use.path for use in reading.files))]
    texts = [text.removeprefix("/w/cwd/") for text in texts]
    return not reading.unknown and not any(text.startswith("/") or ".." in text for text in texts)


def check(folder: Path, lines: Sequence[str]) -> list[str]:
    """Runs the lines in two halves at once; every fault, with its line."""
    commands: list[SimpleCommand] = [
        command for line in lines for command in read_command(line, cwd="/w").commands if command.name
    ]
    names = [
        command.name
        for command in commands
        if command.name not in BUILTINS and command.name.isprintable() and "/" not in command.name
    ]
    halves = [lines[0::2], lines[1::2]]
    places = [folder / "even", folder / "odd"]
    for place in places:
        place.mkdir()
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda pair: run_lines(pair[0], pair[1], names), zip(places, halves, strict=True)))
    return [
        f"{line!r}: {fault}"
        for place, half, half_results in zip(places, halves, results, strict=True)
        for index, (line, ran) in enumerate(zip(half, half_results, strict=True))
        for fault in faults(line, place / "runs" / f"{index:05}", ran)
    ]


class Lines:
    """Makes command lines from a seed."""

    def __init__(self, seed: int) -> None:
        """Lines that are the same for the same seed."""
        self._random = random.Random(seed)  # noqa: S311 - not for secrets

    def line(self) -> str:
        """One line, or a few."""
        return self._statements(self._random.choice((1, 1, 2, 2, 3)))

    def _pick(self, *choices: str) -> str:
        return self._random.choice(choices)

    def _statements(self, depth: int) -> str:
        count = self._random.choice((1, 1, 1, 2, 2, 3))
        return self._pick("; ", "\n", " ; ", " # a 'note\n").join(self._statement(depth) for _ in range(count))

    def _statement(self, depth: int) -> str:
        if depth <= 0:
            return self._simple(0)
        kinds = [self._simple] * 5 + [
            self._list, self._list, self._pipeline, self._group, self._if, self._for, self._case, self._while,
            self._function, self._assignment, self._assignment, self._heredoc, self._shell, self._cd, self._wrapped,
            self._parameters,
        ]  # fmt: skip
        return self._random.choice(kinds)(depth - 1)

    def _simple(self, depth: int) -> str:
        words = [self._program(), *(self._word(depth) for _ in range(self._random.choice((0, 1, 1, 2, 3))))]
        if self._random.random() < 0.3:
            words.insert(self._random.randint(0, len(words)), self._redirect())
        if self._random.random() < 0.1:
            words.insert(0, f"{self._pick('X', 'Y', 'Z')}={self._word(0)}")
        return self._pick(*(" ",) * 12, "  ", "\t", " \\\n  ", "\\\n ").join(words)

    def _program(self) -> str:
        return self._pick(*PLAIN, *PLAIN, "echo", "tee", "touch", "'git'", 'm"ake"', "\\ls", "true", "mkdir", "l\\\ns")

    def _word(self, depth: int) -> str:
        choices = [
            "x", "y.txt", "-r", "-f", "--all", "a=b", "d/e", "'s t'", '"u v"', "w\\ x", "$'p\\tq'", "a#b", "''",
            "*.c", "q?", "x", "y.txt", "-r", "{m,n}", "k{1..3}", "{a,b{c,d}}e", "x{,y}", "{z}", "a,b", "[ab]", "~",
            "--o=$X", 'n\'o\'"p"', "5", "%", "@", "é", "$X", '"$Y"', "${Z}", '"pre$X"', '"${X:-d}"', "${#X}",
            "$((1+2))", '"$@"', "$#", "$HOME/h", '"a${Y}b"', "${X%.*}", '\'a"b\'', '"c\'d"', '"e\\"f"', "g\\'h",
            "i\\\\j", '"k\\\\l"', "$", '"$"', "a$", "{", "}", "=", "==", "a=", "!", "^", "+", ":", "a:b", "\\*",
            '"*"', "'?'", "~/x", "a~", "{a,", "$*", '"${@:2}"', "${X/a/b}", "${X:+y}", "${X:=z}", "\\{a,b}",
            "'{a,b}'", "$'\\x41'", '"a\\\nb"', "c\\\nd", "\\#x", "-", "--", '$"tr"', "1>2", "{1..3}{a,b}", "${Y}z",
            '"$X$Y"', 'x"$Z"\'w\'', "if", "done", "in", "time", "a]", "[", "%s",
        ]  # fmt: skip
        if depth > 0:
            choices += [
                f"$({self._statement(depth - 1)})",
                f'"<$({self._simple(depth - 1)})>"',
                f"`{self._simple(0)}`",
            ] * 3
            choices += [
                f"<({self._simple(depth - 1)})",
                f'"`{self._pick(*PLAIN)} x`"',
                f"${{X:-$({self._simple(0)})}}",
            ] * 2
            choices += [f"$((1 + $({self._simple(0)}) ))", f'"$({self._heredoc(0)}\n)"']
        return self._random.choice(choices)

    def _redirect(self) -> str:
        target = self._pick("out", "o.txt", "'o p'", "$X.log", "log{1}", '"$Y"', "f", "~/g")
        operator = self._pick(">", ">>", "2>", ">|", "&>", "> ", ">& ", "2>>", "1>", "&>>")
        if self._random.random() < 0.3:
            return self._pick(
                "2>&1", "</dev/null", "2>/dev/null", "<&-", ">&2", "3>&-", "<<<x", '<<< "$X"', "3>&1", "2>&1 >f"
            )
        return operator + target

    def _list(self, depth: int) -> str:
        parts = [self._statement(depth)]
        for _ in range(self._random.choice((1, 1, 2))):
            parts += [self._pick(" && ", " || ", "&&", " && \\\n ", " &&\n", " & "), self._statement(depth)]
        return "".join(parts)

    def _pipeline(self, depth: int) -> str:
        parts = [self._pick(self._simple(depth), self._group(0)) for _ in range(self._random.choice((2, 2, 3)))]
        return self._pick("", "", "! ", "time ") + self._pick(" | ", "|", " |& ", " |\n").join(parts)

    def _group(self, depth: int) -> str:
        inner = self._statements(depth)
        tail = self._pick("", "", f" {self._redirect()}")
        return (f"( {inner}\n)" if self._random.random() < 0.5 else f"{{ {inner}\n}}") + tail

    def _if(self, depth: int) -> str:
        other = self._pick(
            "", f"else {self._statement(depth)}\n", f"elif {self._simple(0)}\nthen {self._statement(depth)}\n"
        )
        test = self._pick(
            self._statement(depth), "[ -f x ]", '[[ -n "$X" && $Y == a* ]]', "(( 1 > 2 ))", f"! {self._simple(0)}"
        )
        return f"if {test}\nthen {self._statements(depth)}\n{other}fi{self._pick('', ' > if.log')}"

    def _for(self, depth: int) -> str:
        items = " ".join(self._word(0) for _ in range(self._random.choice((1, 2, 3))))
        head = self._pick(f"for X in {items}", f"for X in {items}", "for ((i=0;i<2;i++))", "for X")
        end = self._pick("", "", "break\n", "continue\n", f"Y={self._word(0)}\n")
        return f"{head}; do {self._statements(depth)}\n{end}done"

    def _while(self, depth: int) -> str:
        return f"{self._pick('while true', 'until false')}; do {self._statements(depth)}\nbreak; done"

    def _case(self, depth: int) -> str:
        first, second = self._statement(depth), self._statement(depth)
        end = self._pick(";;", ";;", ";&", ";;&")
        return f"case {self._word(0)} in x|-*) {first}\n{end} (*) {second}\n;; esac"

    def _function(self, depth: int) -> str:
        body = self._pick(
            'make "$1"', "git $2", f"local X={self._word(0)}; ls $X", "cd d; touch in", self._statement(depth),
            'ls "$@"', f"X={self._word(0)}; return; Y=q",
        )  # fmt: skip
        head = self._pick("fn()", "function fn", "fn ()")
        after = self._pick("", "; ls $X", "; touch after")
        return f"{head} {{ {body}\n}}; fn {self._word(0)} {self._word(0)}{after}"

    def _assignment(self, depth: int) -> str:
        name = self._pick("X", "Y", "Z")
        start = self._pick("", "", "", "export ", "local=1 ", "readonly ", "declare ", "declare -i ")
        value = self._pick(
            self._word(depth), self._word(0), f"({self._word(0)} {self._word(0)})", "$Y$Z", "rm", "'a b'"
        )
        use = self._pick(
            f"ls ${name}",
            f'make "${name}"',
            f"sh -c 'git ${name}'",
            f"${name}",
            f"eval ls ${name}",
            f"unset {name}; ls ${name}",
        )
        return f"{start}{name}{self._pick('=', '=', '+=')}{value}; {use}"

    def _parameters(self, depth: int) -> str:
        use = self._pick("ls $1", "make $@", 'git "$@"', "ls x$*", "shift; ls $1")
        return f"set -- {self._word(depth)} {self._word(0)}; {use}"

    def _heredoc(self, depth: int) -> str:
        start = self._pick("E", "'E'", '"E"', "\\E", "-E")
        body = self._pick(
            "text\n",
            f"{self._simple(0)}\n",
            "$X and `ls`\n",
            "",
            "a $(make b) c\n",
            'it\'s "q" \\$X \\`y\\`\n',
            "\tE2\n",
        )
        head = self._pick("cat", "sh", "tee f", "bash -s x", "cat >h", "sort x")
        tail = self._pick("", " | sort", " >g", f" && {self._simple(0)}", " 2>&1", " -v", " | sort | a", " || b")
        return f"{head} <<{start}{tail}\n{body}E"

    def _shell(self, depth: int) -> str:
        inner = self._statement(0).replace("'", "")
        shell = self._pick("sh -c", "bash -c", "bash -e -c", "eval", "bash -o pipefail -c", "X=7 sh -c", "bash -ec")
        return f"{shell} '{inner}'" + self._pick("", "", " zero one two")

    def _cd(self, depth: int) -> str:
        folder = self._pick("d", "d/e", '"$X"', "d e", "", "-", "~", "d/..", ".")
        made = self._pick(f"mkdir -p {folder or 'd'} && ", f"mkdir -p {folder or 'd'}; ", "")
        mover = self._pick("cd", "cd", "cd", "command cd", "pushd", "cd --", "builtin cd")
        return f"{made}{mover} {folder}{self._pick('; ', ' && ', ' || exit; ', ' > log; ', ' & ', ' | a; ')}touch here"

    def _wrapped(self, depth: int) -> str:
        wrapper = self._pick(
            "sudo", "sudo -u root", "env", "env A=1", 'env -i PATH="$PATH" RECORD_LOG="$RECORD_LOG"', "nice",
            "env -u X", "nice -n 5", "nohup", "timeout 5", "timeout -k 1 5", "setsid -w", "command", "time", "exec",
            "stdbuf -oL", "find . -exec", "echo p | xargs", "echo p q | xargs -n 1", "echo p | xargs -I{}", "sudo $X",
            "time -p",
        )  # fmt: skip
        inner = self._pick(
            "make x",
            "git -C d push",
            "ls 'a b'",
            "touch in",
            f"sh -c '{self._pick('ls', 'touch z', 'make $0', 'git $1')}'",
            "$X y",
        )
        if wrapper.startswith("find"):
            return f"{wrapper} {inner} {self._pick(';', '{} ;', '{} +').replace(';', chr(92) + ';')}"
        return f"{wrapper} {inner}{self._pick('', ' {}') if '-I' in wrapper else ''}"


def generated() -> list[str]:
    """Lines that are read as complete."""
    lines = Lines(SEED)
    found: dict[str, None] = {}
    while len(found) < GENERATED:
        line = lines.line()
        if readable(line):
            found[line] = None
    return list(found)


@pytest.mark.timeout(120)
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_generated_lines_run_what_was_read(tmp_path: Path) -> None:
    """No made line runs or writes what was not read; one without branches does all that was read."""
    assert check(tmp_path, generated()) == []


@pytest.mark.timeout(120)
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_corpus_lines_run_what_was_read(tmp_path: Path) -> None:
    """No corpus line that is read as complete runs or writes what was not read."""
    entries = yaml.safe_load(CORPUS.read_text())
    lines = [entry["line"] for entry in entries if "unknown" not in entry and readable(entry["line"])]
    assert check(tmp_path, lines) == []
