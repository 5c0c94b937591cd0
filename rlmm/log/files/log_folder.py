"""
The folder of a `files` log: its owner, and the ids it was born with. Everything here blocks.

- Cluster id, topic id and partition count are made once and never change.
- `meta.properties` is written last: a folder without it was never served from.
- A folder that holds anything else is refused before anything is written into it.

`meta.properties` has the partition count under a key that brokers ignore: folders alone cannot tell
a whole topic from a partial copy.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.errors import ConfigError
from rlmm.log.new_ids import random_uuid
from rlmm.log.protocol import LogIdentity
from rlmm.metadata.ids import Uuid
from rlmm.partition_log.checkpoints import CheckpointFault, parse_partition_metadata
from rlmm.partition_log.disk import DISK
from rlmm.partition_log.names import (
    LOG,
    LOG_STARTS,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    parse_folder,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

TOPIC = "__remote_log_metadata"
PARTITION_COUNT = 50
"""Kafka's default for the metadata topic."""
META_PROPERTIES = "meta.properties"
UNKNOWN_CLUSTER_ID = ""
"""Of a copied folder that does not say which cluster it is from."""
UNKNOWN_TOPIC_ID = Uuid(bytes(16))
"""Of a copied folder that does not say which topic it is of."""

_NODE_ID = 1
_COUNT_KEY = "rlmm.partition.count"
_PAIR = re.compile(r"\s*(?P<key>[^\s=:#!]+)\s*[=:]\s*(?P<value>.*?)\s*")
_COMPANIONS = {
    META_PROPERTIES,
    RECOVERY_POINTS,
    LOG_STARTS,
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
    "bootstrap.checkpoint",
    "lost+found",
}
"""Other files beside the folders of partitions, ours or a broker's."""


@dataclass(frozen=True, slots=True)
class FilesLogFolder:
    """The content of a folder by its names and small files."""

    path: Path
    exists: bool
    properties: dict[str, str] | None
    """Of `meta.properties`; None without that file."""
    partitions: frozenset[int]
    """Those of the metadata topic that have a folder."""
    topic_id: Uuid | None
    """The one that their `partition.metadata` agree on; None when none says it."""
    has_records: bool
    others: tuple[str, ...]
    """Names that do not belong to a metadata topic's log."""
    inside: Path | None
    """A folder above it that is a broker's, or another log's."""

    @property
    def cluster_id(self) -> str | None:
        return (self.properties or {}).get("cluster.id") or None

    @property
    def partition_count(self) -> int | None:
        """Return the count that our own folder notes; None for any other folder."""
        text = (self.properties or {}).get(_COUNT_KEY)
        if text is None:
            return None
        if not (text.isascii() and text.isdecimal()) or int(text) < 1:
            msg = f"{self.path / META_PROPERTIES}: {_COUNT_KEY} is no number of partitions: {text}"
            raise ConfigError(msg)
        return int(text)


def look_at(path: Path) -> FilesLogFolder:
    """Look at a folder without changing it; raises `ConfigError` when that cannot be done."""
    try:
        exists = path.exists()
        names = sorted(entry.name for entry in path.iterdir()) if exists else []
        properties = DISK.read_file(path / META_PROPERTIES) if exists else None
        partitions: dict[int, Path] = {}
        others: list[str] = []
        for name in names:
            found = parse_folder(name)
            if found is not None and found.topic == TOPIC:
                partitions[found.number] = path / name
            elif name not in _COMPANIONS and not name.startswith(".") and name[-4:] != ".tmp":
                others.append(name)
        return FilesLogFolder(
            path,
            exists,
            None if properties is None else parse_properties(properties),
            frozenset(partitions),
            topic_id_of(partitions.values()),
            any(_has_records(folder) for folder in partitions.values()),
            tuple(others),
            next((up for up in path.absolute().parents if (up / META_PROPERTIES).exists()), None),
        )
    except OSError as error:
        raise ConfigError(
            f"{path}: no folder that a log can be kept in: {error.strerror}; name one that this "
            "user may read and write, or one that does not exist yet"
        ) from error


def new_identity(found: FilesLogFolder, partition_count: int | None) -> LogIdentity | None:
    """
    Return the identity of a new log in *found*; None when the folder has one already.

    An interrupted creation keeps its topic id. Raises `ConfigError` for a folder of something else.
    """
    if found.others:
        more = f" and {len(found.others) - 1} more" if len(found.others) > 1 else ""
        raise ConfigError(
            f"{found.path} holds {found.others[0]!r}{more}, which is no part of a metadata log: "
            "name a folder of its own, or read it as an observer"
        )
    if found.properties is not None:
        return None
    if found.inside is not None:
        raise ConfigError(
            f"{found.path} lies inside {found.inside}, a log folder of a broker, which would not "
            "start with it, or take it for a stray partition: name a folder elsewhere"
        )
    if found.has_records:
        raise ConfigError(
            f"{found.path} holds records of {len(found.partitions)} partitions, but no "
            f"{META_PROPERTIES}: if it is a copy, read it as an observer"
        )
    count = PARTITION_COUNT if partition_count is None else partition_count
    _require_within(found, count)
    return LogIdentity(str(random_uuid()), found.topic_id or random_uuid(), count)


