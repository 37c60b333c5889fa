"""guards.validation: which commands prove something."""

import pytest

from interpose.command.reader import read_command
from interpose.guards.validation import validation_command

PROOF = """
npm test; npm run test; npm run test:unit; npm run lint; npm run build:prod; npm run typecheck; npm run check
npm run format; npm run ci; pnpm test; yarn lint; bun test; pytest; pytest -q tests; python -m pytest
python3.12 -m pytest -q; cargo test; cargo check; go test ./...; make test; make check; ninja test; mvn test
gradle test; ./gradlew test; ctest; tox -e py; uv run pytest; npx vitest run
cd x && npm test; CI=1 npm test; sudo make test; sh -c 'npm test'; pytest | tail -5
"""

NO_PROOF = """
npm ci; npm install; npm run dev; npm; npm run; npm $X; npm lint; python test.py; python -m http.server; cargo build
go build; make; make all; echo npm test; git commit -m 'npm test'; uv run main.py; uv run; npx; npx tsx a.ts; ls
cat pytest.ini; # npm test; ; $X test
"""


def each(text: str) -> list[str]:
    """The commands of a list, separated by semicolons and line ends."""
    return [command.strip() for line in text.strip().splitlines() for command in line.split(";")]


@pytest.mark.parametrize("command", each(PROOF))
def test_these_validate(command: str) -> None:
    """Tests, linters, builds and type checks, also behind others."""
    assert validation_command(read_command(command, cwd="/house")) is not None


@pytest.mark.parametrize("command", each(NO_PROOF))
def test_these_do_not(command: str) -> None:
    """Other commands, and words that only look like one."""
    assert validation_command(read_command(command, cwd="/house")) is None
