"""Every sample in the README and the docs works."""

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import jsonschema
import pytest
import yaml
from _pytest.mark.structures import ParameterSet

from interpose.assembly.folders import Folders
from interpose.assembly.settings import load_settings
from interpose.cli.main import VERBS
from interpose.contracts.json import Json
from interpose.userhooks.loading import HookFile, load_user_hooks
from interpose.userhooks.schema import hooks_schema_text
from tests.e2e.processes import interpose
from tests.e2e.test_demo import GOLDEN, scrubbed

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
STARTS_A_SERVER_OR_AN_AGENT = ("up", "run", "tail")


def samples(language: str) -> list[ParameterSet]:
    """Each fenced block of that language, named by page and line."""
    found_samples = []
    for page in PAGES:
        text = page.read_text()
        for found in re.finditer(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            line = text.count("\n", 0, found.start()) + 1
            found_samples.append(pytest.param(found[1], id=f"{page.relative_to(ROOT)}:{line}"))
    return found_samples


@pytest.mark.parametrize("sample", samples("python"))
def test_python_samples_run(sample: str, tmp_path: Path, environ: dict[str, str]) -> None:
    """A Python sample runs to its end in a project with the starter's hooks."""
    interpose("init", cwd=tmp_path, env=environ)

    done = subprocess.run(
        [sys.executable, "-c", sample], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("sample", samples("yaml"))
def test_yaml_samples_are_valid_hooks(sample: str, tmp_path: Path) -> None:
    """A hooks.yaml sample loads without a mistake and fits the schema."""
    file = tmp_path / "hooks.yaml"
    file.write_text(sample)

    loaded = load_user_hooks([HookFile("project", file)], root=str(tmp_path), home=str(tmp_path))

    assert [str(issue) for issue in loaded.issues] == []
    assert loaded.hooks
    jsonschema.validate(_as_written(yaml.safe_load(sample)), json.loads(hooks_schema_text()))


def _as_written(value: Json) -> Json:
    """The value with `on` as a key again, which YAML 1.1 reads as true."""
    if isinstance(value, dict):
        return {"on" if key is True else key: _as_written(item) for key, item in value.items()}
    return [_as_written(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("sample", samples("toml"))
def test_toml_samples_are_valid_settings(sample: str, folders: Folders) -> None:
    """A config.toml sample is taken as it is."""
    folders.config.mkdir()
    folders.config_file.write_text(sample)

    assert tomllib.loads(sample)
    load_settings(folders, {})


@pytest.mark.parametrize("sample", samples("console"))
def test_console_samples_are_what_is_printed(sample: str, tmp_path: Path, environ: dict[str, str]) -> None:
    """Each command of a console sample prints what the sample shows; `...` stands for anything."""
    for found in re.finditer(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", sample, re.MULTILINE):
        words = shlex.split(found[1])
        assert words[0] == "interpose"
        assert words[1] in VERBS
        if words[1] in STARTS_A_SERVER_OR_AN_AGENT:
            continue
        done = interpose(*words[1:], cwd=tmp_path, env=environ)
        pattern = re.escape(found[2]).replace(re.escape("...\n"), r"[\s\S]*").replace(re.escape("..."), ".*")

        assert re.fullmatch(pattern, done.stdout), done.stdout + done.stderr


def test_shell_samples_name_targets_that_exist() -> None:
    """`make TARGET` and `interpose VERB` in shell samples are there."""
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    lines = [line for parameter in samples("sh") for line in str(parameter.values[0]).splitlines()]

    for line in lines:
        words = line.split()
        if words and words[0] == "make":
            assert words[1] in targets
        if words and words[0] == "interpose":
            assert words[1] in VERBS


def test_the_readme_shows_what_the_demo_prints() -> None:
    """The session in the README is the demo's, apart from times and ids."""
    text = (ROOT / "README.md").read_text()
    shown = re.search(r"<!-- demo -->\n```text\n(.*?)```\n<!-- /demo -->", text, re.DOTALL)
    assert shown is not None
    assert scrubbed(shown[1]) == GOLDEN.read_text()


def test_every_verb_is_in_the_manual() -> None:
    """docs/cli.md names each verb."""
    manual = (ROOT / "docs" / "cli.md").read_text()

    assert [verb for verb in VERBS if f"`{verb}" not in manual] == []


def test_every_room_has_a_page() -> None:
    """docs/rooms holds a page per room."""
    rooms = {path.name for path in (ROOT / "src" / "interpose").iterdir() if (path / "__init__.py").exists()}
    pages = {path.stem for path in (ROOT / "docs" / "rooms").glob("*.md")}

    assert rooms - pages == set()


def test_every_link_leads_somewhere() -> None:
    """A relative link in a page leads to a file that is there."""
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in PAGES
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
        if not (page.parent / target).exists()
    ]

    assert broken == []


def test_no_page_names_this_machine() -> None:
    """No page holds a path of the machine it was written on."""
    here = os.path.expanduser("~")  # noqa: PTH111 - the text form is what would stand in a page

    assert [page.name for page in PAGES if f"{here}/" in page.read_text() and here != "/"] == []
