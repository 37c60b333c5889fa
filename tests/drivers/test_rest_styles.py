"""Behaviour of parameter styles: the specification's own examples, and that no value leaves its place."""

from typing import Any
from urllib.parse import parse_qsl, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.drivers.rest.operation import Parameter, Place, Style
from interpose.drivers.rest.styles import header_text, path_text, query_pairs

TEXT: Any = "blue"
LIST: Any = ["blue", "black", "brown"]
OBJECT: Any = {"R": 100, "G": 200, "B": 150}


def parameter(place: Place, style: Style, *, explode: bool) -> Parameter:
    """A parameter named color."""
    return Parameter("color", "color", place, style, explode, required=True, schema={})


@pytest.mark.parametrize(
    ("style", "explode", "value", "expected"),
    [
        ("matrix", False, TEXT, ";color=blue"),
        ("matrix", False, LIST, ";color=blue,black,brown"),
        ("matrix", False, OBJECT, ";color=R,100,G,200,B,150"),
        ("matrix", True, LIST, ";color=blue;color=black;color=brown"),
        ("matrix", True, OBJECT, ";R=100;G=200;B=150"),
        ("label", False, TEXT, ".blue"),
        ("label", False, LIST, ".blue,black,brown"),
        ("label", False, OBJECT, ".R,100,G,200,B,150"),
        ("label", True, LIST, ".blue.black.brown"),
        ("label", True, OBJECT, ".R=100.G=200.B=150"),
        ("simple", False, TEXT, "blue"),
        ("simple", False, LIST, "blue,black,brown"),
        ("simple", False, OBJECT, "R,100,G,200,B,150"),
        ("simple", True, OBJECT, "R=100,G=200,B=150"),
    ],
)
def test_styles_in_a_path(style: Style, explode: bool, value: Any, expected: str) -> None:
    """As in the table "Style Examples" of OpenAPI 3.1, which a header in style simple follows too."""
    given_parameter = parameter("path", style, explode=explode)

    assert path_text(given_parameter, value) == expected
    if style == "simple":
        assert header_text(given_parameter, value) == expected


@pytest.mark.parametrize(
    ("style", "explode", "value", "expected"),
    [
        ("form", False, TEXT, "color=blue"),
        ("form", False, LIST, "color=blue,black,brown"),
        ("form", False, OBJECT, "color=R,100,G,200,B,150"),
        ("form", True, LIST, "color=blue&color=black&color=brown"),
        ("form", True, OBJECT, "R=100&G=200&B=150"),
        ("spaceDelimited", False, LIST, "color=blue%20black%20brown"),
        ("spaceDelimited", False, OBJECT, "color=R%20100%20G%20200%20B%20150"),
        ("pipeDelimited", False, LIST, "color=blue%7Cblack%7Cbrown"),
        ("pipeDelimited", False, OBJECT, "color=R%7C100%7CG%7C200%7CB%7C150"),
        ("deepObject", True, OBJECT, "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150"),
        ("tabDelimited", False, LIST, "color=blue%09black%09brown"),
        ("json", False, OBJECT, "color=%7B%22R%22%3A%20100%2C%20%22G%22%3A%20200%2C%20%22B%22%3A%20150%7D"),
        ("form", True, True, "color=true"),
        ("form", True, 1.5, "color=1.5"),
        ("form", True, [], ""),
    ],
)
def test_styles_in_a_query(style: Style, explode: bool, value: Any, expected: str) -> None:
    """As in the table "Style Examples" of OpenAPI 3.1, and Swagger's tabs, JSON, truths and numbers."""
    assert "&".join(query_pairs("color", value, style, explode=explode)) == expected


WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
STYLES = st.sampled_from(["form", "spaceDelimited", "pipeDelimited", "tabDelimited"])


@given(WORDS.filter(bool), st.lists(WORDS, max_size=4), STYLES, st.booleans())
def test_a_query_is_read_back_as_it_was(name: str, values: list[str], style: Style, reserved: bool) -> None:
    """Whatever a value holds, a server sees the same values under the same name and nothing else."""
    pairs = query_pairs(name, values, style, explode=True, reserved=reserved)

    assert parse_qsl("&".join(pairs), keep_blank_values=True, strict_parsing=bool(pairs)) == [
        (name, value) for value in values
    ]


@given(WORDS, st.sampled_from(["simple", "label", "matrix"]), st.booleans())
def test_a_value_stays_in_its_segment(value: str, style: Style, explode: bool) -> None:
    """No value adds a segment, a query or a fragment to a path, and it is there when the server decodes."""
    text = path_text(parameter("path", style, explode=explode), value)

    assert not set("/?#\\") & set(text)
    assert unquote(text).endswith(value)
