"""The check of a snapshot folder: each file's header, or why it is not used. Read-only. Blocks."""

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
    name: str
    size_bytes: int
    header: SnapshotHeader | None
    error: SnapshotError | OSError | None = None

    @property
    def is_good(self) -> bool:
        return self.error is None


def stored_in(folder: Path, disk: SnapshotDisk = SNAPSHOT_DISK) -> Iterator[CatalogEntry]:
    """Yield the snapshots of one log, the newest of each metadata partition first."""
    catalog = Catalog(folder, disk)
    for partition in catalog.partitions():
        yield from catalog.newest_first(partition)


def stored_below(root: Path, disk: SnapshotDisk = SNAPSHOT_DISK) -> Iterator[CatalogEntry]:
    for folder in identity_folders(root):
        yield from stored_in(folder, disk)


def matching_folders(root: Path, cluster_id: str | None, topic_id: str | None) -> list[Path]:
    """Return the folders below *root* with snapshots of the cluster and topic; `None`: of any."""
    return [
        folder
        for folder in identity_folders(root)
        if (cluster_id is None or folder.parent.name == cluster_folder(cluster_id))
        and (topic_id is None or folder.name == topic_id)
    ]


def chosen_folder(root: Path, cluster_id: str | None, topic_id: str | None) -> Path:
    """Return the folder of the chosen log. Raises `ConfigError` for none or several."""
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
    """Return the header, by its own checksum; the rest is not read."""
    return _judge_stored(stored, disk, whole=False)


def examine(stored: CatalogEntry, disk: SnapshotDisk = SNAPSHOT_DISK) -> CheckedSnapshot:
    """Verify all of the file, to the last row."""
    return _judge_stored(stored, disk, whole=True)


def examine_stranger(name: str, opener: Opener) -> CheckedSnapshot:
    """Verify all of a file from outside; ignores its name."""
    return _judge_stranger(name, opener, whole=True)


def glance_stranger(name: str, opener: Opener) -> CheckedSnapshot:
    """Return the header of a file from outside; ignores its name."""
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
