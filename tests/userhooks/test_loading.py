"""userhooks.loading: files to registrations."""

import os
from collections.abc import Mapping
from pathlib import Path

from interpose.command.reader import CommandReader
from interpose.command.reading import Reading
from interpose.contracts.decisions import Unknown
from interpose.contracts.effects import BlockTool, EvaluationContext, HookInput
from interpose.userhooks.loading import HookFile, LoadedHooks, check_hooks, load_user_hooks, signature

GUARD = """\
- id: no-rm
  on: before_tool
  kind: effect
  command: rm
  effect: {kind: block_tool, reason: no}
"""
PROMPT = "- {id: tests, on: turn_start, kind: prompt, message: Run the tests.}\n"


def files(tmp_path: Path, **texts: str) -> list[HookFile]:
    """The three files of a workspace; those named are written."""
    places = {
        "user": HookFile("user", tmp_path / "home" / "hooks.yaml"),
        "project": HookFile("project", tmp_path / "project" / "hooks.yaml"),
        "local": HookFile("project.local", tmp_path / "project" / "hooks.local.yaml"),
    }
    for name, text in texts.items():
        places[name].path.parent.mkdir(exist_ok=True)
        places[name].path.write_text(text)
    return list(places.values())


def load(sources: list[HookFile], tmp_path: Path) -> LoadedHooks:
    """What a workspace loads."""
    return load_user_hooks(sources, root=str(tmp_path), home="/home/ann")


def test_missing_files_are_no_hooks_and_no_issues(tmp_path: Path) -> None:
    """Neither the files nor their folders have to exist."""
    assert load(files(tmp_path), tmp_path) == LoadedHooks((), (), (), (), ())


class _Noting(CommandReader):
    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, str, str | None]] = []

    def read(self, text: str, *, cwd: str, home: str | None = None, env: Mapping[str, str] | None = None) -> Reading:
        self.asked.append((text, cwd, home))
        return super().read(text, cwd=cwd, home=home, env=env)


def test_commands_are_read_by_the_reader_that_is_given(tmp_path: Path) -> None:
    """So that the hooks and whoever else asks about a call share one reading of its command."""
    reader = _Noting()
    loaded = load_user_hooks(files(tmp_path, project=GUARD), root="/w", home="/home/ann", reader=reader)
    evaluate = loaded.registrations[0].evaluate
    assert evaluate is not None

    answer = evaluate(HookInput("before_tool", tool_name="shell", tool_args={"command": "rm x"}), EvaluationContext())

    assert answer == (BlockTool("no"),)
    assert reader.asked == [("rm x", "/w", "/home/ann")]


def test_a_file_with_the_other_ending_is_noted(tmp_path: Path) -> None:
    """`hooks.yml` is not read, and somebody who wrote it should know; beside a hooks.yaml it says nothing."""
    sources = files(tmp_path, project=GUARD)
    other = tmp_path / "project" / "hooks.yml"
    sources[1].path.rename(other)

    loaded = load(sources, tmp_path)

    assert (loaded.hooks, loaded.broken_files) == ((), ())
    assert [(issue.level, str(issue)) for issue in loaded.issues] == [
        ("note", f"{other}:1:1: hooks.yml is not read: the name is hooks.yaml (rename it to hooks.yaml)")
    ]
    sources[1].path.write_text(GUARD)
    assert load(sources, tmp_path).issues == ()


def test_files_of_all_origins_become_one_set(tmp_path: Path) -> None:
    """Registrations stand in the order of the hooks, and say what they are."""
    loaded = load(files(tmp_path, user=PROMPT, project=GUARD, local=GUARD.replace("no-rm", "no-rm-here")), tmp_path)

    assert [hook.id for hook in loaded.hooks] == ["tests", "no-rm", "no-rm-here"]
    assert [found.id for found in loaded.registrations] == ["tests", "no-rm", "no-rm-here"]
    assert {found.kind for found in loaded.registrations} == {"user_hook"}
    guard = loaded.registrations[1]
    assert (guard.hooks, guard.tool_names, guard.on_unknown, guard.blocking) == (
        ("before_tool",),
        ("shell",),
        "ask",
        False,
    )
    assert guard.description.endswith("project/hooks.yaml:1")


def test_a_broken_file_leaves_the_others_in_force(tmp_path: Path) -> None:
    """It is named, so that whoever publishes may keep what it held before."""
    sources = files(tmp_path, user=PROMPT, project="- [")

    loaded = load(sources, tmp_path)

    assert [hook.id for hook in loaded.hooks] == ["tests"]
    assert loaded.broken_files == (sources[1].path,)
    assert len(loaded.issues) == 1


def test_what_is_no_file_is_an_issue_and_never_waited_for(tmp_path: Path) -> None:
    """A folder, a pipe and a link in a circle are named with the reason."""
    folder, pipe, circle = tmp_path / "folder", tmp_path / "pipe", tmp_path / "circle"
    folder.mkdir()
    os.mkfifo(pipe)
    circle.symlink_to(circle)

    loaded = load([HookFile("project", path) for path in (folder, pipe, circle)], tmp_path)

    assert len(loaded.broken_files) == 3
    assert [str(issue).removeprefix(str(tmp_path)) for issue in loaded.issues] == [
        "/folder:1:1: the file cannot be read: Is a directory (its hooks are not in force)",
        "/pipe:1:1: the file cannot be read: it is not a regular file (its hooks are not in force)",
        "/circle:1:1: the file cannot be read: Too many levels of symbolic links (its hooks are not in force)",
    ]


