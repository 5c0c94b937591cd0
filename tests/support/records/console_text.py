"""Events as Kafka's own tools print them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.metadata.events import SegmentUpdate

if TYPE_CHECKING:
    from rlmm.metadata.segment import SegmentMetadata


def as_kafka_prints(event: SegmentMetadata | SegmentUpdate) -> str:
    assert event.custom_metadata is None, "Kafka prints only where such bytes lie in memory"
    segment_id = f"RemoteLogSegmentId{{topicIdPartition={event.id.partition}, id={event.id.uuid}}}"
    head = f"{{remoteLogSegmentId={segment_id}, "
    state = f"customMetadata=Optional.empty, state={event.state.name}"
    if isinstance(event, SegmentUpdate):
        return (
            f"RemoteLogSegmentMetadataUpdate{head}{state}, "
            f"eventTimestampMs={event.event_timestamp_ms}, brokerId={event.broker_id}}}"
        )
    epochs = ", ".join(f"{epoch}={offset}" for epoch, offset in event.epochs)
    return (
        f"RemoteLogSegmentMetadata{head}"
        f"startOffset={event.start_offset}, endOffset={event.last_offset}, "
        f"brokerId={event.broker_id}, maxTimestampMs={event.max_timestamp_ms}, "
        f"eventTimestampMs={event.event_timestamp_ms}, segmentLeaderEpochs={{{epochs}}}, "
        f"segmentSizeInBytes={event.size_bytes}, {state}, "
        f"txnIdxEmpty={str(event.txn_index_empty).lower()}}}"
    )
