"""One form for every way to write a path, and gitignore-like patterns over that form.

Knows: `.`, `..`, links, `~`, `$HOME`, `/proc/self/cwd`, file URIs, Unicode and case, hard links.
Does not know: commands, tools, what a path is protected from. It asks the filesystem, and changes nothing there.
"""

import os
import posixpath
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from interpose.command.gitindex import tracked_below
from interpose.command.globs import is_glob, meet

TREE_LIMIT = 20_000
"""How many names below a folder are looked at before the answer is `None`, cannot tell."""

_HOME = re.compile(r"^(?:~|\$HOME|\$\{HOME\})(?=/|$)")
_OWN_CWD = re.compile(r"^/proc/(?:self|thread-self|self/task/[^/]+)/cwd(?=/|$)")


def canonical_path(path: str, *, cwd: str, home: str | None = None, blind: bool | None = None) -> str:
    """The one absolute form of `path`; what does not exist is kept as written below the longest part that does.

    `cwd` is where relative paths start, `home` what `~` and `$HOME` mean (None leaves them as names). `blind` says
    whether the filesystem ignores case; None looks. Two paths that name one file compare equal, hard links apart
    (`same_file`). Never raises for a path that cannot exist. Thread-safe.
    """
    absolute = absolute_path(path, cwd=cwd, home=home)
    try:
        real = unicodedata.normalize("NFC", os.path.realpath(absolute))
    except ValueError:  # a zero byte, or half a character
        return unicodedata.normalize("NFC", posixpath.normpath(absolute))
    if blind is None:
        blind = is_case_blind(real)
    return real.casefold() if blind else real


def absolute_path(path: str, *, cwd: str, home: str | None = None) -> str:
    """`path` made absolute by its text alone: URIs, `~`, `$HOME` and `/proc/self/cwd` replaced, no link followed."""
    if path.startswith("file:"):
        parts = urlsplit(path)
        path = unquote(parts.path) if parts.netloc in ("", "localhost") else path
    if home is not None:
        path = _HOME.sub(lambda _: home, path)
    joined = posixpath.join(cwd or "/", path)
    if joined.startswith("//"):
        joined = "/" + joined.lstrip("/")
    if not joined.startswith("/proc/"):
        return joined
    return _OWN_CWD.sub(lambda _: cwd, posixpath.normpath(joined) if ".." not in joined else joined)


def same_file(left: str, right: str) -> bool:
    """Whether both paths exist and are one file by device and inode (links of both kinds). Thread-safe."""
    first, second = _stat(left), _stat(right)
    return first is not None and second is not None and os.path.samestat(first, second)


def is_case_blind(path: str) -> bool:
    """Whether the filesystem at the longest existing part of `path` finds names whatever their case."""
    existing = path
    while existing not in ("/", ""):
        status = _stat(existing)
        if status is not None:
            name = posixpath.basename(existing)
            if name.swapcase() == name:
                existing = posixpath.dirname(existing)
                continue
            other = _stat(posixpath.join(posixpath.dirname(existing), name.swapcase()))
            return other is not None and os.path.samestat(status, other)
        existing = posixpath.dirname(existing)
    return False


@dataclass(frozen=True, slots=True)
class PathPattern:
    """One pattern as it was written, checked.

    `text` has no `!`; `negated` says whether there was one. Patterns with `~/`, `/` at the start or `..` are paths;
    one without a slash, or that starts with `**/`, matches at any depth; others count from the root.
    """

    text: str
    negated: bool = False

    @classmethod
    def parse(cls, text: str) -> "PathPattern":
        """Reads one pattern. Raises ValueError with what is wrong and what is possible."""
        if not isinstance(text, str):
            raise ValueError(f"a path pattern is text, not {type(text).__name__}: write it in quotes")  # noqa: TRY004
        negated = text.startswith("!")
        body = text[1:] if negated else text
        if not body.strip() or not body.strip("/"):
            raise ValueError(
                f"the path pattern {text!r} names no file: write a name ('.env'), a glob ('**/*.pem'), "
                "a path ('config/secrets/**', '~/.ssh', '/etc/passwd') or '**' for every file"
            )
        if "\0" in body or "\n" in body:
            raise ValueError(f"the path pattern {text!r} holds a line end or a zero byte: one pattern a line")
        if not body.startswith("**") and body.count("[") != body.count("]"):
            raise ValueError(f"the path pattern {text!r} has a '[' without its ']': write '[[]' for a real bracket")
        return cls(body, negated)


