"""
Log folders of brokers as a source: the live ones of this machine, shared ones, or copies. A broker
may be at work in them. `-delete` and `-future` folders are no part of a log; `-stray` is reported,
because an operator has to decide. Only the small files beside the segments are read here.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rlmm.base.java_properties import ENCODING, parse_properties
from rlmm.base.private_files import read_regular
from rlmm.errors import ConfigError, LogNotPermitted, LogUnavailable
from rlmm.metadata.ids import TopicIdPartition, Uuid
from rlmm.partition_log.checkpoints import CheckpointFault, parse_offsets, parse_partition_metadata
from rlmm.partition_log.names import LOG, PARTITION_METADATA, parse_folder
from spark_tiering.segment_sources.protocol import (
    UNKNOWN_TOPIC_ID,
    FoundPartition,
    ReplicaOrigin,
    UnusablePlace,
    is_user_topic,
)
from spark_tiering.segments.log_folder import PartitionFolder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.errors import RlmmError
    from rlmm.partition_log.names import TopicPartition
    from spark_tiering.segment_sources.settings import LogDirSettings

META_PROPERTIES = "meta.properties"
HIGH_WATERMARKS = "replication-offset-checkpoint"
_SMALL_BYTES_MAX = 64 * 1024
_CHECKPOINT_BYTES_MAX = 64 * 1024 * 1024
"""Of the file with a line for each partition of a broker."""
_NODE_ID = re.compile(r"[0-9]{1,10}")


class LogDirSource:
    def __init__(self, settings: LogDirSettings) -> None:
        self._folders = [Path(folder) for folder in dict.fromkeys(settings.folders)]

    def partitions(self) -> tuple[list[FoundPartition], list[UnusablePlace]]:
        """List the partitions; `ConfigError` for a folder that is missing or no log folder."""
        found: list[FoundPartition] = []
        unusable: list[UnusablePlace] = []
        for folder in self._folders:
            broker = _look_at(folder)
            for path, name in broker.folders.items():
                one = _partition(path, name, broker)
                if isinstance(one, UnusablePlace):
                    unusable.append(one)
                elif one is not None:
                    found.append(one)
            unusable += broker.strays
        return found, unusable

    def close(self) -> None: ...


class _Broker(NamedTuple):
    node_id: int | None
    cluster_id: str
    high_watermarks: Mapping[TopicPartition, int]
    folders: dict[Path, TopicPartition]
    strays: list[UnusablePlace]


def _look_at(folder: Path) -> _Broker:
    names = _names(folder)
    folders = {folder / name: found for name in names if (found := parse_folder(name)) is not None}
    properties = _properties(folder)
    if properties is None and not folders:
        hint = ""
        if parse_folder(folder.name) is not None and any(name.endswith(LOG) for name in names):
            hint = "; it is the folder of one partition: name the folder above it"
        msg = (
            f"{folder} is no log folder of a broker: it has neither {META_PROPERTIES} nor the "
            f"folder of a partition in it{hint}"
        )
        raise ConfigError(msg)
    # Which node it is stands under the older name in folders of brokers that knew ZooKeeper.
    node = (properties or {}).get("node.id") or (properties or {}).get("broker.id") or ""
    strays = [
        UnusablePlace(
            str(folder / name), "set aside by its broker, which was told of no such partition"
        )
        for name in names
        if name.endswith("-stray")
    ]
    return _Broker(
        int(node) if _NODE_ID.fullmatch(node) else None,
        (properties or {}).get("cluster.id", ""),
        _high_watermarks(folder),
        folders,
        strays,
    )


def _partition(
    path: Path, name: TopicPartition, broker: _Broker
) -> FoundPartition | UnusablePlace | None:
    if not is_user_topic(name.topic):
        return None
    try:
        if not path.is_dir():
            return UnusablePlace(str(path), "it vanished, or is no folder")
        content = _read(path / PARTITION_METADATA, _SMALL_BYTES_MAX)
    except (LogUnavailable, LogNotPermitted) as error:
        return UnusablePlace(str(path), str(error))
    topic_id: bytes | CheckpointFault = UNKNOWN_TOPIC_ID
    if content is not None:
        topic_id = parse_partition_metadata(content)
    elif not path.is_dir():
        return UnusablePlace(str(path), "it vanished while it was looked at")
    if isinstance(topic_id, CheckpointFault):
        return UnusablePlace(str(path), f"{PARTITION_METADATA}: {topic_id.detail}")
    return FoundPartition(
        TopicIdPartition(Uuid(topic_id), name.topic, name.number),
        PartitionFolder(str(path)),
        ReplicaOrigin(str(path), broker.node_id, broker.cluster_id),
        broker.high_watermarks.get(name),
    )


def _properties(folder: Path) -> dict[str, str] | None:
    """Read `meta.properties`: empty where it is damaged; None without that file."""
    content = _read(folder / META_PROPERTIES, _SMALL_BYTES_MAX)
    if content is None:
        return None
    try:
        entries = parse_properties(content.decode(ENCODING))
    except ConfigError:
        return {}
    return {entry.key: entry.value.strip() for entry in entries}


def _high_watermarks(folder: Path) -> Mapping[TopicPartition, int]:
    """Read the high watermarks as the broker last wrote them; nothing where that fails."""
    content = _read(folder / HIGH_WATERMARKS, _CHECKPOINT_BYTES_MAX)
    noted = parse_offsets(content) if content is not None else {}
    return {} if isinstance(noted, CheckpointFault) else noted


def _names(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir())
    except (FileNotFoundError, NotADirectoryError) as error:
        msg = f"{folder} is no log folder of a broker: {error.strerror}"
        raise ConfigError(msg) from error
    except OSError as error:
        raise _refusal(folder, error) from error


def _read(path: Path, bytes_max: int) -> bytes | None:
    """Return a small file, no more of it than *bytes_max*; None where there is none."""
    try:
        return read_regular(path, bytes_max)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _refusal(path, error) from error


def _refusal(path: Path, error: OSError) -> RlmmError:
    if isinstance(error, PermissionError):
        return LogNotPermitted(f"not permitted to read {path}: {error.strerror}")
    return LogUnavailable(f"{path} could not be read: {error.strerror}")
