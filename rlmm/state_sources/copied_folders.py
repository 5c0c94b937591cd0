"""
Copied folders of the metadata topic: which partitions they hold, and of which cluster. A given
folder is a metadata partition, or the folder above several. Every function blocks; nothing is
opened, changed or locked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from rlmm.errors import ConfigError
from rlmm.log.files.log_folder import (
    META_PROPERTIES,
    TOPIC,
    UNKNOWN_CLUSTER_ID,
    UNKNOWN_TOPIC_ID,
    FilesLogFolder,
    parse_properties,
    topic_id_of,
)
from rlmm.partition_log.disk import DISK
from rlmm.partition_log.names import LOG, PARTITION_METADATA, parse_folder, parse_segment_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from rlmm.metadata.ids import Uuid

Value = TypeVar("Value")

_OURS = "log"


@dataclass(frozen=True, slots=True)
class CopiedFolders:
    folders: Mapping[int, tuple[Path, ...]]
    cluster_id: str
    """`UNKNOWN_CLUSTER_ID` where none of the folders says it."""
    topic_id: Uuid
    """`UNKNOWN_TOPIC_ID` where none of the folders says it."""
    partition_count: int | None
    """As it is said where we made the folder; a broker's does not say it."""

    @property
    def highest(self) -> int:
        return max(self.folders)


def find_copies(given: Sequence[Path]) -> CopiedFolders:
    """Find the partitions in *given*; `ConfigError` for folders of other or several topics."""
    found: dict[int, dict[Path, Path]] = {}
    for path in given:
        try:
            for place, folder in _partitions_of(path).items():
                found.setdefault(place, {}).setdefault(folder.resolve(), folder)
        except OSError as error:
            msg = f"{path} cannot be read: {error.strerror or error}"
            raise ConfigError(msg) from error
    folders = {place: tuple(copies.values()) for place, copies in sorted(found.items())}
    every = [folder for copies in folders.values() for folder in copies]
    above = [_said_above(root) for root in dict.fromkeys(folder.parent for folder in every)]
    return CopiedFolders(
        folders,
        _agreed("cluster id", ((one.cluster_id, one.path) for one in above)) or UNKNOWN_CLUSTER_ID,
        _agreed("topic id", ((_topic_id_in(one), one) for one in every)) or UNKNOWN_TOPIC_ID,
        _agreed("partition count", ((one.partition_count, one.path) for one in above)),
    )


def _partitions_of(path: Path) -> dict[int, Path]:
    """Return the folder of each metadata partition that *path* is or contains."""
    if not path.exists():
        msg = f"{path} does not exist"
        raise ConfigError(msg)
    if not path.is_dir():
        msg = f"{path} is no folder: name a folder that holds {TOPIC}-N, or one of these"
        raise ConfigError(msg)
    own = _place_of(path.absolute())
    if own is not None:
        return {own: path.absolute()}
    inside = {place: one for one in path.iterdir() if (place := _place_of(one)) is not None}
    if not inside:
        raise ConfigError(_nothing_in(path))
    return inside


def _place_of(folder: Path) -> int | None:
    name = parse_folder(folder.name)
    if name is None or name.topic != TOPIC or not folder.is_dir():
        return None
    return name.number


def _nothing_in(path: Path) -> str:
    """Return why *path* cannot be used, and the most likely intention."""
    names = sorted(entry.name for entry in path.iterdir())
    what = f"{path} holds no folder {TOPIC}-N: nothing to read"
    if not names:
        return f"{what}, it is empty"
    if any((found := parse_segment_file(name)) and found[1] == LOG for name in names):
        return f"{what}; it is of one partition, which its name has to say: {TOPIC}-N"
    if _place_below(path / _OURS):
        return f"{what}; name {path / _OURS}"
    return f"{what}, among its {len(names)} entries, e.g. {names[0]}; name the folder above them"


def _place_below(path: Path) -> bool:
    return path.is_dir() and any(_place_of(one) is not None for one in path.iterdir())


def _topic_id_in(folder: Path) -> Uuid | None:
    try:
        return topic_id_of([folder])
    except OSError as error:
        msg = f"{folder / PARTITION_METADATA} cannot be read: {error.strerror or error}"
        raise ConfigError(msg) from error


def _said_above(root: Path) -> FilesLogFolder:
    path = root / META_PROPERTIES
    try:
        content = DISK.read_file(path)
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror or error}"
        raise ConfigError(msg) from error
    properties = None if content is None else parse_properties(content)
    return FilesLogFolder(root, True, properties, frozenset(), None, False, (), None)


def _agreed(what: str, said: Iterable[tuple[Value | None, Path]]) -> Value | None:
    first: tuple[Value, Path] | None = None
    for value, path in said:
        if value is None:
            continue
        if first is None:
            first = value, path
        elif value != first[0]:
            msg = (
                f"{path} is of {what} {value}, {first[1]} of {first[0]}: these are not copies of "
                "one topic, so look at each by itself"
            )
            raise ConfigError(msg)
    return None if first is None else first[0]
