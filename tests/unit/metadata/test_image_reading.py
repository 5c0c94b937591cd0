"""Images that cannot be trusted: every lie is found, and none costs more than the image is long."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from rlmm.errors import ImageCorrupt
from rlmm.metadata.image_reading import read_partition_image, read_shard_image
from rlmm.metadata.row import NOT_FINISHED, row_of
from rlmm.metadata.segment import SegmentState
from tests.support.builders import started
from tests.support.records import value_bytes

CF, DS, DF = (
    SegmentState.COPY_SEGMENT_FINISHED,
    SegmentState.DELETE_SEGMENT_STARTED,
    SegmentState.DELETE_SEGMENT_FINISHED,
)

KEY = value_bytes.NAME + value_bytes.TOPIC_ID + value_bytes.PARTITION
NO_DELETE = b"\xff"
CPU_S_MAX = 5.0
"""Far above what a sound way of reading takes, and below what one that copies sets takes: 15 s."""
IDS = [bytes(15) + bytes((number,)) for number in range(5)]
HUGE = b"\x80\x80\x80\x80\x80\x80\x80\x80\x10"
ENDLESS = b"\xff" * 9 + b"\x01"

FIRST = row_of(started(1, 0, 99, {0: 0, 2: 50}, state=CF), 4)
"""A finished segment with its slots at 0 and 50."""
SECOND = row_of(started(2, 100, 199, {2: 100}))
"""A copy that has only started."""
OLD = row_of(started(3, 0, 60, {0: 0}, state=DS), 2)
"""A segment that was finished and is being deleted."""
ROWS = [(1, FIRST), (2, SECOND), (3, OLD)]


def varint(number: int) -> bytes:
    if number < 128:
        return bytes((number,))
    return bytes((number & 0x7F | 0x80,)) + varint(number >> 7)


def rows_of(rows: list[tuple[int, bytes]]) -> bytes:
    parts = [IDS[number] + varint(len(row)) + row for number, row in rows]
    return varint(len(rows)) + b"".join(parts)


def epoch_of(
    number: int,
    highest: int | None,
    slots: tuple[tuple[int, int], ...] = (),
    strays: tuple[int, ...] = (),
) -> bytes:
    watermark = b"\x00" if highest is None else b"\x01" + value_bytes.int64(highest)
    listed = b"".join(value_bytes.int64(offset) + varint(ordinal) for offset, ordinal in slots)
    return b"".join(
        (
            value_bytes.int32(number),
            watermark,
            varint(len(slots)),
            listed,
            varint(len(strays)),
            b"".join(map(varint, strays)),
        )
    )


EPOCH_0 = epoch_of(0, 60, ((0, 0),))
EPOCH_1 = epoch_of(1, None, (), (1, 2))
EPOCH_2 = epoch_of(2, 99, ((50, 0),))
EPOCHS = (EPOCH_0, EPOCH_1, EPOCH_2)


def image_of(
    *,
    key: bytes = varint(len(KEY)) + KEY,
    delete: bytes = NO_DELETE,
    rows: bytes = rows_of(ROWS),
    epochs: bytes = b"\x03" + b"".join(EPOCHS),
) -> bytes:
    return key + delete + rows + epochs


def epochs_of(*entries: bytes) -> bytes:
    return image_of(epochs=varint(len(entries)) + b"".join(entries))


def first(entry: bytes) -> bytes:
    return epochs_of(entry, EPOCH_1, EPOCH_2)


def second(entry: bytes) -> bytes:
    return epochs_of(EPOCH_0, entry, EPOCH_2)


def third(entry: bytes) -> bytes:
    return epochs_of(EPOCH_0, EPOCH_1, entry)


def first_row(row: bytes) -> bytes:
    return image_of(rows=rows_of([(1, row), *ROWS[1:]]))


def second_row(row: bytes) -> bytes:
    return image_of(rows=rows_of([ROWS[0], (2, row), ROWS[2]]))


def key_of(key: bytes) -> bytes:
    return image_of(key=varint(len(key)) + key)


def patched(row: bytes, at: int, replacement: bytes) -> bytes:
    return row[:at] + replacement + row[at + len(replacement) :]


LIES = {
    "empty": (b"", "key length wants 1 bytes"),
    "key-longer-than-the-image": (b"\x7f" + KEY, "key wants 127 bytes"),
    "key-with-null-name": (key_of(b"\x00" + KEY[7:]), "not the key"),
    "key-short": (key_of(KEY[:-1]), "not the key"),
    "key-long": (key_of(KEY + b"\x00"), "not the key"),
    "key-not-minimal": (key_of(b"\x87\x00" + KEY[1:]), "not the key"),
    "key-malformed-name": (key_of(b"\x07or\xffers" + KEY[7:]), "not the key"),
    "key-length-endless": (ENDLESS + KEY, "key length has too many bytes"),
    "delete-state-3": (image_of(delete=b"\x03" + bytes(12)), "partition delete state 3"),
    "delete-state-minus-2": (image_of(delete=b"\xfe" + bytes(12)), "partition delete state -2"),
    "segments-falling": (image_of(rows=rows_of(ROWS[::-1])), "segments are not in order"),
    "segment-twice": (image_of(rows=rows_of([ROWS[0], *ROWS])), "segments are not in order"),
    "row-empty": (first_row(b""), "row of segment"),
    "row-short": (first_row(FIRST[:-1]), "row of segment"),
    "row-long": (first_row(FIRST + b"\x00"), "is not canonical"),
    "row-deleted": (second_row(patched(SECOND, 0, b"\x03")), "is not canonical"),
    "row-state-9": (first_row(patched(FIRST, 0, b"\x09")), "row of segment"),
    "row-state-minus-1": (first_row(patched(FIRST, 0, b"\xff")), "row of segment"),
    "row-flag-2": (first_row(patched(FIRST, 1, b"\x02")), "is not canonical"),
    "row-started-and-finished": (
        second_row(patched(SECOND, 2, value_bytes.int64(5))),
        "COPY_SEGMENT_STARTED, finish 5",
    ),
    "row-finished-never": (
        first_row(patched(FIRST, 2, value_bytes.int64(NOT_FINISHED))),
        "COPY_SEGMENT_FINISHED, finish -1",
    ),
    "row-finish-minus-2": (
        second_row(patched(SECOND, 2, value_bytes.int64(-2))),
        "COPY_SEGMENT_STARTED, finish -2",
    ),
    "row-negative-start": (second_row(patched(SECOND, 22, value_bytes.int64(-1))), "negative"),
    "row-end-before-start": (second_row(patched(SECOND, 30, value_bytes.int64(99))), "lies before"),
    "row-without-epochs": (
        second_row(SECOND[:46] + b"\x01" + SECOND[60:]),
        "at least one leader epoch",
    ),
    "row-with-null-epochs": (second_row(SECOND[:46] + b"\x00" + SECOND[60:]), "row of segment"),
    "row-epochs-falling": (
        first_row(FIRST[:47] + FIRST[60:73] + FIRST[47:60] + FIRST[73:]),
        "is not canonical",
    ),
    "row-epoch-twice": (
        first_row(FIRST[:47] + FIRST[47:60] + FIRST[47:60] + FIRST[73:]),
        "is not canonical",
    ),
    "row-epoch-with-a-tag": (second_row(patched(SECOND, 59, b"\x01")), "is not canonical"),
    "row-epoch-count-not-minimal": (
        second_row(SECOND[:46] + b"\x82\x00" + SECOND[47:]),
        "is not canonical",
    ),
    "row-custom-not-minimal": (second_row(SECOND[:-1] + b"\x80\x00"), "is not canonical"),
    "row-custom-cut-off": (second_row(SECOND[:-1] + b"\x05ab"), "is not canonical"),
    "row-epoch-count-too-large": (second_row(patched(SECOND, 46, b"\x7f")), "row of segment"),
    "row-epoch-count-2^60": (second_row(SECOND[:46] + HUGE + SECOND[47:]), "row of segment"),
    "row-epoch-count-endless": (second_row(SECOND[:46] + 50 * b"\xff"), "row of segment"),
    "row-custom-length-2^60": (second_row(SECOND[:-1] + HUGE), "row of segment"),
    "epochs-falling": (epochs_of(EPOCH_0, EPOCH_2, EPOCH_1), "epoch 1 is out of order"),
    "epoch-twice": (epochs_of(EPOCH_0, EPOCH_0, EPOCH_2), "epoch 0 is out of order"),
    "watermark-flag-2": (third(patched(EPOCH_2, 4, b"\x02")), "no valid watermark flag"),
    "epoch-missing": (epochs_of(EPOCH_0, EPOCH_1), "names epoch 2, which has no entry"),
    "watermark-missing": (
        third(epoch_of(2, None, ((50, 0),))),
        "watermark None of epoch 2 lies below 99",
    ),
    "watermark-too-low": (
        third(epoch_of(2, 98, ((50, 0),))),
        "watermark 98 of epoch 2 lies below 99",
    ),
    "watermark-below-one-being-deleted": (
        first(epoch_of(0, 59, ((0, 0),))),
        "watermark 59 of epoch 0 lies below 60",
    ),
    "slot-of-a-started-copy": (
        third(epoch_of(2, 199, ((50, 0), (100, 1)))),
        "the slot of offset 100 holds a segment that cannot be there",
    ),
    "slot-of-one-being-deleted": (first(epoch_of(0, 60, ((0, 2),))), "the slot of offset 0 holds"),
    "slot-at-another-offset": (third(epoch_of(2, 99, ((51, 0),))), "the slot of offset 51 holds"),
    "slot-in-an-epoch-it-does-not-name": (
        second(epoch_of(1, 99, ((0, 0),))),
        "the slot of offset 0 holds",
    ),
    "slot-twice": (third(epoch_of(2, 99, ((50, 0), (50, 0)))), "slots are not in order"),
    "slot-of-nobody": (first(epoch_of(0, 60, ((0, 3),))), "segment 3 of 3"),
    "stray-of-nobody": (second(epoch_of(1, None, (), (3,))), "segment 3 of"),
    "strays-falling": (second(epoch_of(1, None, (), (2, 1))), "strays are not in order"),
    "stray-twice": (second(epoch_of(1, None, (), (1, 1))), "strays are not in order"),
    "stray-that-names-the-epoch": (
        first(epoch_of(0, 60, ((0, 0),), (2,))),
        "names epoch 0 is listed as a stray",
    ),
    "key-length-not-minimal": (image_of(key=b"\x9b\x00" + KEY), "not in canonical form"),
    "segment-count-not-minimal": (
        image_of(rows=b"\x83\x00" + rows_of(ROWS)[1:]),
        "not in canonical form",
    ),
    "epoch-count-not-minimal": (
        image_of(epochs=b"\x83\x00" + b"".join(EPOCHS)),
        "not in canonical form",
    ),
    "tail": (image_of() + b"\x00", "1 bytes behind the end"),
}


def test_partition_image_when_put_together_by_hand_then_is_read() -> None:
    """The sections that every lie below is built from make a sound image."""
    state = read_partition_image(image_of())
    assert state.key == KEY
    assert state.rows == {IDS[1]: FIRST, IDS[2]: SECOND, IDS[3]: OLD}
    assert state.counts == [1, 1, 1]
    assert state.strays == {IDS[2]: frozenset({1}), IDS[3]: frozenset({1})}
    assert {epoch: entry.highest for epoch, entry in state.epochs.items()} == {
        0: 60,
        1: None,
        2: 99,
    }


@pytest.mark.parametrize(
    ("image", "message"), [pytest.param(*case, id=name) for name, case in LIES.items()]
)
def test_partition_image_when_it_lies_then_names_the_rule(image: bytes, message: str) -> None:
    """The refusal names the rule of the state machine that the image breaks."""
    with pytest.raises(ImageCorrupt, match=message) as caught:
        read_partition_image(image)
    assert len(str(caught.value)) < 500


def test_partition_image_when_many_epochs_list_one_segment_then_is_read_soon() -> None:
    """The cost of reading grows with the length of the image, whatever stands in it."""
    count = 100_000
    others = (epoch_of(10 + number, None, (), (0,)) for number in range(count))
    epochs = varint(count + 1) + epoch_of(0, None) + b"".join(others)
    row = row_of(started(1, 0, 99, {0: 0}))
    image = image_of(rows=rows_of([(1, row)]), epochs=epochs)
    before_s = time.thread_time()
    state = read_partition_image(image)
    assert time.thread_time() - before_s < CPU_S_MAX
    assert state.strays == {IDS[1]: frozenset(range(10, 10 + count))}


def shard_of(
    *images: bytes, head: bytes = b"RLMI\x01", partition: int = 3, position: int = 9
) -> bytes:
    parts = [varint(len(image)) + image for image in images]
    count = varint(len(images))
    return (
        head + value_bytes.int32(partition) + value_bytes.int64(position) + count + b"".join(parts)
    )


OTHER = image_of(key=b"\x1b\x07other1" + KEY[7:], rows=b"\x00", epochs=b"\x00")


def test_shard_image_when_put_together_by_hand_then_is_read() -> None:
    """The frame that every lie below is built from makes a sound image."""
    partition, position, states = read_shard_image(shard_of(image_of(), OTHER))
    assert (partition, position) == (3, 9)
    assert [state.key[:7] for state in states] == [b"\x07orders", b"\x07other1"]


@pytest.mark.parametrize(
    ("image", "message"),
    [
        pytest.param(b"", "header wants 17 bytes", id="empty"),
        pytest.param(shard_of(head=b"RLMJ\x01"), "begins with b'RLMJ'", id="magic"),
        pytest.param(shard_of(head=b"RLMI\x02"), "image version 2, this build", id="version-2"),
        pytest.param(shard_of(head=b"RLMI\x00"), "image version 0", id="version-0"),
        pytest.param(shard_of(head=b"RLMI\xff"), "image version -1", id="version-minus-1"),
        pytest.param(shard_of(partition=-1), "metadata partition -1", id="partition"),
        pytest.param(shard_of(position=-1), "position -1", id="position"),
        pytest.param(shard_of(OTHER, image_of()), "not in order", id="partitions-falling"),
        pytest.param(shard_of(OTHER, OTHER), "not in order", id="partition-twice"),
        pytest.param(shard_of(OTHER)[:-1], "partition image wants", id="cut-off"),
        pytest.param(shard_of(OTHER) + b"\x00", "1 bytes behind the end", id="tail"),
        pytest.param(shard_of(OTHER + b"\x00"), "1 bytes behind the end", id="tail-inside"),
        pytest.param(shard_of(LIES["epoch-missing"][0]), "no entry", id="lie-inside"),
        pytest.param(shard_of()[:-1] + HUGE, "partitions in 0 bytes", id="count-2^60"),
        pytest.param(shard_of()[:-1] + b"\x80\x00", "canonical", id="count-not-minimal"),
    ],
)
def test_shard_image_when_it_lies_then_is_refused_by_reason(image: bytes, message: str) -> None:
    """A damaged frame is refused, whatever partition image it has."""
    with pytest.raises(ImageCorrupt, match=message):
        read_shard_image(image)


@pytest.mark.parametrize(
    "image",
    [
        pytest.param(HUGE + KEY, id="key-length"),
        pytest.param(image_of(rows=HUGE + rows_of(ROWS)[1:]), id="segments"),
        pytest.param(image_of(rows=b"\x01" + IDS[1] + HUGE + FIRST), id="row-length"),
        pytest.param(image_of(epochs=HUGE + EPOCH_0), id="epochs"),
        pytest.param(epochs_of(EPOCH_0[:13] + HUGE + EPOCH_0[14:]), id="slots"),
        pytest.param(epochs_of(EPOCH_1[:6] + HUGE + EPOCH_1[7:]), id="strays"),
        pytest.param(epochs_of(EPOCH_0[:22] + HUGE + EPOCH_0[23:]), id="ordinal"),
        pytest.param(second_row(SECOND[:46] + HUGE + SECOND[47:]), id="epochs-of-a-row"),
        pytest.param(second_row(SECOND[:-1] + HUGE), id="custom-metadata-of-a-row"),
    ],
)
def test_image_when_it_claims_2_to_the_60_then_allocates_nothing_of_it(image: bytes) -> None:
    """A count or length is believed only as far as the image reaches."""
    with pytest.raises(ImageCorrupt):
        read_partition_image(image)
    tracemalloc.start()
    try:
        with pytest.raises(ImageCorrupt):
            read_partition_image(image)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000


@pytest.mark.timeout(60)
@pytest.mark.parametrize("byte", [b"\xff", b"\x80"], ids=["ff", "80"])
def test_image_when_a_number_never_ends_then_is_refused_at_once(byte: bytes) -> None:
    """A varint that runs through megabytes of row is given up after its fifth byte."""
    row = SECOND[:46] + 4_000_000 * byte
    with pytest.raises(ImageCorrupt, match="more than five bytes"):
        read_partition_image(image_of(rows=rows_of([(1, row)])))
