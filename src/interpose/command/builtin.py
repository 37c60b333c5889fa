"""Built-in commands: how they change what is known about the shell.

Knows: folders, variables, options, `eval`, `trap`. Does not know: programs.
"""

from interpose.command.files import TOOLS
from interpose.command.host import Host, run_joined, run_text
from interpose.command.places import moved
from interpose.command.reading import Word
from interpose.command.state import After, State, same
from interpose.command.words import value_of

_NAMES_VARIABLES = frozenset({"let", "test", "[", "read", "readarray", "mapfile", "getopts", "wait", "unset", "export"})


class Builtins:
    """The built-in commands of one walk."""

    def __init__(self, host: Host) -> None:
        """Built-ins that report to `host`."""
        self._host = host

    def run(self, name: str, words: tuple[Word, ...], state: State) -> After | None:
        """What is known after a built-in; None when `name` is none that matters."""
        if name in _NAMES_VARIABLES or (name == "printf" and Word("-v") in words):
            for word in words:
                if "[" in word.text and ("$(" in word.text or "`" in word.text):
                    self._host.doubt(f"{name} may run code inside {word.text[:60]!r}")
        match name:
            case "cd" | "pushd":
                return self._cd(words, state)
            case "popd":
                self._host.branch()
                state.cwds = None
                return same(state)
            case "eval":
                return run_joined(self._host, words[1:] if words[:1] == (Word("--"),) else words, state, ("eval",))
            case "source" | ".":
                return self._source(name, words, state)
            case "exit" | "return" | "break" | "continue" | "logout":
                self._host.branch()
                dead = state.copy()
                dead.dead = True
                return same(dead)
            case "exec" if words:
                self._host.branch()
                dead = state.copy()
                dead.dead = True
                return After(dead, state)
            case "trap":
                return self._trap(words, state)
            case "alias" | "shopt" | "enable" | "bind" | "hash" | "compgen" | "complete":
                return self._options(name, words, state)
            case _:
                return self._variables(name, words, state)

    def _variables(self, name: str, words: tuple[Word, ...], state: State) -> After | None:
        match name:
            case "set":
                return self._set(words, state)
            case "shift":
                count = int(words[0].text) if words and words[0].plain and words[0].text.isdigit() else 1
                state.positional = state.positional[count:] if state.positional is not None else None
                return same(state)
            case "export" | "declare" | "typeset" | "local" | "readonly" | "unset" | "let" | "getopts":
                state.forget_all()
                state.exported.clear()
                return same(state)
            case "read" | "readarray" | "mapfile" | "printf" | "wait":
                for word in words:
                    if word.plain and word.text.isidentifier():
                        self._host.store(word.text, None, state)
                    elif word.dynamic:
                        state.forget_all()
                if name in ("readarray", "mapfile") and any(word.text.startswith("-C") for word in words):
                    self._host.doubt(f"{name} -C runs a text for its lines")
                state.forget("REPLY")
                state.forget("MAPFILE")
                return None if name in TOOLS else same(state)
            case "test" | "[" | "echo" | "true" | "false" | ":" | "type" | "umask" | "ulimit" | "jobs" | "pwd":
                return same(state)
            case _:
                return None

    def _cd(self, words: tuple[Word, ...], state: State) -> After:
        self._host.branch()
        operands = [word for word in words if word.text not in ("-P", "-L", "-e", "-@", "--", "-n")]
        there = state.copy()
        there.forget("PWD")
        there.forget("OLDPWD")
        if "CDPATH" in state.variables:
            there.cwds = None
        elif not operands:
            home = state.home()
            there.cwds = moved(state.cwds, Word(home[0].text)) if home and home[0].kind == "text" else None
        elif any(word.text == "-P" for word in words):
            there.cwds = None
        else:
            there.cwds = moved(state.cwds, operands[0])
        return After(there, state)

    def _source(self, name: str, words: tuple[Word, ...], state: State) -> After:
        state.forget_all()
        if not words:
            return same(state)
        if words[0].dynamic or words[0].text.startswith("/dev/"):
            self._host.doubt(f"{name} runs a text that is not known")
        self._host.use(words[0], "read", f"{name} {words[0].text}", state)
        return same(state)

    def _trap(self, words: tuple[Word, ...], state: State) -> After:
        operands = [word for word in words if word.text != "--"]
        if operands and not operands[0].text.startswith("-"):
            self._host.branch()
            later = state.copy()
            later.forget_all()
            later.cwds = None
            run_text(self._host, operands[0], later, "trap", ("trap",))
        return same(state)

    def _options(self, name: str, words: tuple[Word, ...], state: State) -> After:
        if name in ("compgen", "complete"):
            if any(word.dynamic or word.text[:2] in ("-C", "-F", "-W") for word in words):
                self._host.doubt(f"{name} may run what stands in its words")
            return same(state)
        harmless = {"-s", "-u", "-q", "-p", "globstar", "nullglob", "failglob", "checkwinsize", "inherit_errexit"}
        if name != "hash" and words and not all(word.plain and word.text in harmless for word in words):
            self._host.doubt(f"{name} changes how commands are read")
        if name == "hash" and any(word.text.startswith("-p") for word in words):
            self._host.doubt("hash -p gives a name to another program")
        return same(state)

    def _set(self, words: tuple[Word, ...], state: State) -> After:
        texts = [word.text for word in words]
        if any(text.startswith("-") and not text.startswith("--") and set(text[1:]) & set("kan") for text in texts):
            state.forget_all()
        operands = words[texts.index("--") + 1 :] if "--" in texts else ()
        if any(not word.plain for word in words):
            state.positional = None
        elif "--" in texts:
            state.positional = tuple(value_of(word) for word in operands)
        elif any(not text.startswith(("-", "+")) for text in texts):
            state.positional = None
        return same(state)
