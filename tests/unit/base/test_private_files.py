"""Owners and modes of files with secrets, and of the data folder."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest

from rlmm.access.watched_files import text_of
from rlmm.base.folder_lock import LOCK, folder_lock, owner_pid
from rlmm.base.private_files import require_own_folder, require_private
from rlmm.config.layers import toml_layer
from rlmm.errors import ConfigError, LogError
from rlmm.kafka_client.security.client_options import tls_context
from rlmm.kafka_client.security.oauth_tokens import FileTokens
from rlmm.kafka_client.settings import SecurityProtocol, SecuritySettings
from rlmm.sidecar.cluster_file import LEARNED_FILE, read_learned
from rlmm.snapshot.archive import tar_source
from rlmm.snapshot.transfer import import_from

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

OTHER = 12_345
"""A user and a group that nothing here belongs to."""


def secret(folder: Path, mode: int = 0o600) -> Path:
    path = folder / "secret"
    path.write_text("a-secret")
    path.chmod(mode)
    return path


def run_as(
    monkeypatch: pytest.MonkeyPatch, user: int, *, owner: int, group: int = OTHER, mode: int
) -> None:
    """Let this process be *user*, in group *OTHER* + 1, and every file be as said."""
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(os, "getegid", lambda: user)
    monkeypatch.setattr(os, "getgroups", lambda: [OTHER + 1])

    def stat(path: Path, **_: object) -> os.stat_result:
        found = os.stat(path)  # noqa: PTH116 - the method is what is replaced
        values = list(found)
        values[0], values[4], values[5] = found.st_mode & ~0o7777 | mode, owner, group
        return os.stat_result(values)

    for name in ("stat", "lstat"):
        monkeypatch.setattr(f"pathlib.Path.{name}", stat)


@pytest.mark.parametrize(
    ("owner", "group", "mode", "said"),
    [
        (OTHER, OTHER, 0o600, ""),
        (0, OTHER, 0o600, ""),
        (0, OTHER, 0o440, ""),
        (OTHER, OTHER + 1, 0o640, ""),
        (OTHER + 2, OTHER + 1, 0o640, "belongs to user"),
        (OTHER, OTHER + 2, 0o640, "chmod g= "),
        (0, OTHER + 1, 0o660, "chmod g-w "),
        (OTHER, OTHER, 0o604, "chmod o= "),
        (OTHER, OTHER, 0o602, "chmod o= "),
    ],
    ids=[
        "own", "of-root", "kubernetes", "our-group", "others", "other-group", "group-writes",
        "all-read", "all-write",
    ],
)  # fmt: skip
def test_secret_then_has_one_rule_for_owner_group_and_others(
    owner: int, group: int, mode: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file with secrets is ours or root's, and only a group that may know them reads it."""
    path = secret(tmp_path)
    with monkeypatch.context() as patched:
        run_as(patched, OTHER, owner=owner, group=group, mode=mode)
        if not said:
            require_private(path, "key")
            return
        with pytest.raises(ConfigError, match=said):
            require_private(path, "key")


