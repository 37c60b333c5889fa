"""Walks the syntax tree as the shell would run it, keeping what is known about folder and variables.

Knows: lists, pipelines, conditions, loops, functions, redirections. Does not know: programs (`run` does).
"""

from collections.abc import Callable, Iterable, Sequence

from tree_sitter import Node

from interpose.command.findings import Findings
from interpose.command.reading import Reading, Word
from interpose.command.redirects import open_redirect
from interpose.command.run import Runner
from interpose.command.state import After, Piece, State, Stdin, Value, merge, same
from interpose.command.syntax import (
    assigned_names,
    between,
    called_names,
    calls,
    ends_in_descriptor,
    found_start,
    heredoc_rest,
    local_names,
    lone_dash,
    source,
    statements,
    touches_word,
)
from interpose.command.variables import Variables
from interpose.command.words import arithmetic, is_translated, read_words, turn_value, walk_nested

MAX_WORDS = 4_096
"""A command with more words than this is not read to its end."""

MAX_TEXTS = 24
"""How deep texts inside texts (`eval`, `sh -c`) are read."""

MAX_TURNS = 32
"""A loop over at most so many known words is read turn by turn."""

_MOVES = frozenset({"cd", "pushd", "popd", "eval", "source", ".", "command", "builtin", "time", "trap"})
_RESETS = frozenset({"set", "shift", "eval", "source", ".", "command", "builtin", "time", "trap", "let"})
_JUMPS = frozenset({"break", "continue", "return"})


