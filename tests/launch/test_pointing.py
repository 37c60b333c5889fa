"""launch.pointing."""

import json
from pathlib import Path

import pytest

from interpose.contracts.errors import MisuseError
from interpose.launch.pointing import Pointing, hint_lines, point, recognise

BASE = "http://127.0.0.1:4747/l/abcdefghijklmnopqrstuvwxyz012345"
SETTINGS = Path("/home/me/.local/state/interpose/settings")
CODEX = [
    "-c",
    'model_provider="interpose"',
    "-c",
    'model_providers.interpose.name="interpose"',
    "-c",
    f'model_providers.interpose.base_url="{BASE}/v1"',
    "-c",
    'model_providers.interpose.wire_api="responses"',
    "-c",
    'model_providers.interpose.env_key="OPENAI_API_KEY"',
]
OWN = {"INTERPOSE_BASE_URL": BASE}
KEYS = {"OPENAI_API_KEY": "dummy", "GEMINI_API_KEY": "dummy"}


def _point(*command: str, **environ: str) -> Pointing:
    return point(command, BASE, KEYS | environ, SETTINGS)


def test_claude_code_gets_a_variable_without_v1() -> None:
    """It adds /v1 itself. A setting says the same, since its settings files are stronger than the environment."""
    pointing = _point("/usr/local/bin/claude", "-p", "hello")

    program, option, settings, *words = pointing.argv
    assert (program, option, words) == ("/usr/local/bin/claude", "--settings", ["-p", "hello"])
    assert json.loads(settings)["env"]["ANTHROPIC_BASE_URL"] == BASE
    assert pointing == Pointing("claude-code", pointing.argv, OWN | {"ANTHROPIC_BASE_URL": BASE}, {}, (), {})


def test_claude_codes_settings_files_cannot_lead_past() -> None:
    """Other services are switched off unless the environment asks for one, and no proxy stands before our address."""
    settings = json.loads(_point("claude", CLAUDE_CODE_USE_VERTEX="1", NO_PROXY="example.org").argv[2])["env"]

    assert settings["CLAUDE_CODE_USE_BEDROCK"] == "0"
    assert "CLAUDE_CODE_USE_VERTEX" not in settings
    assert settings["NO_PROXY"] == settings["no_proxy"] == "example.org,127.0.0.1,localhost"


@pytest.mark.parametrize("words", [["--settings", "mine.json"], ["--settings=mine.json"]])
def test_claude_codes_own_settings_stay(words: list[str]) -> None:
    """It takes one only: the person's stands, and what it may lead to is said."""
    pointing = _point("claude", *words, "-p", "hello")

    assert pointing.argv == ["claude", *words, "-p", "hello"]
    assert pointing.notes[0].startswith("your own --settings stand")


def test_codex_gets_arguments_before_the_persons_own() -> None:
    """A provider of ours is defined right after the program's name, so that a subcommand keeps its own options."""
    pointing = _point("codex", "exec", "-m", "gpt-5.5", "hello")

    assert pointing.argv == ["codex", *CODEX, "exec", "-m", "gpt-5.5", "hello"]
    assert (pointing.agent, pointing.env, pointing.notes) == ("codex", OWN, ())


