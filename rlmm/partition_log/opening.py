"""Opening one partition's folder, or making it: identity, segments, leader epochs. Blocking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.errors import ConfigError, LogDamaged, LogRecreated, NotFound
from rlmm.partition_log.checkpoints import (
    CheckpointFault,
    format_partition_metadata,
    parse_epochs,
    parse_partition_metadata,
)
from rlmm.partition_log.epochs import EpochStarts
from rlmm.partition_log.index import SegmentIndex
from rlmm.partition_log.names import (
    EPOCH_CHECKPOINT,
    LOG,
    OFFSET_INDEX,
    PARTITION_METADATA,
    TIME_INDEX,
    TopicPartition,
    parse_segment_file,
    segment_file,
)
from rlmm.partition_log.recovery import Recovery
from rlmm.partition_log.recovery_rules import judge_end
from rlmm.partition_log.segment import Segment
from rlmm.partition_log.settings import SyncPolicy
from rlmm.partition_log.store import LogPosition, PartitionStore

if TYPE_CHECKING:
    from pathlib import Path

    from rlmm.partition_log.shared_resources import LogPlace

_TEMPORARY = ".tmp"
_UNFINISHED = ".swap"


@dataclass(frozen=True, slots=True)
class PartitionOpening:
    """Names the folder to open, with the facts about it from outside."""

    name: TopicPartition
    folder: Path
    place: LogPlace
    noted_point: int | None
    """The recovery point that was noted; None when there is no note."""
    noted_log_start: int | None
    is_clean: bool
    now_ms: int
    topic_id: bytes | None = None
    """Refuse a folder with another one."""
    may_create: bool = False


def open_partition(opening: PartitionOpening) -> PartitionStore:
    """
    Open the folder and recover its log.

    Raises `NotFound`, `ConfigError` for a folder of something else, `LogRecreated` for another
    topic's, `LogDamaged` with the fault; `OSError` when the disk fails.
    """
    place, folder = opening.place, opening.folder
    sizes = _sizes(opening)
    topic_id = _topic_id(opening, sizes)
    if any(name.endswith(_UNFINISHED) for name in sizes):
        msg = f"{folder}: a compaction is unfinished ({_UNFINISHED}); let a broker finish it first"
        raise LogDamaged(msg)
    segments = _segments(opening, sizes)
    is_new = not segments
    if is_new:
        segments = [_first_segment(opening)]
    recovery = Recovery(
        place, segments, sizes, noted_point=opening.noted_point, is_clean=opening.is_clean
    )
    next_offset = segments[0].base_offset if is_new else recovery.run()
    log_start = max(opening.noted_log_start or 0, segments[0].base_offset)
    fault = judge_end(log_start, next_offset, recovery.recovery_point)
    if fault is not None and not place.is_read_only:
        raise LogDamaged(f"{folder}: {fault.fault}")
    active = segments[-1]
    active.born_ms = _born_ms(opening, active)
    active.is_index_stored = not is_new
    epochs, epochs_changed = _epochs(opening, recovery, segments, next_offset)
    end = LogPosition(next_offset, active.base_offset, active.size)
    store = PartitionStore(
        opening.name, folder, topic_id, place, segments, end, epochs, recovery.outcome()
    )
    store.log_start = min(log_start, next_offset)
    store.is_noted = opening.noted_point is not None
    store.names_are_new = is_new and not place.is_read_only
    if epochs_changed and not place.is_read_only:
        store.blocking_save_epochs(epochs)
    return store


def _sizes(opening: PartitionOpening) -> dict[str, int]:
    disk, folder = opening.place.disk, opening.folder
    try:
        sizes = disk.sizes(folder)
    except FileNotFoundError:
        if not opening.may_create or opening.place.is_read_only:
            raise NotFound(f"no partition {opening.name} in {folder.parent}") from None
        disk.make_folder(folder)
        return {}
    except NotADirectoryError as error:
        raise ConfigError(f"{folder} is no folder; a partition's log needs that name") from error
    known = (EPOCH_CHECKPOINT, PARTITION_METADATA)
    if sizes and not any(n in known or parse_segment_file(n) is not None for n in sizes):
        msg = f"{folder} is no partition's folder: it holds {len(sizes)} files, e.g. {min(sizes)}"
        raise ConfigError(msg)
    return sizes


def _topic_id(opening: PartitionOpening, sizes: dict[str, int]) -> bytes | None:
    disk, path = opening.place.disk, opening.folder / PARTITION_METADATA
    if PARTITION_METADATA in sizes:
        found = parse_partition_metadata(disk.read_file(path) or b"")
        if isinstance(found, CheckpointFault):
            raise LogDamaged(f"{path}: {found.detail}")
        if opening.topic_id not in (None, found):
            raise LogRecreated(wrong_topic_id(opening.folder, found, opening.topic_id))
        return found
    if opening.topic_id is not None and not opening.place.is_read_only:
        sync = opening.place.settings.sync is not SyncPolicy.NEVER
        disk.replace_file(path, format_partition_metadata(opening.topic_id), sync=sync)
    return opening.topic_id


def wrong_topic_id(folder: Path, held: bytes | None, wanted: bytes | None) -> str:
    names = [format_partition_metadata(topic_id or b"").split()[-1] for topic_id in (held, wanted)]
    return f"{folder} belongs to topic id {names[0].decode()}, not to {names[1].decode()}"


def _segments(opening: PartitionOpening, sizes: dict[str, int]) -> list[Segment]:
    names = {name: found for name in sizes if (found := parse_segment_file(name)) is not None}
    base_offsets = sorted(base for base, suffix in names.values() if suffix == LOG)
    if not opening.place.is_read_only:
        orphans = [
            name
            for name, (base, suffix) in names.items()
            if suffix in (OFFSET_INDEX, TIME_INDEX) and base not in base_offsets
        ]
        orphans += [name for name in sizes if name.endswith(_TEMPORARY)]
        for name in orphans:
            opening.place.disk.remove(opening.folder / name)
    return [_segment(opening, base, sizes[segment_file(base, LOG)]) for base in base_offsets]


def _first_segment(opening: PartitionOpening) -> Segment:
    segment = _segment(opening, opening.noted_log_start or 0, 0)
    interval = opening.place.settings.index_interval_bytes
    segment.index = SegmentIndex(segment.base_offset, interval)
    if not opening.place.is_read_only:
        descriptor = opening.place.descriptors.hold(segment.path, create=True)
        opening.place.descriptors.let_go(segment.path, descriptor)
    return segment


def _segment(opening: PartitionOpening, base_offset: int, size: int) -> Segment:
    return Segment(opening.folder, base_offset, size, opening.place)


def _born_ms(opening: PartitionOpening, active: Segment) -> int:
    """Return when the active segment began, at most now: a future time would keep it for ever."""
    if active.size == 0:
        return opening.now_ms
    first = next(active.heads_from(0, active.size), None)
    modified_ms = opening.place.disk.modified_ms(active.path)
    if first is None or not 0 <= first.max_timestamp_ms <= modified_ms:
        return modified_ms
    return first.max_timestamp_ms


def _epochs(
    opening: PartitionOpening, recovery: Recovery, segments: list[Segment], next_offset: int
) -> tuple[EpochStarts, bool]:
    content = opening.place.disk.read_file(opening.folder / EPOCH_CHECKPOINT)
    found = parse_epochs(content) if content is not None else None
    if isinstance(found, list):
        epochs = EpochStarts(found)
        changed = list(epochs.entries) != found
        for epoch, start_offset in recovery.epochs:
            changed |= epochs.assign(epoch, start_offset)
        changed |= epochs.truncate_from(next_offset)
    else:
        epochs = EpochStarts()
        for segment in segments:
            for head in segment.heads_from(0, segment.size):
                epochs.assign(head.leader_epoch, head.base_offset)
        changed = bool(epochs.entries) or content is not None
    if changed:
        recovery.note_rebuilt(EPOCH_CHECKPOINT)
    return epochs, changed
