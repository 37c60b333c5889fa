"""How each agent is pointed at interpose, without touching its owner's files.

Knows: which variable, argument or settings file makes which agent use another base URL.
Does not know: what listens there. Pure: it reads and writes nothing, and hands back what is to be set and written.

Seen with Claude Code 2.1, Codex 0.171, Gemini CLI 0.61 and opencode 1.18; for the order of Codex's arguments,
`codex --help` (`codex [OPTIONS] <COMMAND>`): options before a subcommand hold for it, and its own come after and win.
"""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from interpose.contracts.errors import MisuseError
from interpose.secrets.masking import mask_text

CLAUDE_CODE, CODEX, GEMINI_CLI, OPENCODE = "claude-code", "codex", "gemini-cli", "opencode"

BASE_URL_VARIABLE = "INTERPOSE_BASE_URL"
"""Holds the base URL of this launch, for providers that an agent's owner has configured."""

GEMINI_SETTINGS = "gemini-defaults.json"
"""The name of the settings file that Gemini CLI is given."""

_PROGRAMS = {"claude": CLAUDE_CODE, "codex": CODEX, "gemini": GEMINI_CLI, "opencode": OPENCODE}
_PACKAGES = {
    "@anthropic-ai/claude-code": CLAUDE_CODE,
    "@openai/codex": CODEX,
    "@google/gemini-cli": GEMINI_CLI,
    "opencode-ai": OPENCODE,
    **_PROGRAMS,
}
_WRAPPERS = frozenset({"npx", "bunx", "uvx", "pnpx"})
_WRAPPER_FLAGS = frozenset({"-y", "--yes", "-q", "--quiet", "--bun"})
_CLAUDE_ELSEWHERE = tuple(
    f"CLAUDE_CODE_USE_{service}"
    for service in ("BEDROCK", "VERTEX", "FOUNDRY", "MANTLE", "ANTHROPIC_AWS", "ANTHROPIC_GOOGLE_CLOUD")
)
"""Variables that make Claude Code talk to another service than the one at its base URL."""

_PROXIES = ("http_proxy", "https_proxy", "all_proxy")
_NO_PROXY = ("NO_PROXY", "no_proxy")
_OFF = ("", "0", "false")


@dataclass(frozen=True, slots=True)
class Pointing:
    """What makes one agent use interpose.

    Attributes:
        agent: which agent it is, or None for any other program.
        argv: the words to run.
        env: the variables to set on top of the environment.
        files: the files to write first, by path; all lie in our own folder.
        notes: what the person should know, one line each.
        replaced: base URLs that the environment had and this launch does not use, by variable.
    """

    agent: str | None
    argv: list[str]
    env: dict[str, str]
    files: dict[Path, str]
    notes: tuple[str, ...]
    replaced: dict[str, str]


@dataclass(frozen=True, slots=True)
class Hint:
    """How to point one agent or SDK by hand, as one line."""

    name: str
    line: str


def recognise(command: Sequence[str]) -> str | None:
    """Which agent `command` starts, also behind npx, bunx, uvx and pnpx; None for any other program."""
    return _recognised(command)[1] if command else None


def point(command: Sequence[str], base_url: str, environ: Mapping[str, str], settings_dir: Path) -> Pointing:
    """How to run `command` so that its model requests go to `base_url`, which has no slash at its end.

    Agents are known by the name of the program, also behind npx, bunx, uvx and pnpx; any other program gets the
    variables that the SDKs read. All get INTERPOSE_BASE_URL, which a configuration of their own may name.

    Raises MisuseError for an empty command.
    """
    if not command:
        raise MisuseError("there is no command to run: name one, such as `claude`")

    argv, base_url = list(command), base_url.rstrip("/")
    word, agent = _recognised(argv)
    files: dict[Path, str] = {}
    notes: list[str] = []
    match agent:
        case "claude-code":
            env = {"ANTHROPIC_BASE_URL": base_url}
            own = argv[word + 1 :]
            argv[word + 1 : word + 1] = _claude_arguments(base_url, own, environ)
            notes += _notes_on_claude(own, environ)
        case "codex":
            env = {}
            notes += _notes_on_codex(argv[word + 1 :], environ)
            argv[word + 1 : word + 1] = _codex_arguments(base_url)
        case "gemini-cli":
            env, files, gemini_notes = _gemini(base_url, environ, settings_dir)
            notes += gemini_notes
        case "opencode":
            env, opencode_notes = _opencode(base_url, environ)
            notes += opencode_notes
        case _:
            env = _sdk_variables(base_url)

    replaced = {
        name: environ[name]
        for name, url in env.items()
        if name.endswith(("_URL", "_BASE")) and environ.get(name, url) != url
    }
    notes += [
        f"{name} was {mask_text(url)}; this launch goes through interpose, which sends on to its own upstream"
        for name, url in replaced.items()
    ]
    env |= {BASE_URL_VARIABLE: base_url} | _past_proxies(environ)
    return Pointing(agent, argv, env, files, tuple(notes), replaced)


