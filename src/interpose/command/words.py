"""From a word in the syntax tree to the words a program receives: quotes, expansions, braces, splitting, globs.

Knows: the shell's order of expansion. Does not know: which commands exist; nested commands are handed to the scope.
"""

import re
from collections.abc import Callable, Iterator
from typing import Protocol, TypeAlias

from tree_sitter import Node

from interpose.command.braces import Atom, expand_braces
from interpose.command.globs import escape
from interpose.command.reading import Word
from interpose.command.state import Piece, State, Value
from interpose.command.syntax import calls_below, source

PIPE_PATH = "/dev/fd/63"
"""What a process substitution looks like to the program."""

_META = frozenset(" \t\n;|&<>()`\"'")
_DOUBLE_QUOTED = re.compile(r"\\(?:\n|([$`\"\\]))")
_BACKQUOTED = re.compile(r"\\([$`\\])")
_HEREDOC_CODE = re.compile(r"(?P<escaped>\\.)|`(?P<code>(?:[^`\\]|\\.)*)`|`|\$[\w@*#?$!({-]", re.DOTALL)
_HEREDOC_ESCAPE = re.compile(r"\\(?:\n|([$`\\]))")
_EXPANSION = re.compile(r"\$[\w@*#?!({-]|`")
_PROMPT = re.compile(r"@P\}$")
_ESCAPED = re.compile(r"\\.", re.DOTALL)
_ANSI = re.compile(
    rb"\\(?:([abeEfnrtv\\'\"?])|x([0-9a-fA-F]{1,2})|([0-7]{1,3})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|c(.))"
)
_ANSI_NAMES = dict(zip(b"abeEfnrtv\\'\"?", b"\a\b\x1b\x1b\f\n\r\t\v\\'\"?", strict=True))
_NAMED_TILDE = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*=(?=~)")
_HIDDEN_CODE = ("$(", "`", "<(", ">(")
_ALL_PARAMETERS = ('"$@"', '"${@}"')
_LEAVES = frozenset(
    {"word", "number", "variable_name", "test_operator", "extglob_pattern", "regex", "brace_expression"}
)


class Scope(Protocol):
    """Who is asked while words are read."""

    def substitute(self, node: Node, state: State) -> None:
        """Reads the commands inside a substitution."""
        ...

    def substitute_text(self, text: str, state: State) -> None:
        """Reads commands that stand in backquotes with escapes."""
        ...

    def branch(self) -> None:
        """Notes that not everything read must run."""
        ...

    def doubt(self, reason: str) -> None:
        """Notes why something cannot be read."""
        ...

    def store(self, name: str, value: Value | None, state: State) -> None:
        """Stores a variable; None makes it not known."""
        ...


Literals: TypeAlias = Callable[[bytes, State, Scope], Iterator[Atom]]
"""Reads the text between expansions."""


def read_words(node: Node, state: State, scope: Scope) -> list[Word]:
    """The words that one word of the text becomes; none for an empty expansion, several for braces and splitting."""
    if source(node) in _ALL_PARAMETERS and state.positional is not None:
        return [_word(list(value)) for value in state.positional]
    atoms = list(_atoms(node, state, scope))
    many = [Word(source(node), dynamic=True, many=True)]
    alternatives = expand_braces(atoms)
    if alternatives is None:
        return many
    words: list[Word] = []
    for alternative in alternatives:
        words.extend(_fields(_tilde(alternative, state), split="IFS" not in state.variables))
    return words


def read_value(node: Node, state: State, scope: Scope) -> Value:
    """What an assignment of this word stores: no braces, no splitting, no globs."""
    atoms = list(_atoms(node, state, scope))
    pieces: list[Piece] = []
    for atom in _tilde(atoms, state):
        if atom.kind == "bare" and ":~" in atom.text:
            return (Piece("dynamic", source(node)),)
        pieces.extend(atom.value if atom.kind in ("value", "quoted_value") else (Piece("text", atom.text),))
    return tuple(_joined(pieces))


def read_text(node: Node, state: State, scope: Scope) -> str | None:
    """The one text a word is, expanded as inside double quotes, or None when it is not known."""
    value = read_value(node, state, scope)
    return known(value)


def known(value: Value) -> str | None:
    """The text of a value, or None."""
    if any(piece.kind != "text" for piece in value):
        return None
    return "".join(piece.text for piece in value)


def value_of(word: Word) -> Value:
    """A word as the value of a parameter."""
    return (Piece("text", word.text),) if word.plain else (Piece("dynamic", word.text, word.many),)


def turn_value(word: Word) -> Value:
    """A word as the value of a loop variable: a name that a glob finds stays that glob."""
    if word.pattern is not None:
        return (Piece("glob", word.text),)
    return (Piece("dynamic" if word.dynamic else "text", word.text),)


