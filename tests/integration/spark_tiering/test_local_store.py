"""Local store: leftovers, rights, full disks, and names that files cannot have."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import (
    ConfigError,
    StoreAbsent,
    StoreNotPermitted,
    StoreUnavailable,
    StoreUnsuitable,
)
from spark_tiering.stores.local import WRITING, LocalStore
from spark_tiering.stores.local_settings import LocalSettings
from spark_tiering.stores.opening import open_store, parse_store, process_store
from spark_tiering.stores.results import PutRefusal, PutRefused, PutUnknown
from spark_tiering.stores.s3 import S3Store
from spark_tiering.stores.s3_settings import S3Settings
from tests.support.stores.stores_under_test import bytes_of, content

if TYPE_CHECKING:
    from collections.abc import Callable

KEY = "topic-id/0/segment.log"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "objects"


@pytest.fixture
def store(folder: Path) -> LocalStore:
    return LocalStore(LocalSettings(folder))


def failing(error: OSError) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


def test_written_object_is_a_plain_file_alone(folder: Path, store: LocalStore) -> None:
    """An object is a plain file at the path of its key, and temporary files are gone."""
    store.put(KEY, content(100))
    assert (folder / KEY).read_bytes() == bytes_of(content(100))
    assert not list((folder / WRITING).iterdir())


def test_f121_leftovers_of_a_killed_writer_are_no_objects(folder: Path, store: LocalStore) -> None:
    """A file that a killed writer never renamed is listed as an unfinished upload only."""
    left = folder / WRITING / "killed" / KEY
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half of it")
    store.put(f"{KEY}.other", content(1))
    for prefix in ("", ".", ".rlmm-", f"{WRITING}/killed/"):
        keys = [listed.key for listed in store.list(prefix)]
        assert keys == ([f"{KEY}.other"] if not prefix else [])
    (upload,) = store.open_uploads()
    assert upload.key == KEY
    store.abort_upload(upload)
    assert not list((folder / WRITING).iterdir())


def test_put_when_synced_syncs_the_file_before_its_name_and_the_folders_after(
    folder: Path, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A put syncs the file before it renames it and syncs the folders afterwards."""
    steps: list[str] = []
    link, fsync = os.link, os.fsync

    def linked(source: Path, target: Path) -> None:
        steps.append("link")
        link(source, target)

    def synced(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        steps.append("file" if path.is_file() else str(path.relative_to(folder)))
        fsync(descriptor)

    monkeypatch.setattr(os, "link", linked)
    monkeypatch.setattr(os, "fsync", synced)
    store.put(KEY, content(100))
    assert steps == ["file", ".", "topic-id", "link", "topic-id/0"]


@pytest.mark.parametrize(
    ("call", "number", "reason"),
    [
        ("fsync", errno.ENOSPC, PutRefusal.NO_ROOM),
        ("link", errno.ENOSPC, PutRefusal.NO_ROOM),
        ("link", errno.EDQUOT, PutRefusal.NO_ROOM),
        ("link", errno.ENOENT, PutRefusal.SWEPT),
    ],
)
def test_put_when_the_disk_refuses_is_refused_and_leaves_nothing(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, call: str, number: int, reason: PutRefusal
) -> None:
    """A full disk refuses the put and leaves no file."""
    monkeypatch.setattr(os, call, failing(OSError(number, os.strerror(number))))
    outcome = store.put(KEY, content(100))
    assert isinstance(outcome, PutRefused)
    assert outcome.reason is reason
    monkeypatch.undo()
    assert list(store.list()) == []
    assert list(store.open_uploads()) == []


@pytest.mark.parametrize(
    ("call", "number", "error"),
    [
        ("link", errno.ENOTSUP, StoreUnsuitable),
        ("link", errno.EIO, StoreUnavailable),
        ("link", errno.EACCES, StoreNotPermitted),
        ("fsync", errno.EROFS, StoreNotPermitted),
    ],
)
def test_put_when_the_folder_cannot_be_written_raises_for_the_store(
    store: LocalStore,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    number: int,
    error: type[Exception],
) -> None:
    """A put into an unwritable folder is an error of the store and leaves nothing."""
    monkeypatch.setattr(os, call, failing(OSError(number, os.strerror(number))))
    with pytest.raises(error, match="objects"):
        store.put(KEY, content(100))
    monkeypatch.undo()
    assert list(store.list()) == []
    assert list(store.open_uploads()) == []


def test_f126_put_when_the_name_cannot_be_synced_is_unknown(
    folder: Path, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A put whose name could not be synced is unknown: it may not survive a power loss."""
    store.put(f"{KEY}.before", content(1))
    fsync = os.fsync

    def synced(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").readlink().is_dir():
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", synced)
    assert isinstance(store.put(KEY, content(100)), PutUnknown)


@pytest.mark.parametrize("key", ["a/x/y", "long/" + "x" * 300], ids=["below-an-object", "long"])
def test_key_that_no_file_can_have_when_written_is_refused(store: LocalStore, key: str) -> None:
    """A key below an object, or with a too long name, is refused and reads as absent."""
    store.put("a/x", content(1))
    outcome = store.put(key, content(1))
    assert isinstance(outcome, PutRefused)
    assert outcome.reason is PutRefusal.KEY
    store.delete(key)
    assert [listed.key for listed in store.list()] == ["a/x"]


def test_listing_of_a_folder_when_walked_is_in_the_order_of_bytes(store: LocalStore) -> None:
    """A listing is in byte order, with folders sorted by their slash."""
    names = ["a-b/1", "a.c", "a/1", "a/2/x", "ab", "b"]
    for name in reversed(names):
        store.put(name, content(1))
    assert [listed.key for listed in store.list()] == names


def test_folder_when_it_cannot_be_a_store_is_refused_in_one_line(tmp_path: Path) -> None:
    """A missing path or a file is refused as a store in one line."""
    with pytest.raises(StoreAbsent, match="mounted"):
        LocalStore(LocalSettings(tmp_path / "mounted" / "objects"))
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="no folder"):
        LocalStore(LocalSettings(tmp_path / "file"))


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("s3://objects/tier/", (S3Settings("objects", region="eu-west-1"), "tier/")),
        ("s3://objects", (S3Settings("objects", region="eu-west-1"), "")),
        ("/srv/objects", (LocalSettings(Path("/srv/objects")), "")),
        ("file:///srv/my%20objects", (LocalSettings(Path("/srv/my objects")), "")),
    ],
)
def test_address_of_a_store_when_read_is_its_settings_and_prefix(
    address: str, expected: tuple[S3Settings | LocalSettings, str]
) -> None:
    """An address gives bucket and prefix, or a folder."""
    assert parse_store(address, S3Settings("any", region="eu-west-1")) == expected


@pytest.mark.parametrize(
    "address", ["", "gs://objects", "s3://", "s3://name:secret@objects", "s3://a?b"]
)
def test_address_that_is_no_store_when_read_is_refused(address: str) -> None:
    """A wrong address is refused as a configuration mistake, without repeating secrets."""
    with pytest.raises(ConfigError) as caught:
        parse_store(address)
    assert "secret" not in str(caught.value)


def test_store_of_a_process_is_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process has one store for each settings."""
    settings = LocalSettings(folder)
    store = process_store(settings)
    assert process_store(LocalSettings(folder)) is store
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert process_store(settings) is not store
    with open_store(S3Settings("objects", region="us-east-1")) as opened:
        assert isinstance(opened, S3Store)
        assert repr(opened) == "S3Store('s3://objects')"
