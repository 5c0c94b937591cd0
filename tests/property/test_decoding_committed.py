"""Decoding of interleaved transactions' committed rows, beside a reader that knows each outcome."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

import hypothesis.strategies as st
from hypothesis import given

from rlmm.records.control import ControlType
from rlmm.records.records import Record
from rlmm.records.writer import Producer, build_batch, build_control_batch
from spark_tiering.decoding import AbortedSearch, DecodingFault, read_txn_index
from tests.support.datasource.decoded_rows import decode, wanted

if TYPE_CHECKING:
    from collections.abc import Sequence

STEPS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(["data", "data", "abort", "commit", "alone"])),
    max_size=40,
)


class Segment(NamedTuple):
    first: int
    log: bytes
    txn_index: bytes


class History:
    def __init__(self) -> None:
        self.offset = 0
        self.committed: set[int] = set()
        self.segments: list[Segment] = [Segment(0, b"", b"")]
        self._open: dict[int, list[int]] = {}

    @property
    def stable_offset(self) -> int:
        return min((offsets[0] for offsets in self._open.values()), default=self.offset)

    def data(self, producer: int, count: int, *, is_transactional: bool) -> None:
        offsets = list(range(self.offset, self.offset + count))
        if is_transactional:
            self._open.setdefault(producer, []).extend(offsets)
        else:
            self.committed.update(offsets)
        by = Producer(producer, 0, 0, is_transactional)
        records = [Record(offset, 1_000, None, b"%d" % offset) for offset in offsets]
        self._add(build_batch(records, self.offset, producer=by), count)

    def end(self, producer: int, kind: ControlType) -> None:
        offsets = self._open.pop(producer, [])
        entry = b""
        if kind is ControlType.COMMIT:
            self.committed.update(offsets)
        elif offsets:
            stable = min((each[0] for each in self._open.values()), default=self.offset + 1)
            entry = struct.pack(">hqqqq", 0, producer, offsets[0], self.offset, stable)
        by = Producer(producer, 0, -1, is_transactional=True)
        self._add(build_control_batch(kind, self.offset, producer=by, timestamp_ms=1), 1, entry)

    def roll(self) -> None:
        if self.segments[-1].log:
            self.segments.append(Segment(self.offset, b"", b""))

    def _add(self, batch: bytes, count: int, entry: bytes = b"") -> None:
        last = self.segments[-1]
        self.segments[-1] = Segment(last.first, last.log + batch, last.txn_index + entry)
        self.offset += count


def history_of(steps: Sequence[tuple[int, str]], rolls: Sequence[bool]) -> History:
    history = History()
    for at, (producer, step) in enumerate(steps):
        if rolls[at % len(rolls)]:
            history.roll()
        if step == "abort":
            history.end(producer, ControlType.ABORT)
        elif step == "commit":
            history.end(producer, ControlType.COMMIT)
        else:
            # Who writes by itself is nobody who has transactions.
            is_alone = step == "alone"
            history.data(producer + 10 * is_alone, 1 + at % 3, is_transactional=not is_alone)
    return history


@given(STEPS, st.lists(st.booleans(), min_size=1, max_size=5), st.data())
def test_decoder_when_transactions_were_aborted_then_their_rows_are_left_out(
    steps: list[tuple[int, str]], rolls: list[bool], data: st.DataObject
) -> None:
    """Aborted rows are left out in any range below the last stable offset."""
    history = history_of(steps, rolls)
    first = data.draw(st.integers(0, history.stable_offset))
    behind = data.draw(st.integers(first, history.stable_offset))
    search, asked = AbortedSearch(first, behind), 0
    behinds = [segment.first for segment in history.segments[1:]] + [history.offset]
    for segment, segment_behind in zip(history.segments, behinds, strict=True):
        if segment_behind <= first or search.is_complete:
            continue
        entries = read_txn_index(segment.txn_index)
        assert not isinstance(entries, DecodingFault)
        search.take(entries)
        asked += 1
    log = b"".join(segment.log for segment in history.segments)
    found = decode(log, wanted(first_offset=first, next_offset=behind, aborted=search.found))
    assert found.fault is None
    expected = [offset for offset in range(first, behind) if offset in history.committed]
    assert [row.offset for row in found.rows] == expected
    assert all(row.value == b"%d" % row.offset for row in found.rows)
    assert asked <= len(history.segments)


@given(st.binary(max_size=150) | st.lists(st.binary(min_size=34, max_size=34)).map(b"".join))
def test_txn_index_when_bytes_are_anything_then_is_sound_or_a_fault(content: bytes) -> None:
    """Any index bytes give whole, ordered entries of the known version, or a fault."""
    found = read_txn_index(content)
    if isinstance(found, DecodingFault):
        assert found.detail
        return
    assert 34 * len(found) == len(content)
    assert all(0 <= one.first_offset <= one.last_offset for one in found)
    assert [one.last_offset for one in found] == sorted({one.last_offset for one in found})