def is_translated(node: Node) -> bool:
    """Whether a lone dollar sign stands right before a string, `$"…"`, and means nothing else."""
    if node.end_byte - node.start_byte != 1 or node.text != b"$":
        return False
    following = node.next_sibling
    return following is not None and following.start_byte == node.end_byte and (following.text or b"")[:1] == b'"'


def walk_nested(node: Node, state: State, scope: Scope) -> None:
    """Reads every substitution at or below `node`, which is no command (an arithmetic, a test, an expansion)."""
    if node.type in ("command_substitution", "process_substitution"):
        _substitution(node, state, scope, quoted=False)
        return
    for child in node.children:
        walk_nested(child, state, scope)
    if node.child_count or not node.is_named or node.type == "comment":
        return
    text = source(node)
    if any(mark in text for mark in _HIDDEN_CODE):
        scope.doubt(f"code inside {text!r} cannot be told from text")


def _atoms(node: Node, state: State, scope: Scope) -> Iterator[Atom]:
    match node.type:
        case "number" if node.child_count:
            walk_nested(node, state, scope)
            yield _unknown(node)
        case kind if kind in _LEAVES:
            yield from _bare(source(node), scope)
        case "raw_string":
            yield Atom("quoted", source(node)[1:-1])
        case "ansi_c_string":
            yield _ansi_c(node, scope)
        case "string":
            yield from _string(node, state, scope)
        case "command_name" | "concatenation" | "translated_string":
            yield from _parts(node, state, scope)
        case "$" | "simple_expansion" | "expansion":
            yield _parameter(node, state, scope)
        case "command_substitution" | "process_substitution":
            yield Atom("value", source(node), _substitution(node, state, scope, quoted=False))
        case "arithmetic_expansion":
            arithmetic(node, state, scope)
            yield Atom("quoted_value", source(node), (Piece("dynamic", source(node)),))
        case "==" | "=~" | "=":
            yield Atom("quoted", source(node))
        case _:
            scope.doubt(f"{node.type.replace('_', ' ')} {source(node)!r} is not understood as a word")
            yield _unknown(node)


def _parameter(node: Node, state: State, scope: Scope) -> Atom:
    """A parameter outside of quotes; one that is always a number is never split."""
    if source(node) in ("$$", "$#", "$?"):
        return Atom("quoted_value", source(node), (Piece("dynamic", source(node)),))
    if node.type == "$":
        return Atom("quoted", "$")
    return Atom("value", source(node), _expansion(node, state, scope, quoted=False))


def _unknown(node: Node) -> Atom:
    return Atom("value", source(node), (Piece("dynamic", source(node)),))


def _bare(text: str, scope: Scope) -> Iterator[Atom]:
    run: list[str] = []
    index = 0
    while index < len(text):
        character = text[index]
        if character == "\\" and index + 1 < len(text):
            if text[index + 1] != "\n":
                if run:
                    yield Atom("bare", "".join(run))
                    run = []
                yield Atom("quoted", text[index + 1])
            index += 2
            continue
        if character in _META or (character == "$" and text[index + 1 : index + 2] not in ("", "/", ".", ",", ":")):
            scope.doubt(f"{text!r} holds {character!r} where a plain word was expected")
        run.append(character)
        index += 1
    if run:
        yield Atom("bare", "".join(run))


def _parts(node: Node, state: State, scope: Scope) -> Iterator[Atom]:
    """The parts of a word that is written in several ways; only line ends with a backslash may lie between them."""
    content = node.text or b""
    end = node.start_byte
    for child in node.children:
        gap = content[end - node.start_byte : child.start_byte - node.start_byte]
        if gap.replace(b"\\\n", b""):
            scope.doubt(f"{source(node)!r} is not one word")
        end = child.end_byte
        if is_translated(child):
            continue
        yield from _atoms(child, state, scope)


def _string(node: Node, state: State, scope: Scope) -> Iterator[Atom]:
    yield Atom("quoted", "")
    yield from _quoted_parts(node, state, scope, _string_literal)


def _quoted_parts(node: Node, state: State, scope: Scope, literal: Literals) -> Iterator[Atom]:
    """The parts of a text in double quotes, or of a heredoc; bytes that no node covers are text."""
    content = node.text or b""
    start = end = node.start_byte
    run = b""
    for child in node.children:
        run += content[end - start : child.start_byte - start]
        end = child.end_byte
        match child.type:
            case "simple_expansion" | "expansion":
                value = _expansion(child, state, scope, quoted=True)
            case "command_substitution":
                value = _substitution(child, state, scope, quoted=True)
            case "arithmetic_expansion":
                arithmetic(child, state, scope)
                value = (Piece("dynamic", source(child)),)
            case "string_content" | "heredoc_content" | "$":
                run += child.text or b""
                continue
            case '"':
                continue
            case kind:
                scope.doubt(f"{kind.replace('_', ' ')} {source(child)!r} is not understood inside quotes")
                continue
        yield from literal(run, state, scope)
        run = b""
        yield Atom("quoted_value", source(child), value)
    yield from literal(run + content[end - start :], state, scope)


