"""assembly.handlers: shape handlers of a program, of the user's files, and never of a project."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import interpose
from interpose.assembly.folders import Folders
from interpose.assembly.handlers import load_handlers, project_fault
from interpose.assembly.middleware import default_middleware
from interpose.assembly.protection import load_policy_from, protect
from interpose.assembly.runtime import Runtime
from interpose.assembly.settings import load_settings
from interpose.chain.chain import Chain
from interpose.contracts.decisions import Cancel, Patch
from interpose.contracts.errors import ConfigError, MisuseError, Refused, ToolError
from interpose.contracts.handlers import ShapeHandler
from interpose.contracts.stages import ToolCall, ToolResult
from interpose.stages.front import on

SAFER = '''"""My policy."""

from interpose import Patch, on


@on("tool.call", tools="shell")
def safer(call):
    return Patch({**call.arguments, "command": "echo " + call.arguments["command"]})
'''


def write(folders: Folders, text: str, name: str = "policy.py") -> Path:
    """A file of handlers in the user's config folder, named in the settings."""
    folders.config.mkdir(exist_ok=True)
    folders.config_file.write_text(f'[handlers]\nfiles = ["{name}"]\n')
    path = folders.config / name
    path.write_text(text)
    return path


def shell(command: str) -> str:
    """Says what it would run."""
    return command


def test_a_users_file_judges_every_workspace(folders: Folders, tmp_path: Path) -> None:
    """Each file is imported once, whatever the workspaces; the settings say where it came from."""
    write(folders, SAFER)
    with Runtime.open(folders) as runtime:
        first = runtime.workspaces.policy(str(tmp_path)).shapes.at("tool.call")
        second = runtime.workspaces.policy(None).shapes.at("tool.call")
        assert [handler.id for handler in first] == ["safer"]
        assert first[0] is second[0]
    rows = {key: (value, origin) for key, value, origin in load_settings(folders, {}).rows()}
    assert rows["handlers.files"] == (["policy.py"], str(folders.config_file))


def test_a_protected_function_runs_what_a_handler_made(folders: Folders, tmp_path: Path) -> None:
    """From a file, and from the program itself; sync and async."""
    write(folders, SAFER)

    @on("tool.result", tools="shell", after="safer")
    async def louder(result: ToolResult) -> Patch:
        return Patch({"output": result.output.upper()})

    async def shell_async(command: str) -> str:
        return shell(command)

    with load_policy_from(folders, tmp_path, handlers=[louder]) as policy:
        assert protect(shell, policy=policy)("ls") == "ECHO LS"
        assert asyncio.run(protect(shell_async, policy=policy, tool="shell")(command="ls")) == "ECHO LS"
        assert policy.problems == ()


def test_a_protected_function_can_be_refused(folders: Folders, tmp_path: Path) -> None:
    """Its call, its result, and its exception: none of them reaches the caller then."""

    @on("tool.call", tools="shell")
    def strict(call: ToolCall) -> Cancel | None:
        return Cancel("no rm") if "rm" in call.arguments["command"] else None

    @on("tool.result", tools="shell")
    def secret(result: ToolResult) -> Cancel | Patch | None:
        if "hidden" in result.output:
            return Cancel("secret")
        return Patch({"output": "masked"}) if "token" in result.output else None

    def failing(command: str) -> str:
        raise LookupError(command)

    with load_policy_from(folders, tmp_path, handlers=[strict, secret]) as policy:
        run = protect(shell, policy=policy)
        fail = protect(failing, policy=policy, tool="shell")
        for refused, handler in ((run, "rm x"), (run, "hidden"), (fail, "hidden")):
            with pytest.raises(Refused):
                refused(handler)
        assert run("token") == "masked"
        with pytest.raises(ToolError, match=r"^masked$"):
            fail("token")
        with pytest.raises(LookupError, match="plain"):
            fail("plain")


def test_a_drivers_list_runs_what_a_handler_made(folders: Folders, tmp_path: Path) -> None:
    """The default middleware honours the patch of a call and of its result."""
    both = (
        on("tool.call", tools="read")(lambda call: Patch({"path": call.arguments["path"] + ".txt"})),
        on("tool.result", id="masked", tools="read")(lambda _result: Patch({"output": '{"a": 2}'})),
    )
    runs: list[Any] = []

    def terminal(_name: str, arguments: dict[str, Any]) -> dict[str, int]:
        runs.append(arguments)
        return {"a": 1}

    handlers = [ShapeHandler("named", both[0].stages, both[0].run, both[0].tools), both[1]]
    with load_policy_from(folders, tmp_path, handlers=handlers) as policy:
        answer = Chain(default_middleware(policy)).call("read", {"path": "a"}, terminal)
    assert runs == [{"path": "a.txt"}]
    assert answer == {"a": 2}