def hint_lines(base_url: str) -> tuple[Hint, ...]:
    """One line each for the agents and SDKs that people use most, to be typed or pasted as it is, in the folder."""
    base_url = base_url.rstrip("/")
    config = json.dumps(_opencode_config(base_url, {}), separators=(",", ":"))
    return (
        Hint("Claude Code", f"ANTHROPIC_BASE_URL={shlex.quote(base_url)} claude"),
        Hint("Codex", shlex.join(["codex", *_codex_arguments(base_url)])),
        # Its variable alone makes it choose a way to sign in that it then refuses: it needs a file of ours.
        Hint("Gemini CLI", "interpose run -- gemini"),
        Hint("opencode", f"OPENCODE_CONFIG_CONTENT={shlex.quote(config)} opencode"),
        Hint("OpenAI SDK", f'OpenAI(base_url="{base_url}/v1")'),
        Hint("Anthropic SDK", f'Anthropic(base_url="{base_url}")'),
    )


def _recognised(argv: Sequence[str]) -> tuple[int, str | None]:
    program = _program(argv[0])
    if program not in _WRAPPERS:
        return 0, _PROGRAMS.get(program)

    for index, word in enumerate(argv[1:], 1):
        if word in _WRAPPER_FLAGS:
            continue
        scope, slash, name = word.rpartition("/")
        return index, _PACKAGES.get(scope + slash + name.partition("@")[0])
    return 0, None


def _program(word: str) -> str:
    name = PurePath(word.replace("\\", "/")).name.lower()
    return name.removesuffix(".exe").removesuffix(".cmd")


