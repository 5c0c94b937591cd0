"""Hand-made batches without a lie are those of a broker."""

from __future__ import annotations

from rlmm.records.records import Record
from rlmm.records.writer import Producer, build_batch
from tests.support.records.batches import field, forge, record, varint


def test_forged_batch_when_honest_then_is_what_the_writer_writes() -> None:
    """Two encoders that share no code agree byte for byte."""
    headers = varint(1) + field(b"h") + field(None)
    section = record(0, b"one", key=b"k") + record(2, None, timestamp_delta=500, headers=headers)
    header = {"base_offset": 70, "leader_epoch": 3, "last_offset_delta": 4, "base_sequence": 5}
    times = {"base_timestamp_ms": 1_000, "max_timestamp_ms": 1_500}
    forged = forge(section, 2, **header, **times, producer_id=9, producer_epoch=1)
    records = [Record(70, 1_000, b"k", b"one"), Record(72, 1_500, None, None, (("h", None),))]
    assert forged == build_batch(
        records, 70, last_offset=74, leader_epoch=3, producer=Producer(9, 1, 5)
    )


def test_varint_when_at_the_limits_then_takes_the_bytes_that_protocol_buffers_take() -> None:
    """Zigzag maps small numbers of either sign to small ones."""
    assert varint(0) == b"\x00"
    assert varint(-1) == b"\x01"
    assert varint(64) == b"\x80\x01"
    assert varint(2**63 - 1) == b"\xfe" + b"\xff" * 8 + b"\x01"
    assert varint(-(2**63)) == b"\xff" * 9 + b"\x01"
