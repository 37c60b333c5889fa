"""Tools and the static sheet."""

import json
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from interpose.contracts.drivers import HealthStatus, SupportsHealthcheck, Tool, ToolDriver, ToolParameter
from interpose.contracts.sheet import DriverBinding, DriverMeta


def test_a_tool_needs_a_name_and_words() -> None:
    """A missing description is the title; neither is refused, and named."""
    assert Tool("t", "Title").description == "Title"
    assert Tool("t", description="Words").title == ""
    with pytest.raises(ValueError, match="a Tool has the tool name '': expected 1 to 256 printable"):
        Tool("", "Title")
    with pytest.raises(ValueError, match="the tool 't' needs a title or a description"):
        Tool("t")


def test_a_schema_is_made_of_parameters_or_given_whole() -> None:
    """A parameter without a schema is a string; its own description wins over that of the parameter."""
    parameters = (
        ToolParameter("a", "first", required=True),
        ToolParameter("b", "second", schema={"type": "integer", "description": "own"}),
        ToolParameter("c"),
    )
    assert Tool("t", "T", parameters=parameters).input_schema() == {
        "type": "object",
        "properties": {
            "a": {"description": "first", "type": "string"},
            "b": {"description": "own", "type": "integer"},
            "c": {"type": "string"},
        },
        "required": ["a"],
    }
    whole = {"type": "object", "additionalProperties": False}
    assert Tool("t", "T", parameters=parameters, schema=whole).input_schema() == whole
    assert Tool("t", "T").input_schema() == {"type": "object", "properties": {}}


class Sheeted(ToolDriver, SupportsHealthcheck):
    """A class with a sheet; it is never built."""

    meta = DriverMeta("x", 'X & "Y"', "1", (DriverBinding("rest", "http", "openapi"),), ("a", "b"), ("beta",))


def test_a_sheet_is_read_from_the_class() -> None:
    """With the flags of its contracts behind those that it declares, each once."""
    sheet = DriverMeta.of(Sheeted)
    assert sheet.capabilities == ("beta", "orchestratable", "healthcheck")
    assert sheet.has_capability(SupportsHealthcheck)
    assert not sheet.has_capability(int)
    assert Sheeted.meta.capabilities == ("beta",)
    with pytest.raises(TypeError, match="int has no sheet"):
        DriverMeta.of(int)


def test_a_sheet_as_json_and_xml_says_the_same() -> None:
    """Every field, escaped as each needs."""
    sheet = DriverMeta.of(Sheeted)
    data = json.loads(sheet.to_json())
    assert data["bindings"] == [{"capability": "rest", "adapter": "http", "spec_format": "openapi"}]
    root = ET.fromstring(sheet.to_xml())  # noqa: S314 - our own text
    assert dict(root.attrib) == {key: data[key] for key in ("id", "name", "version")}
    assert [dict(binding.attrib) for binding in root.iter("binding")] == data["bindings"]
    assert [item.text for item in root.findall("supported_llms/item")] == data["supported_llms"]
    assert [item.text for item in root.findall("capabilities/item")] == data["capabilities"]
    assert ET.fromstring(DriverMeta("p", "P", "1", supported_llms=None).to_xml()).find("supported_llms") is None  # noqa: S314


def test_health_grows_worse_from_ok_to_error() -> None:
    """In a fixed order."""
    ordered = sorted(HealthStatus, key=lambda status: status.severity)
    assert ordered == [HealthStatus.OK, HealthStatus.UNKNOWN, HealthStatus.WARNING, HealthStatus.ERROR]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"title": 5}, "the tool 't': expected texts"),
        ({"description": 5}, "the tool 't': expected texts"),
        ({"parameters": 5}, "the tool 't': expected ToolParameter values"),
        ({"parameters": ["a"]}, "the tool 't': expected ToolParameter values"),
        (
            {"parameters": [ToolParameter("a"), ToolParameter("a")]},
            "the tool 't': the parameter 'a' is there more than",
        ),
        ({"schema": 5}, "the tool 't': expected a JSON Schema"),
        ({"schema": [("type", "object")]}, "the tool 't': expected a JSON Schema"),
        ({"schema": {"type": object()}}, "the tool 't': its schema is no JSON"),
    ],
)
def test_what_can_be_no_tool_is_named(given: dict[str, Any], said: str) -> None:
    """When it is made, not when a model is told of it."""
    with pytest.raises((TypeError, ValueError), match=f"^{said}"):
        Tool(**{"name": "t", "title": "T", **given})


@pytest.mark.parametrize(
    "given", [{"name": ""}, {"name": 5}, {"description": None}, {"required": "no"}, {"schema": 5}, {"schema": {1: {2}}}]
)
def test_what_can_be_no_parameter_is_named(given: dict[str, Any]) -> None:
    """The same."""
    with pytest.raises((TypeError, ValueError), match=r"^the parameter "):
        ToolParameter(**{"name": "a", **given})
