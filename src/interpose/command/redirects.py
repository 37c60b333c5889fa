"""Redirections, heredocs and here-strings: the files they open and the input they give.

Knows: every redirection operator. Does not know: the command they belong to.
"""

from typing import Protocol

from tree_sitter import Node

from interpose.command.globs import Names
from interpose.command.reading import Access, Depth, Word
from interpose.command.state import Piece, State, Stdin
from interpose.command.syntax import rest_of_line, source
from interpose.command.words import Scope, heredoc_parts, known, read_value, read_words


class FileScope(Scope, Protocol):
    """A scope that also takes files."""

    def use(
        self, word: Word, access: Access, by: str, state: State, depth: Depth = "file", names: Names | None = None
    ) -> None:
        """Notes the file that a word names."""
        ...


def open_redirect(node: Node, state: State, by: str, scope: FileScope) -> list[Word]:
    """Notes what one redirection opens and sets the input; the words behind it that belong to the command."""
    match node.type:
        case "file_redirect":
            return _file(node, state, by, scope)
        case "herestring_redirect":
            text = known(read_value(node.named_children[-1], state, scope))
            state.stdin = Stdin("dynamic") if text is None else Stdin("text", text + "\n")
            return []
        case "heredoc_redirect":
            return _heredoc(node, state, by, scope)
        case kind:
            scope.doubt(f"{kind.replace('_', ' ')} is not understood")
            return []


def _file(node: Node, state: State, by: str, scope: FileScope) -> list[Word]:
    operator = next((child.type for child in node.children if not child.is_named), "")
    if any(child.is_error for child in node.children):
        operator = "<>"
    places = node.children_by_field_name("destination")
    if not places:
        if not operator.endswith("-"):
            scope.doubt(f"the redirection {source(node)!r} is not understood")
        return []
    if operator.endswith("&-"):
        return [word for place in places for word in read_words(place, state, scope)]
    words = read_words(places[0], state, scope)
    extra = [word for place in places[1:] for word in read_words(place, state, scope)]
    word = words[0] if len(words) == 1 else Word(source(places[0]), dynamic=True, many=True)
    is_input = all(child.type != "file_descriptor" or source(child) == "0" for child in node.children)
    if operator in (">&", "<&") and _is_descriptor(word):
        if is_input and operator == "<&" and word.text != "0":
            state.stdin = Stdin() if word.text == "-" else Stdin("dynamic")
        return extra
    if operator.startswith("<"):
        scope.use(word, "read", by, state)
        if is_input:
            state.stdin = Stdin("pipe" if word.text.startswith("/dev/fd/") else "file", word.text)
    if operator != "<":
        scope.use(word, "write", by, state)
    return extra


def _is_descriptor(word: Word) -> bool:
    return word.plain and (word.text == "-" or word.text.removesuffix("-").isdigit())


def _heredoc(node: Node, state: State, by: str, scope: FileScope) -> list[Word]:
    body = next((child for child in node.named_children if child.type == "heredoc_body"), None)
    start = next(child for child in node.named_children if child.type == "heredoc_start")
    _check_delimiter(node, start, body, scope)
    text: str | None = ""
    if body is not None and any(mark in source(start) for mark in "'\"\\"):
        text = source(body)
    elif body is not None:
        pieces: list[Piece] = []
        for atom in heredoc_parts(body, state, scope):
            pieces.extend(atom.value if atom.kind == "quoted_value" else (Piece("text", atom.text),))
        text = known(tuple(pieces))
    if text is not None and node.children[0].type == "<<-":
        text = "\n".join(line.lstrip("\t") for line in text.split("\n"))
    state.stdin = Stdin("dynamic") if text is None else Stdin("text", text)
    extra: list[Word] = []
    for child in node.children_by_field_name("redirect"):
        extra += open_redirect(child, state, by, scope)
    for child in node.children_by_field_name("argument"):
        extra += read_words(child, state, scope)
    return extra


def _check_delimiter(node: Node, start: Node, body: Node | None, scope: Scope) -> None:
    """The grammar takes the delimiter for the end wherever a line starts with it; the shell wants a line of its own."""
    if source(node.children[0]) not in ("<<", "<<-"):
        scope.doubt(f"the heredoc {source(node)[:20]!r} is not understood")
    delimiter = source(start).translate(str.maketrans("", "", "'\"\\"))
    end = next((child for child in node.named_children if child.type == "heredoc_end"), None)
    tabs = "\t" if node.children[0].type == "<<-" else ""
    inner = "" if body is None else source(body)
    alone = end is not None and rest_of_line(end) == delimiter
    if not alone or any(line.lstrip(tabs) == delimiter for line in inner.split("\n")):
        scope.doubt(f"where the heredoc {source(start)} ends cannot be told")