def test_gemini_gets_a_variable_and_a_settings_file_of_ours() -> None:
    """The file names the auth type without which the variable does nothing; it lies in our folder."""
    pointing = _point("gemini", "-p", "hello")

    path = SETTINGS / "gemini-defaults.json"
    assert pointing.agent == "gemini-cli"
    assert pointing.env == OWN | {"GOOGLE_GEMINI_BASE_URL": BASE, "GEMINI_CLI_SYSTEM_DEFAULTS_PATH": str(path)}
    assert {name: json.loads(text) for name, text in pointing.files.items()} == {
        path: {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    }


def test_gemini_settings_of_the_owner_are_never_replaced() -> None:
    """Where one of the two files is the owner's, the other is used; where both are, the person is told what to set."""
    one = _point("gemini", GEMINI_CLI_SYSTEM_DEFAULTS_PATH="/etc/own.json")
    both = _point("gemini", GEMINI_CLI_SYSTEM_DEFAULTS_PATH="/etc/a", GEMINI_CLI_SYSTEM_SETTINGS_PATH="/etc/b")

    assert "GEMINI_CLI_SYSTEM_DEFAULTS_PATH" not in one.env
    assert one.env["GEMINI_CLI_SYSTEM_SETTINGS_PATH"] == str(SETTINGS / "gemini-defaults.json")
    assert (set(both.env), both.files) == ({"GOOGLE_GEMINI_BASE_URL", *OWN}, {})
    assert "selectedType must be gemini-api-key" in both.notes[0]


def test_opencode_gets_its_three_providers_in_a_variable() -> None:
    """Each built-in provider has the base URL in the form that it wants."""
    pointing = _point("opencode", "run", "hello")

    assert pointing.agent == "opencode"
    assert json.loads(pointing.env["OPENCODE_CONFIG_CONTENT"]) == {
        "provider": {
            "anthropic": {"options": {"baseURL": f"{BASE}/v1"}},
            "openai": {"options": {"baseURL": f"{BASE}/v1"}},
            "google": {"options": {"baseURL": f"{BASE}/v1beta"}},
        }
    }


def test_opencode_content_of_the_owner_is_merged_and_never_lost() -> None:
    """The owner's word stands where both speak, and a base URL that stays is said."""
    own = {
        "model": "anthropic/x",
        "provider": {"openai": {"options": {"baseURL": "https://u:secret@own", "apiKey": "k"}}, "mine": {"npm": "x"}},
    }

    pointing = _point("opencode", OPENCODE_CONFIG_CONTENT=json.dumps(own))

    merged = json.loads(pointing.env["OPENCODE_CONFIG_CONTENT"])
    assert merged["model"] == "anthropic/x"
    assert merged["provider"]["mine"] == {"npm": "x"}
    assert merged["provider"]["openai"] == own["provider"]["openai"]  # type: ignore[index]
    assert merged["provider"]["anthropic"]["options"]["baseURL"] == f"{BASE}/v1"
    assert len(pointing.notes) == 1
    assert "openai (https://u:…@own): it is kept, past interpose" in pointing.notes[0]


@pytest.mark.parametrize("content", ["{broken", "[1]", "1"])
def test_opencode_content_that_cannot_be_read_is_left_alone(content: str) -> None:
    """Nothing is overwritten, and the person is told that this launch is not pointed."""
    pointing = _point("opencode", OPENCODE_CONFIG_CONTENT=content)

    assert pointing.env == OWN
    assert "opencode is not pointed" in pointing.notes[0]


def test_any_other_program_gets_the_variables_of_the_sdks() -> None:
    """A script on an SDK is pointed without knowing which one it uses."""
    pointing = _point("python", "agent.py")

    assert pointing.agent is None
    assert pointing.argv == ["python", "agent.py"]
    assert pointing.env == OWN | {
        "ANTHROPIC_BASE_URL": BASE,
        "ANTHROPIC_API_BASE": BASE,
        "OPENAI_BASE_URL": f"{BASE}/v1",
        "OPENAI_API_BASE": f"{BASE}/v1",
        "GOOGLE_GEMINI_BASE_URL": BASE,
    }


@pytest.mark.parametrize(
    ("command", "agent"),
    [
        (["npx", "@anthropic-ai/claude-code", "-p", "x"], "claude-code"),
        (["npx", "-y", "@anthropic-ai/claude-code@2.1.0"], "claude-code"),
        (["bunx", "@google/gemini-cli@latest"], "gemini-cli"),
        (["bunx", "--bun", "opencode-ai"], "opencode"),
        (["uvx", "codex"], "codex"),
        (["/opt/x/claude.exe"], "claude-code"),
        (["C:\\bin\\codex.cmd"], "codex"),
        (["npx", "-p", "@openai/codex", "codex"], None),
        (["npx"], None),
        (["claude-helper"], None),
        (["npx", "create-app", "claude"], None),
    ],
)
def test_agents_are_known_by_name_and_behind_simple_wrappers(command: list[str], agent: str | None) -> None:
    """A wrapper with options that we do not read is just another program."""
    assert point(command, BASE, KEYS, SETTINGS).agent == agent
    assert recognise(command) == agent


def test_codex_behind_a_wrapper_gets_its_arguments_after_its_own_name() -> None:
    """They are for Codex and not for npx."""
    assert _point("npx", "-y", "@openai/codex", "exec", "x").argv == ["npx", "-y", "@openai/codex", *CODEX, "exec", "x"]


def test_a_base_url_of_the_environment_is_said_masked_and_handed_back() -> None:
    """The person learns that it is not used here; the caller may make it the launch's upstream."""
    pointing = _point("claude", ANTHROPIC_BASE_URL="https://me:pw@gateway.example.org")

    assert pointing.replaced == {"ANTHROPIC_BASE_URL": "https://me:pw@gateway.example.org"}
    assert pointing.notes[0].startswith("ANTHROPIC_BASE_URL was https://me:…@gateway.example.org; this launch goes")
    assert _point("claude", ANTHROPIC_BASE_URL=BASE).notes == ()


@pytest.mark.parametrize(
    ("command", "environ", "note"),
    [
        (["claude"], {"CLAUDE_CODE_USE_BEDROCK": "1"}, "CLAUDE_CODE_USE_BEDROCK is set"),
        (["codex", "-c", 'model_provider="x"'], {}, "your own arguments choose a model provider"),
        (["codex", "--oss"], {}, "your own arguments choose a model provider"),
        (["codex"], {"OPENAI_API_KEY": ""}, "OPENAI_API_KEY is not set"),
        (["gemini"], {"GEMINI_API_KEY": ""}, "GEMINI_API_KEY is not set"),
    ],
)
def test_what_leads_past_interpose_is_said(command: list[str], environ: dict[str, str], note: str) -> None:
    """A launch that will not be seen whole says so before it starts."""
    assert [text for text in _point(*command, **environ).notes if text.startswith(note)]


def test_a_launch_inside_a_launch_is_told_its_own_address() -> None:
    """INTERPOSE_BASE_URL of the outer launch is replaced without a word: it is ours, not the person's."""
    pointing = _point("claude", INTERPOSE_BASE_URL="http://127.0.0.1:1/l/outer")

    assert pointing.env["INTERPOSE_BASE_URL"] == BASE
    assert (pointing.notes, pointing.replaced) == ((), {})


def test_settings_that_are_switched_off_are_not_mentioned() -> None:
    """A variable that says no is no reason for a note."""
    assert _point("claude", CLAUDE_CODE_USE_BEDROCK="0", CLAUDE_CODE_USE_VERTEX="").notes == ()


def test_a_proxy_is_not_asked_for_the_loopback_address() -> None:
    """With an HTTP proxy in the environment, our own address is taken out of its reach; other exceptions stay."""
    pointing = _point("claude", HTTPS_PROXY="http://proxy:3128", no_proxy="example.org, localhost")

    assert pointing.env["NO_PROXY"] == pointing.env["no_proxy"] == "example.org,localhost,127.0.0.1"
    assert "NO_PROXY" not in _point("claude").env


def test_an_empty_command_is_a_mistake() -> None:
    """The message says what is missing."""
    with pytest.raises(MisuseError, match="no command to run"):
        point([], BASE, {}, SETTINGS)
    assert recognise([]) is None


def test_a_slash_at_the_end_is_not_doubled() -> None:
    """`BASE/` and `BASE` are the same address."""
    assert point(["claude"], BASE + "/", {}, SETTINGS).env == OWN | {"ANTHROPIC_BASE_URL": BASE}
    assert hint_lines(BASE + "/") == hint_lines(BASE)


def test_hints_are_one_line_each_and_name_the_base_url() -> None:
    """What `interpose up` prints can be pasted into a shell or a program."""
    hints = {hint.name: hint.line for hint in hint_lines(BASE)}

    assert list(hints) == ["Claude Code", "Codex", "Gemini CLI", "opencode", "OpenAI SDK", "Anthropic SDK"]
    assert hints["Claude Code"] == f"ANTHROPIC_BASE_URL={BASE} claude"
    assert hints["OpenAI SDK"] == f'OpenAI(base_url="{BASE}/v1")'
    assert hints.pop("Gemini CLI") == "interpose run -- gemini"
    assert all(BASE in line and "\n" not in line for line in hints.values())
