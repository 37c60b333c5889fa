"""Assignments and declarations: what a variable holds afterwards, or that nobody can know.

Knows: `=`, `+=`, arrays, attributes that change or fix a value. Does not know: where variables are used.
"""

from tree_sitter import Node

from interpose.command.reading import SimpleCommand, Word
from interpose.command.settings import check_variable
from interpose.command.state import Piece, State, Value
from interpose.command.syntax import source
from interpose.command.words import Scope, read_value, read_words, walk_nested

_CHANGING = frozenset("ilucaA")
"""Attributes of `declare` after which a variable does not hold what is assigned to it."""


class Variables:
    """The variables of one reading. `_fixed` holds names whose value later assignments do not simply replace."""

    def __init__(self, scope: Scope) -> None:
        """Variables whose values may hold code that `scope` reads."""
        self._scope = scope
        self._fixed: set[str] = set()

    def set(self, name: str, value: Value | None, state: State) -> None:
        """Stores a variable; None and names with an attribute make it not known."""
        check_variable(name, value, state, self._scope)
        if value is None or name in self._fixed:
            state.forget(name)
            return
        state.variables[name] = value

    def assign(self, node: Node, state: State) -> None:
        """Does one assignment."""
        pair = self.value(node, state)
        if pair is not None:
            self.set(pair[0], pair[1], state)

    def value(self, node: Node, state: State) -> tuple[str, Value | None] | None:
        """Name and value of an assignment; the value is None when it is not known."""
        name = node.child_by_field_name("name")
        value = node.child_by_field_name("value")
        if name is None:
            self._scope.doubt(f"the assignment {source(node)[:40]!r} is not understood")
            return None
        if name.type == "subscript":
            walk_nested(name, state, self._scope)
            if value is not None:
                read_value(value, state, self._scope)
            return source(name).split("[", 1)[0], None
        if value is None:
            return source(name), ()
        if value.type == "array":
            for item in value.named_children:
                walk_nested(item, state, self._scope)
            return source(name), None
        read = read_value(value, state, self._scope)
        if any(child.type == "+=" for child in node.children):
            old = state.variables.get(source(name))
            return source(name), None if old is None else (*old, *read)
        return source(name), read

    def declare(self, node: Node, state: State) -> SimpleCommand:
        """Does an `export`, `declare`, `local`, `readonly`, `typeset` or `unset`; the command it is."""
        keyword = node.children[0].type
        words: list[Word] = []
        names: list[str] = []
        flags = ""
        for child in node.named_children:
            if child.type == "variable_assignment":
                pair = self.value(child, state)
                if pair is not None:
                    names.append(pair[0])
                    self.set(pair[0], None if "{" in source(child) else pair[1], state)
                words.append(Word(source(child)))
                continue
            found = [Word(source(child))] if child.type == "variable_name" else read_words(child, state, self._scope)
            for word in found:
                words.append(word)
                if word.plain and word.text.startswith(("-", "+")):
                    flags += word.text[1:]
                    continue
                names.append(word.text)
                if not word.plain:
                    state.forget_all()
        self._attributes(keyword, flags, names, state)
        return SimpleCommand(Word(keyword), tuple(words))

    def _attributes(self, keyword: str, flags: str, names: list[str], state: State) -> None:
        if "n" in flags and keyword in ("declare", "typeset", "local"):
            self._scope.doubt(f"{keyword} -n makes a name for another name")
        for given in names:
            if "[" in given and ("$(" in given or "`" in given):
                self._scope.doubt(f"{keyword} may run code inside {given[:60]!r}")
            name, assigned, text = given.partition("=")
            name = name.split("[", 1)[0].rstrip("+")
            if assigned:
                check_variable(name, (Piece("text", text),) if "$" not in text else None, state, self._scope)
            if keyword in ("unset", "unsetenv") or assigned:
                state.forget(name)
            if keyword == "unset" and "f" in flags.replace("v", "f"):
                state.functions.pop(name, None)
            if keyword == "export" or "x" in flags:
                state.exported.add(name)
            if _CHANGING & set(flags) and keyword not in ("export", "unset", "unsetenv"):
                state.forget(name)
                self._fixed.add(name)
            if keyword == "readonly" or "r" in flags:
                self._fixed.add(name)
