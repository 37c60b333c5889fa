"""interpose demo: a refusal from beginning to end, readable by somebody who has never heard of us."""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.processes import interpose

pytestmark = pytest.mark.e2e

DEMO_S = 10
PROMISE_FACTOR = 3
GOLDEN = Path(__file__).parent / "golden" / "demo.txt"


def scrubbed(text: str) -> str:
    """The text without what differs from run to run: times, ids, durations, temporary folders."""
    text = re.sub(r"\b\d\d:\d\d:\d\d(\.\d+)?\b", "HH:MM:SS", text)
    text = re.sub(r"\ba[0-9a-hjkmnp-tv-z]{10}\b", "aIDIDIDIDID", text)
    text = re.sub(r"\bl[0-9a-hjkmnp-tv-z]{8}\b", "lIDIDIDID", text)
    text = re.sub(r"\bs[0-9a-hjkmnp-tv-z]{12}\b", "sIDIDIDIDIDID", text)
    text = re.sub(r"\d+(\.\d+)? (ms|µs|s)\b", "N ms", text)
    text = re.sub(r"/\S*/interpose-demo-\w+", "/tmp/interpose-demo-X", text)
    return "\n".join(re.sub(r"\s+│$", " │", line.rstrip()) for line in text.splitlines()) + "\n"


def test_the_demo_shows_a_refusal(tmp_path: Path, environ: dict[str, str], golden: Callable[[str, Path], None]) -> None:
    """It ends well in under ten seconds, and shows what the golden file holds."""
    began = time.monotonic()
    done = interpose("demo", cwd=tmp_path, env=environ)
    took = time.monotonic() - began

    assert done.returncode == 0, done.stderr
    assert took < DEMO_S * PROMISE_FACTOR
    assert "build/release.bin is still there" in done.stdout
    golden(scrubbed(done.stdout), GOLDEN)


def test_the_demo_for_machines(tmp_path: Path, environ: dict[str, str]) -> None:
    """--json is one JSON object per line, the refusal among them, and nothing is left behind."""
    done = interpose("demo", "--json", cwd=tmp_path, env=environ)

    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["handler"] for line in lines if line.get("outcome") == "refused" and line["step"] == "verdict"] == [
        "no-recursive-delete"
    ]
    assert list(tmp_path.glob(".interpose")) == []
