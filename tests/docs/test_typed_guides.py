"""What the guides for Python show is typed as strictly as the package itself."""

import re
from pathlib import Path

import pytest
from mypy import api

ROOT = Path(__file__).resolve().parents[2]
GUIDES = ("tools-in-python", "write-a-driver", "write-a-handler", "write-a-middleware")


def test_programs_of_the_guides_pass_strict_type_checks(tmp_path: Path) -> None:
    """All in one run, since a reader checks a program with the same tool."""
    for page in GUIDES:
        text = (ROOT / "docs" / "guides" / f"{page}.md").read_text()
        for number, found in enumerate(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)):
            (tmp_path / f"{page.replace('-', '_')}_{number}.py").write_text(found[1])
    said, failed, _ = api.run(["--strict", "--no-error-summary", *map(str, sorted(tmp_path.glob("*.py")))])
    if failed or said:
        pytest.fail(f"{said}{failed}")
