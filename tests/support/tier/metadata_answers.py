"""Everything that a log of metadata answers, so that two of them can be compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from spark_tiering.maintenance.tier import CareRequest
from spark_tiering.maintenance.wiring import open_tier

if TYPE_CHECKING:
    from pathlib import Path

    from rlmm.metadata.ids import SegmentId
    from spark_tiering.maintenance.tier import TierMoment


class Answers(NamedTuple):
    look_ups: dict[tuple[str, int, int], SegmentId | None]
    next_txns: dict[tuple[str, int, int], SegmentId | None]
    highest: dict[tuple[str, int], int | None]
    listed: list[tuple[object, ...]]
    """All fields but broker and event time, which a manifest has of the start alone."""


def answers_of(moment: TierMoment, offsets: int = 260, epochs: int = 7) -> Answers:
    found = Answers({}, {}, {}, [])
    for one in moment.partitions():
        partition, shard = one.partition, moment.state(one.partition)
        for epoch in range(epochs):
            found.highest[str(partition), epoch] = shard.highest_offset(partition, epoch)
            for offset in range(offsets):
                asked = str(partition), epoch, offset
                segment = shard.segment_for(partition, epoch, offset)
                found.look_ups[asked] = None if segment is None else segment.id
                segment = shard.next_segment_with_txn_index(partition, epoch, offset)
                found.next_txns[asked] = None if segment is None else segment.id
        for each in moment.segments(partition):
            found.listed.append(
                (
                    each.id, each.start_offset, each.last_offset, each.max_timestamp_ms,
                    each.epochs, each.size_bytes, each.custom_metadata, each.state,
                    each.txn_index_empty,
                )
            )  # fmt: skip
    return found


def answers_in(folder: Path) -> Answers:
    with open_tier(CareRequest(embedded=folder)) as tier:
        return answers_of(tier.moment())
