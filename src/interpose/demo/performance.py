"""One performance of the demonstration, from an empty temporary folder to the end of the story."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import anthropic

from interpose.assembly.folders import Folders
from interpose.assembly.runtime import Runtime
from interpose.chain.chain import Chain
from interpose.concerns.policy.middleware import PolicyMiddleware
from interpose.contracts.journal import StoredRecord
from interpose.contracts.stages import Context
from interpose.demo.agent import Agent, Step
from interpose.demo.story import PROMPT, make_project, script
from interpose.gateway.server import ThreadedServer
from interpose.journal.query import JournalReader
from interpose.testing.upstream import ScriptedUpstream
from interpose.userhooks.starter import STARTER

AGENT = "interpose-demo"


@dataclass(frozen=True, slots=True)
class Performance:
    """What happened: the agent's steps, the journal in order, and the project as it was left."""

    steps: tuple[Step, ...]
    summary: str | None
    journal: tuple[StoredRecord, ...]
    files_left: tuple[str, ...]

    @property
    def refused(self) -> tuple[StoredRecord, ...]:
        """The verdicts that refused, in order."""
        return tuple(
            stored for stored in self.journal if stored.record.step == "verdict" and stored.record.outcome == "refused"
        )

    def story_of(self, action: str) -> tuple[StoredRecord, ...]:
        """All lines of one action."""
        return tuple(stored for stored in self.journal if stored.record.action == action)


def perform(*, hooks: str = STARTER, report: Callable[[Step], None] = lambda _step: None) -> Performance:
    """Plays the story with the policy `hooks`; `report` is told each step as it happens.

    Uses loopback sockets and a temporary folder only. Raises StorageError when no temporary folder can be written.
    """
    steps: list[Step] = []

    def heard(step: Step) -> None:
        steps.append(step)
        report(step)

    with _stage(hooks) as (runtime, project, upstream):
        launch, secret = runtime.launches.register(workspace=str(project), agent=AGENT, upstream=upstream.url)
        context = Context(
            mount="process", session=launch.session, workspace=str(project), agent=AGENT, launch=launch.id
        )
        chain = Chain([PolicyMiddleware(runtime.workspaces.policy(str(project)), context=context)])
        with ThreadedServer(runtime.gateway(), host="127.0.0.1", port=0) as server:
            client = anthropic.Anthropic(base_url=f"{server.url}/l/{secret}", api_key="demo", max_retries=0)
            with client:
                summary = Agent(client, chain, project, report=heard).work(PROMPT)
        runtime.journal.flush()
        with closing(JournalReader(runtime.folders.journal_db)) as reader:
            journal = reader.find(limit=-1, order="oldest")
        left = sorted(str(path.relative_to(project)) for path in project.rglob("*") if path.is_file())
    return Performance(tuple(steps), summary, journal, tuple(left))


@contextmanager
def _stage(hooks: str) -> Iterator[tuple[Runtime, Path, ScriptedUpstream]]:
    with tempfile.TemporaryDirectory(prefix="interpose-demo-") as temporary:
        base = Path(temporary).resolve()
        project = base / "project"
        project.mkdir()
        make_project(project, hooks)
        folders = Folders(config=base / "config", state=base / "state", home=base)
        with Runtime.open(folders) as runtime, ScriptedUpstream(script()) as upstream:
            yield runtime, project, upstream
