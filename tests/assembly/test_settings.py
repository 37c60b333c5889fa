"""assembly.settings: what is in force, where it came from, and what is refused."""

import pytest

from interpose.assembly.folders import Folders
from interpose.assembly.settings import load_settings
from interpose.contracts.errors import ConfigError


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
