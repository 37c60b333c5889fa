"""Where interpose keeps things: the user's config and state folders, and a project's `.interpose`."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from interpose.contracts.errors import ConfigError

PROJECT_FOLDER = ".interpose"


@dataclass(frozen=True, slots=True)
class Folders:
    """The folders of one user. Nothing is created by looking.

    Attributes:
        config: `config.toml` and the user's `hooks.yaml`; INTERPOSE_CONFIG_DIR replaces it.
        state: `journal.db`, `state.db` and what agents are pointed with; INTERPOSE_STATE_DIR replaces it.
        home: the user's home, for `~` in patterns.
    """

    config: Path
    state: Path
    home: Path

    @property
    def journal_db(self) -> Path:
        """The append-only journal."""
        return self.state / "journal.db"

    @property
    def state_db(self) -> Path:
        """Launches and switches."""
        return self.state / "state.db"

    @property
    def config_file(self) -> Path:
        """The user's settings."""
        return self.config / "config.toml"

    @property
    def user_hooks(self) -> Path:
        """The hooks that judge in every workspace."""
        return self.config / "hooks.yaml"

    @property
    def agents(self) -> Path:
        """Settings files of ours that agents are pointed at."""
        return self.state / "agents"


def user_folders(environ: Mapping[str, str] = os.environ) -> Folders:
    """The folders that `environ` and the platform name. Raises ConfigError for a relative path."""
    for variable in ("INTERPOSE_CONFIG_DIR", "INTERPOSE_STATE_DIR"):
        if environ.get(variable) and not Path(environ[variable]).is_absolute():
            raise ConfigError(variable, f"{environ[variable]!r} is not an absolute path", "start it with /")
    return Folders(
        config=Path(environ.get("INTERPOSE_CONFIG_DIR") or platformdirs.user_config_path("interpose", appauthor=False)),
        state=Path(environ.get("INTERPOSE_STATE_DIR") or platformdirs.user_state_path("interpose", appauthor=False)),
        home=Path(environ.get("HOME") or Path.home()),
    )


def canonical_root(folder: Path) -> str:
    """The workspace `folder` belongs to: the nearest folder upwards that holds `.interpose` or `.git`, else itself."""
    start = folder.resolve()
    for candidate in (start, *start.parents):
        if (candidate / PROJECT_FOLDER).is_dir() or (candidate / ".git").exists():
            return str(candidate)
    return str(start)
