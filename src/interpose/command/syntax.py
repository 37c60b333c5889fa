"""What can be seen in the syntax tree without knowing any state: texts, parts, and what code below may change.

Knows: the grammar's node types. Does not know: values, programs' meaning.
"""

import re
from collections.abc import Iterable
from itertools import takewhile
from posixpath import commonprefix

from tree_sitter import Node

_DESCRIPTOR = re.compile(r"(?:^|[\s;&|()])(?:\d+|\{\w+\})$")
_PLAIN_PATH = re.compile(r"[\w./][\w./@+-]*")
_FIND_SPEAKS = frozenset({"-print", "-printf", "-ls", "-exec", "-execdir", "-ok", "-okdir", "-fprint0", "-files0-from"})
_READS_INTO = frozenset({"read", "mapfile", "readarray", "getopts", "printf", "wait"})


def source(node: Node) -> str:
    """The text of a node as it was written."""
    return (node.text or b"").decode("utf-8", "surrogateescape")


def ends_in_descriptor(text: str) -> bool:
    """Whether a text ends in what belongs to a redirection right behind it: a number or `{name}` by itself."""
    return _DESCRIPTOR.search(text) is not None


def rest_of_line(node: Node) -> str:
    """The text from the start of a node to the end of its line."""
    root = node
    while root.parent is not None:
        root = root.parent
    text = (root.text or b"")[node.start_byte - root.start_byte :]
    return text.split(b"\n", 1)[0].decode("utf-8", "surrogateescape")


def lone_dash(before: Node, redirect: Node) -> bool:
    """Whether a dash by itself lies between a command and its heredoc, where the grammar loses it."""
    parent = redirect.parent
    if parent is None or before.end_byte >= redirect.start_byte:
        return False
    text = parent.text or b""
    return text[before.end_byte - parent.start_byte : redirect.start_byte - parent.start_byte].strip() == b"-"


def touches_word(node: Node) -> bool:
    """Whether a word starts right where the word before it ends, so that the shell takes both for one."""
    before = node.prev_sibling
    if before is None or before.end_byte != node.start_byte or "redirect" in node.type + before.type:
        return False
    return before.end_byte > before.start_byte and before.text != b"$"


def statements(node: Node) -> list[Node]:
    """The statements of a block without its brackets."""
    brackets = {"{", "}", "(", ")", "do", "done"}
    return [child for child in node.children if child.type not in brackets or child.is_named]


def between(node: Node, start: str | None, end: str | None) -> list[Node]:
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


def heredoc_rest(node: Node) -> list[tuple[str, Node]]:
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


def _descendants(node: Node) -> Iterable[Node]:
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(current.children)


def assigned_names(node: Node) -> set[str]:
    """Names that the code below sets by assignment, loop, `read` or arithmetic."""
    names: set[str] = set()
    for child in _descendants(node):
        match child.type:
            case "variable_assignment":
                names.add(source(child).split("=", 1)[0].rstrip("+").split("[", 1)[0])
            case "for_statement":
                variable = child.child_by_field_name("variable")
                names.add(source(variable) if variable is not None else "")
            case "command" if _command_name(child) in _READS_INTO:
                names.update(source(word) for word in child.children_by_field_name("argument"))
                names.add("REPLY")
            case "unset_command" | "declaration_command" | "expansion" | "postfix_expression" | "unary_expression":
                names.update(source(inner) for inner in _descendants(child) if inner.type in ("variable_name", "word"))
            case "binary_expression" if "=" in source(child):
                names.update(source(inner) for inner in _descendants(child) if inner.type in ("variable_name", "word"))
            case _:
                continue
    return names


def _command_name(node: Node) -> str | None:
    name = node.child_by_field_name("name")
    if name is None or not name.children or name.children[0].type != "word":
        return None
    return source(name)


def found_start(node: Node) -> str:
    """How every name starts that a plain `find ROOT… -print0` writes, each ended by a zero byte; "" when not known."""
    words = [source(child) for child in node.children]
    if node.type != "command" or words[0] != "find" or words[-1] != "-print0" or _FIND_SPEAKS.intersection(words):
        return ""
    roots = list(takewhile(lambda word: not word.startswith(("-", "(", "!", "\\")), words[1:])) or ["."]
    return commonprefix(roots) if all(_PLAIN_PATH.fullmatch(root) for root in roots) else ""


def called_names(node: Node) -> set[str | None]:
    """The names of the commands below; None for one that is no plain word."""
    return {
        _command_name(child)
        for child in _descendants(node)
        if child.type == "command" and child.child_by_field_name("name")
    }


def calls_below(node: Node) -> bool:
    """Whether any command stands below."""
    return any(child.type == "command" for child in _descendants(node))


def calls(node: Node, names: frozenset[str]) -> bool:
    """Whether one of these commands stands below."""
    return bool(called_names(node) & names)


def local_names(node: Node) -> set[str]:
    """The names that declarations below make local to a function."""
    return {
        source(child).split("=", 1)[0].split("[", 1)[0].rstrip("+")
        for declaration in _descendants(node)
        if declaration.type == "declaration_command" and declaration.children[0].type in ("local", "declare", "typeset")
        for child in declaration.named_children
    }