def test_a_users_guard_and_a_projects_hook_of_its_name_both_run(tmp_path: Path) -> None:
    """The collision is a note at the project's line; the guard still refuses."""
    loaded = load(files(tmp_path, user=GUARD, project=GUARD.replace("command: rm", "enabled: false")), tmp_path)

    assert [found.id for found in loaded.registrations] == ["no-rm", "no-rm@project"]
    assert [issue.level for issue in loaded.issues] == ["note"]
    assert "project/hooks.yaml:1:3: the id 'no-rm' belongs to a guard of" in str(loaded.issues[0])
    evaluate = loaded.registrations[0].evaluate
    assert evaluate is not None
    given = HookInput("before_tool", tool_name="shell", tool_args={"command": "rm x"})
    assert evaluate(given, EvaluationContext()) == (BlockTool("no"),)


def test_a_disabled_hook_is_listed_and_silent(tmp_path: Path) -> None:
    """Its registration exists and emits nothing, not even that it cannot tell."""
    loaded = load(files(tmp_path, project=GUARD + "  enabled: false\n"), tmp_path)

    evaluate = loaded.registrations[0].evaluate
    assert evaluate is not None
    assert evaluate(HookInput("before_tool", tool_name="shell", unreadable="half"), EvaluationContext()) == ()


def test_a_guard_that_cannot_read_says_so_and_others_stay_silent(tmp_path: Path) -> None:
    """Unreadable arguments are unknown to a guard and no match to a hook that refuses nothing."""
    note = GUARD.replace("no-rm", "note").replace(
        "{kind: block_tool, reason: no}", "{kind: annotate_tool_result, message: m}"
    )
    loaded = load(files(tmp_path, project=GUARD + note), tmp_path)
    given = HookInput("before_tool", tool_name="shell", unreadable="the arguments are half a JSON object")

    answers = [found.evaluate(given, EvaluationContext()) for found in loaded.registrations if found.evaluate]

    assert answers == [Unknown("the arguments are half a JSON object"), ()]


def test_a_hook_that_asks_nothing_speaks_about_unreadable_calls_too(tmp_path: Path) -> None:
    """Only a question needs arguments."""
    loaded = load(files(tmp_path, project=GUARD.replace("command: rm", "tools: [shell]")), tmp_path)
    evaluate = loaded.registrations[0].evaluate
    assert evaluate is not None

    assert evaluate(HookInput("before_tool", tool_name="shell", unreadable="half"), EvaluationContext()) == (
        BlockTool("no"),
    )


def test_a_hook_that_looks_at_files_is_blocking(tmp_path: Path) -> None:
    """So that an event loop does not wait for a disk."""
    loaded = load(files(tmp_path, project=GUARD + "  path: .env\n"), tmp_path)

    assert loaded.registrations[0].blocking


def test_settings_of_a_hook_reach_its_registration(tmp_path: Path) -> None:
    """Mode, direction of failure, what unknown leads to, and the words for people."""
    text = GUARD + "  mode: observe\n  on_unknown: pass\n  fail_closed: true\n  description: No deleting.\n"

    found = load(files(tmp_path, project=text), tmp_path).registrations[0]

    assert (found.mode, found.on_unknown, found.fail_closed, found.description) == (
        "observe",
        "pass",
        True,
        "No deleting.",
    )


def test_the_signature_differs_when_a_file_is_written_added_or_removed(tmp_path: Path) -> None:
    """And only then."""
    sources = files(tmp_path, project=PROMPT)
    seen = [signature(sources)]
    assert signature(sources) == seen[0]

    sources[1].path.write_text(GUARD)
    seen.append(signature(sources))
    sources[2].path.write_text(GUARD)
    seen.append(signature(sources))
    sources[1].path.unlink()
    seen.append(signature(sources))

    assert len(set(seen)) == 4


def test_after_a_hundred_issues_the_rest_is_counted(tmp_path: Path) -> None:
    """A file that is wrong throughout does not flood anybody; what is right in it is in force."""
    loaded = load(files(tmp_path, project="- 5\n" * 150 + PROMPT), tmp_path)

    assert len(loaded.issues) == 101
    assert str(loaded.issues[-1]).endswith("hooks.yaml:101:3: 50 more problems follow from here")
    assert [hook.id for hook in loaded.hooks] == ["tests"]


def test_bytes_alone_can_be_checked(tmp_path: Path) -> None:
    """For an editor or a dry run: the hooks and the issues, without a file."""
    hooks, issues = check_hooks((GUARD + "- 5\n").encode(), HookFile("project", Path("hooks.yaml")))

    assert [hook.id for hook in hooks] == ["no-rm"]
    assert [str(issue) for issue in issues] == [
        "hooks.yaml:6:3: the hook is 5, expected a mapping (write 'on:', 'kind:' and the rest)"
    ]