def _claude_arguments(base_url: str, own: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """Settings that say what the environment says, and switch off what else would lead past `base_url`.

    An `env` in any of its settings files, a project's too, is stronger than the environment; this is stronger still.
    """
    if _has_settings(own):
        return []
    env = {"ANTHROPIC_BASE_URL": base_url}
    env |= {name: "0" for name in _CLAUDE_ELSEWHERE if _is_off(environ, name)}
    env |= dict.fromkeys(_NO_PROXY, _past_proxy(environ))
    return ["--settings", json.dumps({"env": env}, separators=(",", ":"))]


def _has_settings(own: Sequence[str]) -> bool:
    return any(word == "--settings" or word.startswith("--settings=") for word in own)


def _notes_on_claude(own: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    notes = []
    if _has_settings(own):
        notes.append("your own --settings stand: an address or a service in a settings file leads past interpose")
    return notes + [
        f"{name} is set: Claude Code then talks to that service and past interpose; unset it for this launch"
        for name in _CLAUDE_ELSEWHERE
        if not _is_off(environ, name)
    ]


def _is_off(environ: Mapping[str, str], name: str) -> bool:
    return environ.get(name, "").lower() in _OFF


def _codex_arguments(base_url: str) -> list[str]:
    provider = {
        "name": "interpose",
        "base_url": f"{base_url}/v1",
        "wire_api": "responses",
        "env_key": "OPENAI_API_KEY",
    }
    settings = {"model_provider": "interpose"}
    settings |= {f"model_providers.interpose.{name}": value for name, value in provider.items()}
    return [word for name, value in settings.items() for word in ("-c", f"{name}={json.dumps(value)}")]


def _notes_on_codex(words: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    notes = []
    if any("model_provider" in word for word in words) or "--oss" in words:
        notes.append("your own arguments choose a model provider: they win, and that traffic goes past interpose")
    if not environ.get("OPENAI_API_KEY"):
        notes.append("OPENAI_API_KEY is not set: Codex needs it here, since a ChatGPT login is not passed on")
    return notes


def _gemini(
    base_url: str, environ: Mapping[str, str], settings_dir: Path
) -> tuple[dict[str, str], dict[Path, str], list[str]]:
    env = {"GOOGLE_GEMINI_BASE_URL": base_url}
    notes = []
    if not environ.get("GEMINI_API_KEY"):
        notes.append("GEMINI_API_KEY is not set: Gemini CLI needs it here, since a Google login goes past interpose")

    free = next(
        (
            name
            for name in ("GEMINI_CLI_SYSTEM_DEFAULTS_PATH", "GEMINI_CLI_SYSTEM_SETTINGS_PATH")
            if not environ.get(name)
        ),
        None,
    )
    if free is None:
        notes.append(
            "both of Gemini CLI's system settings files are your own: security.auth.selectedType must be gemini-api-key"
        )
        return env, {}, notes

    path = settings_dir / GEMINI_SETTINGS
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    return env | {free: str(path)}, {path: json.dumps(settings, indent=2) + "\n"}, notes


def _opencode(base_url: str, environ: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    own = environ.get("OPENCODE_CONFIG_CONTENT", "")
    try:
        content = json.loads(own) if own.strip() else {}
    except ValueError:
        content = None
    if not isinstance(content, dict):
        return {}, ["OPENCODE_CONFIG_CONTENT is not a JSON object: it is left as it is, and opencode is not pointed"]

    notes = [
        f"OPENCODE_CONFIG_CONTENT has a base URL for {provider} ({mask_text(str(url))}): it is kept, past interpose"
        for provider in _opencode_urls(base_url)
        if (url := _own_url(content, provider)) is not None
    ]
    return {"OPENCODE_CONFIG_CONTENT": json.dumps(_opencode_config(base_url, content))}, notes


def _opencode_urls(base_url: str) -> dict[str, str]:
    return {"anthropic": f"{base_url}/v1", "openai": f"{base_url}/v1", "google": f"{base_url}/v1beta"}


def _opencode_config(base_url: str, own: Mapping[str, Any]) -> dict[str, Any]:
    return _merged(
        {"provider": {id_: {"options": {"baseURL": url}} for id_, url in _opencode_urls(base_url).items()}}, own
    )


def _own_url(content: Mapping[str, Any], provider: str) -> object:
    value: object = content
    for name in ("provider", provider, "options", "baseURL"):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _merged(ours: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Both objects in one; where both say something, the person's own word stands."""
    merged = dict(own)
    for name, value in ours.items():
        theirs = merged.get(name)
        if name not in merged:
            merged[name] = value
        elif isinstance(value, Mapping) and isinstance(theirs, Mapping):
            merged[name] = _merged(value, theirs)
    return merged


def _sdk_variables(base_url: str) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": base_url,
        "ANTHROPIC_API_BASE": base_url,
        "OPENAI_BASE_URL": f"{base_url}/v1",
        "OPENAI_API_BASE": f"{base_url}/v1",
        "GOOGLE_GEMINI_BASE_URL": base_url,
    }


def _past_proxies(environ: Mapping[str, str]) -> dict[str, str]:
    # Through an HTTP proxy, the loopback address would be the proxy's own machine.
    if not any(environ.get(name) or environ.get(name.upper()) for name in _PROXIES):
        return {}
    return dict.fromkeys(_NO_PROXY, _past_proxy(environ))


def _past_proxy(environ: Mapping[str, str]) -> str:
    own = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    hosts = [host.strip() for host in own.split(",") if host.strip()]
    return ",".join([*hosts, *(host for host in ("127.0.0.1", "localhost") if host not in hosts)])
