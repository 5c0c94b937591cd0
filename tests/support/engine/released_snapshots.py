"""
Snapshots as a release wrote them, by `python -m tests.support.engine.released_snapshots`.
Arguments: FOLDER VERSION; once for each version of the format, from the code of that release.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlmm.metadata.segment import PartitionDeleteState
from rlmm.snapshot.catalog import identity_folder, snapshot_name
from tests.support.builders import (
    delete_finished,
    delete_started,
    finished,
    partition_delete,
    segment_id,
    started,
    tp,
)
from tests.support.engine.snapshots import IDENTITY, PARTITION, file_of, shard_of

if TYPE_CHECKING:
    from rlmm.metadata.events import Event
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from tests.support.engine.chosen import ChosenShard

ORDERS, PAYMENTS = tp(), tp("payments", 1)
EPOCHS = (0, 1, 2, 3)


def released_shard() -> ChosenShard:
    """Build a shard with every state, custom metadata form and deletion that snapshots hold."""
    gone = segment_id("gone", PAYMENTS)
    events: list[Event] = [
        started(
            segment_id("first"),
            0,
            99,
            {0: 0},
            max_timestamp_ms=1_700_000_000_000,
            txn_index_empty=True,
        ),
        finished(segment_id("first"), event_timestamp_ms=1_700_000_000_500),
        started(segment_id("second"), 100, 199, {0: 100, 2: 150}, size_bytes=2_147_483_647),
        finished(segment_id("second"), custom_metadata=b""),
        started(segment_id("hidden"), 200, 249, {2: 200}),
        finished(segment_id("hidden"), custom_metadata=b"\x00\xff custom"),
        started(segment_id("hides"), 200, 299, {2: 200}, broker_id=2),
        finished(segment_id("hides"), broker_id=2),
        started(segment_id("open"), 300, 399, {3: 300}),
        started(segment_id("going"), 0, 49, {0: 0}),
        finished(segment_id("going")),
        delete_started(segment_id("going")),
        started(gone, 0, 9, {1: 0}),
        finished(gone),
        delete_started(gone),
        delete_finished(gone),
        started(segment_id("kept", PAYMENTS), 10, 19, {1: 10}),
    ]
    for number, state in enumerate(PartitionDeleteState):
        leaving = tp("leaving", number)
        events.append(started(segment_id("left", leaving), 0, 9, {0: 0}))
        events += [
            partition_delete(passed, leaving, broker_id=3, event_timestamp_ms=77)
            for passed in PartitionDeleteState
            if passed <= state
        ]
    return shard_of(events)


def user_partitions() -> list[TopicIdPartition]:
    return [ORDERS, PAYMENTS, *(tp("leaving", number) for number in range(3))]


def said_of(shard: ChosenShard) -> dict[str, Any]:
    return {
        "metadata_partition": shard.partition,
        "position": shard.position,
        "user_partitions": [_said(shard, partition) for partition in user_partitions()],
    }


def _said(shard: ChosenShard, partition: TopicIdPartition) -> dict[str, Any]:
    delete = shard.partition_delete(partition)
    lookups = []
    for epoch in EPOCHS:
        found = [shard.segment_for(partition, epoch, offset) for offset in range(0, 400, 25)]
        lookups.append([None if one is None else str(one.id.uuid) for one in found])
    return {
        "topic_id": str(partition.topic_id),
        "topic": partition.topic,
        "partition": partition.partition,
        "segments": [_segment(one) for one in shard.segments(partition)],
        "highest_offset_by_epoch": [shard.highest_offset(partition, epoch) for epoch in EPOCHS],
        "segment_at_every_25th_offset_by_epoch": lookups,
        "partition_delete": None
        if delete is None
        else [delete.broker_id, delete.event_timestamp_ms, delete.state.name],
    }


def _segment(segment: SegmentMetadata) -> dict[str, Any]:
    custom = segment.custom_metadata
    return {
        "id": str(segment.id.uuid),
        "start_offset": segment.start_offset,
        "last_offset": segment.last_offset,
        "broker_id": segment.broker_id,
        "max_timestamp_ms": segment.max_timestamp_ms,
        "event_timestamp_ms": segment.event_timestamp_ms,
        "epochs": [list(epoch) for epoch in segment.epochs],
        "size_bytes": segment.size_bytes,
        "custom_metadata": None if custom is None else custom.hex(),
        "state": segment.state.name,
        "txn_index_empty": segment.txn_index_empty,
    }


def write(folder: Path, version: int) -> None:
    shard = released_shard()
    snapshots = folder / f"snapshots-{version}"
    place = identity_folder(snapshots, IDENTITY) / str(PARTITION)
    place.mkdir(parents=True)
    (place / snapshot_name(shard.position)).write_bytes(file_of(shard))
    said = json.dumps(said_of(shard), indent=1)
    (folder / f"snapshots-{version}.json").write_text(said + "\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]), int(sys.argv[2]))
