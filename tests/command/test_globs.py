"""Whether two globs can mean the same name."""

from fnmatch import fnmatchcase

from hypothesis import given
from hypothesis import strategies as st

from interpose.command.globs import escape, is_glob, meet

GLOBS = st.text(st.sampled_from("ab*?"), max_size=6)
NAMES = st.text(st.sampled_from("ab"), min_size=1, max_size=6)


@given(GLOBS, GLOBS, NAMES)
def test_globs_that_share_a_name_meet(left: str, right: str, name: str) -> None:
    """Nothing is missed: when one name matches both, they meet."""
    if fnmatchcase(name, left) and fnmatchcase(name, right):
        assert meet(left, right)


@given(GLOBS, NAMES)
def test_a_glob_meets_a_name_exactly_when_it_matches(glob: str, name: str) -> None:
    """Against a plain name the answer is exact."""
    assert meet(glob, name) == fnmatchcase(name, glob)


@given(st.text(st.sampled_from("ab*?["), min_size=1, max_size=6))
def test_an_escaped_text_means_itself(text: str) -> None:
    """No character of it is special any more."""
    assert meet(escape(text), escape(text))
    assert not meet(escape(text), escape(text) + "x")
    assert is_glob(text) == any(character in text for character in "*?[")


@given(st.lists(NAMES, min_size=1, max_size=4), st.lists(NAMES, max_size=3), st.lists(NAMES, max_size=3))
def test_two_stars_are_any_folders(path: list[str], before: list[str], after: list[str]) -> None:
    """`**` stands for any number of segments, none among them."""
    assert meet("/".join([*before, *path, *after]), "/".join(["**", *path, "**"]))
