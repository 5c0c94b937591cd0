"""Snapshot folders that a folder argument stands for. Nothing is changed; every function blocks."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from rlmm.base.folder_lock import LOCK, folder_lock, owner, snapshots_lock
from rlmm.cli.snapshot.service_requests import REPORT
from rlmm.errors import ConfigError, FolderInUse
from rlmm.partition_log.names import LOCK as LOG_LOCK
from rlmm.partition_log.root import holds_a_log
from rlmm.process.wiring import CLUSTERS_FOLDER, LOG_FOLDER, SNAPSHOT_FOLDER
from rlmm.snapshot.catalog import identity_folders
from rlmm.snapshot.folder_check import matching_folders

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_EMPTY = {LOCK, REPORT, "lost+found"}
"""What an empty folder may hold: traces of a service that kept nothing, or of a file system."""


def snapshot_roots(folder: Path) -> list[Path]:
    """Return every snapshot folder that *folder* stands for. Raises `ConfigError` without any."""
    if not folder.is_dir():
        msg = f"{folder}: no such folder"
        raise ConfigError(msg)
    roots = [root for root in (folder, *_roots_of_data(folder)) if identity_folders(root)]
    if not roots:
        msg = (
            f"{folder} holds no snapshots: neither itself, nor in {SNAPSHOT_FOLDER} "
            f"or {CLUSTERS_FOLDER}/NAME/{SNAPSHOT_FOLDER}, where a data folder has them"
        )
        raise ConfigError(msg)
    return roots


def chosen_root(folder: Path, cluster_id: str | None, topic_id: str | None) -> Path:
    """Return the folder with the snapshots of the requested log, else raise `ConfigError`."""
    found = [
        (root, log)
        for root in snapshot_roots(folder)
        for log in matching_folders(root, cluster_id, topic_id)
    ]
    if not found:
        msg = f"{folder} holds no snapshots of such a log"
        raise ConfigError(msg)
    if len(found) > 1:
        names = ", ".join(str(log.relative_to(folder)) for _, log in found)
        msg = f"{folder} holds snapshots of {len(found)} logs, say which cluster and topic: {names}"
        raise ConfigError(msg)
    return found[0][0]


def root_to_fill(folder: Path) -> Path:
    """
    Return the folder for snapshots in *folder*, a snapshot folder or a data folder. Raises
    `ConfigError` for a log or a folder in one, for a data folder of several clusters, and for other
    content.
    """
    place = folder.resolve()
    _require_no_log(place)
    if identity_folders(folder) or place.name == SNAPSHOT_FOLDER:
        return folder
    if place.name == CLUSTERS_FOLDER:
        msg = f"{folder} is where the data folders of clusters are: name that of one, below it"
        raise ConfigError(msg)
    if _is_data_folder(place):
        return folder / SNAPSHOT_FOLDER
    clusters = _clusters_of(folder)
    if clusters:
        names_said = ", ".join(str(cluster) for cluster in clusters)
        msg = f"{folder} is the data folder of several clusters, name that of one: {names_said}"
        raise ConfigError(msg)
    others = {entry.name for entry in folder.iterdir()} - _EMPTY if folder.is_dir() else set()
    if others:
        msg = (
            f"{folder} is neither a data folder nor one of snapshots: it holds {len(others)} other "
            f"entries, e.g. {min(others)}; name an empty folder, or one that does not exist yet"
        )
        raise ConfigError(msg)
    return folder / SNAPSHOT_FOLDER


def _is_data_folder(place: Path) -> bool:
    if place.parent.name == CLUSTERS_FOLDER:
        return True
    return any((place / name).is_dir() for name in (SNAPSHOT_FOLDER, LOG_FOLDER))


def _require_no_log(place: Path) -> None:
    """Refuse a log: with other files in its folder it could not be opened any more."""
    data = place.parent
    is_data = (data / LOCK).exists() or (data / SNAPSHOT_FOLDER).is_dir()
    if place.name == LOG_FOLDER and (is_data or data.parent.name == CLUSTERS_FOLDER):
        msg = f"{place} is where the log of {data} is kept, which must hold nothing else"
        raise ConfigError(f"{msg}: name {data}")
    for one in (place, *place.parents):
        if holds_a_log(one) or (one == place and (one / LOG_LOCK).exists()):
            is_itself = one == place
            msg = f"{place} {'is a log' if is_itself else f'lies in {one}, which is a log'}"
            raise ConfigError(f"{msg}, which must hold nothing else: name another folder")


@contextmanager
def held_alone(root: Path) -> Iterator[None]:
    """Lock *root* against other writers. Raises `FolderInUse` with the process that holds it."""
    place = root.resolve()
    held_as_well = [place]
    if place.name == SNAPSHOT_FOLDER:
        held_as_well.append(place.parent)
        if place.parent.parent.name == CLUSTERS_FOLDER:
            held_as_well.append(place.parents[2])
    with ExitStack() as held:
        for one in (place, *place.parents):
            if not (one / LOCK).exists():
                continue  # nobody ever held it; it is not ours to begin
            holder = owner(one)
            if holder is not None:
                msg = f"{one} is in use by {holder}, which keeps snapshots there: stop it first"
                raise FolderInUse(msg)
            if one in held_as_well:
                held.enter_context(snapshots_lock(one) if one == place else folder_lock(one))
        yield


def _roots_of_data(folder: Path) -> list[Path]:
    data = (folder, *_clusters_of(folder))
    return [one / SNAPSHOT_FOLDER for one in data]


def _clusters_of(folder: Path) -> list[Path]:
    clusters = folder / CLUSTERS_FOLDER
    if not clusters.is_dir():
        return []
    return sorted(entry for entry in clusters.iterdir() if entry.is_dir())
