"""The way in: a text becomes a reading, and readings that were asked for a moment ago are remembered.

Knows: the parser and the limits. Does not know: what commands mean.
"""

import posixpath
import re
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from interpose.command.reading import Reading
from interpose.command.state import Piece, State, Value
from interpose.command.walk import Walk
from interpose.contracts.decisions import Unknown

MAX_BYTES = 64 * 1024
"""A longer text is not read."""

MAX_DEPTH = 200
"""A text that nests deeper is not read."""

_SHELLS = frozenset({"sh", "bash"})
_BEYOND_LATIN_1 = re.compile(rb"\{[0-9]*(?:\.\.[0-9]*)?[\xc4-\xff]")
_AFTER_BRACE = "a brace stands right before a letter or sign that is not Latin"
_LINE_END = re.compile(rb"(?<!\\)(?:\\\\)*\\\n")
_LITERAL = frozenset({"raw_string", "ansi_c_string", "comment", "heredoc_body", "heredoc_content", "string_content"})
_FREE = frozenset({"string", "heredoc_body", "expansion", "translated_string"})
_TIGHT = frozenset({"concatenation", "simple_expansion"})
_ONE_LINE = frozenset(
    {
        "command", "file_redirect", "herestring_redirect", "redirected_statement", "variable_assignment",
        "variable_assignments", "declaration_command", "unset_command",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Key:
    text: str
    cwd: str
    home: str | None
    env: tuple[tuple[str, str], ...]


class CommandReader:
    """Reads command lines; keeps one parser a thread and the newest `remember` readings.

    A reading depends on its arguments alone, never on the filesystem, so it is never stale. Safe for many threads.
    """

    def __init__(self, remember: int = 256) -> None:
        """An empty memory of `remember` readings."""
        self._language = Language(tree_sitter_bash.language())
        self._local = threading.local()
        self._lock = threading.Lock()
        self._remember = remember
        self._readings: OrderedDict[_Key, Reading] = OrderedDict()

    def read(self, text: str, *, cwd: str, home: str | None = None, env: Mapping[str, str] | None = None) -> Reading:
        """What `text` means to bash when started in `cwd`.

        `env` holds environment variables whose values are sure; all others are not known. Never raises for any
        text: what cannot be read is named in `Reading.unknown`. Raises TypeError when `text` is none, and ValueError
        when `cwd` is neither absolute nor empty (not known).
        """
        if not isinstance(text, str):
            raise TypeError(f"a command line is a str, not {type(text).__name__}: give the text that the shell gets")
        if cwd and not cwd.startswith("/"):
            raise ValueError(f"the folder {cwd!r} is relative: give the absolute path, or '' when it is not known")
        key = _Key(text, cwd, home, tuple(sorted((env or {}).items())))
        with self._lock:
            found = self._readings.get(key)
            if found is not None:
                self._readings.move_to_end(key)
                return found
        reading = self._read(key)
        with self._lock:
            self._readings[key] = reading
            while len(self._readings) > self._remember:
                self._readings.popitem(last=False)
        return reading

    def _read(self, key: _Key) -> Reading:
        try:
            source = key.text.encode()
        except UnicodeEncodeError:
            return Reading(unknown=("the text holds half a Unicode character",))
        if len(source) > MAX_BYTES:
            return Reading(unknown=(f"the text has {len(source):,} bytes, more than {MAX_BYTES:,}",))
        variables: dict[str, Value] = {name: (Piece("text", value),) for name, value in key.env}
        if key.home is not None:
            variables.setdefault("HOME", (Piece("text", key.home),))
        state = State(cwds=(key.cwd,) if key.cwd else None, variables=variables, exported=set(variables))
        walk = Walk(self._parse)
        walk.text(key.text, state)
        return walk.finish(state)

    def _parse(self, text: str) -> Node | str:
        """The root of the syntax tree, or why there is none."""
        parser: Parser | None = getattr(self._local, "parser", None)
        if parser is None:
            parser = self._local.parser = Parser(self._language)
        source = text.encode("utf-8", "surrogatepass")
        if len(source) > MAX_BYTES:
            return f"an inner text has {len(source):,} bytes, more than {MAX_BYTES:,}"
        if b"\0" in source or b"\r" in source:
            return "the text holds a zero byte or a carriage return"
        if _crashes_grammar(source):
            return _AFTER_BRACE
        root = parser.parse(source).root_node
        cut = _without_line_ends(source, root)
        if cut != source:
            if _crashes_grammar(cut):
                return _AFTER_BRACE
            root = parser.parse(cut).root_node
        fault = _fault(root) if root.has_error else None
        if fault is not None:
            return fault
        return _oddity(root, cut) or root


def read_command(text: str, *, cwd: str, home: str | None = None, env: Mapping[str, str] | None = None) -> Reading:
    """As `CommandReader.read`, once and without a memory."""
    return CommandReader(remember=0).read(text, cwd=cwd, home=home, env=env)


def unread_shell(shell: object) -> Unknown | None:
    """Why a command for this shell, a name or a path, is not read; None for one that is, and where none is named."""
    if not isinstance(shell, str) or posixpath.basename(shell) in _SHELLS:
        return None
    return Unknown(f"the command is for {posixpath.basename(shell)}, and only sh and bash are read")


def _crashes_grammar(source: bytes) -> bool:
    """Whether parsing would read outside the memory of the grammar's scanner.

    tree-sitter-bash 0.25 asks C's `isdigit` about the character behind `{`, `{1` or `{1..`, whatever it is; for one
    beyond Latin-1 that is a read out of bounds, and may end the process.
    """
    return _BEYOND_LATIN_1.search(source) is not None


def _without_line_ends(source: bytes, root: Node) -> bytes:
    """The text without the line ends that a backslash takes away; the grammar parts words there."""
    if b"\\\n" not in source:
        return source
    kept: list[bytes] = []
    end = 0
    for match in _LINE_END.finditer(source):
        position = match.end() - 2
        node = root.descendant_for_byte_range(position, position + 1)
        if node is None or node.type not in _LITERAL:
            kept.append(source[end:position])
            end = match.end()
    return b"".join((*kept, source[end:]))


def _fault(root: Node) -> str | None:
    """Where the grammar gave up; None when all it does not know is the redirection `<>`."""
    excused = False
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if _reads_and_writes(node):
            excused = True
            continue
        if node.is_error or node.is_missing:
            line, column = node.start_point
            near = (node.text or b"").decode("utf-8", "replace")[:40]
            return f"line {line + 1}, column {column + 1} is not understood: {near!r}"
        waiting.extend(child for child in reversed(node.children) if child.has_error or child.is_missing)
    return None if excused else "it is not understood"


def _reads_and_writes(node: Node) -> bool:
    """Whether a fault is the second half of the operator `<>`."""
    before, parent = node.prev_sibling, node.parent
    if not node.is_error or node.text != b">" or before is None or parent is None:
        return False
    return parent.type == "file_redirect" and before.type == "<" and before.end_byte == node.start_byte


def _oddity(root: Node, source: bytes) -> str | None:
    """Why a tree without errors is not believed: too deep, or text between its parts that the shell would not skip.

    A chain of `&&` and `||` counts as one level.
    """
    waiting = [(root, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > MAX_DEPTH:
            return f"it nests deeper than {MAX_DEPTH} levels"
        end = node.start_byte
        for child in node.children:
            start = child.start_byte
            if start > end and not _may_skip(node.type, source[end:start]):
                line, column = child.start_point
                return f"line {line + 1}, column {column + 1} does not belong where the grammar puts it"
            end = child.end_byte
            if child.child_count:
                waiting.append((child, depth + (child.type != "list")))
    return None


def _may_skip(kind: str, gap: bytes) -> bool:
    if kind in _FREE:
        return True
    if kind in _TIGHT:
        return False
    if kind == "redirected_statement" and gap.strip(b" \t") == b"-":
        return True  # the grammar loses a lone dash before a heredoc; the walk finds it again
    return not gap.strip(b" \t" if kind in _ONE_LINE else b" \t\n")
