"""Producer snapshots and the state that batches lead to."""

from __future__ import annotations

import struct

import google_crc32c
import pytest

from rlmm.records.control import ControlType
from spark_tiering.segments import producer_state
from spark_tiering.segments.log_walk import LogBatch, TransactionMarker
from spark_tiering.segments.producer_state import (
    EndedTransaction,
    ProducerEntry,
    ProducerState,
    format_snapshot,
    parse_snapshot,
)
from tests.support.partitions.segments import example_partition, recorded_partition

EMPTY = bytes.fromhex("000148674bc700000000")
"""What a broker writes where there are no producers."""


def data(
    base: int,
    last: int,
    producer_id: int = 7,
    *,
    epoch: int = 0,
    sequence: int = 0,
    txn: bool = False,
) -> LogBatch:
    return LogBatch(
        0, 100, base, last, 0, 1000 + base, producer_id, epoch, sequence, txn, False, None
    )


def marker(
    offset: int,
    producer_id: int = 7,
    kind: ControlType | None = ControlType.COMMIT,
    *,
    epoch: int = 0,
) -> LogBatch:
    """Return a marker of coordinator epoch 3, or an empty control batch without a kind."""
    said = None if kind is None else TransactionMarker(kind, 3, 2000 + offset)
    return LogBatch(
        0, 78, offset, offset, 0, 2000 + offset, producer_id, epoch, -1, True, True, said
    )


def state_after(*batches: LogBatch) -> tuple[ProducerState, list[EndedTransaction]]:
    state = ProducerState()
    ended = [state.note(batch) for batch in batches]
    return state, [one for one in ended if one is not None]


def test_snapshot_without_producers_when_written_then_has_the_brokers_bytes() -> None:
    """A snapshot without producers is ten bytes, as the broker's."""
    assert format_snapshot({}) == EMPTY
    assert parse_snapshot(EMPTY) == {}


@pytest.mark.parametrize(
    "partition", [example_partition(), recorded_partition()], ids=["example", "recorded"]
)
def test_snapshots_of_a_broker_when_read_and_written_then_are_the_same(partition: object) -> None:
    """Every snapshot of a broker is written again byte for byte, with its order."""
    contents: dict[str, bytes] = partition.contents  # type: ignore[attr-defined]
    snapshots = [text for name, text in contents.items() if name.endswith(".snapshot")]
    assert len(snapshots) >= 2
    for content in snapshots:
        entries = parse_snapshot(content)
        assert not isinstance(entries, str)
        assert format_snapshot(entries) == content


def test_entries_when_written_then_stand_as_a_hash_map_has_them() -> None:
    """Entries stand in the order of Java's hash buckets, which grow with the producers."""

    def order(ids: list[int]) -> list[int]:
        entries = {one: ProducerEntry(one, 0, 0, 0, 0, 0, 0, -1) for one in ids}
        found = parse_snapshot(format_snapshot(entries))
        assert not isinstance(found, str)
        return list(found)

    # By hand: 16 buckets, of a Long the two halves exclusive-or'ed, then again the two of that.
    assert order([1000, 5, 2000, 16, 0]) == [2000, 16, 0, 5, 1000]
    assert order([2**32 + 3, 3, 2, 2**16]) == [2**16, 2**32 + 3, 2, 3]
    assert order([1, 2**16]) == [1, 2**16]
    assert order(list(range(12, -1, -1))) == list(range(13))
    assert order(list(range(40, -1, -1))) == list(range(41))


def with_crc(body: bytes, version: int = 1) -> bytes:
    return struct.pack(">hI", version, google_crc32c.value(body)) + body


GOOD = example_partition().contents["00000000000000000251.snapshot"]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        pytest.param(b"", "0 bytes", id="empty"),
        pytest.param(GOOD[:9], "9 bytes", id="shorter than its head"),
        pytest.param(with_crc(b"\0\0\0\0", version=2), "version 2", id="version"),
        pytest.param(GOOD[:50] + b"\xa5" + GOOD[51:], "CRC-32C", id="flipped bits"),
        pytest.param(GOOD + b"\0", "CRC-32C", id="a byte too many"),
        pytest.param(with_crc(GOOD[6:-1]), "137 bytes of entries", id="torn, sound CRC"),
        pytest.param(with_crc(b"\x7f\xff\xff\xff"), "2147483647", id="count without entries"),
        pytest.param(with_crc(b"\xff\xff\xff\xff"), "count of -1", id="negative count"),
    ],
)
def test_snapshot_when_it_is_damaged_then_says_how(content: bytes, text: str) -> None:
    """A snapshot that a broker would discard is refused with its fault."""
    found = parse_snapshot(content)
    assert isinstance(found, str)
    assert text in found


