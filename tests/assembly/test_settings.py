"""assembly.settings: what is in force, where it came from, and what is refused."""

import pytest

from interpose.assembly.folders import Folders
from interpose.assembly.runtime import gateway_settings
from interpose.assembly.settings import load_settings
from interpose.assembly.upstreams import targets
from interpose.contracts.errors import ConfigError
from interpose.gateway.settings import Target, Upstreams
from interpose.kernel.ids import digest_of_secret


def write(folders: Folders, text: str) -> None:
    """Writes the user's config.toml."""
    folders.config.mkdir()
    folders.config_file.write_text(text)


def test_defaults_need_no_file(folders: Folders) -> None:
    """Without a file every setting has its default and says so."""
    settings = load_settings(folders, {})

    assert settings.file.gateway.port == 4747
    assert settings.file.upstreams.anthropic == "https://api.anthropic.com"
    assert {origin for _, _, origin in settings.rows()} == {"default"}


def test_the_environment_beats_the_file_and_both_are_named(folders: Folders) -> None:
    """Each value tells where it came from."""
    write(folders, '[gateway]\nport = 5000\n[upstreams]\nopenai = "http://127.0.0.1:1/x"\n')

    settings = load_settings(folders, {"INTERPOSE_PORT": "6000"})

    rows = {key: (value, origin) for key, value, origin in settings.rows()}
    assert rows["gateway.port"] == (6000, "INTERPOSE_PORT")
    assert rows["upstreams.openai"] == ("http://127.0.0.1:1/x", str(folders.config_file))
    assert rows["gateway.host"] == ("127.0.0.1", "default")


def test_how_long_a_person_has_may_come_from_the_environment(folders: Folders) -> None:
    """Two minutes unless something else is said; what is no number, or too long, names the variable."""
    assert load_settings(folders, {}).file.gateway.ask_timeout_s == 120
    assert load_settings(folders, {"INTERPOSE_ASK_TIMEOUT_S": "2.5"}).file.gateway.ask_timeout_s == 2.5

    for wrong in ("soon", "0", "nan", "1e9"):
        with pytest.raises(ConfigError, match="INTERPOSE_ASK_TIMEOUT_S"):
            load_settings(folders, {"INTERPOSE_ASK_TIMEOUT_S": wrong})


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[gateway]\nprot = 1\n", "prot"),
        ("[gatway]\n", "gatway"),
        ('[gateway]\nport = "x"\n', "gateway.port"),
        ("[gateway]\nport = 70000\n", "70000"),
        ('[gateway]\nhost = "0.0.0.0"\n', "0.0.0.0"),
        ('[upstreams]\nanthropic = "ftp://x"\n', "upstreams.anthropic"),
        ('[upstreams]\nmystery = "http://x"\n', "mystery"),
        ("[upstreams.local]\n", "upstreams.local.base_url"),
        ('[upstreams.local]\nbase_url = "http://x"\n', "upstreams.local.api"),
        ('[upstreams.local]\nbase_url = "http://x"\napi = "cohere"\n', "cohere"),
        ('[upstreams.local]\nbase_url = "http://x"\napi = "openai"\n', "upstreams.local.models"),
        ('[upstreams.local]\nbase_url = "x"\napi = "openai"\nmodels = ["m"]\n', "upstreams.local.base_url"),
        ('[upstreams.local]\nbase = "x"\n', "base"),
        ('[upstreams.local]\nbase_url = "http://x"\n', ":1: upstreams.local.api: is missing (use one of anthropic,"),
        ('[upstreams.local]\nbase_url = "http://x"\napi = "openai"\nmodels = [""]\n', ":4: upstreams.local.models"),
        ('[upstreams.openai]\nretries = 1\nmodels = ["m"]\n', ":3: upstreams.openai.models"),
        ('[upstreams.openai]\nretries = 1\napi = "openai"\n', ":3: upstreams.openai.api"),
        ("[upstreams.openai]\nretries = 1\nread_timeout_s = 0\n", ":3: upstreams.openai.read_timeout_s: 0 is no"),
        ("[upstreams.openai]\nretries = 1\nread_timeout_s = nan\n", ":3: upstreams.openai.read_timeout_s: nan is no"),
        ("[upstreams.openai]\nretries = 1\nconnect_timeout_s = -1.5\n", ":3: upstreams.openai.connect_timeout_s: -1.5"),
        ("[upstreams.openai]\nretries = 99\n", "upstreams.openai.retries"),
        ('[upstreams.openai]\nbase_url = "https://user@x"\n', "upstreams.openai.base_url"),
        ('[gateway]\nunjudged_paths = "maybe"\n', "gateway.unjudged_paths"),
        ('[gateway]\non_refusal = "maybe"\n', "gateway.on_refusal"),
        ("[gateway]\nworkers = 0\n", "gateway.workers"),
        ("[gateway]\nbody_timeout_s = 0\n", "gateway.body_timeout_s"),
        ("[gateway]\nbody_timeout_s = nan\n", "gateway.body_timeout_s"),
        ("[gateway]\ndrain_s = -1\n", "gateway.drain_s"),
        ("[gateway]\ndrain_s = nan\n", "gateway.drain_s"),
        ("[gateway]\nask_timeout_s = 0\n", "gateway.ask_timeout_s"),
        ("[gateway]\nask_timeout_s = 601\n", "1 to 600 seconds"),
        ("[gateway]\nask_timeout_s = nan\n", "gateway.ask_timeout_s"),
        ('[gateway]\nask_timeout_s = "long"\n', "gateway.ask_timeout_s"),
        ('[gateway.clients]\nci = "secret"\n', "gateway.clients.ci"),
        ('[gateway.clients]\nci = "sha256:12"\n', "gateway.clients.ci"),
        ("gateway = 5\n", "gateway"),
        ("[gateway\n", "is not TOML"),
    ],
)
def test_what_is_wrong_is_named(folders: Folders, text: str, named: str) -> None:
    """A mistake is refused with the file, the key and what is possible."""
    write(folders, text)

    with pytest.raises(ConfigError) as caught:
        load_settings(folders, {})

    assert named in str(caught.value)
    assert str(folders.config_file) in str(caught.value)


