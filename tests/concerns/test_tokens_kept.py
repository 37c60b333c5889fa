"""Static tokens and the places where tokens are kept."""

import json
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from keyring.backend import KeyringBackend
from keyring.backends.fail import Keyring as NoKeyring
from keyring.errors import PasswordDeleteError

from interpose.concerns.auth.keyrings import KeyringTokenStore
from interpose.concerns.auth.static import StaticCredentials, variable
from interpose.concerns.auth.stores import FileTokenStore, MemoryTokenStore
from interpose.concerns.auth.tokens import seconds
from interpose.contracts.auth import CredentialProvider, TokenStore
from interpose.contracts.errors import ConfigError, StorageError


class DictKeyring(KeyringBackend):
    """A keyring in memory."""

    priority = 0.1

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.entries: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        """The entry."""
        return self.entries.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        """Keeps it."""
        self.entries[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        """Removes it."""
        if self.entries.pop((service, username), None) is None:
            raise PasswordDeleteError("not found")


@pytest.fixture(params=["memory", "file", "keyring"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> TokenStore:
    """Each kind of store, empty."""
    match request.param:
        case "memory":
            return MemoryTokenStore()
        case "file":
            return FileTokenStore(tmp_path / "tokens")
        case _:
            return KeyringTokenStore(backend=DictKeyring())


def test_a_store_keeps_what_was_written_last(store: TokenStore) -> None:
    """By key, as a copy; what is forgotten is gone, and forgetting twice is fine."""
    assert isinstance(store, TokenStore)
    value: dict[str, Any] = {"access": "a", "expires_at": 1.5, "refresh": None}
    assert store.read("k") is None
    store.write("k", value)
    value["access"] = "changed"
    store.write("other", {"x": "ü"})
    assert store.read("k") == {"access": "a", "expires_at": 1.5, "refresh": None}
    assert store.read("other") == {"x": "ü"}
    store.write("k", {})
    assert store.read("k") == {}
    store.delete("k")
    store.delete("k")
    assert store.read("k") is None
    assert store.read("other") == {"x": "ü"}


def only_file(folder: Path) -> Path:
    """The one file in the folder."""
    (file,) = folder.iterdir()
    return file


def test_files_are_ours_alone(tmp_path: Path) -> None:
    """Folder 0700 and file 0600 whatever the umask, no key in a name, nothing left beside."""
    folder = tmp_path / "deep" / "tokens"
    before = os.umask(0)
    try:
        FileTokenStore(folder).write("a key / with ../ odd things", {"x": 1})
    finally:
        os.umask(before)
    file = only_file(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "key" not in file.name


def test_a_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    """The error names the file and the way out."""
    store = FileTokenStore(tmp_path / "tokens")
    store.write("k", {"x": 1})
    file = only_file(tmp_path / "tokens")
    file.chmod(0o644)
    with pytest.raises(StorageError, match=rf"{file}: others may read or change it \(chmod 600"):
        store.read("k")


def test_a_folder_that_is_open_to_others_is_refused(tmp_path: Path) -> None:
    """Before anything is written or read; the error names the folder and the way out."""
    folder = tmp_path / "tokens"
    folder.mkdir()
    folder.chmod(0o777)
    store = FileTokenStore(folder)

    with pytest.raises(StorageError, match=rf"{folder}: is open to others \(chmod 700, or give another folder\)"):
        store.write("k", {"x": 1})
    with pytest.raises(StorageError, match="is open to others"):
        store.read("k")

    assert list(folder.iterdir()) == []
    folder.chmod(0o700)
    store.write("k", {"x": 1})
    assert store.read("k") == {"x": 1}


def test_a_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    """Who made the link decides where tokens go; the folder itself may be given."""
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "tokens").symlink_to(tmp_path / "real")
    store = FileTokenStore(tmp_path / "tokens")

    uses: list[Callable[[str], object]] = [store.read, lambda key: store.write(key, {"x": 1})]
    for use in uses:
        with pytest.raises(StorageError, match=r"tokens: is a link \(give the folder that it leads to\)"):
            use("k")

    assert list((tmp_path / "real").iterdir()) == []


def test_a_key_that_is_no_text_is_named(tmp_path: Path) -> None:
    """A half of a surrogate pair in a key is an error of the store, whatever is done with it."""
    store = FileTokenStore(tmp_path / "tokens")

    uses: list[Callable[[str], object]] = [store.read, store.delete, lambda key: store.write(key, {})]
    for use in uses:
        with pytest.raises(StorageError, match="half a surrogate pair at 1"):
            use("a\ud800")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    """Whatever its mode."""
    store = FileTokenStore(tmp_path / "tokens")
    store.write("k", {"x": 1})
    os.chown(tmp_path / "tokens", 12345, -1)

    with pytest.raises(StorageError, match="tokens: belongs to another user"):
        store.read("k")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    """Whatever its mode."""
    store = FileTokenStore(tmp_path / "tokens")
    store.write("k", {"x": 1})
    os.chown(only_file(tmp_path / "tokens"), 12345, -1)
    with pytest.raises(StorageError, match="belongs to another user"):
        store.read("k")


def test_a_link_in_place_of_a_file_is_refused(tmp_path: Path) -> None:
    """Nobody makes us read or overwrite another file."""
    store = FileTokenStore(tmp_path / "tokens")
    store.write("k", {"x": 1})
    file = only_file(tmp_path / "tokens")
    target = tmp_path / "target"
    file.rename(target)
    file.symlink_to(target)
    with pytest.raises(StorageError, match="cannot be read"):
        store.read("k")
    store.write("k", {"x": 2})
    assert json.loads(target.read_text()) == {"x": 1}
    assert store.read("k") == {"x": 2}


@pytest.mark.parametrize("text", ["", "{", "[]", "null"])
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    """With the way out."""
    store = FileTokenStore(tmp_path / "tokens")
    store.write("k", {"x": 1})
    file = only_file(tmp_path / "tokens")
    file.write_text(text)
    with pytest.raises(StorageError, match=rf"{file}: is no JSON.*sign in again"):
        store.read("k")


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """A file in its place, here."""
    (tmp_path / "tokens").write_text("")
    with pytest.raises(StorageError, match="cannot be written"):
        FileTokenStore(tmp_path / "tokens").write("k", {})
    with pytest.raises(StorageError, match="cannot be removed"):
        FileTokenStore(tmp_path / "tokens").delete("k")


def test_readers_never_see_half_a_file(tmp_path: Path) -> None:
    """While others write, each read gives one whole value."""
    store = FileTokenStore(tmp_path / "tokens")
    store.write("k", {"x": "0" * 4000})
    over = threading.Event()

    def write() -> None:
        for number in range(100):
            store.write("k", {"x": str(number % 10) * 4000})
        over.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not over.is_set():
        value = store.read("k")
        assert value is not None
        assert len(set(value["x"])) == 1
    writer.join()


def test_without_a_keyring_the_error_names_the_other_store() -> None:
    """Reading, writing and forgetting alike."""
    store = KeyringTokenStore(backend=NoKeyring())  # type: ignore[no-untyped-call]
    attempts: list[Callable[[], object]] = [
        lambda: store.read("k"),
        lambda: store.write("k", {}),
        lambda: store.delete("k"),
    ]
    for attempt in attempts:
        with pytest.raises(StorageError, match=r"the keyring cannot be used: .*use FileTokenStore"):
            attempt()


def test_a_keyring_entry_that_stays_is_named() -> None:
    """Nobody believes that a token is forgotten when it is not."""

    class Stubborn(DictKeyring):
        def delete_password(self, service: str, username: str) -> None:
            raise PasswordDeleteError("not now")

    store = KeyringTokenStore(backend=Stubborn())
    store.write("k", {})
    with pytest.raises(StorageError, match="the keyring's entry 'k' of interpose: cannot be removed"):
        store.delete("k")


def test_a_damaged_keyring_entry_is_named() -> None:
    """An entry that somebody else wrote."""
    backend = DictKeyring()
    backend.set_password("interpose", "k", "no json")
    with pytest.raises(StorageError, match="the keyring's entry 'k' of interpose: is no JSON object"):
        KeyringTokenStore(backend=backend).read("k")


def test_static_tokens_come_from_the_mapping_then_the_environment() -> None:
    """An empty one does not count; without any the error names the variable."""
    credentials = StaticCredentials({"mail": "given", "empty": ""}, environ={"INTERPOSE_TOKEN_REPO_READ_V1": "found"})
    assert isinstance(credentials, CredentialProvider)
    assert credentials.get_token("mail") == "given"
    assert credentials.get_token("repo:read.v1") == "found"
    credentials.invalidate_token("mail")
    assert credentials.get_token("mail") == "given"
    with pytest.raises(ConfigError, match=r"the token for 'empty': there is none \(set INTERPOSE_TOKEN_EMPTY\)"):
        credentials.get_token("empty")


@given(st.text())
def test_every_scope_has_a_variable_that_can_be_set(scope: str) -> None:
    """Capitals, digits and underscores alone."""
    assert set(variable(scope)) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


@given(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.integers())))
def test_a_span_is_a_finite_number_from_zero_or_nothing(value: Any) -> None:
    """Whatever a server writes there."""
    span = seconds(value)
    assert span is None or 0 <= span < float("inf")


def test_spans_are_read_as_servers_write_them() -> None:
    """Numbers and texts of numbers; anything else is nothing."""
    assert [seconds(value) for value in (0, 1.5, "90", " 7 ")] == [0.0, 1.5, 90.0, 7.0]
    assert [seconds(value) for value in (True, None, "soon", "", -1, "nan", "inf", 10**400, [1])] == [None] * 9


@pytest.mark.parametrize(
    ("tokens", "kind"), [({"mail": b"t"}, "bytes"), ({"mail": None}, "NoneType"), ({5: "t"}, "int")]
)
def test_a_token_that_is_no_text_is_refused_at_once(tokens: Any, kind: str) -> None:
    """By its scope, and its value is not told."""
    with pytest.raises(ConfigError, match=rf"the token for .*: is given as {kind} \(give a scope's name"):
        StaticCredentials(tokens)
