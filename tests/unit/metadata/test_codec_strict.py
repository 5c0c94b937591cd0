"""Events that are never written to a topic of brokers, and the reason of each refusal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rlmm.errors import InvalidArgument, NotPublishable
from rlmm.metadata.decoding import decode
from rlmm.metadata.encoding import encode
from rlmm.metadata.record_layout import VALUE_BYTES_MAX
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from rlmm.metadata.verdicts import Undecodable, UndecodableReason
from tests.support.builders import partition_delete, segment_id, started, tp, update
from tests.support.records import golden

LONGEST_NAME = 32_767 * "n"


@pytest.mark.parametrize(
    ("event", "message"),
    [
        *(
            pytest.param(
                started("a", state=state),
                rf"its first record must be COPY_SEGMENT_STARTED, not {state.name}",
                id=f"first-record-{state.name}",
            )
            for state in SegmentState
            if state is not SegmentState.COPY_SEGMENT_STARTED
        ),
        pytest.param(
            update("a", SegmentState.COPY_SEGMENT_STARTED),
            "an update to COPY_SEGMENT_STARTED stops a broker's consumer",
            id="update-to-started",
        ),
        pytest.param(golden.SNAPSHOT.event, "a snapshot record names no partition", id="snapshot"),
        pytest.param(
            started(segment_id("a", tp(LONGEST_NAME + "n"))),
            "topic name of 32768 bytes, at most 32767",
            id="name-too-long",
        ),
        pytest.param(
            update(segment_id("a", tp(16_384 * "\u00e9")), SegmentState.COPY_SEGMENT_FINISHED),
            "topic name of 32768 bytes, at most 32767",
            id="name-too-long-in-bytes",
        ),
        pytest.param(
            partition_delete(PartitionDeleteState.DELETE_PARTITION_MARKED, tp(LONGEST_NAME + "n")),
            "topic name of 32768 bytes, at most 32767",
            id="name-too-long-in-a-deletion",
        ),
        pytest.param(
            started("a", custom_metadata=bytes(VALUE_BYTES_MAX)),
            rf"record value of \d+ bytes, at most {VALUE_BYTES_MAX}",
            id="value-too-large",
        ),
        pytest.param(None, "NoneType", id="tombstone"),
        pytest.param(b"\x01\x00\x00", "bytes", id="bytes"),
        pytest.param(Undecodable(UndecodableReason.TOMBSTONE), "Undecodable", id="undecodable"),
    ],
)
def test_f59_event_when_a_brokers_consumer_would_stop_then_is_not_encoded(
    event: Any, message: str
) -> None:
    """The encoder refuses an event that would stop a stock broker's consumer for good."""
    with pytest.raises(NotPublishable, match=message):
        encode(event)


@pytest.mark.parametrize("number", [-1, 1, 4, 9, 127])
def test_f59_state_when_it_is_a_bare_number_then_no_event_carries_it(number: int) -> None:
    """States outside 0-3 cannot even be put into an event, so they cannot be encoded."""
    for event in (
        started("a"),
        update("a", SegmentState.COPY_SEGMENT_FINISHED),
        partition_delete(PartitionDeleteState.DELETE_PARTITION_MARKED),
    ):
        with pytest.raises(InvalidArgument, match=f"got {number}"):
            replace(event, state=number)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(started("a"), id="first-record"),
        *(
            pytest.param(update("a", state), id=f"update-{state.name}")
            for state in SegmentState
            if state is not SegmentState.COPY_SEGMENT_STARTED
        ),
        *(pytest.param(partition_delete(state), id=state.name) for state in PartitionDeleteState),
        pytest.param(started(segment_id("a", tp(LONGEST_NAME))), id="longest-name"),
        pytest.param(started(segment_id("a", tp(""))), id="empty-name"),
        pytest.param(started("a", custom_metadata=bytes(200_000)), id="large-custom-metadata"),
    ],
)
def test_f59_event_when_brokers_write_it_too_then_is_frame_1_version_0(event: Any) -> None:
    """Published events have the form of brokers, and decode to the same event."""
    value = encode(event)
    assert value[0] == 1
    assert value[1] in (0, 1, 2)
    assert value[2] == 0
    assert decode(value) == event


def test_f59_value_when_at_the_limit_then_is_encoded_and_read() -> None:
    """The largest value that is written is one that is read."""
    event = started("a", custom_metadata=b"")
    room = VALUE_BYTES_MAX - len(encode(event)) - 3  # three more bytes for the length itself
    largest = replace(event, custom_metadata=bytes(room))
    value = encode(largest)
    assert len(value) == VALUE_BYTES_MAX
    assert decode(value) == largest
    with pytest.raises(NotPublishable, match="record value"):
        encode(replace(event, custom_metadata=bytes(room + 1)))
