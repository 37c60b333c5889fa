"""What a simple command does: built-ins change what is known, wrappers run others, tools use files.

Knows: the shell's built-ins and which room's table to ask. Does not know: syntax.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from interpose.command.builtin import Builtins
from interpose.command.files import tool_files
from interpose.command.git import GitCall, git_call, git_files
from interpose.command.globs import Names
from interpose.command.host import Host, run_joined, run_text
from interpose.command.launchers import Launch, launch
from interpose.command.options import Options, Parsed, parse_options
from interpose.command.patches import read_patch
from interpose.command.places import moved
from interpose.command.reading import ACCESSES, ANY, SimpleCommand, Word
from interpose.command.state import After, Piece, State, Stdin, child, distant, same, without_stdin
from interpose.command.texts import git_texts, run_texts
from interpose.command.words import value_of
from interpose.command.wrappers import (
    OTHER_SHELLS,
    SHELLS,
    WRAPPERS,
    Inner,
    find_call,
    shell_call,
    started,
    starts_shell,
    unwrap,
)
from interpose.contracts.decisions import Unknown

_WITHIN = frozenset({"time", "command", "builtin"})
_RESERVED = frozenset({"{", "}", "!", "[[", "]]", "then", "else", "fi", "do", "done", "case", "esac", "in", "function"})
_APPLY_PATCH = frozenset({"apply_patch", "applypatch"})
_XARGS = Options.of("adEILnPs", "arg-file delimiter max-args max-procs max-chars process-slot-var")
_ENV = Options.of("uCaS", "unset chdir argv0 split-string")
_TYPED = {"Enter": "\n", "KPEnter": "\n", "C-m": "\n", "C-j": "\n", "Space": " ", "Tab": "\t"}
"""Keys that tmux writes as words."""

_FD_RUNS = frozenset({"-x", "-X", "--exec", "--exec-batch"})
_PARALLEL = Options.of("jaISNnLCd", "jobs arg-file delay joblog results timeout retries colsep sshlogin")


class Runner:
    """Runs commands in the mind. One for each walk."""

    def __init__(self, host: Host) -> None:
        """A runner that reports to `host`."""
        self._host = host
        self._builtins = Builtins(host)
        self._special: dict[str, Callable[[SimpleCommand, State], None]] = {
            "xargs": self._xargs,
            "find": self._find,
            "gfind": self._find,
            "gxargs": self._xargs,
            "git": self._git,
            "watch": self._watch,
            "tmux": self._tmux,
            "fd": self._fd,
            "fdfind": self._fd,
            "su": self._dash_c,
            "sg": self._group,
            "runuser": self._dash_c,
            "script": self._dash_c,
            "parallel": self._parallel,
            "sem": self._parallel,
            "bwrap": self._opaque_runner,
            "firejail": self._opaque_runner,
            "at": self._opaque_runner,
            "batch": self._opaque_runner,
        }

    def run(
        self, words: Sequence[Word], state: State, wrappers: tuple[str, ...] = (), *, inside: bool = False
    ) -> After:
        """Notes the command that `words` are and what it does; what is known after it.

        `inside` says that a program starts it, so that it is neither built-in nor function.
        """
        command = SimpleCommand(_program(words[0]), tuple(words[1:]), wrappers)
        self._host.command(command)
        if command.program.dynamic:
            return self._after_unknown(words, state)
        name = command.name
        if name in _RESERVED and "/" not in command.program.text:
            self._host.doubt(f"{name!r} stands where a program was expected")
        if not inside and words[0].text in state.functions:
            arguments = None if any(word.many for word in words[1:]) else [value_of(word) for word in words[1:]]
            return self._host.call_function(words[0].text, arguments, state)
        after = None if inside else self._builtins.run(words[0].text, command.words, state)
        if after is not None and name != "exec":
            return after
        if not inside and name in _WITHIN:
            return self._within(name, command, state)
        self._program(name, command, state)
        return after or same(state)

    def _within(self, name: str, command: SimpleCommand, state: State) -> After:
        """A word that runs the rest in this very shell."""
        inner = unwrap(WRAPPERS[name], command.words)
        if inner.uncertain:
            self._dynamic_inner(command, state)
            state.forget_all()
            state.cwds = None
        for word in inner.writes:
            self._host.use(word, "write", command.text, state)
        for word in inner.assignments:
            state.forget(word.text.partition("=")[0])
        return self.run(inner.words, state, (*command.wrappers, name)) if inner.words else same(state)

    def _after_unknown(self, words: Sequence[Word], state: State) -> After:
        """A program that is not known may be a built-in or use any of its words as a file."""
        self._host.branch()
        changed = state.copy()
        changed.forget_all()
        changed.cwds = None
        self._any_file(words[0].text, words[0].text, state)
        return same(changed)

    def _any_file(self, path: str, by: str, state: State) -> None:
        """Notes that any file may be used in any way."""
        for access in sorted(ACCESSES):
            self._host.use(Word(path, dynamic=True), access, by, state)

    # Programs.

    def _program(self, name: str, command: SimpleCommand, state: State) -> None:
        launched = None if name == "tmux" else launch(name, command.words)
        if launched is not None:
            self._launched(launched, command, state)
        elif name in WRAPPERS:
            self._wrapper(name, command, state)
        elif name in SHELLS:
            self._shell(name, command, state)
        elif name in OTHER_SHELLS:
            self._other_shell(name, command, state)
        elif name in self._special:
            self._special[name](command, state)
        elif name in _APPLY_PATCH or (name == "patch" and state.stdin.kind in ("text", "dynamic")):
            self._patch(command, state)
        for text in run_texts(name, command.words):
            self._host.branch()
            run_text(self._host, text, child(state), name, (*command.wrappers, name))
        for use in tool_files(name, command.words):
            self._host.use(use.word, use.access, command.text, state, use.depth, use.names)

    def _wrapper(self, name: str, command: SimpleCommand, state: State) -> None:
        if name == "env" and parse_options(command.words, _ENV, permute=False).has("-S", "--split-string"):
            self._host.doubt("env -S splits a text of its own")
            return
        inner = unwrap(WRAPPERS[name], command.words)
        if name == "flock" and len(inner.words) > 1 and inner.words[0].text in ("-c", "--command"):
            inner = replace(inner, words=(), texts=(inner.words[1],))
        if name == "capsh" and inner.words:
            inner = replace(inner, words=(Word("bash"), *inner.words))
        if name == "start-stop-daemon":
            inner = replace(inner, words=started(command.words))
        self._inner(inner, name, command, state, remote=WRAPPERS[name].remote)

    def _launched(self, found: Launch, command: SimpleCommand, state: State) -> None:
        inner = unwrap(found.wrapper, found.words)
        first = inner.words[0] if inner.words else None
        if command.name == "hatch" and first is not None and first.plain and ":" in first.text:
            inner = replace(inner, words=(Word(first.text.rpartition(":")[2]), *inner.words[1:]))
        inner = replace(
            inner,
            elsewhere=inner.elsewhere or found.elsewhere,
            uncertain=inner.uncertain or found.uncertain,
            reads=(*inner.reads, *found.reads),
        )
        self._inner(inner, found.label, command, state, remote=found.wrapper.remote)

    def _inner(self, inner: Inner, name: str, command: SimpleCommand, state: State, *, remote: bool) -> None:
        """What a program runs: words as a command, texts by a shell."""
        place = self._place(inner, name, command, state, remote=remote)
        wrappers = (*command.wrappers, name)
        for text in inner.texts:
            run_text(self._host, text, child(place), name, wrappers)
        for words in inner.others:
            self._host.branch()
            if inner.joined:
                run_joined(self._host, words, child(place), wrappers)
            else:
                self.run(words, place.copy(), wrappers, inside=True)
        if inner.words and inner.joined:
            run_joined(self._host, inner.words, child(place), wrappers)
        elif inner.words:
            self.run(inner.words, place, wrappers, inside=name != "coproc")
        elif starts_shell(command):
            self._shell_input(name, place, wrappers)

    def _place(self, inner: Inner, name: str, command: SimpleCommand, state: State, *, remote: bool) -> State:
        """What is known where the inner command starts; notes the files that its program uses itself."""
        for word in inner.writes:
            self._host.use(word, "write", command.text, state)
        for word in inner.reads:
            self._host.use(word, "read", command.text, state)
        place = distant(state) if remote else state.copy()
        if inner.uncertain:
            self._dynamic_inner(command, place)
        if inner.elsewhere:
            place.cwds = None
        if name == "coproc":
            place.stdin = Stdin("pipe")
        for word in inner.assignments:
            variable, _, value = word.text.partition("=")
            self._host.store(variable, None if word.dynamic else (Piece("text", value),), place)
            place.exported.add(variable)
        return place

    def _tmux(self, command: SimpleCommand, state: State) -> None:
        """Tmux takes several commands with `;` between them."""
        words: list[Word] = []
        for word in (*command.words, Word(";")):
            ends = word.plain and word.text.endswith(";")
            if word.text != ";":
                words.append(Word(word.text[:-1]) if ends else word)
            if ends:
                self._tmux_part(words, command, state)
                words = []

    def _tmux_part(self, words: Sequence[Word], command: SimpleCommand, state: State) -> None:
        texts = [word.text for word in words]
        typed = next((index for index, text in enumerate(texts) if text in ("send-keys", "send")), None)
        if typed is not None:
            self._typed(words[typed + 1 :], command, state)
            return
        found = launch("tmux", words)
        if found is not None:
            self._launched(found, command, state)

    def _typed(self, words: Sequence[Word], command: SimpleCommand, state: State) -> None:
        """Keys for a terminal in which a shell may wait."""
        keys = parse_options(words, Options.of("tN")).operands
        if any(word.dynamic for word in keys):
            self._host.doubt("tmux types a text that is not known")
            return
        texts = [_TYPED.get(word.text, word.text) for word in keys]
        text = "".join(text for text in texts if not text.startswith(("C-", "M-")))
        self._host.branch()
        place = child(state)
        place.cwds = None
        self._host.text(text, place, (*command.wrappers, "tmux"))

    def _dynamic_inner(self, command: SimpleCommand, state: State) -> None:
        unknown = Word(ANY, dynamic=True, many=True)
        self._host.command(SimpleCommand(unknown, (unknown,), (*command.wrappers, command.name)))
        self._any_file(ANY, command.text, state)

    def _shell(self, name: str, command: SimpleCommand, state: State) -> None:
        call = shell_call(command.words)
        wrappers = (*command.wrappers, name)
        inner = child(state)
        match call.kind:
            case "text" if call.word is not None:
                many = any(word.many for word in call.arguments)
                inner.positional = None if many else tuple(value_of(word) for word in call.arguments[1:])
                run_text(self._host, call.word, inner, f"{name} -c", wrappers)
            case "input":
                many = any(word.many for word in call.arguments)
                inner.positional = None if many else tuple(value_of(word) for word in call.arguments)
                self._shell_input(name, inner, wrappers)
            case "script" if call.word is not None:
                self._script(name, call.word, state)
            case "uncertain":
                self._host.doubt(f"{name} is given words that are not known")
            case _:
                return

    def _script(self, name: str, word: Word, state: State) -> None:
        if word.dynamic or word.text.startswith("/dev/"):
            self._host.doubt(f"{name} runs a text that is not known")
            return
        self._host.use(word, "read", f"{name} {word.text}", state)

    def _shell_input(self, name: str, state: State, wrappers: tuple[str, ...]) -> None:
        stdin = state.stdin
        if stdin.kind == "text":
            state.stdin = Stdin()
            self._host.text(stdin.text, state, wrappers)
        elif stdin.kind != "inherited":
            self._host.doubt(f"{name} reads its commands from a text that is not known")

    def _other_shell(self, name: str, command: SimpleCommand, state: State) -> None:
        asked = any(
            word.dynamic or word.text.lower().lstrip("-").startswith("c")
            for word in command.words
            if word.text[:1] in "-$/"
        )
        short = any(word.text.startswith("-") and "c" in word.text for word in command.words)
        if asked or short or state.stdin.kind != "inherited":
            self._host.doubt(f"{name} has a language that is not read")
            return
        if command.words:
            self._host.use(command.words[0], "read", command.text, state)

    def _xargs(self, command: SimpleCommand, state: State) -> None:
        parsed = parse_options(command.words, _XARGS, permute=False)
        if parsed.uncertain:
            self._dynamic_inner(command, state)
        for word in parsed.values("-a", "--arg-file"):
            self._host.use(word, "read", command.text, state)
        if not parsed.operands:
            return
        self._host.branch()
        marks = [word.text for word in parsed.values("-I", "--replace")]
        mark = marks[-1] if marks else ("{}" if parsed.has("-i", "--replace") else None)
        starts = state.stdin.text if state.stdin.kind == "pipe" and parsed.has("-0", "--null") else ""
        more = Word(ANY, dynamic=True, prefix=starts, many=mark is None, each=bool(starts))
        words = [_put(word, mark, more) for word in parsed.operands]
        if mark is None:
            words.append(more)
        self.run(words, without_stdin(state), (*command.wrappers, "xargs"), inside=True)

    def _find(self, command: SimpleCommand, state: State) -> None:
        call = find_call(command.words)
        if any(word.many for word in command.words):
            self._host.doubt("find is given words that are not known")
        for action in call.runs:
            self._host.branch()
            if action:
                start = call.roots[0].text if len(call.roots) == 1 and call.roots[0].plain else ""
                found = Word("{}", dynamic=True, prefix=start, many=action[-1].text == "{}", each=True)
                words = [found if word.text == "{}" else _put(word, "{}", found) for word in action]
                self.run(words, state.copy(), (*command.wrappers, "find"), inside=True)
        names = None if call.name is None else Names(((True, call.name.text),))
        for root in call.roots if call.deletes else ():
            self._host.use(root, "remove", command.text, state, "tree", names)
        for word in call.writes:
            self._host.use(word, "write", command.text, state)

    def _git(self, command: SimpleCommand, state: State) -> None:
        call = git_call(command.words)
        texts, doubts = git_texts(call)
        for reason in doubts:
            self._host.doubt(reason)
        for text in texts:
            self._host.branch()
            run_text(self._host, text, child(state), "git", (*command.wrappers, "git"))
        if call.uncertain or (call.subcommand is not None and call.subcommand.dynamic):
            self._any_file(call.subcommand.text if call.subcommand is not None else ANY, command.text, state)
        place = state.copy()
        for folder in call.folders:
            place.cwds = moved(place.cwds, folder)
        for word, access, depth in git_files(call):
            self._host.use(word, access, command.text, place, depth)
        self._git_runs(call, (*command.wrappers, "git"), place)

    def _git_runs(self, call: GitCall, wrappers: tuple[str, ...], place: State) -> None:
        """Subcommands that run a command of the caller."""
        texts = [word.text for word in call.words]
        match call.subcommand.text if call.subcommand is not None else "":
            case "bisect" if texts[:1] == ["run"] and len(texts) > 1:
                self.run(call.words[1:], place, wrappers, inside=True)
            case "submodule" if "foreach" in texts:
                words = [word for word in call.words[texts.index("foreach") + 1 :] if word.text != "--recursive"]
                place.cwds = None
                run_joined(self._host, words, child(place), wrappers)
            case "rebase":
                for word in parse_options(call.words, Options.of("xsXC", "exec onto strategy")).values("-x", "--exec"):
                    run_text(self._host, word, child(place), "git rebase -x", wrappers)
            case "filter-branch":
                self._host.doubt("git filter-branch runs texts of its own")
            case _:
                return

    def _fd(self, command: SimpleCommand, state: State) -> None:
        texts = [word.text for word in command.words]
        start = next((place for place, text in enumerate(texts) if text in _FD_RUNS), len(texts))
        words = [_put(word, "{", Word(word.text, dynamic=True)) for word in command.words[start + 1 :]]
        if words:
            self._host.branch()
            more = Word(ANY, dynamic=True, many=True)
            self.run([*words, more], state.copy(), (*command.wrappers, command.name), inside=True)

    def _watch(self, command: SimpleCommand, state: State) -> None:
        parsed = parse_options(command.words, Options.of("nq", "interval equexit"), permute=False)
        if not parsed.operands:
            return
        if parsed.has("-x", "--exec"):
            self.run(parsed.operands, state.copy(), (*command.wrappers, "watch"), inside=True)
            return
        run_joined(self._host, parsed.operands, child(state), (*command.wrappers, "watch"))

    def _dash_c(self, command: SimpleCommand, state: State) -> None:
        """Programs that run the value of `-c` (su, script)."""
        parsed = parse_options(command.words, Options.of("cgGsTEmoIu", "command group shell user"))
        place = child(state)
        if command.name != "script" and (parsed.has("-l", "--login") or Word("-") in command.words):
            place.cwds = None
        for text in parsed.values("-c", "--command"):
            run_text(self._host, text, place, f"{command.name} -c", (*command.wrappers, command.name))
        first = parse_options(command.words, Options.of("cgGsTEmoIu", "user"), permute=False).operands
        if command.name == "script":
            for word in first[:1]:
                self._host.use(word, "write", command.text, state)
        if command.name != "script" and not parsed.has("-u", "--user", "-c", "--command"):
            self._login(parsed, command, place)
            return
        inner = first[1:] if command.name == "script" else first if parsed.has("-u", "--user") else []
        if inner and not inner[0].text.startswith("-"):
            self.run(inner, place, (*command.wrappers, command.name), inside=True)

    def _login(self, parsed: Parsed, command: SimpleCommand, place: State) -> None:
        """The shell of another user: what stands behind the user's name are its words."""
        operands = parsed.operands[1:] if parsed.operands[:1] == [Word("-")] else parsed.operands
        shells = [word.text.rsplit("/", 1)[-1] for word in parsed.values("-s", "--shell") if word.plain]
        name = shells[-1] if shells and shells[-1] in OTHER_SHELLS else "sh"
        if any(word.many for word in operands[:1]):
            self._dynamic_inner(command, place)
        inner = SimpleCommand(Word(name), tuple(operands[1:]), (*command.wrappers, command.name))
        if name == "sh":
            self._shell(name, inner, place)
        else:
            self._other_shell(name, inner, place)

    def _group(self, command: SimpleCommand, state: State) -> None:
        """`sg GROUP [-c] TEXT`."""
        words = [word for word in command.words if word.text not in ("-", "-c")][1:]
        for word in words[:1]:
            run_text(self._host, word, child(state), "sg", (*command.wrappers, "sg"))

    def _parallel(self, command: SimpleCommand, state: State) -> None:
        parsed = parse_options(command.words, _PARALLEL, permute=False)
        words: list[Word] = []
        for word in parsed.operands:
            if word.text.startswith(":::"):
                break
            words.append(word)
        special = any(not word.plain or any(mark in word.text for mark in " ;|&<>$`()'\"") for word in words)
        if not words or special or parsed.uncertain:
            self._host.doubt("parallel runs texts that are not known")
            return
        self._host.branch()
        more = Word(ANY, dynamic=True, many=True)
        run = [_put(word, "{", more) for word in words]
        self.run([*run, more], without_stdin(state), (*command.wrappers, "parallel"), inside=True)

    def _opaque_runner(self, command: SimpleCommand, _state: State) -> None:
        self._host.doubt(f"{command.name} runs commands in a place of its own")

    def _patch(self, command: SimpleCommand, state: State) -> None:
        """A patch given as an argument or as input."""
        text: str | None = None
        if command.name != "patch" and command.words:
            text = command.words[0].text if command.words[0].plain else None
        elif state.stdin.kind == "text":
            text = state.stdin.text
        if text is None or state.cwds is None:
            self._host.doubt(f"{command.name} applies a patch that is not known")
            return
        for cwd in () if state.remote else state.cwds:
            found = read_patch(text, cwd=cwd)
            if isinstance(found, Unknown):
                self._host.doubt(found.reason)
                return
            for use in found:
                self._host.file(replace(use, by=command.name))


def _program(word: Word) -> Word:
    """The program word; its name is known too where only its folder is not."""
    if word.pattern is not None and word.text != "[":
        return replace(word, dynamic=True, pattern=None)
    if word.dynamic and not word.many and "/" in word.suffix and word.suffix.rsplit("/", 1)[-1]:
        return Word(word.text)
    return word


def _put(word: Word, mark: str | None, value: Word) -> Word:
    if mark is None or mark not in word.text:
        return word
    return Word(word.text, dynamic=True, prefix=word.text.split(mark, 1)[0] or value.prefix)
