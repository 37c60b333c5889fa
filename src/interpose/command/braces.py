"""Brace expansion: `{a,b}` and `{1..3}`, which come before everything else.

Knows: nesting, sequences, quoted parts that are left alone. Does not know: what parts of a word mean.
"""

import re
from collections.abc import Iterator
from itertools import product
from typing import Literal, NamedTuple

from interpose.command.state import Value

MAX_BRACES = 128
"""A word that braces make into more words than this is not known."""

_SEQUENCE = re.compile(r"^(-?\d+|[A-Za-z])\.\.(-?\d+|[A-Za-z])(?:\.\.(-?\d+))?$")


class Atom(NamedTuple):
    """A part of a word before expansion: `bare` text is special to braces and globs, `quoted` is not."""

    kind: Literal["bare", "quoted", "value", "quoted_value"]
    text: str
    value: Value = ()


def expand_braces(atoms: list[Atom]) -> list[list[Atom]] | None:
    """Each word that brace expansion makes; None when there are too many."""
    if not any(atom.kind == "bare" and "{" in atom.text for atom in atoms):
        return [atoms]
    results = _expand_braces(list(_characters(atoms)), 0)
    return results if len(results) <= MAX_BRACES else None


def expand_text(text: str) -> list[str]:
    """Each text that brace expansion makes of a glob; the text itself when there are too many."""
    found = expand_braces([Atom("bare", text)])
    return [text] if found is None else ["".join(atom.text for atom in atoms) for atoms in found]


def _characters(atoms: list[Atom]) -> Iterator[Atom]:
    for atom in atoms:
        if atom.kind == "bare":
            yield from (Atom("bare", character) for character in atom.text)
        else:
            yield atom


def _expand_braces(atoms: list[Atom], start: int) -> list[list[Atom]]:
    for opening in range(start, len(atoms)):
        if not _is(atoms[opening], "{"):
            continue
        parts, closing = _split_braces(atoms, opening)
        if closing < 0:
            continue
        options: list[list[Atom]]
        if len(parts) > 1:
            options = [option for part in parts for option in _expand_braces(part, 0)]
        else:
            sequence = _sequence(parts[0])
            if sequence is None:
                continue
            options = sequence
        rests = _expand_braces(atoms[closing + 1 :], 0)
        if len(options) * len(rests) > MAX_BRACES:
            return [[]] * (MAX_BRACES + 1)
        return [[*atoms[:opening], *option, *rest] for option, rest in product(options, rests)]
    return [atoms]


def _is(atom: Atom, character: str) -> bool:
    return atom.kind == "bare" and atom.text == character


def _split_braces(atoms: list[Atom], opening: int) -> tuple[list[list[Atom]], int]:
    """The parts between commas of the brace at `opening`, and where it closes (-1 when it does not)."""
    depth = 0
    parts: list[list[Atom]] = [[]]
    for index in range(opening + 1, len(atoms)):
        atom = atoms[index]
        if _is(atom, "}") and depth == 0:
            return parts, index
        if _is(atom, ",") and depth == 0:
            parts.append([])
            continue
        depth += _is(atom, "{") - _is(atom, "}")
        parts[-1].append(atom)
    return parts, -1


def _sequence(atoms: list[Atom]) -> list[list[Atom]] | None:
    if any(atom.kind != "bare" for atom in atoms):
        return None
    match = _SEQUENCE.match("".join(atom.text for atom in atoms))
    if match is None:
        return None
    first, last, step = match.groups()
    numeric = first.lstrip("-").isdigit()
    if numeric != last.lstrip("-").isdigit():
        return None
    low, high = (int(first), int(last)) if numeric else (ord(first), ord(last))
    stride = abs(int(step or 1)) or 1
    if abs(high - low) // stride >= MAX_BRACES:
        return [[]] * (MAX_BRACES + 1)
    numbers = range(low, high + (1 if high >= low else -1), stride if high >= low else -stride)
    width = max(len(first), len(last)) if any(re.match(r"-?0\d", text) for text in (first, last)) else 0
    return [[Atom("quoted", str(number).zfill(width) if numeric else chr(number))] for number in numbers]
