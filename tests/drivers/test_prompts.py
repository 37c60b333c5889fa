"""Prompt texts as data: the default, a file of one's own, and what is wrong with one."""

from pathlib import Path

import pytest

from interpose.contracts.errors import ConfigError
from interpose.drivers.prompts import PromptStrategy, filled
from tests.drivers.making import ECHO, Leaf, call_text


def written(folder: Path, text: str) -> Path:
    """A file with the text."""
    path = folder / "prompts.toml"
    path.write_text(text)
    return path


def test_a_file_needs_only_what_it_changes(tmp_path: Path) -> None:
    """The rest is the default's."""
    path = written(tmp_path, '[results]\nrole = "user"\n[parsing]\nunknown_tool = "retry_with_list"\n')
    prompts = PromptStrategy.from_toml(path)
    assert (prompts.result_role, prompts.unknown_tool) == ("user", "retry_with_list")
    assert prompts.system_template == PromptStrategy.default().system_template
    assert Leaf(prompts=prompts).process_llm_response(call_text("echo", text="hi")).messages[1]["role"] == "user"


def test_a_system_message_holds_example_and_tools() -> None:
    """Placeholders are filled once, so a description with braces stays as it is."""
    text = PromptStrategy.default().driver_system_message([ECHO])
    assert '{"tool": "name_of_the_tool"' in text
    assert '"name": "echo"' in text
    assert "{tools}" not in text
    assert filled("{a} {b} {c}", {"a": "{b}", "b": "2"}) == "{b} 2 {c}"


def test_healing_is_tried_where_a_reply_holds_no_call(tmp_path: Path) -> None:
    """A substitution of one's own makes a call of what a certain model writes; a call that stands is left alone."""
    path = written(tmp_path, "[[healing]]\npattern = \"'\"\nreplacement = '\"'\n")
    driver = Leaf(prompts=PromptStrategy.from_toml(path))
    assert driver.process_llm_response("{'tool': 'echo', 'arguments': {'text': 'hi'}}").tool_call_result == "hi"
    assert driver.process_llm_response(call_text("echo", text="it's")).tool_call_result == "it's"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[parsing", "is not TOML"),
        ("[parsing]\ntool_field = []", "unknown key 'parsing.tool_field'"),
        ("surprise = 1", "unknown key 'surprise'"),
        ("[parsing]\ntool_fields = 'tool'", r"parsing\.tool_fields: is 'tool', expected a list of strings"),
        ("[parsing]\ntool_fields = [1]", "expected a list of strings"),
        ("[results]\nrole = 1", r"results\.role: is 1, expected a string"),
        ("[parsing]\nunknown_tool = 'loud'", "is 'loud', expected 'silent' or 'retry_with_list'"),
        ("[[healing]]\npattern = '('\nreplacement = ''", "healing 1: is no regular expression"),
        ("[[healing]]\npattern = 'a'\nreplacement = '\\9'", "healing 1: is no regular expression"),
        ("[[healing]]\npattern = 'a'", "healing 1: is .* expected a table of pattern and replacement"),
        ("healing = 3", "healing 1: is 3"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, text: str, message: str) -> None:
    """With the file, the key and what was expected."""
    path = written(tmp_path, text)
    with pytest.raises(ConfigError, match=message) as caught:
        PromptStrategy.from_toml(path)
    assert str(path) in str(caught.value)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """Missing, or no UTF-8."""
    with pytest.raises(ConfigError, match=r"nothing\.toml: cannot be read"):
        PromptStrategy.from_toml(tmp_path / "nothing.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="cannot be read"):
        PromptStrategy.from_toml(str(tmp_path / "bytes.toml"))