def test_a_bad_variable_is_named(folders: Folders) -> None:
    """A mistake in the environment names the variable."""
    with pytest.raises(ConfigError, match="INTERPOSE_PORT"):
        load_settings(folders, {"INTERPOSE_PORT": "http"})


LOCAL = """
[gateway]
host = "0.0.0.0"
unjudged_paths = "refuse"

[gateway.clients]
ci = "sha256:{digest}"

[upstreams]
gemini = "http://127.0.0.1:1/g"

[upstreams.local]
base_url = "http://127.0.0.1:11434"
api = "openai"
models = ["llama*", "qwen*"]
key_env = "LOCAL_KEY"
retries = 3

[upstreams.anthropic]
read_timeout_s = 30.5
"""


def test_upstreams_with_a_table(folders: Folders) -> None:
    """A table makes an upstream of its own, or changes a provider's; every key is shown with its source."""
    write(folders, LOCAL.format(digest=digest_of_secret("t")))

    settings = load_settings(folders, {})

    own = Upstreams(gemini=settings.file.upstreams.gemini)
    local, anthropic = targets(settings.tables, own, settings.source, {"LOCAL_KEY": "k"})
    assert local == Target("local", "openai", "http://127.0.0.1:11434", models=("llama*", "qwen*"), key="k", retries=3)
    assert anthropic == Target("anthropic", "anthropic", "https://api.anthropic.com", read_timeout_s=30.5)
    assert "'k'" not in repr(local)
    rows = {key: (value, origin) for key, value, origin in settings.rows()}
    where = str(folders.config_file)
    assert rows["upstreams.local.models"] == (["llama*", "qwen*"], where)
    assert rows["upstreams.anthropic.read_timeout_s"] == (30.5, where)
    assert rows["upstreams.local.ca_file"] == (None, "default")
    assert rows["gateway.clients.ci"][1] == where
    moved = load_settings(folders, {"INTERPOSE_UPSTREAM_ANTHROPIC": "http://x"})
    told = gateway_settings(moved, host="127.0.0.1", environ={"LOCAL_KEY": "k"})
    assert told.upstreams.chosen("anthropic", "m").base_url == "http://x"


def test_a_variable_moves_an_upstream_and_keeps_the_rest_of_its_table(folders: Folders) -> None:
    """Where to is one thing; with which key, certificates and times is another."""
    write(folders, '[upstreams.openai]\nbase_url = "http://a"\nkey_env = "K"\nretries = 4\n')
    settings = load_settings(folders, {"INTERPOSE_UPSTREAM_OPENAI": "http://b"})
    (target,) = targets(settings.tables, Upstreams(), settings.source, {"K": "k"})

    assert target == Target("openai", "openai", "http://b", key="k", retries=4)
    rows = {key: (value, origin) for key, value, origin in settings.rows()}
    assert rows["upstreams.openai.base_url"] == ("http://b", "INTERPOSE_UPSTREAM_OPENAI")
    assert rows["upstreams.openai.retries"] == (4, str(folders.config_file))


def test_a_key_or_certificate_that_is_not_there_is_named(folders: Folders) -> None:
    """Both are found wrong before the gateway starts, not at the first request, and where the setting stands."""
    file = folders.config_file
    write(folders, LOCAL.format(digest=digest_of_secret("t")))
    with pytest.raises(ConfigError, match="LOCAL_KEY") as no_key:
        gateway_settings(load_settings(folders, {}), host="127.0.0.1", environ={})

    file.write_text(f'[upstreams.openai]\nca_file = "{file}"\n')
    with pytest.raises(ConfigError, match="PEM") as no_certificate:
        gateway_settings(load_settings(folders, {}), host="127.0.0.1")
    assert no_key.value.where == f"{file}:16: upstreams.local.key_env"
    assert str(no_certificate.value).startswith(f"{file}:2: upstreams.openai.ca_file: {file} cannot be read")


def test_beyond_this_machine_everybody_needs_a_token(folders: Folders) -> None:
    """An address that others reach is only possible with clients, and then every request needs a token."""
    folders.config.mkdir()
    folders.config_file.write_text(f'[gateway]\nhost = "::"\n[gateway.clients]\nci = "sha256:{"A" * 64}"\n')
    settings = load_settings(folders, {})

    far = gateway_settings(settings, host=settings.file.gateway.host)
    near = gateway_settings(settings, host="127.0.0.1")

    assert (far.demands_token, far.allowed_hosts) == (True, None)
    assert near.demands_token is False
    assert near.allowed_hosts is not None
    assert far.clients == {"ci": "A" * 64}
