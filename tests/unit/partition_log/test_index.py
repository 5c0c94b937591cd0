"""The indexes of a segment: Kafka's bytes, look-ups, and faults of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.partition_log.index import (
    SegmentIndex,
    last_timestamp_ms,
    offset_entries,
    offset_index_fault,
    position_at_most,
    position_for_offset,
    time_index_fault,
)

if TYPE_CHECKING:
    from collections.abc import Callable


T = 1_700_000_000_000
BATCH_BYTES = 1171
FIRST_TIME, SECOND_TIME = "0000018bcfe577a900000031", "0000018bcfe5874900000059"


def kafkas_segment() -> SegmentIndex:
    index = SegmentIndex(0, 4096)
    for number in range(12):
        index.note(number * BATCH_BYTES, number * 10 + 9, T + number * 1000 + 9)
    index.note_time()
    return index


def test_index_when_built_batch_by_batch_then_is_kafkas_file() -> None:
    """Both indexes equal a broker's byte for byte, the closing time entry included."""
    index = kafkas_segment()
    assert index.offset_bytes().hex() == "000000310000124c0000005900002498"
    assert index.time_bytes().hex() == (
        "0000018bcfe577a9000000310000018bcfe58749000000590000018bcfe5930100000077"
    )


def test_time_index_when_times_run_backwards_then_notes_only_what_grew() -> None:
    """An entry is made when the largest time has grown since the last one."""
    index = SegmentIndex(120, 10)
    for number in range(4):
        index.note(number * 100, 120 + number, T - number)
    index.note(400, 124, T + 5)
    index.note_time()
    index.note_time()
    assert len(index.offsets) == 4
    assert index.time_bytes().hex() == f"{T:016x}00000000{T + 5:016x}00000004"


def test_index_when_read_back_then_goes_on_where_it_ended() -> None:
    """A continued index equals one built in one go."""
    whole, first = kafkas_segment(), SegmentIndex(0, 4096)
    for number in range(9):
        first.note(number * BATCH_BYTES, number * 10 + 9, T + number * 1000 + 9)
    second = SegmentIndex.of_files(0, 4096, first.offset_bytes(), first.time_bytes())
    for number in range(9, 12):
        second.note(number * BATCH_BYTES, number * 10 + 9, T + number * 1000 + 9)
    second.note_time()
    assert second.offset_bytes() == whole.offset_bytes()
    assert second.time_bytes() == whole.time_bytes()


@pytest.mark.parametrize(
    ("offset", "position"),
    [(0, 0), (48, 0), (49, 4684), (88, 4684), (89, 9368), (119, 9368), (2**40, 9368)],
)
def test_look_up_of_an_offset_leads_to_its_batch_or_before(offset: int, position: int) -> None:
    """The entry with the largest offset at or below the target leads, in memory and in a file."""
    index = kafkas_segment()
    stored = offset_entries(index.offset_bytes())
    assert position_for_offset(index.offsets, offset) == position
    assert position_for_offset(stored, offset) == position


@pytest.mark.parametrize(
    ("position", "expected"), [(0, 0), (4683, 0), (4684, 4684), (9367, 4684), (99999, 9368)]
)
def test_look_up_of_a_position_gives_the_batch_start_before(position: int, expected: int) -> None:
    """The last indexed batch start that is not behind the position."""
    assert position_at_most(kafkas_segment().offsets, position) == expected


@pytest.mark.parametrize(
    ("timestamp_ms", "offset"), [(T, 0), (T + 4009, 0), (T + 4010, 49), (T + 99999, 119)]
)
def test_look_up_of_a_time_then_has_all_earlier_before(timestamp_ms: int, offset: int) -> None:
    """Every record later than an entry's time lies behind its offset."""
    assert kafkas_segment().offset_before_time(timestamp_ms) == offset


def offset_fault(content: bytes) -> str | None:
    return offset_index_fault(content, 0, 120, 12 * BATCH_BYTES)


def time_fault(content: bytes) -> str | None:
    return time_index_fault(content, 0, 120)


@pytest.mark.parametrize(
    ("fault", "content", "what"),
    [
        pytest.param(offset_fault, "000000310000124c00", "whole number", id="odd-length"),
        pytest.param(offset_fault, "0000005900002498000000310000124c", "ascend", id="swapped"),
        pytest.param(offset_fault, "000000310000124c" + "00" * 16, "ascend", id="zero-tail"),
        pytest.param(offset_fault, "000000310000124c0000005900000100", "ascend", id="back"),
        pytest.param(offset_fault, "000000310000124c0000003100002498", "ascend", id="twice"),
        pytest.param(offset_fault, "ffffffff0000124c", "ascend", id="negative"),
        pytest.param(offset_fault, "000000310000fffc", "behind", id="position-behind-the-end"),
        pytest.param(offset_fault, "000000780000124c", "behind", id="offset-behind-the-end"),
        pytest.param(time_fault, FIRST_TIME + "00", "whole number", id="time-odd-length"),
        pytest.param(time_fault, SECOND_TIME + FIRST_TIME, "ascend", id="time-swapped"),
        pytest.param(time_fault, FIRST_TIME + "00" * 12, "ascend", id="time-zero-tail"),
        pytest.param(time_fault, "0000018bcfe5000000000059" + FIRST_TIME, "backwards", id="time"),
        pytest.param(time_fault, "0000018bcfe577a900000078", "behind", id="time-behind-the-end"),
    ],
)
def test_index_file_when_damaged_then_its_fault_is_named(
    fault: Callable[[bytes], str | None], content: str, what: str
) -> None:
    """The check names damage that Kafka's own check overlooks, and none of sound or empty files."""
    assert what in (fault(bytes.fromhex(content)) or "")
    index = kafkas_segment()
    assert offset_fault(index.offset_bytes()) is None
    assert time_fault(index.time_bytes()) is None
    assert offset_index_fault(b"", 0, 0, 0) is None
    assert time_index_fault(b"", 0, 0) is None


def test_newest_time_when_a_segment_is_closed_then_stands_at_the_end_of_its_time_index() -> None:
    """The closing entry carries the largest time of the segment."""
    assert last_timestamp_ms(kafkas_segment().time_bytes()) == T + 11_009
    assert last_timestamp_ms(b"") == -1
