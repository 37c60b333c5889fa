"""Every file that a patch touches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.command import read_patch
from interpose.contracts.decisions import Unknown


def files(text: str) -> list[str]:
    """What happens to which file, seen from /r."""
    found = read_patch(text, cwd="/r")
    assert not isinstance(found, Unknown), found.reason
    return [f"{use.access} {use.path.removeprefix('/r/')}" for use in found]


def test_an_apply_patch_body() -> None:
    """All four kinds of headers, move targets too."""
    text = """*** Begin Patch
*** Add File: new.txt
+*** Delete File: not-a-header
*** Update File: src/old.py
*** Move to: src/new.py
@@ def f():
-x
+y
*** End of File
*** Delete File: gone
*** End Patch"""
    assert files(text) == [
        "write new.txt", "read src/old.py", "write src/old.py", "remove src/old.py", "write src/new.py", "remove gone",
    ]  # fmt: skip


def test_a_unified_diff() -> None:
    """Changed, new, removed and renamed files, git's names and plain ones."""
    text = """diff --git a/x b/x
--- a/x
+++ b/x
@@ -1,2 +1,2 @@
 a
--- a/not-a-header
+++ b/not-a-header
--- /dev/null
+++ b/new file\t2026-01-01
@@ -0,0 +1 @@
+a
--- gone
+++ /dev/null
@@ -1 +0,0 @@
-a
rename from old
rename to "caf\\303\\251"
"""
    assert files(text) == ["write x", "read x", "write new file", "remove gone", "remove old", "write café"] or files(
        text
    ) == ["write x", "read x", "write new file", "remove gone", "remove old", "write caf\u00e9"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "*** Begin Patch\n*** End Patch",
        "*** Begin Patch\n*** Rename File: x\n*** End Patch",
        "*** Begin Patch\n*** Update File:\n*** End Patch",
        "*** Begin Patch\n*** Move to: x\n*** End Patch",
        "*** Begin Patch\n** update file: x\n*** Add File: y\n*** End Patch",
        "*** Begin Patch\n*** Add File x\n*** End Patch",
    ],
)
def test_what_is_no_patch_is_unknown(text: str) -> None:
    """A text without files, or with a header nobody knows, is never "no files"."""
    assert isinstance(read_patch(text, cwd="/r"), Unknown)


PATHS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp", "Zs")), min_size=1, max_size=12
)


@given(st.lists(st.tuples(st.sampled_from(["Add File", "Update File", "Delete File"]), PATHS), min_size=1, max_size=5))
def test_every_header_names_its_file(headers: list[tuple[str, str]]) -> None:
    """Whatever the names, each header's file is among those read."""
    body = "\n".join(f"*** {kind}: {path}\n+line" for kind, path in headers)
    found = read_patch(f"*** Begin Patch\n{body}\n*** End Patch", cwd="/r")
    assert not isinstance(found, Unknown)
    paths = {use.path for use in found}
    assert all(path.startswith("/") or f"/r/{path}" in paths for _, path in headers if not path.startswith("file:"))
