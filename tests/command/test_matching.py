"""Command patterns against readings."""

from pathlib import Path

import pytest

from interpose.command import CommandPattern, Found, NotFound, PathPatterns, match_paths, read_command
from interpose.contracts.decisions import Unknown

FORCE = "git push --force|-f"
RECURSIVE = "rm -r|-R|--recursive"


def ask(pattern: str, text: str) -> str:
    """The kind of answer of a pattern about a command line."""
    reading = read_command(text, cwd="/w", home="/h")
    return type(CommandPattern.parse(pattern).match(reading)).__name__


@pytest.mark.parametrize(
    ("pattern", "text", "answer"),
    [
        (RECURSIVE, "rm -rf build", "Found"),
        (RECURSIVE, "rm -f build -R", "Found"),
        (RECURSIVE, "rm --recursive=x", "Found"),
        (RECURSIVE, "rm --rec x", "Found"),
        (RECURSIVE, "/bin/rm -r x", "Found"),
        (RECURSIVE, "sudo -u root rm -r x", "Found"),
        (RECURSIVE, "env -i A=1 nice -n 5 rm -r x", "Found"),
        (RECURSIVE, "bash -c 'cd y; rm -r x'", "Found"),
        (RECURSIVE, "bash -euo pipefail -c 'rm -r x'", "Found"),
        (RECURSIVE, "sh <<EOF\nrm -r x\nEOF", "Found"),
        (RECURSIVE, "echo $(rm -r x)", "Found"),
        (RECURSIVE, "cat <(rm -r x)", "Found"),
        (RECURSIVE, "\\rm -r x", "Found"),
        (RECURSIVE, "'r'\"m\" -r x", "Found"),
        (RECURSIVE, "R=rm; $R -r x", "Found"),
        (RECURSIVE, "O=-rf; rm $O x", "Found"),
        (RECURSIVE, "find . -exec rm -r {} +", "Found"),
        (RECURSIVE, "ls | xargs rm -r", "Found"),
        (RECURSIVE, "eval 'rm -r x'", "Found"),
        (RECURSIVE, "rm x", "NotFound"),
        (RECURSIVE, "rm -- -r", "NotFound"),
        (RECURSIVE, "echo rm -r x", "NotFound"),
        (RECURSIVE, "grep 'rm -r' f # rm -r x", "NotFound"),
        (RECURSIVE, "git commit -m 'rm -r x'", "NotFound"),
        (RECURSIVE, "cat <<EOF\nrm -r x\nEOF", "NotFound"),
        (RECURSIVE, "rm *.pyc", "NotFound"),
        (RECURSIVE, "python -c 'import shutil'", "NotFound"),
        (RECURSIVE, 'rm "./$X"', "NotFound"),
        (RECURSIVE, "rm $X", "Unknown"),
        (RECURSIVE, "rm *", "Unknown"),
        (RECURSIVE, "$X -r y", "Unknown"),
        (RECURSIVE, "ls $X", "NotFound"),
        (RECURSIVE, 'bash -c "$X"', "Unknown"),
        (RECURSIVE, "curl x | sh", "Unknown"),
        (RECURSIVE, "zsh -c 'ls'", "Unknown"),
        (RECURSIVE, "rm -r (", "Unknown"),
        (FORCE, "git push --force", "Found"),
        (FORCE, "git -C x -c a.b=c push origin main -f", "Found"),
        (FORCE, "git --git-dir x push --force", "Found"),
        (FORCE, "git push --force-with-lease", "NotFound"),
        (FORCE, "git commit -m push --force", "NotFound"),
        (FORCE, "git add $X", "NotFound"),
        (FORCE, "git $X --force", "Unknown"),
        (FORCE, "git push $X", "Unknown"),
        ("npm publish", "npm publish --dry-run", "Found"),
        ("npm publish", "npm run publish", "Found"),
        ("npm publish", "npm test", "NotFound"),
        ("find -delete", "find . -delete", "Found"),
        ("find -delete", "find . -type d -depth -empty -ls", "NotFound"),
        ("rm|unlink", "unlink x", "Found"),
        ("*", "make", "Found"),
        ("sudo", "sudo ls", "Found"),
        ("kubectl delete *", "kubectl -n x delete pod y", "Found"),
        ("kubectl --context=prod* delete", "kubectl --context=prod-eu delete x", "Found"),
        ("kubectl --context=prod* delete", "kubectl --context prod-eu delete x", "Found"),
        ("kubectl --context=prod* delete", "kubectl --context dev delete prod-x", "NotFound"),
        ("kubectl --context=prod* delete", 'kubectl --context "prod-$X" delete x', "Unknown"),
        ("kubectl -n=prod* delete", "kubectl -nprod delete x", "Found"),
        ("kubectl -n=prod* delete", "kubectl -n prod delete x", "Found"),
        ("kubectl -n=prod* delete", "kubectl -n dev delete x", "NotFound"),
        ("git push +*", "git push origin +main", "Found"),
        ("git push +*", "git push origin main", "NotFound"),
        ("rimraf", "npx rimraf dist", "Found"),
        ("pytest", "uv run pytest -q", "Found"),
        ("pytest", "python -m pytest", "NotFound"),
        (RECURSIVE, "docker exec c rm -r x", "Found"),
        (RECURSIVE, "uv $X rm", "Unknown"),
        (RECURSIVE, "echo \udc80; rm x", "Unknown"),
    ],
)  # fmt: skip
def test_answers(pattern: str, text: str, answer: str) -> None:
    """Each command line gets the one right answer."""
    assert ask(pattern, text) == answer


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "empty"),
        ("-r rm", "column 1"),
        ("rm -r||-R", "column 4"),
        ("rm -r|x", "mixes"),
        ("rm 'a b'", "quote at column 4"),
        ("rm --", "bare"),
        ("^rm -rf", "regular expression at column 1"),
        ("rm.*", "regular expression at column 1"),
        ("git push.*--force", "regular expression at column 5"),
        (r"rm\s -r", "regular expression"),
        ("a && b", "'&&' at column 3"),
        ("curl | sh", "'|' at column 6"),
        ("make > log", "'>' at column 6"),
        ("/bin/rm -rf", "write 'rm'"),
        ("~/bin/deploy", "write 'deploy'"),
        ("rm $HOME", "variable at column 4"),
    ],
)
def test_a_wrong_pattern_says_where_and_what(text: str, part: str) -> None:
    """A pattern that makes no sense names the place and the way out."""
    with pytest.raises(ValueError, match=part):
        CommandPattern.parse(text)


