"""Walks the syntax tree as the shell would run it, keeping what is known about folder and variables.

Knows: lists, pipelines, conditions, loops, functions, redirections. Does not know: programs (`run` does).
"""

from collections.abc import Callable, Iterable, Sequence

from tree_sitter import Node

from interpose.command.reading import Access, FileUse, Reading, SimpleCommand, Word
from interpose.command.run import Runner
from interpose.command.state import After, Piece, State, Stdin, Value, merge, same
from interpose.command.words import (
    arithmetic,
    known,
    quoted_parts,
    read_value,
    read_words,
    walk_nested,
)

MAX_COMMANDS = 2_000
"""A text that runs more commands than this (loops and functions opened) is not read to its end."""

MAX_TEXTS = 24
"""How deep texts inside texts (`eval`, `sh -c`) are read."""

MAX_TURNS = 32
"""A loop over at most so many known words is read turn by turn."""

_STATEMENTS = frozenset(
    {
        "program", "compound_statement", "do_group", "list", "pipeline", "negated_command", "subshell", "command",
        "redirected_statement", "declaration_command", "unset_command", "variable_assignment",
        "variable_assignments", "test_command", "if_statement", "while_statement", "for_statement",
        "c_style_for_statement", "case_statement", "function_definition",
    }
)  # fmt: skip
_READS_INTO = frozenset({"read", "mapfile", "readarray", "getopts", "printf", "wait"})
_MOVES = frozenset({"cd", "pushd", "popd", "eval", "source", ".", "command", "builtin", "trap"})
_RESETS = frozenset({"set", "shift", "eval", "source", ".", "command", "builtin", "trap", "let"})
_JUMPS = frozenset({"break", "continue", "return"})
_HARMLESS_DEVICES = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/tty"})


