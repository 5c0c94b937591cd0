"""
Folder listing: the configured log folders' partitions, and the broker of each folder. Blocks.

It leaves out partitions that vanish and folders being deleted or moved, which have other names, and
reports partition folders that cannot be used.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from rlmm.base.java_properties import ENCODING, parse_properties
from rlmm.broker_files.disk import (
    FolderPlace,
    inner_folder,
    names_in,
    opened_folder,
    small_file,
    topic_id_of,
)
from rlmm.errors import ConfigError, FileAbsent, LogError
from rlmm.metadata.ids import TopicIdPartition
from rlmm.partition_log.checkpoints import CheckpointFault, parse_offsets
from rlmm.partition_log.names import parse_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rlmm.partition_log.names import TopicPartition

META_PROPERTIES: Final = "meta.properties"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
_CHECKPOINT_BYTES_MAX: Final = 64 * 1024 * 1024
"""Of the file with a line for each partition of a broker."""
_NODE_ID: Final = re.compile(r"[0-9]{1,10}", re.ASCII)


class BrokerFolder(NamedTuple):
    path: str
    node_id: int | None
    cluster_id: str


class FolderPartition(NamedTuple):
    """A partition in a folder; *high_watermark* is the last one that its broker checkpointed."""

    place: FolderPlace
    high_watermark: int | None


class BrokerFolders(NamedTuple):
    """The listing of all folders at one moment; *unusable* maps a place to the reason."""

    folders: list[BrokerFolder]
    partitions: list[FolderPartition]
    unusable: list[tuple[str, str]]


def list_folders(paths: Iterable[str], serves: Callable[[str], bool]) -> BrokerFolders:
    """List the partitions of the topics that *serves* names, in the folders at *paths*."""
    listed = BrokerFolders([], [], [])
    for path in paths:
        try:
            _add(path, listed, serves)
        except (FileAbsent, LogError) as error:
            listed.unusable.append((path, str(error)))
    return listed


def _add(path: str, listed: BrokerFolders, serves: Callable[[str], bool]) -> None:
    with opened_folder(path) as folder:
        names = sorted(names_in(folder, path))
        if META_PROPERTIES not in names and not any(map(parse_folder, names)):
            why = f"no log folder of a broker: it has no {META_PROPERTIES}, and no partition in it"
            listed.unusable.append((path, why))
            return
        listed.folders.append(_whose(path, folder))
        noted = _high_watermarks(path, folder)
        for name in names:
            if name.endswith("-stray"):
                why = "set aside by its broker, which was told of no such partition"
                listed.unusable.append((f"{path}/{name}", why))
            known = parse_folder(name)
            if known is None or not serves(known.topic):
                continue
            found = _partition(path, folder, known)
            if isinstance(found, str):
                listed.unusable.append((f"{path}/{name}", found))
            elif found is not None:
                listed.partitions.append(FolderPartition(found, noted.get(known)))


def _partition(path: str, folder: int, name: TopicPartition) -> FolderPlace | str | None:
    """Return a partition's folder; None if it vanished, a text if it cannot be used."""
    where = f"{path}/{name}"
    try:
        with inner_folder(folder, str(name), where) as inner:
            topic_id = topic_id_of(inner, where)
    except FileAbsent:
        return None
    except LogError as error:
        return str(error)
    if isinstance(topic_id, str):
        return topic_id
    return FolderPlace(path, TopicIdPartition(topic_id, name.topic, name.number))


def _whose(path: str, folder: int) -> BrokerFolder:
    content = small_file(folder, META_PROPERTIES, f"{path}/{META_PROPERTIES}")
    try:
        entries = parse_properties(content.decode(ENCODING))
    except ConfigError:
        entries = []
    said = {entry.key: entry.value.strip() for entry in entries}
    # Which node it is stands under the older name in folders of brokers that knew ZooKeeper.
    node = said.get("node.id") or said.get("broker.id") or ""
    return BrokerFolder(
        path, int(node) if _NODE_ID.fullmatch(node) else None, said.get("cluster.id", "")
    )


def _high_watermarks(path: str, folder: int) -> Mapping[TopicPartition, int]:
    """Return the checkpointed high watermarks; empty if unreadable, as they are only a hint."""
    content = small_file(
        folder, HIGH_WATERMARKS, f"{path}/{HIGH_WATERMARKS}", _CHECKPOINT_BYTES_MAX
    )
    noted = parse_offsets(content)
    return {} if isinstance(noted, CheckpointFault) else noted