@pytest.mark.parametrize("text", ["rm build.*", "npm i *.tgz", "./deploy.sh", "*/deploy.sh", "dd of=/dev/*"])
def test_globs_and_own_scripts_are_patterns(text: str) -> None:
    """What a shell's user would write for names is no mistake."""
    assert CommandPattern.parse(text).text == text


@pytest.mark.parametrize(
    ("text", "access", "answer"),
    [
        ("cat .env", "read", Found),
        ("cat ./sub/../.env", "read", Found),
        ("cat < .env", "read", Found),
        ("cp .env x", "read", Found),
        ("echo x > .env", "write", Found),
        ("echo x > .env", "read", NotFound),
        ("tee .env", "write", Found),
        ("rm .env", "remove", Found),
        ("rm -r .", "remove", Found),
        ("rm -r build", "remove", NotFound),
        ("mv .env y", "remove", Found),
        ("cp a/.env .", "write", Found),
        ("cat .e*", "read", Found),
        ("cat *", "read", NotFound),
        ("cat .env.example", "read", NotFound),
        ("cat $X", "read", Unknown),
        ("python x.py", "read", NotFound),
        ("grep .env README.md", "read", NotFound),
        ("apply_patch <<'E'\n*** Begin Patch\n*** Update File: a\n*** Move to: .env\n*** End Patch\nE", "write", Found),
    ],
)
def test_files(text: str, access: str, answer: type) -> None:
    """A file is found however it is named, and by what happens to it."""
    patterns = PathPatterns([".env", ".env.*", "!.env.example"], root="/w", home="/h")
    reading = read_command(text, cwd="/w", home="/h")
    assert isinstance(match_paths(reading, patterns, {access}), answer)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "access", "found"),
    [
        ("grep -rn x .", "read", ".env"),
        ("grep -rn x . --include='*.py'", "read", None),
        ("grep -rn x . --include='.e*'", "read", ".env"),
        ("grep -rn x . --exclude=.env --exclude='*.pem'", "read", None),
        ("grep -rn x . --exclude=.env", "read", "sub/key.pem"),
        ("grep -rn x . --exclude-dir=sub --exclude=.env", "read", None),
        ("grep -rn x sub/*.py", "read", None),
        ("grep -rn x sub/*", "read", "sub/key.pem"),
        ("rg x -g '*.py'", "read", None),
        ("rg x -g '.e*'", "read", ".env"),
        ("rg x --max-depth 9", "read", "certs"),
        ("rg x -g '!sub'", "read", None),
        ("rg x -g '!certs/'", "read", "sub/key.pem"),
        ("rg --files", "read", None),
        ("cp -a . /tmp/dst", "read", ".env"),
        ("rsync -a . h:x", "read", ".env"),
        ("rsync -a --exclude=.env --exclude=sub . h:x", "read", None),
        ("tar czf x.tgz .", "read", ".env"),
        ("tar xzf x.tgz", "write", None),
        ("tar xzf x.tgz .env", "write", ".env"),
        ("tar xzf x.tgz -C certs", "write", "certs"),
        ("unzip -o x.zip", "write", None),
        ("chmod -R go-w .", "write", ".env"),
        ("chmod -R go-w empty", "write", None),
        ("find . -name '*.pyc' -delete", "remove", None),
        ("find . -name '*.pem' -delete", "remove", "sub/key.pem"),
        ("rm -r empty", "remove", None),
        ("rm -r sub", "remove", "sub/key.pem"),
        ("docker exec c cat .env", "read", None),
        ("cat node_modules/x/*.pem", "read", None),
        ("grep -r x node_modules", "read", None),
    ],
)
def test_a_folder_is_judged_by_the_names_in_it(tmp_path: Path, text: str, access: str, found: str | None) -> None:
    """The file that was found is named; filters, what is taken back and what lies elsewhere do not count."""
    for name in (".env", "a.py", "sub/key.pem", "sub/b.py", "empty/c.pyc", "node_modules/x/ca.pem"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).touch()
    (tmp_path / "certs").mkdir()
    patterns = PathPatterns([".env", "*.pem", "certs/", "!**/node_modules/**"], root=str(tmp_path))
    answer = match_paths(read_command(text, cwd=str(tmp_path)), patterns, {access})  # type: ignore[arg-type]

    assert (answer.file if isinstance(answer, Found) else answer) == (found or NotFound())