def kept_identity(found: FilesLogFolder, partition_count: int | None) -> LogIdentity:
    """Return the log's identity; `ConfigError` if partitions are missing or differ in number."""
    count = _agreed_count(found, partition_count)
    missing = sorted(set(range(count)) - found.partitions)
    if missing or len(found.partitions) != count:
        first = f", the first that is missing is {missing[0]}" if missing else ""
        raise ConfigError(
            f"{found.path} holds {len(found.partitions)} partitions of {TOPIC}, "
            f"expected are {count}{first}: restore the folders from a copy, or read what is there "
            "as an observer"
        )
    for what, value in (("cluster id", found.cluster_id), ("topic id", found.topic_id)):
        if value is None:
            msg = f"{found.path} has lost its {what}: restore its small files from a copy"
            raise ConfigError(msg)
    return LogIdentity(
        found.cluster_id or UNKNOWN_CLUSTER_ID, found.topic_id or UNKNOWN_TOPIC_ID, count
    )


def copied_identity(found: FilesLogFolder, partition_count: int | None) -> LogIdentity:
    """Return the identity of a copy; missing ids are `UNKNOWN_CLUSTER_ID`, `UNKNOWN_TOPIC_ID`."""
    if not found.partitions:
        msg = f"{found.path} holds no folder {TOPIC}-N: nothing to read; name the folder above them"
        raise ConfigError(msg)
    if partition_count is None and len(found.partitions) == PARTITION_COUNT:
        partition_count = found.partition_count or PARTITION_COUNT
    count = _agreed_count(found, partition_count)
    _require_within(found, count)
    return LogIdentity(
        found.cluster_id or UNKNOWN_CLUSTER_ID, found.topic_id or UNKNOWN_TOPIC_ID, count
    )


def keep_identity(path: Path, identity: LogIdentity) -> None:
    """Write `meta.properties`: from now on the folder is that log's. Raises `OSError`."""
    lines = (
        "version=1",
        f"cluster.id={identity.cluster_id}",
        f"node.id={_NODE_ID}",
        f"directory.id={random_uuid()}",
        f"{_COUNT_KEY}={identity.partition_count}",
    )
    content = "".join(f"{line}\n" for line in lines).encode("ascii")
    DISK.replace_file(path / META_PROPERTIES, content, sync=True)


def _agreed_count(found: FilesLogFolder, partition_count: int | None) -> int:
    kept = found.partition_count
    if kept is not None and partition_count not in {None, kept}:
        raise ConfigError(
            f"{found.path} was made with {kept} partitions, the configuration says "
            f"{partition_count}: their number can never change, so configure {kept}, or name "
            "another folder"
        )
    count = kept or partition_count
    if count is None:
        raise ConfigError(
            f"{found.path} was not made by rlmm, and {len(found.partitions)} folders do not tell "
            "how many partitions the topic has: say their number"
        )
    return count


def _require_within(found: FilesLogFolder, count: int) -> None:
    highest = max(found.partitions, default=-1)
    if highest >= count:
        raise ConfigError(
            f"{found.path} holds a partition {highest}, the configuration says that there are "
            f"{count}: configure the number that the topic has, or name another folder"
        )


def parse_properties(content: bytes) -> dict[str, str]:
    lines = content.decode("latin-1").splitlines()
    found = [pair for line in lines if (pair := _PAIR.fullmatch(line)) is not None]
    return {pair["key"]: pair["value"] for pair in found}


def topic_id_of(folders: Iterable[Path]) -> Uuid | None:
    """Return the topic id of all *folders* that name one; `ConfigError` when they differ."""
    first: tuple[Uuid, Path] | None = None
    for folder in folders:
        content = DISK.read_file(folder / PARTITION_METADATA)
        topic_id = None if content is None else parse_partition_metadata(content)
        if topic_id is None or isinstance(topic_id, CheckpointFault):
            continue
        if first is None:
            first = Uuid(topic_id), folder
        elif topic_id != first[0]:
            raise ConfigError(
                f"{folder} is of the topic with id {Uuid(topic_id)}, "
                f"{first[1].name} of that with id {first[0]}: not one topic, so keep each in a "
                "folder of its own"
            )
    return None if first is None else first[0]


def _has_records(folder: Path) -> bool:
    return any(size for name, size in DISK.sizes(folder).items() if name.endswith(LOG))
