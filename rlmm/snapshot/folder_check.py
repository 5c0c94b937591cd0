"""
What is in a snapshot folder: every file with what it says it is, or with why it is not used.

Changes nothing. Everything blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.errors import ConfigError, SnapshotError
from rlmm.snapshot.atomic import SNAPSHOT_DISK
from rlmm.snapshot.catalog import Catalog, CatalogEntry, cluster_folder, identity_folders
from rlmm.snapshot.files import naming, opened, require_place

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rlmm.snapshot.archive import Opener
    from rlmm.snapshot.atomic import SnapshotDisk
    from rlmm.snapshot.format import SnapshotHeader


@dataclass(frozen=True, slots=True)
class CheckedSnapshot:
    """One file: what it says it is, or why it is not used."""

    name: str
    size_bytes: int
    header: SnapshotHeader | None
    error: SnapshotError | OSError | None = None

    @property
    def is_good(self) -> bool:
        """Whether nothing is wrong with it, as far as was looked."""
        return self.error is None


def stored_in(folder: Path, disk: SnapshotDisk = SNAPSHOT_DISK) -> Iterator[CatalogEntry]:
    """Yield the snapshots of one log, the newest of each metadata partition first."""
    catalog = Catalog(folder, disk)
    for partition in catalog.partitions():
        yield from catalog.newest_first(partition)


def stored_below(root: Path, disk: SnapshotDisk = SNAPSHOT_DISK) -> Iterator[CatalogEntry]:
    """Yield the snapshots of every log below *root*."""
    for folder in identity_folders(root):
        yield from stored_in(folder, disk)


def matching_folders(root: Path, cluster_id: str | None, topic_id: str | None) -> list[Path]:
    """The folders below *root* with snapshots of the cluster and topic; `None`: of any."""
    return [
        folder
        for folder in identity_folders(root)
        if (cluster_id is None or folder.parent.name == cluster_folder(cluster_id))
        and (topic_id is None or folder.name == topic_id)
    ]


def chosen_folder(root: Path, cluster_id: str | None, topic_id: str | None) -> Path:
    """The folder of the one log that is meant. Raises `ConfigError` when that is none or many."""
    found = matching_folders(root, cluster_id, topic_id)
    if len(found) == 1:
        return found[0]
    if not found:
        msg = f"{root} holds no snapshots of such a log"
        raise ConfigError(msg)
    names = ", ".join(f"{folder.parent.name}/{folder.name}" for folder in found)
    msg = f"{root} holds snapshots of {len(found)} logs, say which cluster and topic: {names}"
    raise ConfigError(msg)


def glance(stored: CatalogEntry, disk: SnapshotDisk = SNAPSHOT_DISK) -> CheckedSnapshot:
    """What its header says, by the header's own checksum; the rest is not looked at."""
    return _judge_stored(stored, disk, whole=False)


def examine(stored: CatalogEntry, disk: SnapshotDisk = SNAPSHOT_DISK) -> CheckedSnapshot:
    """What it is when everything in it is sound, to the last row."""
    return _judge_stored(stored, disk, whole=True)


def examine_stranger(name: str, opener: Opener) -> CheckedSnapshot:
    """What a file from anywhere is when everything in it is sound; its name means nothing."""
    return _judge_stranger(name, opener, whole=True)


def glance_stranger(name: str, opener: Opener) -> CheckedSnapshot:
    """What the header of a file from anywhere says; its name means nothing."""
    return _judge_stranger(name, opener, whole=False)


def _judge_stranger(name: str, opener: Opener, *, whole: bool) -> CheckedSnapshot:
    size = 0
    try:
        with opener() as file, naming(name):
            size = file.size
            return CheckedSnapshot(name, size, file.examine() if whole else file.peek())
    except (SnapshotError, OSError) as error:
        return CheckedSnapshot(name, size, None, error)


def _judge_stored(stored: CatalogEntry, disk: SnapshotDisk, *, whole: bool) -> CheckedSnapshot:
    try:
        with opened(disk, stored.path) as file:
            header = file.examine() if whole else file.peek()
            require_place(header, stored.partition, stored.position)
    except (SnapshotError, OSError) as error:
        return CheckedSnapshot(str(stored.path), stored.size_bytes, None, error)
    return CheckedSnapshot(str(stored.path), stored.size_bytes, header)
