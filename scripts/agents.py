"""Installs the agents that `make agents` runs: each once, pinned, into a cache folder outside of the checkout.

The folder is ~/.cache/interpose-agents, or what INTERPOSE_AGENTS_DIR names. They come from npm, as the packages that
hold the native programs, and no install script of theirs is run. An agent that cannot be fetched gets a line, and its
tests are skipped; the exit code is 0 all the same.
"""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

INSTALL_S = 300
"""How long npm may take for one agent."""

_PLATFORMS = {
    ("Linux", "x86_64"): "linux-x64",
    ("Linux", "aarch64"): "linux-arm64",
    ("Darwin", "x86_64"): "darwin-x64",
    ("Darwin", "arm64"): "darwin-arm64",
}


@dataclass(frozen=True, slots=True)
class Agent:
    """One agent at one version; `{platform}` stands for npm's name of this machine's kind.

    Attributes:
        name: as interpose calls it.
        version: the pinned one.
        package: what npm is asked for.
        program: where the program is below `node_modules`, as a glob pattern.
    """

    name: str
    version: str
    package: str
    program: str

    @property
    def folder(self) -> Path:
        """Where this version is installed."""
        return cache_dir() / f"{self.name}-{self.version}"


AGENTS = {
    agent.name: agent
    for agent in (
        Agent(
            "claude-code",
            "2.1.332",
            "@anthropic-ai/claude-code-{platform}@2.1.332",
            "@anthropic-ai/claude-code-{platform}/claude",
        ),
        Agent("codex", "0.171.0", "@openai/codex@0.171.0-{platform}", "@openai/codex/vendor/*/bin/codex"),
        Agent("gemini-cli", "0.61.0", "@google/gemini-cli@0.61.0", ".bin/gemini"),
        Agent("opencode", "1.18.33", "opencode-{platform}@1.18.33", "opencode-{platform}/bin/opencode"),
    )
}
"""The one table of what is run; a new version is tried by changing its line."""


def cache_dir() -> Path:
    """Where the agents are installed."""
    named = os.environ.get("INTERPOSE_AGENTS_DIR")
    return Path(named).absolute() if named else Path.home() / ".cache" / "interpose-agents"


def program(agent: Agent) -> Path | None:
    """The installed program, or None when it is not there."""
    pattern = f"node_modules/{agent.program.format(platform=_platform())}"
    return next((path for path in agent.folder.glob(pattern) if os.access(path, os.X_OK)), None)


def install(agent: Agent) -> str | None:
    """Installs one agent unless it is there already; why that was not possible, or None."""
    if program(agent) is not None:
        return None
    npm = shutil.which("npm")
    if npm is None:
        return "npm was not found"
    if "{platform}" in agent.package and not _platform():
        return f"there is no package for {platform.system()} on {platform.machine()}"

    agent.folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=agent.folder.parent, prefix=".install-") as fresh:
        words = [npm, "install", "--prefix", fresh, "--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund"]
        words += ["--loglevel=error", agent.package.format(platform=_platform())]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=INSTALL_S, check=False)
        except subprocess.TimeoutExpired:
            return f"npm took longer than {INSTALL_S} s"
        if done.returncode:
            return next(iter(done.stderr.strip().splitlines()), f"npm ended with {done.returncode}")
        # Moved when complete, so that an install that was broken off is never taken for one.
        shutil.rmtree(agent.folder, ignore_errors=True)
        (Path(fresh) / "node_modules").rename(_made(agent.folder) / "node_modules")
    return None if program(agent) else f"the package has no program at {agent.program}"


def main() -> int:
    """Installs all of them, with a line for each."""
    for agent in AGENTS.values():
        began = time.monotonic()
        problem = install(agent)
        said = f"cannot be fetched, its tests are skipped: {problem}" if problem else f"ready in {agent.folder}"
        took_s = time.monotonic() - began
        print(f"{agent.name} {agent.version}: {said}" + (f" ({took_s:.0f} s)" if took_s > 1 else ""))
    return 0


def _platform() -> str:
    return _PLATFORMS.get((platform.system(), platform.machine()), "")


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


if __name__ == "__main__":
    sys.exit(main())