def test_links_that_lead_nowhere_are_told(folders: Folders, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Everything else works; the program's log and the list of problems say so."""
    lost = on("tool.call", id="lost", after="nobody")(lambda _call: None)
    with load_policy_from(folders, tmp_path, handlers=[lost]) as policy:
        told = "shape handlers: 'lost' is to come after 'nobody', which is not known"
        assert policy.problems == (told,)
    assert told in caplog.text


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("x = 1\n", "", "holds no handler"),
        ("x = 1\n1/0\n", ":2", "ZeroDivisionError: division by zero"),
        ("x = 1\ny = (\n", ":2", "SyntaxError"),
        ("import nothing_of_that_name\n", ":1", "ModuleNotFoundError: No module named 'nothing_of_that_name'"),
        ("raise SystemExit(3)\n", ":1", "SystemExit: 3"),
        ('from interpose import on\n\n@on("tool.cal")\ndef f(call): ...\n', ":3", "'tool.cal' is not possible"),
        (SAFER + SAFER.replace("def safer", "def other").replace('"shell"', '"shell", id="safer"'), "", "'safer'"),
    ],
)
def test_a_file_that_gives_nothing_is_named(folders: Folders, text: str, line: str, told: str) -> None:
    """With its line and the way out; nothing of it stays behind."""
    path = write(folders, text)
    before = set(sys.modules)
    with Runtime.open(folders) as runtime, pytest.raises(ConfigError) as caught:
        runtime.gateway()
    assert caught.value.where == f"{path}{line}"
    assert told in caught.value.problem
    assert caught.value.way_out
    assert "holds" in told or told == "'safer'" or set(sys.modules) == before


def test_a_file_that_is_not_there_is_named(folders: Folders) -> None:
    """By the setting that names it; so is one that is no Python."""
    folders.config.mkdir()
    (folders.config / "policy.txt").write_text("")
    with pytest.raises(ConfigError, match=r"handlers.files: there is no file '.*home/lost.py'"):
        load_handlers(["~/lost.py"], folders)
    with pytest.raises(ConfigError, match=r"policy.txt: is not a Python file"):
        load_handlers(["policy.txt"], folders)


def test_paths_start_at_home_at_the_root_or_in_the_config_folder(folders: Folders, tmp_path: Path) -> None:
    """As people write them."""
    path = write(folders, SAFER)
    (folders.home / "mine.py").write_text(SAFER.replace("def safer", "def mine"))
    (tmp_path / "third.py").write_text(SAFER.replace("def safer", "def third"))
    found = load_handlers([path.name, "~/mine.py", str(tmp_path / "third.py")], folders)
    assert [handler.id for handler in found] == ["safer", "mine", "third"]


def test_an_id_is_one_handlers_own(folders: Folders, tmp_path: Path) -> None:
    """Of two files, or of a file and the program."""
    write(folders, SAFER)
    (tmp_path / "again.py").write_text(SAFER)
    with pytest.raises(ConfigError, match=r"again.py: its handler 'safer' has the id of one in .*policy.py"):
        load_handlers(["policy.py", str(tmp_path / "again.py")], folders)
    mine = on("tool.call", id="safer")(lambda _call: None)
    with pytest.raises(ConfigError, match="has the id of one in the program"):
        load_policy_from(folders, tmp_path, handlers=[mine])
    with pytest.raises(MisuseError, match="two shape handlers have the id 'safer'"):
        load_policy_from(Folders(tmp_path / "c", folders.state, folders.home), tmp_path, handlers=[mine, mine])


def test_a_project_cannot_name_handlers(folders: Folders, tmp_path: Path) -> None:
    """A program and `interpose run` say so; a gateway judges without them and journals it. Its code never runs."""
    project = tmp_path / "repo"
    (project / ".interpose").mkdir(parents=True)
    (project / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    (project / ".interpose" / "config.toml").write_text('[handlers]\nfiles = ["../evil.py"]\n')

    with pytest.raises(ConfigError, match="a project cannot name handlers: code of a repository must not run unasked"):
        load_policy_from(folders, project)
    with Runtime.open(folders) as runtime:
        runtime.gateway()
        assert runtime.workspaces.policy(str(project)).shapes.at("tool.call") == ()
        runtime.journal.flush()
    assert not (tmp_path / "ran").exists()

    for text in ("[other]\n", "= broken"):
        (project / ".interpose" / "config.toml").write_text(text)
        assert project_fault(str(project)) is None


def test_run_refuses_a_project_that_names_handlers(environ: dict[str, str], tmp_path: Path) -> None:
    """Before it starts anything."""
    (tmp_path / ".interpose").mkdir()
    (tmp_path / ".interpose" / "config.toml").write_text('[handlers]\nfiles = ["x.py"]\n')
    words = [str(Path(sys.executable).with_name("interpose")), "run", "--", "true"]
    done = subprocess.run(words, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode != 0
    assert "a project cannot name handlers" in done.stderr


def test_the_front_door_is_in_the_package() -> None:
    """`load_policy` takes handlers by that name."""
    assert "handlers" in (interpose.load_policy.__kwdefaults__ or {})
