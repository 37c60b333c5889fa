"""Programs of which some subcommands run another program: `uv run`, `docker exec`, `kubectl exec`, `tmux new`.

Knows: where the inner command starts and whether it runs on another machine. Does not know: what else they do.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from interpose.command.options import NO_OPTIONS, Options, parse_options
from interpose.command.reading import Word
from interpose.command.wrappers import Wrapper


@dataclass(frozen=True, slots=True)
class Launcher:
    """A program with subcommands: its own options with a value ahead of them, and those that run something.

    `elsewhere` and `reads` as in `Wrapper`. `own` are its other subcommands, where any other word is a program.
    """

    subcommands: "Mapping[str, Wrapper | Launcher]"
    takes: Options = NO_OPTIONS
    elsewhere: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    own: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Launch:
    """A call that runs another program: by which words, in which way, with which words behind those.

    `script` says that it may as well be a script of the project with that name.
    """

    label: str
    wrapper: Wrapper
    words: tuple[Word, ...]
    elsewhere: bool = False
    reads: tuple[Word, ...] = ()
    uncertain: bool = False
    script: bool = False


def launch(name: str, words: Sequence[Word]) -> Launch | None:
    """How the program `name`, called with `words`, runs another one; None when it does not."""
    entry: Wrapper | Launcher | None = LAUNCHERS.get(name)
    label, elsewhere = name, False
    reads: list[Word] = []
    while isinstance(entry, Launcher):
        parsed = parse_options(words, entry.takes, permute=False)
        if not parsed.operands:
            return None
        elsewhere |= parsed.has(*entry.elsewhere)
        reads += parsed.values(*entry.reads)
        if parsed.uncertain or not parsed.operands[0].plain:
            return Launch(label, Wrapper(), (), elsewhere, tuple(reads), uncertain=True)
        subcommand, words = parsed.operands[0].text, parsed.operands[1:]
        if entry.own is not None and subcommand not in entry.own and subcommand not in entry.subcommands:
            return Launch(label, _TOOL, tuple(parsed.operands), elsewhere, tuple(reads), script=True)
        entry = entry.subcommands.get(subcommand)
        label = f"{label} {subcommand}"
    return None if entry is None else Launch(label, entry, tuple(words), elsewhere, tuple(reads))


_RUN = Wrapper()
_TOOL = Wrapper(Options.of("p", "package"), package=True)
_OWN_COMMANDS = frozenset(
    {
        "access", "add", "audit", "autoclean", "bin", "build-sfw", "bundle", "c", "cache", "check", "ci",
        "completion", "config", "constraints", "create", "dedupe", "deploy", "dist-tag", "docs", "doctor",
        "env", "explain", "fetch", "generate-lock-entry", "global", "help", "i", "import", "info", "init",
        "install", "install-completion", "install-test", "la", "licenses", "link", "list", "ln", "login",
        "logout", "ls", "node", "npm", "outdated", "owner", "pack", "patch", "patch-commit", "plugin", "pm",
        "policies", "prefix", "prune", "publish", "rb", "rebuild", "recursive", "remove", "repl", "rm",
        "root", "run-script", "search", "self-update", "server", "set", "setup", "stage", "star", "store",
        "tag", "team", "un", "unadd", "uninstall", "unlink", "unplug", "up", "update", "upgrade",
        "upgrade-interactive", "version", "versions", "view", "w", "whoami", "why", "workspace", "workspaces",
    }
)  # fmt: skip
"""Subcommands of yarn, pnpm and bun; any other word is a script or a program of the project."""
_BUN_COMMANDS = _OWN_COMMANDS | {"build", "test"}
_SCRIPT = Launcher({}, own=frozenset())
_CONDA = Launcher({"run": Wrapper(Options.of("np", "name prefix cwd"), elsewhere=("--cwd",))})
_UV_RUN = Options.of(
    "pwfiPC",
    "python with with-editable with-requirements env-file group no-group only-group extra no-extra package index "
    "index-url extra-index-url find-links upgrade-package refresh-package config-setting directory project cache-dir",
)
_UV = Launcher(
    {
        "run": Wrapper(_UV_RUN, elsewhere=("--directory",), queries=("-m", "--module"), reads=("--env-file",)),
        "tool": Launcher({"run": Wrapper(Options.of("pwfiPC", "from with python index env-file"), package=True)}),
    },
    Options.of("", "directory project config-file cache-dir color"),
    elsewhere=("--directory",),
)
_CONTAINER_RUN = Wrapper(
    Options.of(
        "acehlmpuvw",
        "add-host annotation attach cap-add cap-drop cgroup-parent cgroupns cidfile cpu-period cpu-quota cpu-shares "
        "cpus cpuset-cpus cpuset-mems detach-keys device dns dns-option dns-search domainname entrypoint env env-file "
        "expose gpus group-add health-cmd health-interval health-retries health-timeout hostname ip ip6 ipc isolation "
        "label label-file link log-driver log-opt mac-address memory memory-swap mount name network network-alias net "
        "pid pids-limit platform publish pull restart runtime secret security-opt shm-size stop-signal stop-timeout "
        "storage-opt sysctl tmpfs ulimit user userns uts volume volume-driver volumes-from workdir",
    ),
    before=1,
    program="--entrypoint",
    remote=True,
)
_CONTAINER_EXEC = Wrapper(Options.of("euw", "env env-file user workdir detach-keys"), before=1, remote=True)
_COMPOSE = Launcher(
    {
        "exec": Wrapper(Options.of("euw", "env user workdir index"), before=1, remote=True),
        "run": Wrapper(
            Options.of(
                "elpuvw", "env env-from-file label publish user volume workdir entrypoint name cap-add cap-drop"
            ),
            before=1,
            program="--entrypoint",
            remote=True,
        ),
    },
    Options.of("fp", "file project-name profile env-file project-directory ansi progress parallel"),
    reads=("--env-file",),
)
_CONTAINERS = {"exec": _CONTAINER_EXEC, "run": _CONTAINER_RUN, "create": _CONTAINER_RUN}
_DOCKER = Launcher(
    {**_CONTAINERS, "container": Launcher(_CONTAINERS), "compose": _COMPOSE},
    Options.of("cHl", "config context connection host log-level tlscacert tlscert tlskey url identity root"),
)
_KUBECTL = Launcher(
    {
        name: Wrapper(
            Options.of("cfns", "container filename namespace context image pod-running-timeout target"),
            before=1,
            behind=("--",),
            remote=True,
        )
        for name in ("exec", "run", "debug", "rsh")
    },
    Options.of("nsv", "namespace context cluster kubeconfig server user token as request-timeout"),
)
_PERF = Wrapper(
    Options.of("eoprxIGCtDFcmgkTsu", "event output pid repeat field-separator interval-print cpu tid delay count freq"),
    writes=("-o", "--output"),
)
_LXC = Wrapper(
    Options.of("t", "mode env cwd user group project"), before=1, behind=("--",), remote=True, elsewhere=("--cwd",)
)
_VAGRANT = Wrapper(
    Options.of("co", "command"),
    before=1,
    behind=("--",),
    joins=("*",),
    texts=("-c", "--command"),
    remote=True,
    again=True,
)
_TMUX_NEW = Wrapper(Options.of("ceFfnstxy"), elsewhere=("-c",), joins=("*",))
_TMUX_SPLIT = Wrapper(Options.of("ceFlpt"), elsewhere=("-c",), joins=("*",))
_NIX = Wrapper(Options.of("fI", "expr file inherit include option"), before=1_000, behind=("-c", "--command"))

LAUNCHERS: Final[Mapping[str, Launcher]] = {
    "uv": _UV,
    "poetry": Launcher({"run": _RUN}, Options.of("CP", "directory project"), elsewhere=("-C", "--directory")),
    "pipenv": Launcher({"run": _RUN}, Options.of("", "python")),
    "pdm": Launcher({"run": Wrapper(Options.of("ps", "project site-packages venv"))}, Options.of("c", "config")),
    "hatch": Launcher({"run": _RUN}, Options.of("ep", "env project data-dir cache-dir config")),
    "rye": Launcher({"run": Wrapper(Options.of("", "pyproject"))}),
    "pipx": Launcher({"run": Wrapper(Options.of("", "spec python index-url pip-args"), package=True)}),
    **dict.fromkeys(("conda", "mamba", "micromamba"), _CONDA),
    **dict.fromkeys(("pyenv", "rbenv", "nodenv", "asdf"), Launcher({"exec": _RUN})),
    **dict.fromkeys(
        ("mise", "rtx"), Launcher(dict.fromkeys(("exec", "x"), Wrapper(behind=("--",), before=1, texts=("-c",))))
    ),
    "direnv": Launcher({"exec": Wrapper(before=1)}),
    "dotenv": Launcher({"run": _RUN}, Options.of("fqe", "file quote export"), reads=("-f", "--file")),
    "bundle": Launcher({"exec": _RUN}),
    "npm": Launcher(
        dict.fromkeys(
            ("exec", "x"), Wrapper(Options.of("pwc", "package workspace call"), texts=("-c", "--call"), package=True)
        ),
        Options.of("Cw", "prefix workspace"),
        elsewhere=("-C", "--prefix"),
    ),
    "pnpm": Launcher(
        {**dict.fromkeys(("exec", "dlx"), _TOOL), "run": _SCRIPT},
        Options.of("CF", "dir filter"),
        elsewhere=("-C", "--dir", "-F", "--filter"),
        own=_OWN_COMMANDS,
    ),
    "yarn": Launcher(
        {**dict.fromkeys(("exec", "dlx"), _TOOL), "run": _SCRIPT},
        Options.of("", "cwd"),
        elsewhere=("--cwd",),
        own=_OWN_COMMANDS,
    ),
    "bun": Launcher({"x": _TOOL, "run": _SCRIPT}, Options.of("re", "cwd preload eval env-file"), own=_BUN_COMMANDS),
    **dict.fromkeys(("docker", "podman", "nerdctl"), _DOCKER),
    **dict.fromkeys(("docker-compose", "podman-compose"), _COMPOSE),
    **dict.fromkeys(("kubectl", "oc"), _KUBECTL),
    "perf": Launcher(dict.fromkeys(("stat", "record", "trace", "mem", "kmem", "lock", "c2c", "sched"), _PERF)),
    **dict.fromkeys(("lxc", "incus"), Launcher({"exec": _LXC}, Options.of("", "project"))),
    "vagrant": Launcher({"ssh": _VAGRANT}),
    "ip": Launcher({"netns": Launcher({"exec": Wrapper(before=1)}), "vrf": Launcher({"exec": Wrapper(before=1)})}),
    "nix": Launcher(dict.fromkeys(("develop", "shell"), _NIX)),
    "tmux": Launcher(
        {
            **dict.fromkeys(("new-session", "new", "new-window", "neww"), _TMUX_NEW),
            **dict.fromkeys(
                ("split-window", "splitw", "respawn-pane", "respawn-window", "run-shell", "run"), _TMUX_SPLIT
            ),
            **dict.fromkeys(("display-popup", "popup"), _TMUX_NEW),
        },
        Options.of("cfLST"),
    ),
}
"""Every such program by name."""