def test_data_when_noted_then_only_the_last_batch_of_a_producer_is_kept() -> None:
    """For each producer only the last batch is kept; batches without producer leave none."""
    state, _ = state_after(data(0, 9), data(10, 10, -1), data(11, 14, sequence=10, epoch=1))
    assert state.entries == {7: ProducerEntry(7, 1, 13, 14, 3, 1011, -1, -1)}
    assert state.first_open_offset is None


@pytest.mark.parametrize(
    ("sequence", "count", "last"),
    [
        pytest.param(2**31 - 10, 10, 2**31 - 1, id="up to the largest"),
        pytest.param(2**31 - 10, 11, 0, id="over it"),
        pytest.param(2**31 - 1, 5, 3, id="far over it"),
        pytest.param(-1, 5, -1, id="none"),
    ],
)
def test_sequence_behind_the_largest_begins_anew(sequence: int, count: int, last: int) -> None:
    """A sequence beyond the largest starts again at zero, as in Kafka."""
    state, _ = state_after(data(0, count - 1, sequence=sequence))
    assert state.entries[7].last_sequence == last


def test_transaction_when_it_ends_then_says_from_where_to_where() -> None:
    """The end of a transaction gives its range and the last stable offset."""
    state, ended = state_after(
        data(0, 1, 7, txn=True),
        data(2, 3, 8, txn=True),
        data(4, 5, 7, txn=True, sequence=2),
        marker(6, 7, ControlType.ABORT),
        marker(7, 8),
    )
    assert ended == [EndedTransaction(7, 0, 6, True, 2), EndedTransaction(8, 2, 7, False, 8)]
    assert state.entries[7] == ProducerEntry(7, 0, 3, 5, 1, 2006, 3, -1)
    assert state.first_open_offset is None


def test_marker_of_a_new_producer_epoch_when_noted_then_forgets_the_last_batch() -> None:
    """In the second version a marker raises the producer epoch; sequences restart."""
    state, ended = state_after(data(0, 4, txn=True), marker(5, epoch=1))
    assert len(ended) == 1
    assert state.entries[7] == ProducerEntry(7, 1, -1, -1, 0, 2005, 3, -1)


def test_marker_without_data_when_noted_then_ends_nothing() -> None:
    """A marker without data ends no transaction and leaves its producer known."""
    state, ended = state_after(marker(3, kind=ControlType.ABORT), marker(4, 9, kind=None))
    assert ended == []
    assert state.entries == {7: ProducerEntry(7, 0, -1, -1, 0, 2003, 3, -1)}


def test_state_when_it_goes_on_from_a_snapshot_then_knows_the_open_transactions() -> None:
    """A state from a snapshot knows its open transactions; the oldest decides."""
    before = {
        9: ProducerEntry(9, 0, 4, 40, 4, 0, -1, 38),
        7: ProducerEntry(7, 0, 4, 30, 4, 0, -1, 22),
    }
    state = ProducerState(before)
    twin = state.copy()
    assert state.first_open_offset == 22
    assert state.note(marker(50, 7, ControlType.ABORT)) == EndedTransaction(7, 22, 50, True, 38)
    assert state.first_open_offset == 38
    assert (twin.first_open_offset, twin.entries) == (22, before)


@pytest.mark.parametrize(
    ("batches", "text"),
    [
        pytest.param(
            [data(0, 1, txn=True), data(2, 3)], "outside of its transaction", id="plain data"
        ),
        pytest.param([marker(0, kind=ControlType.OTHER)], "no marker", id="no marker"),
        pytest.param([data(n, n, n) for n in range(4)], "more than 3", id="too many"),
        pytest.param([marker(n, n) for n in range(4)], "more than 3", id="too many markers"),
    ],
)
def test_state_when_the_log_is_none_of_a_broker_then_is_not_known(
    monkeypatch: pytest.MonkeyPatch, batches: list[LogBatch], text: str
) -> None:
    """A log that no broker writes makes the state unknown, with one fault."""
    monkeypatch.setattr(producer_state, "PRODUCERS_MAX", 3)
    state, _ = state_after(*batches, data(50, 51, 1))
    assert state.fault is not None
    assert text in state.fault
    assert all(entry.last_offset < 50 for entry in state.entries.values())
