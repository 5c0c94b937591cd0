"""Kafka's retention of a tiered partition: the expiration of `RemoteLogManager` (Kafka 4.x)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rlmm.metadata.segment import SegmentState

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from rlmm.metadata.ids import SegmentId
    from rlmm.metadata.segment import SegmentMetadata

CS, CF, DS, DF = SegmentState


class Leader(NamedTuple):
    epochs: Mapping[int, int]
    log_start: int
    log_end: int
    retention_ms: int
    retention_bytes: int
    now_ms: int
    only_local_bytes: int = 0


class Decided(NamedTuple):
    deleted: list[SegmentId]
    log_start: int | None


def truncated(epochs: Mapping[int, int], log_start: int) -> dict[int, int]:
    kept = dict(sorted(epochs.items()))
    gone = []
    for epoch, start in list(kept.items()):
        if start <= log_start:
            gone.append(epoch)
            del kept[epoch]
    if not gone:
        return dict(epochs)
    return {gone[-1]: log_start, **kept}


def filtered(epochs: Mapping[int, int]) -> dict[int, int]:
    """Drop epochs without records: the next one begins at the same offset."""
    ordered = sorted(epochs.items())
    kept = {}
    for at, (epoch, start) in enumerate(ordered):
        if at + 1 < len(ordered) and ordered[at + 1][1] == start:
            continue
        kept[epoch] = start
    return kept


def is_valid(segment: SegmentMetadata, log_end: int, leader: Mapping[int, int]) -> bool:
    own = filtered(dict(segment.epochs))
    last = max(own)
    if last < min(leader) or last > max(leader):
        return False
    above = [epoch for epoch in own if epoch >= min(leader)]
    if not above:
        return False
    first = min(above)
    for epoch in sorted(above):
        if epoch not in leader:
            return False
        has_older = any(other < epoch for other in leader)
        if epoch == first and has_older and own[epoch] < leader[epoch]:
            return False
        later = sorted(other for other in leader if other > epoch)
        if epoch == last:
            if later and segment.last_offset > leader[later[0]] - 1:
                return False
        else:
            own_later = min(other for other in own if other > epoch)
            if not later or (later[0], leader[later[0]]) != (own_later, own[own_later]):
                return False
    return segment.last_offset < log_end


def listed(segments: Sequence[SegmentMetadata], epoch: int) -> list[SegmentMetadata]:
    found = [one for one in segments if epoch in dict(one.epochs) and one.state is not DF]
    return sorted(found, key=lambda one: (one.start_offset, one.id.uuid))


def remaining_breach(segments: Sequence[SegmentMetadata], leader: Leader) -> int | None:
    """Return by how much the size limit is exceeded; None where it is not."""
    if leader.retention_bytes < 0:
        return None
    epochs = filtered(leader.epochs)
    sizes: dict[SegmentId, int] = {}
    for epoch in sorted(epochs):
        for one in listed(segments, epoch):
            if one.state is CF and is_valid(one, leader.log_end, epochs):
                sizes[one.id] = one.size_bytes
    total = leader.only_local_bytes + sum(sizes.values())
    return total - leader.retention_bytes if total > leader.retention_bytes else None


def expired(  # noqa: PLR0912 - as literal as it is there
    segments: Sequence[SegmentMetadata], leader: Leader, being_copied: Collection[SegmentId] = ()
) -> Decided:
    if not leader.epochs or not segments:
        return Decided([], None)
    epochs = filtered(leader.epochs)
    breach = remaining_breach(segments, leader)
    until_ms = leader.now_ms - leader.retention_ms
    by_time = leader.retention_ms > -1 and until_ms >= 0
    deleted: list[SegmentId] = []
    new_start: int | None = None
    can_go_on = True
    for epoch in sorted(epochs):
        for one in listed(segments, epoch):
            if not can_go_on:
                break
            if one.id in being_copied:
                can_go_on = False
                break
            if one.id in deleted:
                continue
            if one.state is DS:
                deleted.append(one.id)
                continue
            first = min(epochs)
            goes = one.last_offset < leader.log_start and all(e <= first for e, _ in one.epochs)
            valid = False
            if not goes:
                valid = is_valid(one, leader.log_end, epochs)
                if valid and by_time and one.max_timestamp_ms < until_ms:
                    goes = True
                    breach = None if breach is None else max(0, breach - one.size_bytes)
                    new_start = max(new_start or 0, one.last_offset + 1)
                elif valid and breach is not None and breach > 0 and breach >= one.size_bytes:
                    goes = True
                    breach -= one.size_bytes
                    new_start = max(new_start or 0, one.last_offset + 1)
            if goes:
                deleted.append(one.id)
            can_go_on = goes or not valid
        if not can_go_on:
            break
    earliest = min(leader.epochs)
    for epoch in sorted({e for one in segments for e, _ in one.epochs if e < earliest}):
        for one in listed(segments, epoch):
            if one.id not in deleted and all(e < earliest for e, _ in one.epochs):
                deleted.append(one.id)
    return Decided(deleted, new_start)
