"""The example programs run, and print what they are there to show."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

PRINTED = {
    "chain_in_ten_lines.py": """\
1. HooksMiddleware (HooksMiddleware): list order
2. PermissionMiddleware (PermissionMiddleware): list order
called shell {'command': 'ls'}
shell ran ls
called shell {'command': 'rm -rf build'}
{"permission_denied": true, "tool": "shell", "message": "shell was not run: permission was not given."}
""",
    "auth_two_turns.py": """\
person: What is on today?
tool:   Sign in to go on: open http://login.example/page and enter the code WDJB-MJHT.
model:  Please sign in there; the code is WDJB-MJHT
person: Done.
tool:   {"entries": ["today 09:30 stand-up"], "seen_with": "token-1"}
model:  A stand-up at 09:30.
""",
    "openapi_agent.py": """\
tools:  listItems, addItem, dropItem
model:  {"tool": "listItems", "arguments": {}}
person: listItems {}? yes
tool:   {"milk":1}
model:  {"tool": "addItem", "arguments": {"body": {"name": "flour", "amount": 2}}}
person: addItem {"body": {"name": "flour", "amount": 2}}? yes
tool:   {"milk":1,"flour":2}
model:  {"tool": "dropItem", "arguments": {"name": "milk"}}
person: dropItem {"name": "milk"}? no
tool:   {"permission_denied": true, "tool": "dropItem", "message": "dropItem was not run: permission was not given."}
model:  Flour is on the list. I was not allowed to take the milk off.
list:   {"milk": 1, "flour": 2}
""",
}


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_prints_what_it_shows(name: str, tmp_path: Path, environ: dict[str, str]) -> None:
    """Run as a program of its own, in an empty folder."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert (done.returncode, done.stderr, done.stdout) == (0, "", PRINTED[name])