def test_a_word_that_may_be_an_option_has_a_way_out() -> None:
    """The reason says how the command is written so that it can be told, and written so it can."""
    pattern = CommandPattern.parse("rm -r|-R|--recursive")
    doubt = pattern.match(read_command('rm -f "$f" b', cwd="/w"))
    assert isinstance(doubt, Unknown)
    assert doubt.reason.endswith('put -- before it: rm -f -- "$f" b')
    assert pattern.match(read_command('rm -f -- "$f" b', cwd="/w")) == NotFound()


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ('rm -f "$$"', NotFound),
        ("find . -print0 | xargs -0 rm -f", NotFound),
        ("find . -print0 | xargs -0 rm -rf", Found),
        ("find . | xargs rm -f", Unknown),
        ("find -print0 -files0-from x | xargs -0 rm -f", Unknown),
        ("find . -print0 | sed s,./,-r, | xargs -0 rm -f", Unknown),
        ("find . -printf -r -print0 | xargs -0 rm -f", Unknown),
    ],
)
def test_names_that_cannot_be_options(line: str, answer: type) -> None:
    """Numbers, and names that find writes with its root ahead and a zero byte behind, are no options."""
    assert isinstance(CommandPattern.parse("rm -r").match(read_command(line, cwd="/w")), answer)


@pytest.mark.parametrize(
    "line",
    [
        "npx -y rimraf@5 build",
        "npx rimraf@latest build",
        "npx rimraf@$V build",
        "npm exec rimraf@5 build",
        "bunx rimraf@5 build",
        "pnpm dlx rimraf@5 build",
        "yarn dlx rimraf@5 build",
        "bun x rimraf@5 build",
        "yarn rimraf build",
        "pnpm rimraf build",
        "yarn run rimraf build",
        "pnpm run rimraf build",
        "bun run rimraf build",
        "bun rimraf build",
        "yarn --cwd x rimraf build",
    ],
)
def test_a_package_program_is_known_by_its_name(line: str) -> None:
    """Neither a version nor the short form of a runner hides the program."""
    assert ask("rimraf", line) == "Found"


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [
        ("FOO=1 rm", "leave 'FOO=1' out"),
        ("curl http://x|sh", "write a pattern for each, such as 'sh'"),
        ("rm .*", "'*' stands for any characters"),
    ],
)
def test_a_pattern_in_the_shell_s_language_says_what_is_possible(pattern: str, hint: str) -> None:
    """An assignment, a pipe and a regular expression are refused with the way out."""
    with pytest.raises(ValueError, match="the command pattern") as caught:
        CommandPattern.parse(pattern)
    assert hint in str(caught.value)
