"""
The catalog of snapshots, by their paths.

    <root>/<cluster id>/<topic id>/<metadata partition>/<position, 20 digits>.snapshot

Each log has a folder of its own; names sort by position. `.tmp` files are left of a crash, `.void`
ones were set aside. Opens no file. Blocks.
"""

from __future__ import annotations

import hashlib
import logging
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from rlmm.snapshot.atomic import TEMPORARY

if TYPE_CHECKING:
    from collections.abc import Callable, Container
    from pathlib import Path

    from rlmm.log.protocol import LogIdentity
    from rlmm.snapshot.atomic import SnapshotDisk

_log = logging.getLogger(__name__)

SUFFIX: Final = ".snapshot"
VOID: Final = ".void"
_NAME = re.compile(r"(?P<position>[0-9]{20})\.snapshot(?P<mark>|\.tmp|\.void)")
_PARTITION = re.compile(r"0|[1-9][0-9]{0,9}")
_FOLDER_NAME_MAX = 120
"""Characters; file systems take 255 bytes, USTAR 155 for all the folders."""


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    path: Path
    partition: int
    position: int
    size_bytes: int


def cluster_folder(cluster_id: str) -> str:
    """Return the name of a cluster's folder: its id, with %XX for characters no name may have."""
    name = quote(cluster_id, safe="")
    if name.startswith("."):
        name = "%2E" + name[1:]
    if len(name) > _FOLDER_NAME_MAX:
        name = "%" + hashlib.sha256(cluster_id.encode()).hexdigest()
    return name


def identity_folder(root: Path, identity: LogIdentity) -> Path:
    return root / cluster_folder(identity.cluster_id) / str(identity.topic_id)


def snapshot_name(position: int) -> str:
    return f"{position:020d}{SUFFIX}"


def position_of(name: str) -> int | None:
    """Return the position in the name of a snapshot; `None` for any other name."""
    found = _NAME.fullmatch(name)
    return None if found is None or found["mark"] else int(found["position"])


def identity_folders(root: Path) -> list[Path]:
    """Return the folders of the logs with snapshots below *root*, sorted."""
    if not root.is_dir():
        return []
    clusters = (cluster for cluster in root.iterdir() if cluster.is_dir())
    topics = (topic for cluster in clusters for topic in cluster.iterdir() if topic.is_dir())
    return sorted(topic for topic in topics if _has_snapshots(topic))


def topics_remembered(root: Path, cluster_id: str) -> frozenset[str]:
    """Return the ids of a cluster's topics with a snapshot behind offset 0."""
    cluster = root / cluster_folder(cluster_id)
    folders = (folder for folder in identity_folders(root) if folder.parent == cluster)
    return frozenset(folder.name for folder in folders if _has_snapshots(folder, above=0))


def _has_snapshots(folder: Path, above: int = -1) -> bool:
    return any(
        (position := position_of(entry.name)) is not None and position > above
        for partition in folder.iterdir()
        if _PARTITION.fullmatch(partition.name) and partition.is_dir()
        for entry in partition.iterdir()
    )


class Catalog:
    def __init__(self, folder: Path, disk: SnapshotDisk) -> None:
        self.folder = folder
        self._disk = disk
        self.void: set[Path] = set()
        """Paths of snapshots that were set aside, and not written again since."""

    def folder_of(self, partition: int) -> Path:
        return self.folder / str(partition)

    def path_of(self, partition: int, position: int) -> Path:
        return self.folder_of(partition) / snapshot_name(position)

    def partitions(self) -> list[int]:
        if not self.folder.is_dir():
            return []
        names = (entry.name for entry in self.folder.iterdir() if entry.is_dir())
        return sorted(int(name) for name in names if _PARTITION.fullmatch(name))

    def newest_first(self, partition: int) -> list[CatalogEntry]:
        folder = self.folder_of(partition)
        found = [
            CatalogEntry(folder / name, partition, position, size)
            for name, size in self._sizes(folder).items()
            if (position := position_of(name)) is not None
        ]
        return sorted(found, key=lambda stored: stored.position, reverse=True)

    def sweep(self, partition: int, go_on: Callable[[], None] = lambda: None) -> list[Path]:
        """Remove the unfinished files of a crash, each after *go_on*, and return their paths."""
        left = []
        folder = self.folder_of(partition)
        for name in self._sizes(folder):
            found = _NAME.fullmatch(name)
            if found is not None and found["mark"] == TEMPORARY:
                go_on()
                self._disk.remove(folder / name)
                left.append(folder / name)
        return left

    def set_aside(self, stored: CatalogEntry) -> None:
        """Rename a snapshot so that nothing uses it again."""
        self._disk.rename(stored.path, stored.path.with_name(stored.path.name + VOID))
        self.void.add(stored.path)
        self._disk.sync_folder(stored.path.parent)

    def prune(
        self, newest: CatalogEntry, keep: int, damaged: Container[Path], foreign: Container[Path]
    ) -> None:
        """
        Remove the snapshots that *newest*, which is on the medium, replaces. *newest* and the
        *keep* - 1 sound ones before it stay. *damaged* ones and those set aside earlier go. One
        beyond *newest* is of a history that the log has lost: it is set aside. *foreign* ones stay.
        """
        folder = newest.path.parent
        gone = [
            folder / name
            for name in self._sizes(folder)
            if (found := _NAME.fullmatch(name)) is not None and found["mark"] == VOID
        ]
        left = keep - 1
        for stored in self.newest_first(newest.partition):
            if stored.path == newest.path or stored.path in foreign:
                continue
            if stored.path in damaged:
                gone.append(stored.path)
            elif stored.position > newest.position:
                _log.warning(
                    "metadata partition %d: snapshot %s is set aside, the state stands at %d",
                    stored.partition, stored.path, newest.position,
                    extra={"metadata_partition": stored.partition, "offset": stored.position},
                )  # fmt: skip
                self.set_aside(stored)
            elif left > 0:
                left -= 1
            else:
                gone.append(stored.path)
        for path in gone:
            self._disk.remove(path)

    def _sizes(self, folder: Path) -> dict[str, int]:
        return self._disk.sizes(folder) if folder.is_dir() else {}