class Walk(Findings):
    """One reading in the making. Not for more than one text or thread."""

    def __init__(self, parse: Callable[[str], Node | str]) -> None:
        """`parse` gives the tree of a text, or why there is none."""
        super().__init__()
        self._parse = parse
        self._runner = Runner(self)
        self._variables = Variables(self)
        self._depth = 0
        self._active: list[str] = []
        self._defined: dict[str, Node] = {}
        self._called: set[str] = set()
        self.wrappers: tuple[str, ...] = ()

    # What the runner and the words ask for.

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

    def store(self, name: str, value: Value | None, state: State) -> None:
        """Stores a variable."""
        self._variables.set(name, value, state)

    def call_function(self, name: str, arguments: Sequence[Value] | None, state: State) -> After:
        """Reads a function's body as called with `arguments` (None: not known)."""
        self.branch()
        self.spent(sum(body.descendant_count for body in state.functions[name]) // 16)
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
            if calls(body, _JUMPS):
                self._loosen(body, result)
            for local in local_names(body):
                result.forget(local)
        result.positional = outer
        result.dead = False
        return same(result)

    def substitute(self, node: Node, state: State) -> None:
        """Reads the commands of a substitution; it leaves the shell as it was."""
        inner = state.copy()
        if node.type == "process_substitution" and source(node).startswith(">("):
            inner.stdin = Stdin("pipe")
        for redirect in (child for child in node.named_children if child.type == "file_redirect"):
            open_redirect(redirect, inner, "$(<)", self)
        self._sequence([child for child in node.children if child.type != "file_redirect"][1:-1], inner)

    def substitute_text(self, text: str, state: State) -> None:
        """As `substitute`, of a text."""
        self.text(text, state.copy())

    def finish(self, state: State) -> Reading:
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
        return self.reading()

    # Statements.

    def statement(self, node: Node, state: State) -> After:
        """Reads one statement; what is known after it."""
        if self.spent(1):
            return same(state)
        match node.type:
            case "program" | "do_group":
                return self._sequence(statements(node), state)
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
                self._sequence(statements(node), state.copy())
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
                self.command(self._variables.declare(node, state))
                return same(state)
            case "variable_assignment" | "variable_assignments":
                assignments = [node] if node.type == "variable_assignment" else node.named_children
                for assignment in assignments:
                    self._variables.assign(assignment, state)
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
                self.doubt(f"{node.type.replace('_', ' ')} is not understood: {source(node)[:40]!r}")
                return same(state)

    def _sequence(self, children: Iterable[Node], state: State) -> After:
        """Statements after each other; one before `&` runs in a shell of its own."""
        after = same(state)
        statements = list(children)
        for index, child in enumerate(statements):
            if not child.is_named:
                if child.type not in (";", "&", "\n"):
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
        return self._sequence(statements(node), state)

    def _list(self, node: Node, state: State, redirects: Sequence[Node] = (), *, piped: bool = False) -> After:
        """`a && b || c`, read from the left without recursion; redirections belong to the last command."""
        chain: list[tuple[str, Node]] = []
        while node.type == "list":
            left, operator, right = node.children[0], node.children[1], node.children[-1]
            if operator.type not in ("&&", "||") or len(node.children) != 3:
                self.doubt(f"{source(node)[:40]!r} is not understood as a list")
            chain.append((operator.type, right))
            node = left
        if piped:
            self._pipeline([node], state, piped=True)
        after = same(state) if piped else self.statement(node, state)
        for kind, right in reversed(chain):
            after = self._join(after, kind, right, redirects if right is chain[0][1] else ())
        return after

    def _join(self, after: After, operator: str, right: Node, redirects: Sequence[Node] = ()) -> After:
        self.branch()
        if operator == "&&":
            ok, fail = self._apply(right, redirects, after.ok.copy())
            return After(ok, merge(after.fail, fail))
        ok, fail = self._apply(right, redirects, after.fail.copy())
        return After(merge(after.ok, ok), fail)

    def _pipeline(
        self, children: Sequence[Node], state: State, redirects: Sequence[Node] = (), *, piped: bool = False
    ) -> None:
        """Commands joined by pipes, each in a shell of its own; redirections belong to the last."""
        stages = [child for child in children if child.is_named and child.type != "comment"]
        for index, stage in enumerate(stages):
            inner = state.copy()
            if piped or index:
                inner.stdin = Stdin("pipe", found_start(stages[index - 1]) if index else "")
            self._apply(stage, redirects if index == len(stages) - 1 else (), inner)

    def _redirected(self, node: Node, state: State) -> After:
        """A statement with redirections, and what stands behind a heredoc on its first line."""
        body = node.child_by_field_name("body")
        redirects = node.children_by_field_name("redirect")
        if body is None:
            outer, label = state.stdin, source(node)[:80]
            words = [word for redirect in redirects for word in open_redirect(redirect, state, label, self)]
            after = self._runner.run(words, state, self.wrappers) if words else same(state)
            after = After(after.ok.fed(outer), after.fail.fed(outer))
        else:
            after = self._apply(body, redirects, state)
        for operator, right in [item for redirect in redirects for item in heredoc_rest(redirect)]:
            if operator != "|":
                after = self._join(after, operator, right)
            elif right.type == "list":
                after = self._list(right, after.either(), piped=True)
            else:
                self._pipeline([right], after.either(), piped=True)
                after = same(after.either())
        return after

    def _apply(self, node: Node, redirects: Sequence[Node], state: State) -> After:
        """Reads a statement with redirections, which belong to the last command of a list or pipeline."""
        if not redirects:
            return self.statement(node, state)
        match node.type:
            case "list":
                return self._list(node, state, redirects)
            case "pipeline":
                self._pipeline(node.children, state, redirects)
                return same(state)
            case "negated_command":
                after = self._apply(node.named_children[-1], redirects, state)
                return After(after.fail, after.ok)
            case _:
                return self._with_redirects(node, redirects, state)

    def _with_redirects(self, node: Node, redirects: Sequence[Node], state: State) -> After:
        outer = state.stdin
        label = source(node)[:80]
        extra: list[Word] = []
        for before, redirect in zip((node, *redirects), redirects, strict=False):
            extra += [Word("-")] if lone_dash(before, redirect) else []
            if before.end_byte == redirect.start_byte and ends_in_descriptor(source(before)):
                self.doubt(f"the number before {source(redirect)[:40]!r} may be part of it")
        extra += [word for redirect in redirects for word in open_redirect(redirect, state, label, self)]
        if node.type == "command":
            after = self._command(node, state, extra)
            if label.strip() == "exec":
                return after
        else:
            if extra:
                self.doubt(f"words after the redirection of {label!r}")
            after = self.statement(node, state)
        return After(after.ok.fed(outer), after.fail.fed(outer))

    # Commands and assignments.

    def _command(self, node: Node, state: State, extra: Sequence[Word]) -> After:
        words: list[Word] = []
        assignments: list[Node] = []
        outer = state.stdin
        for child in node.children:
            if is_translated(child):
                continue
            if touches_word(child):
                self.doubt(f"where words part in {source(node)[:60]!r} cannot be told")
            match child.type:
                case "variable_assignment" if not words:
                    assignments.append(child)
                case "file_redirect" | "herestring_redirect" | "heredoc_redirect":
                    words += open_redirect(child, state, source(node)[:80], self)
                case "command_name":
                    words += read_words(child.children[0], state, self) if child.children else []
                case "comment":
                    continue
                case _:
                    words += read_words(child, state, self)
            if len(words) > MAX_WORDS:
                self.doubt(f"a command has more than {MAX_WORDS:,} words")
                break
        words += extra
        overlay = {
            name: value
            for item in assignments
            if (pair := self._variables.value(item, state))
            for name, value in [pair]
        }
        if not words:
            for name, value in overlay.items():
                self.store(name, value, state)
            state.stdin = outer
            return same(state)
        after = self._with_overlay(words, overlay, state)
        if words[0].text == "exec" and len(words) == 1:
            return after
        return After(after.ok.fed(outer), after.fail.fed(outer))

    def _with_overlay(self, words: list[Word], overlay: dict[str, Value | None], state: State) -> After:
        if not overlay:
            return self._runner.run(words, state, self.wrappers)
        inner = state.copy()
        for name, value in overlay.items():
            self.store(name, value, inner)
            inner.exported.add(name)
        after = self._runner.run(words, inner, self.wrappers)
        for result in after:
            result.restore(overlay, state)
        return after

    def _function(self, node: Node, state: State) -> After:
        name_node = node.child_by_field_name("name")
        body = node.child_by_field_name("body")
        if name_node is None or body is None:
            self.doubt(f"the function {source(node)[:40]!r} is not understood")
            return same(state)
        if node.child_by_field_name("redirect") is not None:
            self.doubt("a function with a redirection")
        name = source(name_node)
        self.branch()
        self._defined[name] = body
        self._called.discard(name)
        state.functions[name] = (body,)
        return same(state)

    # Conditions and loops.

    def _if(self, node: Node, state: State) -> After:
        self.branch()
        after = self._sequence(between(node, None, "then"), state)
        results = [self._sequence(between(node, "then", "fi"), after.ok.copy()).either()]
        rest = after.fail
        for clause in node.named_children:
            if clause.type == "elif_clause":
                after = self._sequence(between(clause, "elif", "then"), rest.copy())
                results.append(self._sequence(between(clause, "then", None), after.ok.copy()).either())
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
                    arithmetic(child, state, self)
            return self._any_turn(node, body, state)
        name = source(node.child_by_field_name("variable") or node.named_children[0])
        values = node.children_by_field_name("value")
        words = [word for value in values for word in read_words(value, state, self)]
        if not any(child.type == "in" for child in node.children):
            words = [Word("$@", dynamic=True, many=True)]
        if node.children[0].type != "for" or not words or len(words) > MAX_TURNS:
            words = [Word(f"${name}", dynamic=True)]
        if all(word.plain for word in words) and not calls(body, _JUMPS):
            return self._each_turn(name, words, body, state)
        entry = state.copy()
        self._loosen(node, entry)
        for word in words:
            turn = entry.copy()
            self.store(name, turn_value(word), turn)
            self.statement(body, turn)
        entry.forget(name)
        return same(merge(state, entry))

    def _each_turn(self, name: str, words: Sequence[Word], body: Node, state: State) -> After:
        for word in words:
            self.store(name, (Piece("text", word.text),), state)
            state = self.statement(body, state).either()
        return same(state)

    def _any_turn(self, node: Node, body: Node, state: State) -> After:
        entry = state.copy()
        self._loosen(node, entry)
        inner = self.statement(body, entry.copy()).either()
        inner.dead = False
        return same(merge(merge(state, entry), inner))

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
            inner = [child for child in item.children[closing + 1 :] if child.type not in (";;", ";&", ";;&")]
            result = merge(result, self._sequence(inner, merge(state, result)).either())
        return same(result)

    def _loosen(self, node: Node, state: State) -> None:
        """Forgets what the code below `node` may change, for places that it may have run before or not."""
        self.spent(node.descendant_count // 16)
        for name in assigned_names(node):
            state.forget(name)
        called = called_names(node)
        if None in called or called & (_RESETS | set(state.functions)):
            state.forget_all()
        if None in called or called & (_MOVES | set(state.functions)):
            state.cwds = None