class Walk:
    """One reading in the making. Not for more than one text or thread."""

    def __init__(self, parse: Callable[[str], Node | str]) -> None:
        """`parse` gives the tree of a text, or why there is none."""
        self._parse = parse
        self._runner = Runner(self)
        self._commands: dict[SimpleCommand, None] = {}
        self._files: dict[FileUse, None] = {}
        self._unknown: dict[str, None] = {}
        self._branching = False
        self._count = 0
        self._depth = 0
        self._active: list[str] = []
        self._defined: dict[str, Node] = {}
        self._called: set[str] = set()
        self.fixed: set[str] = set()
        self.wrappers: tuple[str, ...] = ()

    # What the runner and the words ask for.

    def doubt(self, reason: str) -> None:
        """Notes why something cannot be read."""
        self._unknown[reason] = None

    def branch(self) -> None:
        """Notes that not everything read must run."""
        self._branching = True

    def command(self, command: SimpleCommand) -> bool:
        """Notes a command; False when there are too many to go on."""
        self._count += 1
        if self._count > MAX_COMMANDS:
            self.doubt(f"it runs more than {MAX_COMMANDS:,} commands")
            return False
        self._commands[command] = None
        return True

    def file(self, use: FileUse) -> None:
        """Notes a file."""
        if use.path not in _HARMLESS_DEVICES and not use.path.startswith("/dev/fd/"):
            self._files[use] = None

    def use(self, word: Word, access: Access, by: str, state: State, depth: str = "file") -> None:
        """Notes the file that a word names, seen from every folder the shell may be in."""
        for use in _uses(word, access, by, state, depth):
            self.file(use)

    def text(self, text: str, state: State, wrappers: tuple[str, ...] | None = None) -> After:
        """Reads a text as a program of its own in `state`; `wrappers` are the programs that run it."""
        if self._depth >= MAX_TEXTS:
            self.doubt(f"texts inside texts, more than {MAX_TEXTS} deep")
            return same(state)
        root = self._parse(text)
        if isinstance(root, str):
            self.doubt(root)
            return same(state)
        outer = self.wrappers
        self.wrappers = outer if wrappers is None else wrappers
        self._depth += 1
        after = self.statement(root, state)
        self._depth -= 1
        self.wrappers = outer
        return after

    def call_function(self, name: str, arguments: Sequence[Value] | None, state: State) -> After:
        """Reads a function's body as called with `arguments` (None: not known)."""
        self.branch()
        if name in self._active:
            self.doubt(f"the function {name} calls itself")
            return same(state)
        self._called.add(name)
        outer = state.positional
        inner = state.copy()
        inner.positional = None if arguments is None else tuple(arguments)
        self._active.append(name)
        results = [self.statement(body, inner.copy()).either() for body in state.functions[name]]
        self._active.pop()
        result = results[0]
        for other in results[1:]:
            result = merge(result, other)
        for body in state.functions[name]:
            if _contains(body, _JUMPS):
                self._loosen(body, result)
            for local in _locals(body):
                result.forget(local)
        result.positional = outer
        result.dead = False
        return same(result)

    def substitute(self, node: Node, state: State) -> None:
        """Reads the commands of a substitution; it leaves the shell as it was."""
        inner = state.copy()
        redirects = [child for child in node.named_children if child.type == "file_redirect"]
        for redirect in redirects:
            self._redirect(redirect, inner, "$(<)")
        self._sequence([child for child in node.children if child.type != "file_redirect"][1:-1], inner)

    def substitute_text(self, text: str, state: State) -> None:
        """Reads the commands of a substitution that is given as text."""
        self.text(text, state.copy())

    def reading(self, state: State) -> Reading:
        """What was found; functions that nobody called are read last."""
        for name, body in list(self._defined.items()):
            if name in self._called:
                continue
            inner = state.copy()
            inner.forget_all()
            inner.dead = False
            self._active.append(name)
            self.statement(body, inner)
            self._active.pop()
        return Reading(tuple(self._commands), tuple(self._files), tuple(self._unknown), self._branching)

    # Statements.

    def statement(self, node: Node, state: State) -> After:
        """Reads one statement; what is known after it."""
        match node.type:
            case "program" | "do_group":
                return self._sequence(_body(node), state)
            case "compound_statement":
                return self._compound(node, state)
            case "list":
                return self._list(node, state)
            case "pipeline":
                self._pipeline(node.children, state)
                return same(state)
            case "negated_command":
                after = self.statement(node.named_children[-1], state)
                return After(after.fail, after.ok)
            case "subshell":
                self._sequence(_body(node), state.copy())
                return same(state)
            case "command":
                return self._command(node, state, ())
            case "redirected_statement":
                return self._redirected(node, state)
            case "function_definition":
                return self._function(node, state)
            case "comment" | "heredoc_body":
                return same(state)
            case _:
                return self._conditional(node, state)

    def _conditional(self, node: Node, state: State) -> After:
        match node.type:
            case "declaration_command" | "unset_command":
                return self._declaration(node, state)
            case "variable_assignment" | "variable_assignments":
                assignments = [node] if node.type == "variable_assignment" else node.named_children
                for assignment in assignments:
                    self._assign(assignment, state)
                return same(state)
            case "test_command":
                arithmetic(node, state, self)
                return same(state)
            case "if_statement":
                return self._if(node, state)
            case "while_statement":
                return self._while(node, state)
            case "for_statement" | "c_style_for_statement":
                return self._for(node, state)
            case "case_statement":
                return self._case(node, state)
            case _:
                self.doubt(f"{node.type.replace('_', ' ')} is not understood: {_text(node)[:40]!r}")
                return same(state)

    def _sequence(self, children: Iterable[Node], state: State) -> After:
        """Statements after each other; one before `&` runs in a shell of its own."""
        after = same(state)
        statements = list(children)
        for index, child in enumerate(statements):
            if not child.is_named:
                if child.type not in (";", "&", "\n", ";;", ";&", ";;&"):
                    self.doubt(f"{child.type!r} between commands is not understood")
                continue
            before = after.either()
            following = statements[index + 1] if index + 1 < len(statements) else None
            if following is not None and following.type == "&":
                self.branch()
                self.statement(child, before.copy())
                after = same(before)
                continue
            after = self.statement(child, before)
        return after

    def _compound(self, node: Node, state: State) -> After:
        if node.children and node.children[0].type == "((":
            arithmetic(node, state, self)
            return same(state)
        return self._sequence(_body(node), state)

    def _list(self, node: Node, state: State) -> After:
        """`a && b || c`, read from the left without recursion."""
        chain: list[tuple[str, Node]] = []
        while node.type == "list":
            left, operator, right = node.children[0], node.children[1], node.children[-1]
            if operator.type not in ("&&", "||") or len(node.children) != 3:
                self.doubt(f"{_text(node)[:40]!r} is not understood as a list")
            chain.append((operator.type, right))
            node = left
        after = self.statement(node, state)
        for operator_text, right in reversed(chain):
            after = self._join(after, operator_text, right)
        return after

    def _join(self, after: After, operator: str, right: Node) -> After:
        self.branch()
        if operator == "&&":
            ok, fail = self.statement(right, after.ok.copy())
            return After(ok, merge(after.fail, fail))
        ok, fail = self.statement(right, after.fail.copy())
        return After(merge(after.ok, ok), fail)

    def _pipeline(self, children: Sequence[Node], state: State, *, piped: bool = False) -> None:
        for child in children:
            if not child.is_named:
                continue
            inner = state.copy()
            if piped:
                inner.stdin = Stdin("pipe")
            piped = True
            self.statement(child, inner)

    def _redirected(self, node: Node, state: State) -> After:
        """A statement with redirections; words behind a redirection belong to the command."""
        body = node.child_by_field_name("body")
        inner = state.copy() if body is None else state
        outer = inner.stdin
        extra: list[Word] = []
        rest: list[tuple[str, Node]] = []
        label = _text(body)[:80] if body is not None else ">"
        for redirect in node.children_by_field_name("redirect"):
            extra += self._redirect(redirect, inner, label)
            rest += _heredoc_rest(redirect)
        if body is None:
            after = same(inner)
        elif body.type == "command":
            after = self._command(body, inner, extra)
        else:
            if extra:
                self.doubt(f"words after the redirection of {label!r}")
            after = self.statement(body, inner)
        lasting = body is not None and body.type == "command" and _text(body).strip() == "exec"
        if not lasting:
            after = After(_with_stdin(after.ok, outer), _with_stdin(after.fail, outer))
        for operator, right in rest:
            if operator == "|":
                self._pipeline([right], after.either(), piped=True)
                after = same(after.either())
            else:
                after = self._join(after, operator, right)
        return after

    def _redirect(self, node: Node, state: State, by: str) -> list[Word]:
        """Notes what one redirection opens; the words behind it that belong to the command."""
        match node.type:
            case "file_redirect":
                return self._file_redirect(node, state, by)
            case "herestring_redirect":
                value = read_value(node.named_children[-1], state, self)
                text = known(value)
                state.stdin = Stdin("dynamic") if text is None else Stdin("text", text + "\n")
                return []
            case "heredoc_redirect":
                return self._heredoc(node, state, by)
            case _:
                self.doubt(f"{node.type.replace('_', ' ')} is not understood")
                return []

    def _file_redirect(self, node: Node, state: State, by: str) -> list[Word]:
        operator = next((child.type for child in node.children if not child.is_named), "")
        places = node.children_by_field_name("destination")
        if not places:
            if not operator.endswith("-"):
                self.doubt(f"the redirection {_text(node)!r} is not understood")
            return []
        words = read_words(places[0], state, self)
        extra = [word for place in places[1:] for word in read_words(place, state, self)]
        word = words[0] if len(words) == 1 else Word(_text(places[0]), dynamic=True, many=True)
        duplicate = (
            operator in (">&", "<&")
            and word.plain
            and (word.text.isdigit() or word.text.rstrip("-").isdigit() or word.text == "-")
        )
        if duplicate or operator.endswith("&-"):
            return extra
        if operator.startswith("<"):
            self.use(word, "read", by, state)
            pipe = word.text.startswith("/dev/fd/")
            state.stdin = Stdin("pipe" if pipe else "file", word.text)
        if operator != "<":
            self.use(word, "write", by, state)
        return extra

    def _heredoc(self, node: Node, state: State, by: str) -> list[Word]:
        body = next((child for child in node.named_children if child.type == "heredoc_body"), None)
        start = next(child for child in node.named_children if child.type == "heredoc_start")
        if body is None:
            state.stdin = Stdin("text", "")
        elif any(mark in _text(start) for mark in "'\"\\"):
            state.stdin = Stdin("text", _text(body))
        else:
            pieces: list[Piece] = []
            for atom in quoted_parts(body, state, self):
                pieces.extend(atom.value if atom.kind == "quoted_value" else (Piece("text", atom.text),))
            text = known(tuple(pieces))
            state.stdin = Stdin("dynamic") if text is None else Stdin("text", text)
        extra: list[Word] = []
        for child in node.children_by_field_name("redirect"):
            extra += self._redirect(child, state, by)
        for child in node.children_by_field_name("argument"):
            extra += read_words(child, state, self)
        return extra

    # Commands and assignments.

    def _command(self, node: Node, state: State, extra: Sequence[Word]) -> After:
        words: list[Word] = []
        assignments: list[Node] = []
        outer = state.stdin
        for child in node.children:
            match child.type:
                case "variable_assignment" if not words:
                    assignments.append(child)
                case "file_redirect" | "herestring_redirect" | "heredoc_redirect":
                    words += self._redirect(child, state, _text(node)[:80])
                case "command_name":
                    words += read_words(child.children[0], state, self)
                case "comment":
                    continue
                case _:
                    words += read_words(child, state, self)
        words += extra
        overlay = {name: value for item in assignments if (pair := self._value(item, state)) for name, value in [pair]}
        if not words:
            for name, value in overlay.items():
                self.set(name, value, state)
            state.stdin = outer
            return same(state)
        after = self._with_overlay(words, overlay, state)
        if words[0].text == "exec" and len(words) == 1:
            return after
        return After(_with_stdin(after.ok, outer), _with_stdin(after.fail, outer))

    def _with_overlay(self, words: list[Word], overlay: dict[str, Value | None], state: State) -> After:
        if not overlay:
            return self._runner.run(words, state, self.wrappers)
        inner = state.copy()
        for name, value in overlay.items():
            self.set(name, value, inner)
            inner.exported.add(name)
        after = self._runner.run(words, inner, self.wrappers)
        restored = [after.ok] if after.ok is after.fail else [after.ok, after.fail]
        for result in restored:
            for name in overlay:
                result.forget(name)
                if name in state.variables:
                    result.variables[name] = state.variables[name]
                if name not in state.exported:
                    result.exported.discard(name)
        return after

    def _declaration(self, node: Node, state: State) -> After:
        """`export`, `declare`, `local`, `readonly`, `typeset`, `unset`."""
        keyword = node.children[0].type
        words: list[Word] = [Word(keyword)]
        flags = ""
        names: list[str] = []
        for child in node.named_children:
            if child.type == "variable_assignment":
                pair = self._value(child, state)
                if pair is not None:
                    names.append(pair[0])
                    self.set(pair[0], pair[1], state)
                words.append(Word(_text(child)))
                continue
            for word in [Word(_text(child))] if child.type == "variable_name" else read_words(child, state, self):
                words.append(word)
                if word.plain and word.text.startswith("-"):
                    flags += word.text[1:]
                    continue
                names.append(word.text)
                if not word.plain:
                    state.forget_all()
        self._attributes(keyword, flags, names, state)
        self.command(SimpleCommand(words[0], tuple(words[1:])))
        return same(state)

    def _attributes(self, keyword: str, flags: str, names: list[str], state: State) -> None:
        if "n" in flags and keyword in ("declare", "typeset", "local"):
            self.doubt(f"{keyword} -n makes a name for another name")
        for name in names:
            bare = name.split("=", 1)[0].split("[", 1)[0]
            if keyword in ("unset", "unsetenv"):
                state.forget(bare)
            if keyword == "export" or "x" in flags:
                state.exported.add(bare)
            if set(flags) & set("ilucaA") and keyword != "export":
                state.forget(bare)
                self.fixed.add(bare)
            if keyword == "readonly" or "r" in flags:
                self.fixed.add(bare)

    def _assign(self, node: Node, state: State) -> None:
        pair = self._value(node, state)
        if pair is not None:
            self.set(pair[0], pair[1], state)

    def set(self, name: str, value: Value | None, state: State) -> None:
        """Stores a variable; one that was made read-only or has a type is not known any more."""
        if value is None or name in self.fixed:
            state.forget(name)
            return
        state.variables[name] = value

    def _value(self, node: Node, state: State) -> tuple[str, Value | None] | None:
        """Name and value of an assignment; the value is None when it is not known."""
        name = node.child_by_field_name("name")
        value = node.child_by_field_name("value")
        if name is None:
            self.doubt(f"the assignment {_text(node)[:40]!r} is not understood")
            return None
        if name.type == "subscript":
            walk_nested(name, state, self)
            return _text(name).split("[", 1)[0], None
        if value is None:
            return _text(name), () if any(child.type == "=" for child in node.children) else None
        if value.type == "array":
            for item in value.named_children:
                read_words(item, state, self)
            return _text(name), None
        read = read_value(value, state, self)
        if any(child.type == "+=" for child in node.children):
            old = state.variables.get(_text(name))
            return _text(name), None if old is None else (*old, *read)
        return _text(name), read

    def _function(self, node: Node, state: State) -> After:
        name_node = node.child_by_field_name("name")
        body = node.child_by_field_name("body")
        if name_node is None or body is None:
            self.doubt(f"the function {_text(node)[:40]!r} is not understood")
            return same(state)
        if node.child_by_field_name("redirect") is not None:
            self.doubt("a function with a redirection")
        name = _text(name_node)
        self.branch()
        self._defined[name] = body
        self._called.discard(name)
        state.functions[name] = (body,)
        return same(state)

    # Conditions and loops.

    def _if(self, node: Node, state: State) -> After:
        self.branch()
        after = self._sequence(_between(node, None, "then"), state)
        results: list[State] = []
        results.append(self._sequence(_between(node, "then", "fi"), after.ok.copy()).either())
        rest = after.fail
        for clause in node.named_children:
            if clause.type == "elif_clause":
                after = self._sequence(_between(clause, "elif", "then"), rest.copy())
                results.append(self._sequence(_between(clause, "then", None), after.ok.copy()).either())
                rest = after.fail
            if clause.type == "else_clause":
                results.append(self._sequence(clause.children[1:], rest.copy()).either())
                rest = State(None, {}, dead=True)
        for result in results:
            rest = merge(rest, result)
        return same(rest)

    def _while(self, node: Node, state: State) -> After:
        self.branch()
        entry = state.copy()
        self._loosen(node, entry)
        body = node.child_by_field_name("body")
        condition = [child for child in node.children[1:] if body is None or child.start_byte < body.start_byte]
        after = self._sequence(condition, entry)
        starts, ends = (after.fail, after.ok) if node.children[0].type == "until" else (after.ok, after.fail)
        inner = self.statement(body, starts.copy()).either() if body is not None else starts
        inner.dead = False
        return same(merge(merge(state, ends), inner))

    def _for(self, node: Node, state: State) -> After:
        self.branch()
        body = node.child_by_field_name("body")
        if body is None:
            self.doubt("a loop without a body")
            return same(state)
        if node.type == "c_style_for_statement":
            for child in node.named_children:
                if child.id != body.id:
                    self._arithmetic_part(child, state)
            return self._any_turn(node, body, state)
        name = _text(node.child_by_field_name("variable") or node.named_children[0])
        values = node.children_by_field_name("value")
        words = [word for value in values for word in read_words(value, state, self)]
        if not any(child.type == "in" for child in node.children):
            words = [Word("$@", dynamic=True, many=True)]
        if node.children[0].type != "for" or not words or len(words) > MAX_TURNS:
            words = [Word(f"${name}", dynamic=True)]
        if all(word.plain for word in words) and not _contains(body, _JUMPS):
            return self._each_turn(name, words, body, state)
        entry = state.copy()
        self._loosen(node, entry)
        for word in words:
            turn = entry.copy()
            self.set(name, _turn_value(word), turn)
            self.statement(body, turn)
        entry.forget(name)
        return same(merge(state, entry))

    def _each_turn(self, name: str, words: Sequence[Word], body: Node, state: State) -> After:
        for word in words:
            self.set(name, (Piece("text", word.text),), state)
            state = self.statement(body, state).either()
        return same(state)

    def _any_turn(self, node: Node, body: Node, state: State) -> After:
        entry = state.copy()
        self._loosen(node, entry)
        inner = self.statement(body, entry.copy()).either()
        inner.dead = False
        return same(merge(merge(state, entry), inner))

    def _arithmetic_part(self, node: Node, state: State) -> None:
        if node.type == "variable_assignment":
            self._assign(node, state)
            name = node.child_by_field_name("name")
            state.forget(_text(name) if name is not None else "")
            return
        arithmetic(node, state, self)

    def _case(self, node: Node, state: State) -> After:
        self.branch()
        value = node.child_by_field_name("value")
        if value is not None:
            read_words(value, state, self)
        result = state.copy()
        for item in node.named_children:
            if item.type != "case_item":
                continue
            patterns = item.children_by_field_name("value")
            for pattern in patterns:
                walk_nested(pattern, state, self)
            closing = next(index for index, child in enumerate(item.children) if child.type == ")")
            result = merge(result, self._sequence(item.children[closing + 1 :], merge(state, result)).either())
        return same(result)

    def _loosen(self, node: Node, state: State) -> None:
        """Forgets what the code below `node` may change, for places that it may have run before or not."""
        for name in _assigned(node):
            state.forget(name)
        called = _called(node)
        if None in called or called & (_RESETS | set(state.functions)):
            state.forget_all()
        if None in called or called & (_MOVES | set(state.functions)):
            state.cwds = None


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "surrogateescape")