def test_secret_when_it_is_a_clients_credential_then_its_owner_may_be_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The credentials of a client may belong to another user, and stay closed to all others."""
    path = secret(tmp_path)
    for mode, is_private in ((0o640, True), (0o644, False)):
        with monkeypatch.context() as patched:
            run_as(patched, OTHER, owner=OTHER + 2, mode=mode)
            if is_private:
                require_private(path, "key", gives_rights=False)
                continue
            with pytest.raises(ConfigError, match="every user of the machine"):
                require_private(path, "key", gives_rights=False)


def test_secret_when_mounted_by_kubernetes_then_its_links_are_followed(tmp_path: Path) -> None:
    """A secret behind the links of a mounted volume is judged by the file itself."""
    (tmp_path / "..2026_01_01").mkdir()
    secret(tmp_path / "..2026_01_01", 0o440)
    (tmp_path / "..data").symlink_to("..2026_01_01")
    link = tmp_path / "secret"
    link.symlink_to("..data/secret")
    require_private(link, "key")


@pytest.mark.parametrize(
    ("read", "refusal"),
    [
        pytest.param(lambda path: text_of(path, "the file"), ConfigError, id="watched"),
        pytest.param(lambda path: asyncio.run(FileTokens(path).token()), LogError, id="oauth"),
        pytest.param(
            lambda path: tls_context(
                SecuritySettings(SecurityProtocol.SSL, ssl_truststore_location=str(path))
            ),
            ConfigError,
            id="certificates",
        ),
        pytest.param(lambda path: read_learned(path.parent), ConfigError, id="clusters"),
        pytest.param(lambda path: import_from(path, path.parent / "to"), OSError, id="snapshot"),
        pytest.param(lambda path: list(tar_source(path, "")), OSError, id="archive"),
    ],
)
def test_file_when_a_pipe_is_in_its_place_then_its_reader_does_not_wait(
    read: Callable[[Path], object], refusal: type[Exception], tmp_path: Path
) -> None:
    """A pipe in the place of a file is refused at once, though nothing is ever written to it."""
    os.mkfifo(tmp_path / LEARNED_FILE)
    with pytest.raises(refusal, match="no regular file"):
        read(tmp_path / LEARNED_FILE)


def test_owner_when_the_lock_file_is_a_pipe_then_is_none(tmp_path: Path) -> None:
    """A pipe in the place of a lock file has no owner, and keeps no reader."""
    os.mkfifo(tmp_path / LOCK)
    assert owner_pid(tmp_path) is None


@pytest.mark.parametrize("text", ['[kafka]\n"sasl.password" = "secret-word"\n', 'mode = "serve"\n'])
def test_configuration_file_when_it_has_secrets_then_must_be_private(
    text: str, tmp_path: Path
) -> None:
    """A TOML file with a secret that every user may read is refused; one without is taken."""
    path = tmp_path / "rlmm.toml"
    path.write_text(text)
    path.chmod(0o644)
    if "password" not in text:
        assert toml_layer(path).values
        return
    with pytest.raises(ConfigError, match=r"configuration file .* every user") as found:
        toml_layer(path)
    assert "secret-word" not in str(found.value)
    path.chmod(0o600)
    assert toml_layer(path).values


def test_data_folder_when_another_user_owns_it_then_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A data folder of another user, who may have put a token into it, is refused."""
    with monkeypatch.context() as patched:
        run_as(patched, OTHER, owner=OTHER + 1, mode=0o755)
        with pytest.raises(ConfigError, match=f"belongs to user {OTHER + 1}: chown {OTHER}"):
            require_own_folder(tmp_path, "data_dir")


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_data_folder_when_others_may_write_to_it_then_refused(mode: int, tmp_path: Path) -> None:
    """A data folder that a group or every user may write to is refused before it is locked."""
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(ConfigError, match="chmod go-w"), folder_lock(folder):
        raise AssertionError
    assert list(folder.iterdir()) == []
    folder.chmod(0o750)
    with folder_lock(folder):
        assert list(folder.iterdir())


def test_data_folder_when_it_is_a_volume_of_root_then_its_mode_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An emptyDir of Kubernetes, which root owns and every user may write to, is taken."""
    with monkeypatch.context() as patched:
        run_as(patched, OTHER, owner=0, group=OTHER, mode=0o2777)
        patched.setattr("pathlib.Path.is_mount", lambda _: True)
        require_own_folder(tmp_path, "data_dir")


@pytest.mark.parametrize("at", ["log", "http.token", "clusters/a", "clusters/a/snapshots"])
def test_data_folder_when_a_part_is_a_link_then_refused(at: str, tmp_path: Path) -> None:
    """A symbolic link in the data folder is refused by its path, and followed nowhere."""
    link = tmp_path / "data" / at
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match=f"found {link}"), folder_lock(tmp_path / "data"):
        raise AssertionError
    assert not (tmp_path / "elsewhere").exists()


def test_data_folder_when_its_own_path_is_a_link_then_followed(tmp_path: Path) -> None:
    """The state folder of a systemd service, which is behind a link, is taken."""
    (tmp_path / "private").mkdir()
    (tmp_path / "data").symlink_to("private")
    with folder_lock(tmp_path / "data"):
        assert list((tmp_path / "private").iterdir())
