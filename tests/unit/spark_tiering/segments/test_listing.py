"""Which segments a folder holds."""

from __future__ import annotations

from spark_tiering.segments.segment_listing import ListedSegment, list_segments, snapshot_offsets

BASE = "00000000000000000120"


def test_segments_when_listed_then_each_ends_where_the_next_begins() -> None:
    """Listed segments are in order, each ends where the next begins, and the last one is active."""
    names = [f"{n:020d}.log" for n in (251, 0, 120)]
    found = list_segments(names)
    assert found == [(0, 120), (120, 251), (251, None)]
    assert [segment.is_rolled for segment in found] == [True, True, False]
    assert found[1].file(".index") == f"{BASE}.index"
    assert list_segments([]) == []


def test_files_in_other_forms_when_listed_then_are_no_segments() -> None:
    """Files being deleted, cleaned or swapped, or without an offset, are not listed."""
    names = [
        f"{BASE}.log.deleted",
        f"{BASE}.log.cleaned",
        f"{BASE}.log.swap",
        f"{BASE}.index",
        "120.log",
        "99999999999999999999.log",
        "leader-epoch-checkpoint",
    ]
    assert list_segments(names) == []
    assert list_segments([*names, f"{BASE}.log"]) == [ListedSegment(120, None)]


def test_snapshots_when_listed_then_their_offsets_rise() -> None:
    """Snapshots are listed by rising offset, whether or not a segment begins there."""
    names = [f"{n:020d}.snapshot" for n in (139, 62)] + [f"{BASE}.log", f"{BASE}.snapshot.deleted"]
    assert snapshot_offsets(names) == [62, 139]