def _string_literal(raw: bytes, _state: State, scope: Scope) -> Iterator[Atom]:
    text = raw.decode("utf-8", "surrogateescape")
    if _EXPANSION.search(_ESCAPED.sub("", text)):
        scope.doubt(f"an expansion in {text[:60]!r} cannot be told from text")
    yield Atom("quoted", _DOUBLE_QUOTED.sub(lambda match: match[1] or "", text))


def heredoc_parts(body: Node, state: State, scope: Scope) -> Iterator[Atom]:
    """The parts of a heredoc whose delimiter is not quoted."""
    return _quoted_parts(body, state, scope, _heredoc_literal)


def _heredoc_literal(raw: bytes, state: State, scope: Scope) -> Iterator[Atom]:
    """Text of a heredoc; the grammar takes backquotes and parameters without a name for text."""
    text = raw.decode("utf-8", "surrogateescape")
    end = 0
    for match in _HEREDOC_CODE.finditer(text):
        if match["escaped"] is not None:
            continue
        yield _heredoc_text(text[end : match.start()])
        end = match.end()
        yield Atom("quoted_value", match[0], (Piece("dynamic", match[0]),))
        if match["code"] is not None:
            scope.substitute_text(_BACKQUOTED.sub(r"\1", match["code"]), state)
        elif match[0][-1] in "`({":
            scope.doubt("code in a heredoc has no end")
    yield _heredoc_text(text[end:])


def _heredoc_text(text: str) -> Atom:
    return Atom("quoted", _HEREDOC_ESCAPE.sub(lambda match: match[1] or "", text))


def _ansi_c(node: Node, scope: Scope) -> Atom:
    body = (node.text or b"")[2:-1]

    def replaced(match: re.Match[bytes]) -> bytes:
        name, hexadecimal, octal, short, long, control = match.groups()
        if name:
            return bytes([_ANSI_NAMES[name[0]]])
        if hexadecimal or octal:
            return bytes([int(hexadecimal or octal, 16 if hexadecimal else 8) & 255])
        if control:
            return bytes([control[0] & 31])
        return chr(min(int(short or long, 16), 0x10FFFF)).encode("utf-8", "surrogatepass")

    text = _ANSI.sub(replaced, body)
    if b"\0" in text:
        scope.doubt("a zero byte in a word")
    return Atom("quoted", text.decode("utf-8", "surrogateescape"))


def _substitution(node: Node, state: State, scope: Scope, *, quoted: bool) -> Value:
    written = source(node)
    if written.startswith("`") and "\\" in written:
        text = _BACKQUOTED.sub(r"\1", written[1:-1])
        scope.substitute_text(text.replace('\\"', '"') if quoted else text, state)
    else:
        scope.substitute(node, state)
    if node.type == "process_substitution":
        return (Piece("text", PIPE_PATH),)
    return (Piece("dynamic", written),)


def _expansion(node: Node, state: State, scope: Scope, *, quoted: bool) -> Value:
    unknown = (Piece("dynamic", source(node), many=quoted and "@" in source(node)),)
    inner = [child for child in node.children if child.type not in ("$", "${", "}")]
    if not inner:
        return unknown
    name = source(inner[0])
    simple = inner[0].type in ("variable_name", "special_variable_name")
    if _PROMPT.search(source(node)):
        scope.doubt(f"{source(node)} runs the code inside the variable")
    if len(inner) == 1 and simple:
        return _lookup(name, state, unknown, quoted=quoted)
    if calls_below(node):
        scope.branch()
    walk_nested(node, state, scope)
    if not simple:
        return unknown
    operator = inner[1].type
    if operator in ("=", ":="):
        scope.store(name, None, state)
    value = state.variables.get(name)
    if operator in ("-", ":-", "=", ":=", "?", ":?") and value is not None and known(value):
        return value
    return unknown


def _lookup(name: str, state: State, unknown: Value, *, quoted: bool) -> Value:
    if name in ("@", "*"):
        many = (Piece("dynamic", unknown[0].text, many=quoted and name == "@"),)
        if state.positional is None or (quoted and len(state.positional) != 1):
            return many
        gap = (Piece("text", " "),)
        joined = [piece for value in state.positional for piece in (*value, *gap)]
        return tuple(joined[:-1])
    if name.isdigit() and name != "0":
        if state.positional is None:
            return unknown
        number = int(name)
        return state.positional[number - 1] if number <= len(state.positional) else ()
    if name == "PWD" and name not in state.variables:
        return (Piece("text", state.cwds[0]),) if state.cwds is not None and len(state.cwds) == 1 else unknown
    return state.variables.get(name, unknown)


