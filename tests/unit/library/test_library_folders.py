"""The folders that the library is opened on: whose they are, and which cannot go together."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import pytest

import rlmm
from rlmm.base.folder_lock import LOCK, owner_pid
from rlmm.engine.engine import EngineSettings
from rlmm.engine.plan import EnginePlan, LogOpener
from rlmm.engine.service import Service
from rlmm.errors import ConfigError, FolderInUse, InvalidArgument
from rlmm.library.remote_log_metadata import open_metadata
from rlmm.log.files.files_log import FilesLog
from rlmm.log.memory.memory_log import MemoryLog
from rlmm.log.memory.topic import MemoryTopic
from rlmm.metadata.assignment import Assignment
from rlmm.snapshot.settings import SnapshotSettings
from tests.support.builders import started
from tests.support.engines import ROOM

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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


async def test_open_when_snapshots_are_in_use_then_refused_by_name(tmp_path: Path) -> None:
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


async def test_open_when_a_service_has_the_folder_then_refused(tmp_path: Path) -> None:
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
