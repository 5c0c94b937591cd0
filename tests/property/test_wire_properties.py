"""The frame protocol: values round trip, streams may be cut anywhere, no bytes break anything."""

import tracemalloc
from dataclasses import replace
from itertools import pairwise

import msgpack
from hypothesis import example, given
from hypothesis import strategies as st

from rlmm.errors import InvalidArgument, ProtocolError
from rlmm.metadata.events import PartitionDelete, SegmentUpdate
from rlmm.metadata.ids import INT32_MAX, SegmentId, TopicIdPartition
from rlmm.metadata.row import row_of
from rlmm.metadata.segment import SegmentMetadata
from rlmm.wire import options, values
from rlmm.wire.framing import FrameReader, frame
from rlmm.wire.messages import answer_frame, id_of, read_answer, read_request, request_frame
from rlmm.wire.methods import METHODS
from rlmm.wire.rows import row_value
from tests.support.records.strategies import NAMES, PARTITION_DELETES, UPDATES, UUIDS, segments
from tests.support.server.frame_round_trips import read_again, read_result_again
from tests.support.server.recorded_frames import goldens

PARTITIONS = st.builds(TopicIdPartition, UUIDS, NAMES, st.integers(0, INT32_MAX))
TIMEOUTS = st.none() | st.integers(0, INT32_MAX)
READS = st.builds(
    options.FreshnessOptions,
    st.none() | st.dictionaries(st.integers(0, INT32_MAX), st.integers(-1, 2**63 - 1), min_size=1),
    st.booleans(),
    TIMEOUTS,
)
WRITES = st.builds(options.WriteOptions, st.sampled_from(["refuse", "store"]), TIMEOUTS)

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=20)
    | st.binary(max_size=20)
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=6)
        | st.dictionaries(st.text(max_size=8) | st.integers(0, 100), inner, max_size=4)
    ),
    max_leaves=12,
)
MEANT = [golden.data[4:] for golden in goldens()]
"""Messages that are meant: what is changed here and there."""


def over_the_wire(value: object) -> object:
    (payload,) = FrameReader().feed(answer_frame(1, value))
    return read_answer(payload).result


@given(PARTITIONS, segments(), UPDATES, PARTITION_DELETES)
def test_identity_and_event_come_back(
    partition: TopicIdPartition,
    segment: SegmentMetadata,
    update: SegmentUpdate,
    delete: PartitionDelete,
) -> None:
    """Any partition and event come back as sent, and the fast path writes the same bytes."""
    assert values.read_partition(over_the_wire(values.partition_value(partition))) == partition
    sent = values.segment_value(segment)
    assert values.read_segment(segment.id.partition, over_the_wire(sent)) == segment
    assert over_the_wire(row_value(segment.id.uuid, row_of(segment))) == over_the_wire(sent)
    update = replace(update, id=SegmentId(partition, update.id.uuid))
    delete = replace(delete, partition=partition)
    assert values.read_update(over_the_wire(values.update_value(update))) == update
    assert values.read_delete(over_the_wire(values.delete_value(delete))) == delete


@given(READS, WRITES, TIMEOUTS)
def test_options_when_sent_come_back(
    read: options.FreshnessOptions, write: options.WriteOptions, timeout_ms: int | None
) -> None:
    """Every option comes back as sent, and an unset option is not sent."""
    assert options.read_read_options(over_the_wire(options.read_options_value(read))) == read
    assert options.read_write_options(over_the_wire(options.write_options_value(write))) == write
    assert (
        options.read_wait_options(over_the_wire(options.wait_options_value(timeout_ms)))
        == timeout_ms
    )


@given(st.lists(st.binary(min_size=1, max_size=300), max_size=6), st.data())
def test_stream_when_cut_gives_the_same_frames(payloads: list[bytes], data: st.DataObject) -> None:
    """The payloads do not depend on the pieces, and nothing is left behind."""
    stream = b"".join(map(frame, payloads))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    reader = FrameReader()
    bounds = [0, *cuts, len(stream)]
    found = [
        payload for start, stop in pairwise(bounds) for payload in reader.feed(stream[start:stop])
    ]
    assert found == payloads
    assert reader.held_bytes == 0


@given(st.lists(st.binary(max_size=60), max_size=8), st.integers(1, 100))
def test_stream_of_anything_when_cut_anywhere_ends_alike(pieces: list[bytes], limit: int) -> None:
    """Payloads before a broken length and the refusal itself do not depend on the pieces."""

    def outcome(cut: list[bytes]) -> tuple[list[bytes], bool]:
        reader = FrameReader(limit)
        found: list[bytes] = []
        try:
            for piece in [*cut, b""]:
                found += reader.feed(piece)
        except ProtocolError:
            return found, True
        assert reader.held_bytes < limit + 4
        return found, False

    stream = b"".join(pieces)
    assert outcome(pieces) == outcome([stream])
    assert outcome([stream[at : at + 1] for at in range(len(stream))]) == outcome([stream])


def handle(payload: bytes) -> None:
    id_of(payload)
    try:
        _, method, args = read_request(payload)
        if method in METHODS:
            again = read_again(method, args)
            assert read_request(request_frame(1, method, again)[4:])[2] is not None
    except (ProtocolError, InvalidArgument):
        pass
    try:
        answer = read_answer(payload)
        for method in METHODS:
            try:
                read_result_again(method, answer.result)
            except (ProtocolError, InvalidArgument):
                continue
    except ProtocolError:
        pass


@st.composite
def changed(draw: st.DrawFn) -> bytes:
    payload = bytearray(draw(st.sampled_from(MEANT)))
    for _ in range(draw(st.integers(1, 4))):
        payload[draw(st.integers(0, len(payload) - 1))] = draw(st.integers(0, 255))
    return bytes(payload)


@given(st.binary(max_size=200), changed())
@example(b"\x93\x01\xc0" + b"\x91" * 1_020 + b"\xc0", b"")
@example(b"\x93\x01\xa4ping" + b"\x91" * 1_020 + b"\xc0", b"")
def test_payload_of_any_bytes_breaks_nothing(payload: bytes, changed: bytes) -> None:
    """Any bytes, and changed messages, are understood, or refused by one of two errors."""
    handle(payload)
    handle(changed)


@given(st.sampled_from(sorted(METHODS)), st.lists(ANYTHING, max_size=8))
def test_request_of_any_values_breaks_nothing(method: str, args: list[object]) -> None:
    """Arguments of any kind are understood, or refused by one of two errors."""
    handle(msgpack.packb([1, method, args]))
    for arg in args:
        handle(msgpack.packb([1, None, arg]))
        handle(msgpack.packb([1, arg, None]))


@given(st.binary(min_size=1, max_size=40), st.integers(1, 400))
def test_memory_when_any_bytes_come_again_and_again_is_bounded(pattern: bytes, times: int) -> None:
    """The reader's memory is bounded by the payload's size."""
    payload = b"\x93\x01\xa4ping" + pattern * times
    tracemalloc.start()
    try:
        handle(payload)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000 + 200 * len(payload)
