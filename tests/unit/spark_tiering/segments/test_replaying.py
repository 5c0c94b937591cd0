"""The state before a segment, and the last stable offset, from files alone."""

from __future__ import annotations

import pytest

from spark_tiering.segments.producer_state import format_snapshot, parse_snapshot
from spark_tiering.segments.segment_listing import ListedSegment, list_segments
from spark_tiering.segments.segment_parts import StateBefore
from spark_tiering.segments.state_before import LastStable, last_stable_offset, state_before
from tests.support.partitions.segments import MemoryFiles, example_partition, recorded_partition

SNAPSHOT = "00000000000000000251.snapshot"
GOOD = example_partition().contents
STATE = parse_snapshot(GOOD[SNAPSHOT])


def state_at(files: MemoryFiles, base_offset: int, log_start: int = 0) -> StateBefore:
    return state_before(files, list_segments(files.facts()), base_offset, log_start=log_start)


def producers_at(files: MemoryFiles, base_offset: int, log_start: int = 0) -> object:
    producers = state_at(files, base_offset, log_start).producers
    return None if producers is None else producers.entries


def read_bytes(files: MemoryFiles, ending: str) -> int:
    return sum(count for name, count in files.bytes_read.items() if name.endswith(ending))


def test_state_when_the_offset_has_a_snapshot_then_no_log_is_read() -> None:
    """The state at an offset with a sound snapshot needs no log."""
    files = example_partition()
    assert producers_at(files, 251) == STATE
    assert read_bytes(files, ".log") == 0


@pytest.mark.parametrize("content", [None, b"", b"\0" * 148], ids=["missing", "empty", "zeros"])
def test_state_without_its_snapshot_goes_on_from_an_older_one(content: bytes | None) -> None:
    """With a bad snapshot the state continues from an older one over the segments since."""
    files = example_partition().without(SNAPSHOT)
    if content is not None:
        files.contents[SNAPSHOT] = content
    assert producers_at(files, 251) == STATE
    assert read_bytes(files, "000.log") == 0
    assert read_bytes(files, "120.log") == len(GOOD["00000000000000000120.log"])


def test_state_when_there_is_no_snapshot_then_the_start_of_the_log_tells() -> None:
    """Only a log from its first offset starts with no producers, else they are unknown."""
    bare = example_partition().without(".snapshot")
    found = state_at(bare, 251)
    assert found.producers is not None
    assert format_snapshot(found.producers.entries) == GOOD[SNAPSHOT]
    tail = bare.without("000.log")
    assert state_at(tail, 251) == StateBefore(None, None)
    assert producers_at(tail, 251, log_start=120) == STATE


def test_state_when_a_log_before_is_damaged_then_is_not_known() -> None:
    """After a damaged earlier segment the producer state is unknown."""
    files = example_partition().without(".snapshot")
    files.contents["00000000000000000120.log"] = GOOD["00000000000000000120.log"][:-1]
    assert state_at(files, 251).producers is None
    assert state_at(files, 120).producers is not None


def test_state_when_a_listed_segment_has_gone_then_is_not_known() -> None:
    """The state is unknown when a listed segment has vanished."""
    files = example_partition().without(".snapshot")
    segments = list_segments(files.facts())
    del files.contents["00000000000000000120.log"]
    assert state_before(files, segments, 251).producers is None


def test_epochs_when_asked_for_then_come_from_the_start_of_the_log() -> None:
    """Without a checkpoint the epochs come from a log complete from its start."""
    files = example_partition()
    segments = list_segments(files.facts())
    assert state_before(files, segments, 251, with_epochs=True).epochs == ((4, 0),)
    assert state_before(files, segments, 251).epochs is None
    assert state_before(files, segments[1:], 251, with_epochs=True).epochs is None


def test_last_stable_offset_when_a_transaction_is_open_then_lies_at_its_first_offset() -> None:
    """The last stable offset is the first of the open transaction, 245, not yet aborted."""
    files = example_partition()
    assert last_stable_offset(files) == LastStable(257, "")
    files.contents["00000000000000000251.log"] = b""
    assert last_stable_offset(files) == LastStable(245, "")
    assert last_stable_offset(files, high_watermark=200).offset == 200
    assert last_stable_offset(files, high_watermark=250).offset == 245


def test_last_stable_offset_of_a_broker_when_it_was_stopped_then_is_its_log_end() -> None:
    """After a clean stop the last stable offset is the log end."""
    files = recorded_partition()
    assert last_stable_offset(files).offset == 139
    assert read_bytes(files, "000.log") == read_bytes(files, "062.log") == 0
    assert last_stable_offset(files.without(".snapshot")).offset == 139


@pytest.mark.parametrize(
    "tail",
    [b"\0" * 500, GOOD["00000000000000000251.log"][:100], b"\0\0"],
    ids=["zeros", "torn", "few"],
)
def test_last_stable_offset_with_an_unfinished_active_segment_ends_before(tail: bytes) -> None:
    """With an unfinished tail the last stable offset lies at or below the last whole batch."""
    files = example_partition()
    files.contents["00000000000000000251.log"] += tail
    assert last_stable_offset(files).offset == 257


@pytest.mark.parametrize(
    ("files", "text"),
    [
        pytest.param(MemoryFiles({}), "no segment", id="nothing"),
        pytest.param(
            example_partition().without("000.log", ".snapshot"), "does not begin", id="no start"
        ),
        pytest.param(
            MemoryFiles({**GOOD, "00000000000000000251.log": b"\xff" * 99}), "byte 0", id="damage"
        ),
        pytest.param(
            MemoryFiles(
                {
                    "00000000000000000000.log": GOOD["00000000000000000000.log"][:-1171],
                    "00000000000000000120.log": b"",
                }
            ),
            "ends at offset 109",
            id="short",
        ),
    ],
)
def test_f109_last_stable_offset_when_unproven_is_unknown(files: MemoryFiles, text: str) -> None:
    """The last stable offset is unknown, and the file named, when files do not prove it."""
    found = last_stable_offset(files)
    assert found.offset is None
    assert text in found.detail


def test_snapshot_beyond_the_end_of_the_log_when_met_then_is_not_believed() -> None:
    """A snapshot beyond the end of the log is skipped for an older one."""
    files = example_partition()
    files.contents["00000000000000000900.snapshot"] = GOOD["00000000000000000120.snapshot"]
    files.contents["00000000000000000251.log"] = b""
    assert last_stable_offset(files) == LastStable(245, "")


def test_snapshot_within_a_segment_when_met_then_only_what_follows_is_noted() -> None:
    """From a snapshot within a segment only the batches behind it are applied."""
    files = recorded_partition().without("112.snapshot", "139.snapshot", "062.snapshot")
    whole = recorded_partition()
    expected = parse_snapshot(whole.contents["00000000000000000112.snapshot"])
    assert producers_at(files, 112) == expected
    assert list_segments(files.facts())[1] == ListedSegment(62, 112)
    assert read_bytes(files, "000.log") == 0


def test_producers_that_a_snapshot_has_not_when_it_is_gone_on_from_then_stay_forgotten() -> None:
    """A producer that a snapshot has forgotten, as 4000 before offset 240, stays forgotten."""
    files = example_partition().without(SNAPSHOT)
    files.contents["00000000000000000240.snapshot"] = GOOD["00000000000000000120.snapshot"]
    found = state_at(files, 251)
    assert found.producers is not None
    assert set(found.producers.entries) == {4001, 4002}
