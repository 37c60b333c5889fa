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
from interpose.command.globs import Names, is_glob, meet, split_glob
from interpose.command.trees import is_below, paths_below
from interpose.contracts.decisions import Unknown

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
        last = max((index for index, form in enumerate(self._patterns) if not form.negated), default=-1)
        self._last_negations = self._patterns[last + 1 :]

    def match(self, path: str, cwd: str, *, contains: bool = False, existing: bool = False) -> bool | None:
        """As `find`, for those who need no name: None when that cannot be told."""
        found = self.find(path, cwd, contains=contains, existing=existing)
        return None if isinstance(found, Unknown) else found is not None

    def find(
        self,
        path: str,
        cwd: str,
        *,
        contains: bool = False,
        existing: bool = False,
        visible: bool = False,
        names: Names | None = None,
    ) -> str | Unknown | None:
        """The canonical path of a file meant that `path`, relative to `cwd`, is; None when it is none.

        With `contains`, also of one below `path`: one that exists, or (unless `existing`) one whose place a pattern
        names without globs. Of those below, with `visible` names that start with a dot do not count, and with `names`
        those alone that it takes. Folders that the last patterns take back whole are not looked into. Unknown when
        there are too many files below.
        """
        canonical = canonical_path(path, cwd=cwd, home=self._home, blind=self._blind)
        if self._matches(canonical) or self._is_hard_link(canonical):
            return canonical
        if not contains:
            return None
        if not existing:
            named = (one for one in self._literals if is_below(one, canonical) and self._matches(one))
            found = next((one for one in named if names is None or names.takes(posixpath.basename(one))), None)
            if found is not None:
                return found
        return self._walk(canonical, visible=visible, names=names)

    def find_tracked(self, path: str, cwd: str) -> str | Unknown | None:
        """As `find` with `contains`, but of the files below `path` those alone count that git tracks."""
        canonical = canonical_path(path, cwd=cwd, home=self._home, blind=self._blind)
        if self._matches(canonical) or self._is_hard_link(canonical):
            return canonical
        tracked = tracked_below(canonical)
        if tracked is None:
            return self._walk(canonical)
        paths = (canonical_path(name, cwd="/", blind=self._blind) for name in tracked)
        return next((path for path in paths if self._matches(path)), None)

    def short(self, path: str) -> str:
        """`path` for people: as it is seen from the root, where it is below it."""
        return _relative(path, self._root) or path

    def meets(self, pattern: str, cwd: str = "/", *, below: bool = True) -> bool:
        """Whether the glob `pattern`, relative to `cwd`, could mean one of the files, by the names it can mean.

        With `below`, also whether it could mean one inside a folder that a pattern names. As in a shell a wildcard
        does not match a leading dot.
        """
        head, tail = split_glob(absolute_path(pattern, cwd=cwd, home=self._home))
        folder = canonical_path(head, cwd="/", blind=self._blind)
        glob = posixpath.join(folder, tail)
        glob = unicodedata.normalize("NFC", glob.casefold() if self._blind else glob)
        if self._is_taken_back(folder):
            return False
        return any(not form.negated and form.meets(glob, self._root, below=below) for form in self._patterns)

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
        scope = "floating" if floating else "rooted"
        yield _Form(pattern.negated, GitIgnoreSpecPattern(text), scope, literal, text.strip("/"), _whole(text))

    def _absolute(self, text: str, negated: bool) -> "_Form":
        head, tail = split_glob(absolute_path(text, cwd=self._root, home=self._home))
        path = posixpath.join(canonical_path(head, cwd="/", blind=self._blind), tail)
        literal = None if tail else path
        return _Form(negated, GitIgnoreSpecPattern(path), "absolute", literal, path.strip("/"), _whole(path))

    def _matches(self, canonical: str) -> bool:
        """Whether the last pattern that means the path takes it in."""
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

    def _is_taken_back(self, folder: str) -> bool:
        """Whether the patterns after the last that takes in take back everything in this folder."""
        relative = _relative(folder, self._root)
        return any(form.covers(folder, relative) for form in self._last_negations)

    def _walk(self, folder: str, *, visible: bool = False, names: Names | None = None) -> str | Unknown | None:
        for path in paths_below(folder, visible=visible, names=names, skips=self._skips):
            if path is None:
                return Unknown(f"there are too many files below {folder} to look at")
            form = unicodedata.normalize("NFC", path.casefold() if self._blind else path)
            if self._matches(form):
                return path
        return None

    def _skips(self, folder: str) -> bool:
        return self._is_taken_back(unicodedata.normalize("NFC", folder.casefold() if self._blind else folder))


@dataclass(frozen=True, slots=True)
class _Form:
    """One compiled pattern: where it counts from, its place when it names one, its text as a glob, and the folders
    that it means with all that is in them (`whole`).
    """

    negated: bool
    spec: GitIgnoreSpecPattern
    scope: str
    literal: str | None
    glob: str
    whole: GitIgnoreSpecPattern

    def matches(self, canonical: str, relative: str | None) -> bool:
        """Whether the canonical path matches; `relative` is it seen from the root, None outside."""
        return self._matches(self.spec, canonical, relative)

    def covers(self, folder: str, relative: str | None) -> bool:
        """Whether the pattern means everything in the folder, whatever its name; paths as in `matches`."""
        return self._matches(self.whole, folder, relative)

    def _matches(self, spec: GitIgnoreSpecPattern, canonical: str, relative: str | None) -> bool:
        if self.scope == "rooted" and relative is None:
            return False
        seen = canonical[1:] if relative is None or self.scope == "absolute" else relative
        if not seen:
            return False
        return spec.match_file(seen) is not None or spec.match_file(seen + "/") is not None

    def meets(self, glob: str, root: str, *, below: bool) -> bool:
        """Whether the absolute `glob` can mean a file of this pattern, or with `below` one inside its folder."""
        match self.scope:
            case "absolute":
                own = "/" + self.glob
            case "floating":
                own = "**/" + self.glob.removeprefix("**/")
            case _:
                own = posixpath.join(root, self.glob)
        return meet(glob, own) or (below and meet(glob, own + "/**"))


def _relative(canonical: str, root: str) -> str | None:
    if canonical == root:
        return ""
    prefix = root.rstrip("/") + "/"
    return canonical[len(prefix) :] if canonical.startswith(prefix) else None


def _whole(text: str) -> GitIgnoreSpecPattern:
    """The pattern of the folders of which `text` means everything: a pattern that means a folder means all in it."""
    return GitIgnoreSpecPattern(text.removesuffix("/**") or text)


def _stat(path: str) -> os.stat_result | None:
    try:
        return Path(path).stat()
    except (OSError, ValueError):
        return None