def arithmetic(node: Node, state: State, scope: Scope) -> None:
    """Reads what an arithmetic expression runs, and forgets the variables that it may set."""
    walk_nested(node, state, scope)
    text = source(node)
    names = re.findall(r"[A-Za-z_][A-Za-z0-9_]*", text)
    for name in names:
        value = state.variables.get(name, ())
        if any(mark in piece.text for piece in value if piece.kind == "text" for mark in _HIDDEN_CODE):
            scope.doubt(f"${name} holds code and is used as a number")
    if "=" in text or "++" in text or "--" in text:
        for name in names:
            state.forget(name)


def _joined(pieces: list[Piece]) -> Iterator[Piece]:
    run = ""
    for piece in pieces:
        if piece.kind == "text":
            run += piece.text
            continue
        if run:
            yield Piece("text", run)
            run = ""
        yield piece
    if run:
        yield Piece("text", run)


def _tilde(atoms: list[Atom], state: State) -> list[Atom]:
    """Replaces a tilde at the start, or after `name=`; the user's own is known where HOME is, another's never."""
    named = _NAMED_TILDE.match(atoms[0].text) if atoms and atoms[0].kind == "bare" else None
    if named:
        first = Atom("bare", atoms[0].text[named.end() :])
        return [Atom("bare", named[0]), *_tilde([first, *atoms[1:]], state)]
    prefix = ""
    for index, atom in enumerate(atoms):
        if atom.kind != "bare":
            if prefix and "/" not in prefix:
                return atoms
            break
        prefix += atom.text
        if "/" in prefix or index == len(atoms) - 1:
            break
    if not prefix.startswith("~"):
        return atoms
    name = prefix.split("/", 1)[0]
    count = len(name)
    rest: list[Atom] = []
    for atom in atoms:
        taken = min(count, len(atom.text)) if atom.kind == "bare" else 0
        count -= taken
        if not taken or atom.text[taken:]:
            rest.append(Atom(atom.kind, atom.text[taken:], atom.value))
    value = state.home() if name == "~" else None
    return [Atom("quoted_value", name, value or (Piece("dynamic", name),)), *rest]


def _fields(atoms: list[Atom], *, split: bool) -> list[Word]:
    """Splits unquoted expansions into words and marks what is a glob."""
    fields: list[list[Piece]] = []
    current: list[Piece] | None = None
    for index, atom in enumerate(atoms):
        match atom.kind:
            case "quoted":
                current = [*(current or []), Piece("text", atom.text)]
            case "bare":
                closes = any("]" in later.text for later in atoms[index + 1 :] if later.kind == "bare")
                current = [*(current or []), *_glob_pieces(atom.text, closes=closes)]
            case "quoted_value":
                current = [*(current or []), *atom.value, Piece("text", "")]
            case "value":
                current = _split_value(atom, fields, current, split=split)
    if current is not None:
        fields.append(current)
    return [_word(pieces) for pieces in fields]


def _split_value(
    atom: Atom, fields: list[list[Piece]], current: list[Piece] | None, *, split: bool
) -> list[Piece] | None:
    for piece in atom.value:
        if piece.kind != "text":
            current = [*(current or []), piece._replace(many=True) if piece.kind == "dynamic" else piece]
            continue
        if not split or "\\" in piece.text:  # a backslash from an expansion may quote in a glob, or may not
            current = [*(current or []), Piece("dynamic", atom.text, many=True)]
            continue
        for position, part in enumerate(re.split(r"[ \t\n]+", piece.text)):
            if position and current is not None:
                fields.append(current)
                current = None
            if part:
                current = [*(current or []), *_glob_pieces(part, closes=False)]
    return current


def _glob_pieces(text: str, *, closes: bool) -> Iterator[Piece]:
    for index, character in enumerate(text):
        special = character in "*?" or (character == "[" and (closes or "]" in text[index + 1 :]))
        yield Piece("glob" if special else "text", character)


def _word(pieces: list[Piece]) -> Word:
    text = "".join(piece.text for piece in pieces)
    if any(piece.kind == "dynamic" for piece in pieces):
        special = [index for index, piece in enumerate(pieces) if piece.kind != "text"]
        return Word(
            text,
            dynamic=True,
            prefix="".join(piece.text for piece in pieces[: special[0]]),
            suffix="".join(piece.text for piece in pieces[special[-1] + 1 :]),
            many=any(piece.many for piece in pieces),
        )
    if not any(piece.kind == "glob" for piece in pieces):
        return Word(text)
    pattern = "".join(piece.text if piece.kind == "glob" else escape(piece.text) for piece in pieces)
    return Word(text, pattern=pattern)
