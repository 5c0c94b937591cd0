"""The batches of an append before they are written."""

from __future__ import annotations

import pytest

from rlmm.errors import InvalidArgument
from rlmm.partition_log.incoming import check_batches, place
from rlmm.records.batch import Batch, walk
from rlmm.records.header import OFFSET_MAX
from rlmm.records.records import Record
from rlmm.records.writer import build_batch
from tests.support.logs.partition_logs import FIRST_MS, batch

LIMIT = 1 << 20


def flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def test_batches_when_placed_then_differ_in_their_first_16_bytes_alone() -> None:
    """Bytes in are bytes out, but for the base offset and the leader epoch."""
    sent = batch(b"a", b"b") + batch(b"c")
    batches = check_batches(sent, batch_bytes_max=LIMIT)
    placed = place(sent, batches, 70, 4)
    written = b"".join(placed.buffers)
    assert placed.next_offset == 73
    assert len(written) == len(sent)
    found = [one for one in walk(written) if isinstance(one, Batch)]
    assert [(one.base_offset, one.last_offset, one.leader_epoch) for one in found] == [
        (70, 71, 4),
        (72, 72, 4),
    ]
    for one in found:
        assert written[one.start + 16 : one.stop] == sent[one.start + 16 : one.stop]
        assert written[one.start + 8 : one.start + 12] == sent[one.start + 8 : one.start + 12]


def test_batches_when_placed_then_their_bytes_are_not_copied() -> None:
    """The bytes behind the new 16-byte header are not copied."""
    sent = batch(b"a" * 1000)
    placed = place(sent, check_batches(sent, batch_bytes_max=LIMIT), 0, 0)
    view = placed.buffers[1]
    assert isinstance(view, memoryview)
    assert view.obj is sent


def with_hole() -> bytes:
    return build_batch([Record(0, FIRST_MS, None, b"a"), Record(2, FIRST_MS, None, b"c")], 0)


@pytest.mark.parametrize(
    ("sent", "what"),
    [
        pytest.param(b"", "0 bytes", id="nothing"),
        pytest.param(batch(b"a")[:-1], "batch 0", id="cut-off"),
        pytest.param(batch(b"a") + b"\0", "batch 1", id="rest"),
        pytest.param(flipped(batch(b"abc"), 66), "crc-mismatch", id="crc"),
        pytest.param(flipped(batch(b"abc"), 16), "magic", id="magic"),
        pytest.param(with_hole(), "2 records for 3 offsets", id="hole"),
        pytest.param(build_batch([], 0, last_offset=0), "0 records for 1 offsets", id="empty"),
    ],
)
def test_batches_when_not_sound_then_are_refused_by_name(sent: bytes, what: str) -> None:
    """The log accepts only whole and sound batches without gaps."""
    with pytest.raises(InvalidArgument, match=what):
        check_batches(sent, batch_bytes_max=LIMIT)


def test_batch_when_larger_than_allowed_then_is_refused_with_both_numbers() -> None:
    """The limit is on each batch, not on the append."""
    sent = batch(b"a" * 500)
    check_batches(sent + sent, batch_bytes_max=len(sent))
    with pytest.raises(InvalidArgument, match=f"{len(sent)} bytes, allowed {len(sent) - 1}"):
        check_batches(sent, batch_bytes_max=len(sent) - 1)


def test_crc_when_the_caller_answers_for_it_then_is_not_computed_again() -> None:
    """The CRC of our own batches is not computed again."""
    assert check_batches(flipped(batch(b"abc"), 66), batch_bytes_max=LIMIT, verify_crc=False)


def test_offsets_when_used_up_then_the_append_is_refused() -> None:
    """The append is refused when its last offset would have no successor."""
    sent = batch(b"a", b"b")
    batches = check_batches(sent, batch_bytes_max=LIMIT)
    place(sent, batches, OFFSET_MAX - 1, 0)
    with pytest.raises(InvalidArgument, match="largest"):
        place(sent, batches, OFFSET_MAX, 0)
