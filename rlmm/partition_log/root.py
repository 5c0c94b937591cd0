"""
The folder above the partitions: its lock, its check points, the mark of a clean end.

Blocking. The lock is the kernel's, so a dead process leaves no obstacle. A folder opened read-only
is neither locked nor changed.
"""

from __future__ import annotations

import fcntl
import logging
import os
import struct
from contextlib import suppress
from typing import TYPE_CHECKING

from rlmm.base.folder_lock import NO_ROOM, locked_folder, unlock
from rlmm.base.private_files import open_regular
from rlmm.errors import ConfigError, FolderInUse, LogUnavailable
from rlmm.partition_log.checkpoints import CheckpointFault, format_offsets, parse_offsets
from rlmm.partition_log.names import (
    CLEAN_END,
    LOCK,
    LOG,
    LOG_STARTS,
    RECOVERY_POINTS,
    TopicPartition,
    parse_folder,
    parse_segment_file,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rlmm.partition_log.disk import Disk

_log = logging.getLogger(__name__)

_SIGNS = {
    "meta.properties", CLEAN_END, LOCK, LOG_STARTS, RECOVERY_POINTS,
    "cleaner-offset-checkpoint", "replication-offset-checkpoint",
}  # fmt: skip
"""Files that only a folder of logs has."""
_FLOCK = struct.Struct("hhqqi4x")
_STANDARD = {"lost+found"}
"""The content of a fresh file system."""
_MARK = b'{"version":0,"brokerEpoch":-1}'


class RootFolder:
    """A folder of logs, owned by this process unless it is read-only."""

    def __init__(self, path: Path, disk: Disk, *, is_read_only: bool) -> None:
        self.path = path
        self.is_read_only = is_read_only
        self.was_clean = False
        self.recovery_points: dict[TopicPartition, int] | None = None
        """The note that was there when the folder was opened; None when it is lost."""
        self.log_starts: dict[TopicPartition, int] = {}
        self._disk = disk
        self._lock: int | None = None
        self._own_folder: int | None = None
        """The folder itself, locked: a lock file may be removed, and another one be locked."""
        self._written: dict[str, bytes] = {}

    @classmethod
    def open(cls, path: Path, disk: Disk, *, is_read_only: bool) -> RootFolder:
        """Take the folder, or make it; raises `ConfigError`, `LogUnavailable` for a full disk."""
        root = cls(path, disk, is_read_only=is_read_only)
        try:
            root._check()
            if not is_read_only:
                root._make()
                root._take_lock()
            root.read_notes()
        except OSError as error:
            root.release()
            if error.errno in NO_ROOM:
                msg = f"{path} cannot be opened: {error.strerror}; make room"
                raise LogUnavailable(msg) from error
            way_out = "" if is_read_only else "; choose another folder, or open it read-only"
            msg = f"{path} cannot be opened: {error.strerror or error}{way_out}"
            raise ConfigError(msg) from error
        except BaseException:
            root.release()
            raise
        return root

    def topic_partitions(self) -> list[TopicPartition]:
        with os.scandir(self.path) as entries:
            found = [parse_folder(entry.name) for entry in entries if entry.is_dir()]
        return sorted(name for name in found if name is not None)

    def note(
        self,
        recovery_points: Mapping[TopicPartition, int],
        log_starts: Mapping[TopicPartition, int],
    ) -> None:
        """Write the check points, those that changed, on the medium when this returns."""
        for name, offsets in ((RECOVERY_POINTS, recovery_points), (LOG_STARTS, log_starts)):
            content = format_offsets(offsets)
            if self._written.get(name) != content:
                self._disk.replace_file(self.path / name, content, sync=True)
                self._written[name] = content

    def mark_clean_end(self) -> None:
        """Mark everything as synced and noted, so that the next start may trust the files."""
        self._disk.replace_file(self.path / CLEAN_END, _MARK, sync=True)

    def release(self) -> None:
        """Give the lock back. The file stays: removing it would let two others lock two files."""
        if self._lock is not None:
            lock, self._lock = self._lock, None
            try:
                os.ftruncate(lock, 0)
            finally:
                with suppress(OSError):  # a forked child has the same open file
                    fcntl.fcntl(lock, fcntl.F_OFD_SETLK, _whole_file(fcntl.F_UNLCK))
                unlock(lock)
        if self._own_folder is not None:
            own_folder, self._own_folder = self._own_folder, None
            unlock(own_folder)

    def noted_log_start(self, name: TopicPartition) -> int:
        """Return the log start that the owner of the folder has noted by now, 0 without a note."""
        return (self._read_offsets(LOG_STARTS) or {}).get(name, 0)

    def _make(self) -> None:
        missing = [path for path in (self.path, *self.path.parents) if not path.exists()]
        self._disk.make_folder(self.path)
        for path in reversed(missing):
            self._disk.sync_folder(path.parent)

    def _check(self) -> None:
        if not self.path.exists():
            if self.is_read_only:
                raise ConfigError(f"{self.path} does not exist")
            return
        if not self.path.is_dir():
            msg = f"{self.path} is no folder; name a folder of logs, or one that does not exist yet"
            raise ConfigError(msg)
        names = {entry.name for entry in self.path.iterdir()} - _STANDARD
        if any(_is_records(name) for name in names):
            msg = f"{self.path} is the folder of one partition; name the folder above it"
            raise ConfigError(msg)
        if (
            names
            and not names & _SIGNS
            and not any(is_partition_folder(self.path / name) for name in names)
        ):
            raise ConfigError(
                f"{self.path} is no folder of logs: it holds {len(names)} other entries, "
                f"e.g. {min(names)}; name an empty folder, or one that does not exist yet"
            )

    def _take_lock(self) -> None:
        lock = open_regular(self.path / LOCK, os.O_RDWR | os.O_CREAT)
        try:
            self._own_folder = locked_folder(self.path)
            # Two kinds, which do not see each other: a broker takes the second one.
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.fcntl(lock, fcntl.F_OFD_SETLK, _whole_file(fcntl.F_WRLCK))
        except BlockingIOError as error:
            owner = _owner(lock)
            os.close(lock)
            msg = f"{self.path} is in use by {owner}; stop it, or choose another folder"
            raise FolderInUse(msg) from error
        except OSError:
            os.close(lock)
            raise
        self._lock = lock
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode("ascii"), 0)

    def read_notes(self) -> None:
        """Read the check points, which the owner of a folder opened read-only writes on."""
        self.recovery_points = self._read_offsets(RECOVERY_POINTS)
        self.log_starts = self._read_offsets(LOG_STARTS) or {}
        mark = self.path / CLEAN_END
        self.was_clean = self._disk.read_file(mark) is not None
        if self.was_clean and not self.is_read_only:
            # From now on the mark would be a lie; it must be gone before anything is written.
            self._disk.remove(mark)
            self._disk.sync_folder(self.path)

    def _read_offsets(self, name: str) -> dict[TopicPartition, int] | None:
        content = self._disk.read_file(self.path / name)
        if content is None:
            return None
        found = parse_offsets(content)
        if isinstance(found, CheckpointFault):
            _log.warning("%s: taken as missing: %s", self.path / name, found.detail)
            return None
        return found


