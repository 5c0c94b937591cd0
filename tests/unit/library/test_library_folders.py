"""The folders that the library is opened on, and the lock of one process for one folder."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import rlmm
from rlmm.base.folder_lock import LOCK, folder_lock, owner_pid
from rlmm.engine.engine import EngineSettings
from rlmm.engine.plan import EnginePlan, LogOpener
from rlmm.engine.service import Service
from rlmm.errors import ConfigError, FolderInUse, InvalidArgument, LogUnavailable
from rlmm.library.remote_log_metadata import open_metadata
from rlmm.log.files.files_log import FilesLog
from rlmm.log.memory.memory_log import MemoryLog
from rlmm.log.memory.topic import MemoryTopic
from rlmm.metadata.assignment import Assignment
from rlmm.snapshot.settings import SnapshotSettings
from tests.support.blocking import nothing_blocks
from tests.support.builders import started
from tests.support.engines import ROOM

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["nothing_blocks"]

SETTINGS = EngineSettings(snapshot=SnapshotSettings(free_bytes_min=0), memory=ROOM)


def all_below(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


def memory_log() -> MemoryLog:
    return MemoryLog(MemoryTopic(2))


async def owner_of(folder: Path) -> int | None:
    return await asyncio.to_thread(owner_pid, folder)


def plan_with(snapshots: Path) -> EnginePlan:
    async def opened() -> LogOpener:
        return LogOpener(memory_log())

    return EnginePlan(
        "memory", opened, Assignment.everything(), SETTINGS, snapshots, is_observer=False
    )


async def test_open_when_the_snapshots_are_another_ones_then_is_refused_by_name(
    tmp_path: Path,
) -> None:
    """A second library on one folder of snapshots is refused until the first one leaves it."""
    kept = tmp_path / "kept"
    async with open_metadata(memory_log(), snapshots=kept, settings=SETTINGS):
        with pytest.raises(FolderInUse, match=f"{kept} is in use by process {os.getpid()}"):
            async with open_metadata(tmp_path / "log", snapshots=str(kept), settings=SETTINGS):
                pass
        assert await owner_of(kept) == os.getpid()
    assert await owner_of(kept) is None
    async with open_metadata(tmp_path / "log", snapshots=kept, settings=SETTINGS) as metadata:
        await metadata.add_segment(started("a"))


async def test_open_when_a_service_has_the_folder_then_is_refused(tmp_path: Path) -> None:
    """A service holds its snapshots folder as a library does, and frees it at its end."""
    service = Service({})
    await service.add(plan_with(tmp_path))
    with pytest.raises(FolderInUse, match="in use"):
        async with open_metadata(memory_log(), snapshots=tmp_path, settings=SETTINGS):
            pass
    await service.close()
    async with open_metadata(memory_log(), snapshots=tmp_path, settings=SETTINGS):
        other = Service({})
        with pytest.raises(FolderInUse, match="in use"):
            await other.add(plan_with(tmp_path))
        await other.close()


async def test_open_when_it_fails_after_the_lock_then_gives_the_folder_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An opening that fails releases the lock of the folder."""

    def failing(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr("rlmm.library.remote_log_metadata.Engine", failing)
        with pytest.raises(ZeroDivisionError):
            async with open_metadata(tmp_path / "log", snapshots=tmp_path / "kept"):
                pass
    async with open_metadata(tmp_path / "log", snapshots=tmp_path / "kept"):
        pass


async def test_open_when_the_folder_of_snapshots_cannot_be_written_then_goes_on_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing snapshot costs a replay, and no more than that."""
    opens = os.open

    def opened(path: Any, flags: int, *arguments: int, **named: Any) -> int:
        if str(path).endswith(LOCK):
            raise PermissionError(13, "Permission denied")
        return opens(path, flags, *arguments, **named)

    monkeypatch.setattr(os, "open", opened)
    async with open_metadata(memory_log(), snapshots=tmp_path, settings=SETTINGS) as metadata:
        await metadata.add_segment(started("a"))


PLACES: dict[str, tuple[str, str]] = {
    "snapshots-in-the-log": ("log", "log/snapshots"),
    "snapshots-deep-in-the-log": ("log", "log/a/b"),
    "the-same": ("log", "log"),
    "the-same-said-in-another-way": ("log", "other/../log"),
    "log-in-the-snapshots": ("kept/log", "kept"),
    "by-a-link": ("log", "link/snapshots"),
}


@pytest.mark.parametrize("is_open", [False, True], ids=["folder", "open-log"])
@pytest.mark.parametrize(("log", "snapshots"), PLACES.values(), ids=PLACES)
async def test_open_when_one_folder_lies_in_the_other_then_is_refused_with_nothing_made(
    tmp_path: Path, log: str, snapshots: str, is_open: bool
) -> None:
    """A folder of logs that holds other files would never open again."""
    (tmp_path / "link").symlink_to(tmp_path / "log")
    given: Path | FilesLog = tmp_path / log
    if is_open:
        given = await FilesLog.open(tmp_path / log, partition_count=2)
    before = all_below(tmp_path)
    with pytest.raises(ConfigError, match="need folders beside each other"):
        async with open_metadata(given, snapshots=tmp_path / snapshots, settings=SETTINGS):
            pass
    assert all_below(tmp_path) == before
    if isinstance(given, FilesLog):
        await given.close()
    async with open_metadata(tmp_path / log, snapshots=tmp_path / "beside", settings=SETTINGS):
        pass


OPENINGS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "number": lambda _: {"log": 42},
    "none": lambda _: {"log": None},
    "bytes": lambda _: {"log": b"log"},
    "class": lambda _: {"log": MemoryLog},
    "half-a-log": lambda path: {"log": (path / "file").open("wb")},
    "snapshots": lambda path: {"log": path / "log", "snapshots": 42},
}


@pytest.mark.parametrize("opening", OPENINGS.values(), ids=OPENINGS)
async def test_open_when_given_what_is_no_log_then_is_an_invalid_argument(
    tmp_path: Path, opening: Callable[[Path], dict[str, Any]]
) -> None:
    """The library refuses an object that is no log at once and opens nothing."""
    given = opening(tmp_path)
    with pytest.raises(InvalidArgument, match=r"must be a folder or .*, got "):
        async with rlmm.open(**given):
            pass
    assert not (tmp_path / "log").exists()
    if hasattr(given["log"], "close") and not isinstance(given["log"], type):
        given["log"].close()


HOLD = """
import sys
from pathlib import Path
from rlmm.base.folder_lock import folder_lock
with folder_lock(Path(sys.argv[1]), is_observer="observer" in sys.argv):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("kind", ["writer", "observer"])
def test_lock_when_held_by_another_process_then_is_refused_with_its_pid(
    tmp_path: Path, kind: str
) -> None:
    """The refusal names the folder, the owner and the remedy."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path), kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        assert owner_pid(tmp_path) == other.pid
        with (
            pytest.raises(ConfigError, match=f"in use by process {other.pid}; choose another"),
            folder_lock(tmp_path),
        ):
            pass
        other.kill()
    assert owner_pid(tmp_path) is None
    with folder_lock(tmp_path):
        assert owner_pid(tmp_path) == os.getpid()


def test_lock_when_the_folder_is_made_then_is_closed_to_other_users(tmp_path: Path) -> None:
    """A new folder is closed to other users of the machine, and an existing one keeps its mode."""
    before = os.umask(0o022)
    try:
        with folder_lock(tmp_path / "above" / "data"):
            assert (tmp_path / "above" / "data").stat().st_mode & 0o777 == 0o750
    finally:
        os.umask(before)
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o755)
    with folder_lock(tmp_path / "open"):
        assert (tmp_path / "open").stat().st_mode & 0o777 == 0o755


async def test_files_when_made_in_a_data_folder_then_all_are_closed_to_other_users(
    tmp_path: Path,
) -> None:
    """Logs, snapshots, locks and notes are closed to other users, also in an open data folder."""
    before = os.umask(0)
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(0o755)
    log, snapshots = data / "log", data / "snapshots"
    try:
        async with open_metadata(log, snapshots=snapshots, settings=SETTINGS) as metadata:
            await metadata.wait_all_ready(timeout_s=20)
            await metadata.add_segment(started("a"), timeout_s=20)
    finally:
        os.umask(before)
    made = all_below(data)
    assert {".log", ".snapshot"} <= {path.suffix for path in made}
    modes = {path: path.stat().st_mode & 0o777 for path in made}
    assert {path: mode for path, mode in modes.items() if mode & 0o027} == {}


def test_lock_when_given_back_then_nobody_holds_it(tmp_path: Path) -> None:
    """The lock file stays and names no owner."""
    folder = tmp_path / "made" / "anew"
    with folder_lock(folder):
        assert (folder / LOCK).read_text() == f"{os.getpid()}\n"
    assert owner_pid(folder) is None
    assert (folder / LOCK).read_text() == ""


def test_lock_when_the_folder_is_a_file_then_says_so(tmp_path: Path) -> None:
    """The error names the file, and nothing else is touched."""
    path = tmp_path / "file"
    path.write_text("")
    with pytest.raises(ConfigError, match="cannot be used as data_dir"), folder_lock(path):
        pass


@pytest.mark.parametrize("text", ["", "no number\n", "\xff"], ids=["empty", "words", "not ascii"])
def test_owner_when_the_file_names_none_then_there_is_none(tmp_path: Path, text: str) -> None:
    """A lock file without a process id is ignored."""
    (tmp_path / LOCK).write_text(text, encoding="latin-1")
    assert owner_pid(tmp_path) is None


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES], ids=["read-only", "denied"])
def test_lock_when_an_observer_may_not_write_then_none_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """An observer needs no lock in a read-only folder, a writer is refused, and nothing changes."""
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", read_only(number))
        with folder_lock(tmp_path, is_observer=True):
            pass
        with pytest.raises(ConfigError, match="cannot be used as data_dir"), folder_lock(tmp_path):
            pass
    assert not list(tmp_path.iterdir())


def test_lock_when_an_observer_comes_to_a_folder_in_use_then_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An observer is refused while a writer holds the folder, and observers share it."""
    with folder_lock(tmp_path), monkeypatch.context() as patch:
        patch.setattr(os, "open", read_only(errno.EROFS))
        with (
            pytest.raises(ConfigError, match=f"in use by process {os.getpid()}"),
            folder_lock(tmp_path, is_observer=True),
        ):
            pass
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", read_only(errno.EROFS))
        with folder_lock(tmp_path, is_observer=True), folder_lock(tmp_path, is_observer=True):
            pass
    assert (tmp_path / LOCK).read_text() == ""


def read_only(number: int) -> Callable[..., int]:
    """Act like `os.open` of a read-only file system."""
    opens = os.open

    def opened(path: Path, flags: int, *arguments: int) -> int:
        if flags & (os.O_RDWR | os.O_WRONLY):
            raise OSError(number, os.strerror(number))
        return opens(path, flags, *arguments)

    return opened


def full(*_: object) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("call", ["open", "pwrite"])
def test_lock_on_a_full_disk_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """The error names the full disk, is no configuration error, and leaves no lock."""

    with monkeypatch.context() as patched:
        patched.setattr(os, call, full)
        with (
            pytest.raises(LogUnavailable, match="as data_dir: No space left on device; make room"),
            folder_lock(tmp_path),
        ):
            pass
    with folder_lock(tmp_path):
        assert owner_pid(tmp_path) == os.getpid()


def test_lock_when_the_disk_of_an_observer_is_full_then_is_held_without_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An observer on a full disk holds the lock without writing its process id."""

    monkeypatch.setattr(os, "pwrite", full)
    with (
        folder_lock(tmp_path, is_observer=True),
        pytest.raises(ConfigError, match="in use by another process"),
        folder_lock(tmp_path),
    ):
        pass
