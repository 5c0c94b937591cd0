"""From offsets and times to bytes of a log, by indexes that may be wrong."""

from __future__ import annotations

import struct
from itertools import pairwise

import pytest

from spark_tiering.data_source.index_places import IndexPosition, OffsetPlaces, TimePlaces, fits

LOG_BYTES = 1_000


def offsets(*entries: tuple[int, int], base: int = 500) -> OffsetPlaces:
    content = b"".join(struct.pack(">ii", offset - base, at) for offset, at in entries)
    return OffsetPlaces.read(content, base, LOG_BYTES)


def times(*entries: tuple[int, int], base: int = 500) -> TimePlaces:
    content = b"".join(struct.pack(">qi", at_ms, offset - base) for at_ms, offset in entries)
    return TimePlaces.read(content, base)


INDEX = offsets((519, 200), (539, 400), (559, 600), (579, 800))


@pytest.mark.parametrize(
    ("offset", "place"),
    [
        (500, IndexPosition(0, 500)),
        (518, IndexPosition(0, 500)),
        (519, IndexPosition(200, 519)),
        (538, IndexPosition(200, 519)),
        (579, IndexPosition(800, 579)),
        (900, IndexPosition(800, 579)),
    ],
)
def test_start_when_looked_up_is_at_or_below_the_offset(offset: int, place: IndexPosition) -> None:
    """A read begins at the last entry at or below its offset, or the start of the log."""
    assert INDEX.start_of(offset) == place


@pytest.mark.parametrize(
    ("last", "stop"), [(500, 400), (519, 600), (540, 800), (559, LOG_BYTES), (999, LOG_BYTES)]
)
def test_stop_when_an_offset_is_the_last_then_the_next_entry_is_in(last: int, stop: int) -> None:
    """A read includes the batch at the entry behind its last offset."""
    assert INDEX.likely_stop(last) == stop


def test_slices_when_a_range_is_cut_then_they_meet_at_entries_and_cover_it() -> None:
    """Slices begin and end at index entries and cover the range without a gap."""
    for count in (1, 2, 3, 4, 9):
        slices = [INDEX.slice_of(500, 999, number, count) for number in range(count)]
        assert slices[0].start == IndexPosition(0, 500)
        assert slices[-1].stop == LOG_BYTES
        assert [one.is_last for one in slices] == [False] * (count - 1) + [True]
        for one, following in pairwise(slices):
            assert one.stop == following.start.position
        inner = {one.start.position for one in slices[1:]}
        assert inner <= {200, 400, 600, 800, LOG_BYTES}


def test_slices_when_there_are_no_entries_then_the_first_has_everything() -> None:
    """Without index entries the first slice holds the whole segment."""
    empty = offsets()
    slices = [empty.slice_of(500, 999, number, 3) for number in range(3)]
    assert [(one.start.position, one.stop) for one in slices] == [(0, 1000), *[(1000, 1000)] * 2]
    assert [one.is_empty for one in slices] == [False, True, True]


@pytest.mark.parametrize(
    "entry", [(518, 400), (539, 200), (539, 100), (499, 400), (0, 0), (539, 1_000), (539, 5_000)]
)
def test_offset_index_when_entries_fall_or_lie_outside_then_it_ends(entry: tuple[int, int]) -> None:
    """An offset index ends before its first entry that falls or lies outside the log."""
    assert offsets((519, 200), entry).positions.tolist() == [200]


def test_offset_index_when_it_is_torn_or_zero_then_whole_entries_count() -> None:
    """The whole entries before a torn or zero part of an offset index count."""
    torn = struct.pack(">ii", 19, 200) + b"\0\0\0"
    assert OffsetPlaces.read(torn, 500, LOG_BYTES).positions.tolist() == [200]
    assert OffsetPlaces.read(bytes(80), 500, LOG_BYTES).positions.tolist() == []


def test_time_index_when_looked_up_then_bounds_are_safe_and_falling_entries_end_it() -> None:
    """Before a start by time all is older, at an end a later record lies, if there is any."""
    index = times((1_000, 519), (2_000, 539), (3_000, 539))
    firsts = [index.first_offset(time_ms) for time_ms in (900, 1_000, 1_001, 9_000)]
    assert firsts == [None, None, 520, 540]
    lasts = [index.last_offset(time_ms) for time_ms in (999, 1_000, 2_000, 3_000)]
    assert lasts == [519, 539, 539, None]
    for falling in ((1_000, 539), (2_000, 510)):
        assert times((1_000, 519), falling).times_ms.tolist() == [1_000]


def test_fits_when_a_batch_begins_above_what_an_index_says_then_it_does_not() -> None:
    """A batch above an index entry's offset does not fit, except at the start of a log."""
    place = IndexPosition(200, 519)
    batches = [struct.pack(">q", offset) for offset in (510, 519, 520, -1)]
    assert [fits(place, batch) for batch in batches] == [True, True, False, False]
    assert fits(IndexPosition(0, 500), struct.pack(">q", 700))