class PathPatterns:
    """A list of patterns, the last that matches decides; `!` takes back what earlier ones matched.

    Immutable after construction and safe for use by many threads at once. Each question looks at the filesystem
    afresh, so a link made a moment ago is seen.
    """

    def __init__(
        self, patterns: Sequence[str], *, root: str, home: str | None = None, blind: bool | None = None
    ) -> None:
        """Compiles `patterns` relative to the folder `root`. Raises ValueError as `PathPattern.parse` does."""
        self._home = home
        self._root = canonical_path(root, cwd="/", home=home, blind=blind)
        self._blind = is_case_blind(self._root) if blind is None else blind
        parsed = [PathPattern.parse(text) for text in patterns]
        self._patterns = tuple(form for pattern in parsed for form in self._compile(pattern))
        self._literals = tuple(form.literal for form in self._patterns if form.literal and not form.negated)

    def match(self, path: str, cwd: str, *, contains: bool = False, existing: bool = False) -> bool | None:
        """Whether `path`, relative to `cwd`, is one of the files meant.

        With `contains`, also whether a file meant is below `path`: one that exists, or (unless `existing`) one whose
        place a pattern names without globs. None when there are too many files below it to look at.
        """
        canonical = canonical_path(path, cwd=cwd, home=self._home, blind=self._blind)
        if self._matches(canonical) or self._is_hard_link(canonical):
            return True
        if not contains:
            return False
        if not existing and any(_is_below(literal, canonical) for literal in self._literals):
            return True
        return self._walk(canonical, visible=False)

    def match_visible(self, path: str, cwd: str) -> bool | None:
        """As `match` with `contains` and `existing`, but names below `path` that start with a dot do not count."""
        canonical = canonical_path(path, cwd=cwd, home=self._home, blind=self._blind)
        if self._matches(canonical) or self._is_hard_link(canonical):
            return True
        return self._walk(canonical, visible=True)

    def match_tracked(self, path: str, cwd: str) -> bool | None:
        """As `match` with `contains`, but of the files below `path` those alone count that git tracks."""
        canonical = canonical_path(path, cwd=cwd, home=self._home, blind=self._blind)
        if self._matches(canonical) or self._is_hard_link(canonical):
            return True
        tracked = tracked_below(canonical)
        if tracked is None:
            return self._walk(canonical, visible=False)
        return any(self._matches(canonical_path(name, cwd="/", blind=self._blind)) for name in tracked)

    def meets(self, pattern: str, *, dots: bool = False) -> bool:
        """Whether the absolute glob `pattern` could mean one of the files; sure never to miss one by its name.

        `dots` says whether its wildcards match a leading dot, as find's do and a shell's do not.
        """
        head, tail = _split_glob(pattern)
        glob = posixpath.join(canonical_path(head, cwd="/", blind=self._blind), tail)
        glob = unicodedata.normalize("NFC", glob.casefold() if self._blind else glob)
        return any(not form.negated and form.meets(glob, self._root, dots=dots) for form in self._patterns)

    def _compile(self, pattern: PathPattern) -> Iterable["_Form"]:
        text = unicodedata.normalize("NFC", pattern.text.casefold() if self._blind else pattern.text)
        plain = text.rstrip("/")
        rooted = _HOME.match(text) is not None or text.startswith(("../", "file:"))
        if rooted:
            yield self._absolute(text, pattern.negated)
            return
        if text.startswith("/"):
            yield self._absolute(text, pattern.negated)
        while text.startswith("./"):
            text, plain = text[1:], plain[2:]
        floating = "/" not in plain or plain.startswith("**/")
        bare = plain.removeprefix("**/").lstrip("/")
        literal = None if is_glob(bare) else canonical_path(bare, cwd=self._root, blind=self._blind)
        spec = GitIgnoreSpecPattern(text)
        yield _Form(pattern.negated, spec, "floating" if floating else "rooted", literal, text.strip("/"))

    def _absolute(self, text: str, negated: bool) -> "_Form":
        head, tail = _split_glob(absolute_path(text, cwd=self._root, home=self._home))
        path = posixpath.join(canonical_path(head, cwd="/", blind=self._blind), tail)
        literal = None if tail else path
        return _Form(negated, GitIgnoreSpecPattern(path), "absolute", literal, path.strip("/"))

    def _matches(self, canonical: str) -> bool:
        relative = _relative(canonical, self._root)
        decided = False
        for form in self._patterns:
            if decided == form.negated and form.matches(canonical, relative):
                decided = not form.negated
        return decided

    def _is_hard_link(self, canonical: str) -> bool:
        status = _stat(canonical)
        if status is None or status.st_nlink < 2 or os.path.isdir(canonical):  # noqa: PTH112 - hot path
            return False
        return any(same_file(canonical, literal) and self._matches(literal) for literal in self._literals)

    def _walk(self, folder: str, *, visible: bool) -> bool | None:
        seen = 0
        waiting = [folder]
        while waiting:
            try:
                entries = list(os.scandir(waiting.pop()))
            except OSError:
                continue
            for entry in entries:
                seen += 1
                if seen > TREE_LIMIT:
                    return None
                if visible and entry.name.startswith("."):
                    continue
                path = unicodedata.normalize("NFC", entry.path.casefold() if self._blind else entry.path)
                if self._matches(path):
                    return True
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
        return False


@dataclass(frozen=True, slots=True)
class _Form:
    """One compiled pattern: where it counts from, its place when it names one, and its text as a glob."""

    negated: bool
    spec: GitIgnoreSpecPattern
    scope: str
    literal: str | None
    glob: str

    def matches(self, canonical: str, relative: str | None) -> bool:
        """Whether the canonical path matches; `relative` is it seen from the root, None outside."""
        if self.scope == "rooted" and relative is None:
            return False
        seen = canonical[1:] if relative is None or self.scope == "absolute" else relative
        if not seen:
            return False
        return self.spec.match_file(seen) is not None or self.spec.match_file(seen + "/") is not None

    def meets(self, glob: str, root: str, *, dots: bool) -> bool:
        """Whether the absolute `glob` can mean a file of this pattern."""
        match self.scope:
            case "absolute":
                own = "/" + self.glob
            case "floating":
                own = "**/" + self.glob.removeprefix("**/")
            case _:
                own = posixpath.join(root, self.glob)
        return meet(glob, own, dots=dots) or meet(glob, own + "/**", dots=dots)


def _relative(canonical: str, root: str) -> str | None:
    if canonical == root:
        return ""
    prefix = root.rstrip("/") + "/"
    return canonical[len(prefix) :] if canonical.startswith(prefix) else None


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _split_glob(path: str) -> tuple[str, str]:
    """The folders before the first glob segment, and the rest ("" when there is none)."""
    segments = path.split("/")
    for index, segment in enumerate(segments):
        if is_glob(segment):
            return "/".join(segments[:index]) or "/", "/".join(segments[index:])
    return path, ""


def _stat(path: str) -> os.stat_result | None:
    try:
        return Path(path).stat()
    except (OSError, ValueError):
        return None