def _body(node: Node) -> list[Node]:
    """The statements of a block without its brackets."""
    brackets = {"{", "}", "(", ")", "do", "done"}
    return [child for child in node.children if child.type not in brackets or child.is_named]


def _between(node: Node, start: str | None, end: str | None) -> list[Node]:
    """The children between two keywords, clauses left out."""
    found: list[Node] = []
    inside = start is None
    for child in node.children[1:] if start is None else node.children:
        if not child.is_named and child.type == end:
            return found
        if inside and child.type not in ("elif_clause", "else_clause"):
            found.append(child)
        if not child.is_named and child.type == start:
            inside = True
    return found


def _heredoc_rest(node: Node) -> list[tuple[str, Node]]:
    """What follows a heredoc on its first line: a pipeline, or `&&` and `||` with a command."""
    if node.type != "heredoc_redirect":
        return []
    rest: list[tuple[str, Node]] = []
    operator = node.child_by_field_name("operator")
    right = node.child_by_field_name("right")
    for child in node.named_children:
        if child.type == "pipeline":
            rest += [("|", inner) for inner in child.named_children]
    if operator is not None and right is not None:
        rest.append((operator.type, right))
    return rest


def _with_stdin(state: State, stdin: Stdin) -> State:
    state.stdin = stdin
    return state


