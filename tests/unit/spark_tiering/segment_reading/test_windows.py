"""A log in windows of whole batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_tiering.segment_reading.protocol import ReadFault, SegmentUnreadable
from spark_tiering.segment_reading.windows import BatchWindow, batch_windows
from tests.support.partitions.segments import data_batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spark_tiering.segments.findings import SegmentPart


class Pieces:
    where = "log"

    def __init__(self, log: bytes, piece_bytes: int = 700) -> None:
        self.log = log
        self.log_bytes = len(log)
        self._piece_bytes = piece_bytes

    def pieces(self, first_byte: int = 0, last_byte: int | None = None) -> Iterator[bytes]:
        behind = self.log_bytes if last_byte is None else last_byte + 1
        for at in range(first_byte, behind, self._piece_bytes):
            yield self.log[at : min(at + self._piece_bytes, behind)]

    def index(self, part: SegmentPart) -> bytes | None:
        del part
        return None


@given(
    sizes=st.lists(st.integers(61, 3000), max_size=12),
    piece_bytes=st.integers(1, 5000),
    window_bytes=st.integers(1, 6000),
    tail=st.integers(0, 60),
)
def test_windows_of_any_log_are_whole_batches_in_order(
    sizes: list[int], piece_bytes: int, window_bytes: int, tail: int
) -> None:
    """Windows are whole batches in order, no larger than needed, and have all batches."""
    batches = [data_batch(n, n, count=1, size=size) for n, size in enumerate(sizes)]
    rest = data_batch(99, 99, count=1, size=100)[:tail]
    log = b"".join(batches) + rest
    windows = list(batch_windows(Pieces(log, piece_bytes), window_bytes=window_bytes))
    assert b"".join(one.content + one.tail for one in windows) == log
    assert b"".join(one.tail for one in windows) == rest
    starts = {sum(sizes[:n]) for n in range(len(sizes) + 1)}
    position = 0
    for one in windows:
        assert one.position == position in starts
        position += len(one.content)
        assert position in starts
        assert len(one.content) <= window_bytes or len(one.content) in sizes
    assert not [one for one in windows[:-1] if one.tail]


def test_length_that_no_batch_has_when_met_is_damage_behind_what_is_right() -> None:
    """An impossible batch length is damage, and the batches before it are returned."""
    good = data_batch(0, 0)
    log = good + bytes(100)
    got: list[BatchWindow] = []
    with pytest.raises(SegmentUnreadable, match="byte 1171") as raised:
        got.extend(batch_windows(Pieces(log)))
    assert raised.value.fault is ReadFault.DAMAGED
    assert [one.content for one in got] == [good]
