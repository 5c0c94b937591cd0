"""The memory of events that were not simply applied."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.metadata.report import Entry
from rlmm.metadata.verdicts import (
    DUPLICATE,
    Applied,
    Rejected,
    RejectReason,
    Remark,
    Undecodable,
    UndecodableReason,
)
from rlmm.pump.incidents import Incident, Incidents, KindStatistics
from tests.support.builders import segment_id, tp

if TYPE_CHECKING:
    import pytest

    from rlmm.metadata.ids import Uuid

REJECTED = Rejected(RejectReason.UNKNOWN_SEGMENT, None, None)
POISON = Undecodable(UndecodableReason.TRUNCATED, "cut off")
REMARKED = Applied(Remark.DISPLACED_ANOTHER_SEGMENT)
A = segment_id("a").uuid


def rejected(offset: int, segment: Uuid = A) -> Entry:
    return Entry(offset, offset + 1, REJECTED, tp(), segment)


def poison(offset: int, value: bytes = b"junk") -> Entry:
    return Entry(offset, offset + 1, POISON, value=value)


def test_f62_poison_then_is_there_with_bytes_place_and_reason() -> None:
    """A record that was set aside can be looked at: bytes, partition, offset, reason, time."""
    incidents = Incidents(10, 1_000)
    incidents.note(4, [poison(17)], now_ms=99)
    (found,) = incidents.of()
    assert (found.metadata_partition, found.offset, found.next_offset) == (4, 17, 18)
    assert (found.value, found.size, found.seen_ms) == (b"junk", 4, 99)
    assert found.verdict == POISON


def test_f62_value_when_very_large_then_its_beginning_and_its_size_are_kept() -> None:
    """The incident keeps 64 KiB of a large record and its size."""
    incidents = Incidents(10, 1 << 20)
    incidents.note(0, [poison(0, b"x" * 100_000)], now_ms=0)
    (found,) = incidents.of()
    assert (len(found.value or b""), found.size) == (64 * 1024, 100_000)
    assert incidents.bytes_held == 64 * 1024


def test_f62_bytes_when_too_many_then_the_oldest_poison_goes_and_is_counted() -> None:
    """The oldest poison bytes go and are counted, other incidents stay."""
    incidents = Incidents(100, 1_000)
    incidents.note(0, [rejected(0)], now_ms=0)
    incidents.note(0, [poison(offset, b"x" * 300) for offset in range(1, 6)], now_ms=0)
    assert [found.offset for found in incidents.of()] == [0, 3, 4, 5]
    assert (incidents.bytes_held, incidents.forgotten) == (900, 2)


def test_f78_incidents_when_too_many_then_the_oldest_of_each_kind_go() -> None:
    """A flood of one kind drives out no other."""
    incidents = Incidents(3, 1_000)
    incidents.note(0, [rejected(offset) for offset in range(10)], now_ms=0)
    incidents.note(0, [poison(10), Entry(11, 12, REMARKED, tp(), A)], now_ms=0)
    assert [found.offset for found in incidents.of()] == [7, 8, 9, 10, 11]
    assert incidents.forgotten == 7


def test_f52_exact_repeats_then_are_no_incidents() -> None:
    """A retry is nothing to look into."""
    incidents = Incidents(3, 1_000)
    incidents.note(0, [Entry(0, 1, DUPLICATE, tp(), A)], now_ms=0)
    assert not list(incidents.of())


def test_f78_history_of_a_segment_then_shows_its_rejected_events() -> None:
    """A question about a segment, a user partition or a metadata partition finds its incidents."""
    incidents = Incidents(10, 1_000)
    other = segment_id("b", tp("other"))
    incidents.note(1, [rejected(0), rejected(1, other.uuid), poison(2)], now_ms=0)
    incidents.note(2, [Entry(0, 1, REJECTED, other.partition, other.uuid)], now_ms=0)

    def offsets(**asked: object) -> list[tuple[int, int]]:
        return [
            (found.metadata_partition, found.offset)
            for found in incidents.of(**asked)  # type: ignore[arg-type]
        ]

    assert offsets(segment=A) == [(1, 0)]
    assert offsets(segment=other.uuid) == [(1, 1), (2, 0)]
    assert offsets(partition=tp()) == [(1, 0), (1, 1)]
    assert offsets(metadata_partition=2) == [(2, 0)]
    assert offsets(metadata_partition=1, partition=other.partition) == []
    assert len(offsets()) == 4


def test_f34_incidents_then_are_counted_by_kind_and_reason_whatever_is_kept() -> None:
    """Dropped incidents stay counted; a damaged batch counts each lost offset (F34)."""
    incidents = Incidents(2, 1_000)
    incidents.note(1, [rejected(offset) for offset in range(3)], now_ms=0)
    damage = Undecodable(UndecodableReason.DAMAGED_BATCH, "flipped")
    incidents.note(2, [poison(0), Entry(1, 11, damage, value=b"batch")], now_ms=0)
    incidents.note(2, [Entry(11, 12, REMARKED, tp(), A), Entry(12, 13, DUPLICATE)], now_ms=0)
    incidents.forget(2)
    found = incidents.statistics()
    assert found.rejected == KindStatistics({"unknown-segment": 3}, 2, 1)
    assert found.undecodable == KindStatistics({"truncated": 1, "damaged-batch": 10}, 0, 0)
    assert found.remarked == KindStatistics({"displaced-another-segment": 1}, 0, 0)
    assert found.bytes_held == 0
    incidents.note(1, [rejected(9)], now_ms=0)
    assert found.rejected.events == {"unknown-segment": 3}


def test_forget_then_drops_one_partition_and_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forgetting walks once over all incidents, compares none, and leaves other partitions."""
    incidents = Incidents(10, 1_000)
    incidents.note(1, [poison(0), rejected(1)], now_ms=0)
    incidents.note(2, [poison(0, b"other")], now_ms=0)
    with monkeypatch.context() as patch:
        patch.setattr(Incident, "__eq__", None)  # a comparison would be an error
        incidents.forget(1)
    assert [found.metadata_partition for found in incidents.of()] == [2]
    assert (incidents.bytes_held, incidents.forgotten) == (5, 0)
    incidents.note(1, [poison(0)], now_ms=0)
    assert len(list(incidents.of(metadata_partition=1))) == 1