def _turn_value(word: Word) -> Value:
    """A loop variable's value: a name that a glob found stays that glob."""
    if word.pattern is not None:
        return (Piece("glob", word.text),)
    return (Piece("dynamic", word.text),) if word.dynamic else (Piece("text", word.text),)


def _uses(word: Word, access: Access, by: str, state: State, depth: str) -> Iterable[FileUse]:
    rooted = (word.prefix if word.dynamic else word.text).startswith("/")
    if word.dynamic or (state.cwds is None and not rooted):
        yield FileUse(word.text, access, by, depth, dynamic=True)  # type: ignore[arg-type]
        return
    for cwd in ("",) if rooted else state.cwds or ():
        path = word.text if rooted else f"{cwd.rstrip('/')}/{word.text}"
        pattern = None
        if word.pattern is not None:
            pattern = word.pattern if rooted else f"{_escaped(cwd.rstrip('/'))}/{word.pattern}"
        yield FileUse(path, access, by, depth, pattern=pattern)  # type: ignore[arg-type]


def _escaped(path: str) -> str:
    return "".join(f"[{character}]" if character in "*?[" else character for character in path)


def _descendants(node: Node) -> Iterable[Node]:
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(current.children)


def _assigned(node: Node) -> set[str]:
    """Names that the code below sets by assignment, loop, `read` or arithmetic."""
    names: set[str] = set()
    for child in _descendants(node):
        match child.type:
            case "variable_assignment":
                names.add(_text(child).split("=", 1)[0].rstrip("+").split("[", 1)[0])
            case "for_statement":
                variable = child.child_by_field_name("variable")
                names.add(_text(variable) if variable is not None else "")
            case "command" if _name(child) in _READS_INTO:
                names.update(_text(word) for word in child.children_by_field_name("argument"))
                names.add("REPLY")
            case "unset_command" | "declaration_command" | "expansion" | "postfix_expression" | "unary_expression":
                names.update(_text(inner) for inner in _descendants(child) if inner.type in ("variable_name", "word"))
            case "binary_expression" if "=" in _text(child):
                names.update(_text(inner) for inner in _descendants(child) if inner.type in ("variable_name", "word"))
            case _:
                continue
    return names


def _name(node: Node) -> str | None:
    name = node.child_by_field_name("name")
    if name is None or not name.children or name.children[0].type != "word":
        return None
    return _text(name)


def _called(node: Node) -> set[str | None]:
    return {
        _name(child) for child in _descendants(node) if child.type == "command" and child.child_by_field_name("name")
    }


def _contains(node: Node, names: frozenset[str]) -> bool:
    return bool(_called(node) & names)


def _locals(node: Node) -> set[str]:
    return {
        _text(child).split("=", 1)[0].split("[", 1)[0].rstrip("+")
        for declaration in _descendants(node)
        if declaration.type == "declaration_command" and declaration.children[0].type in ("local", "declare", "typeset")
        for child in declaration.named_children
    }