def holds_a_log(path: Path) -> bool:
    """Return whether *path* is a folder of logs, or of one partition, as far as its names tell."""
    try:
        names = {entry.name for entry in path.iterdir()}
        if names & (_SIGNS - {LOCK}) or any(_is_records(name) for name in names):
            return True
        return any(is_partition_folder(path / name) for name in names)
    except OSError:
        return False  # not there, or not ours to look into


def is_partition_folder(folder: Path) -> bool:
    """Return whether *folder* is of one partition: by its name, and by a segment in it."""
    if parse_folder(folder.name) is None or not folder.is_dir():
        return False
    return any(parse_segment_file(entry.name) for entry in folder.iterdir())


def _is_records(name: str) -> bool:
    found = parse_segment_file(name)
    return found is not None and found[1] == LOG


def _whole_file(kind: int) -> bytes:
    return _FLOCK.pack(kind, os.SEEK_SET, 0, 0, 0)


def _owner(lock: int) -> str:
    held = _FLOCK.unpack(fcntl.fcntl(lock, fcntl.F_OFD_GETLK, _whole_file(fcntl.F_WRLCK)))
    noted = os.pread(lock, 20, 0).decode("ascii", "replace").strip()
    pid = str(held[-1]) if held[0] != fcntl.F_UNLCK and held[-1] > 0 else noted
    return f"process {pid}" if pid.isdecimal() else "another process"
