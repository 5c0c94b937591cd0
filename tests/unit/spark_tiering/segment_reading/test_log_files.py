"""Segments of a broker's folder, read as tiered ones are."""

from __future__ import annotations

import pytest

from rlmm.errors import InvalidArgument
from spark_tiering.segment_reading.log_files import FolderSegment
from spark_tiering.segment_reading.protocol import ReadFault, SegmentUnreadable
from spark_tiering.segments.findings import SegmentPart
from spark_tiering.segments.segment_listing import ListedSegment, list_segments
from tests.support.partitions.segments import MemoryFiles, changed, example_partition
from tests.support.stores.tiered_bytes import FORMS, example
from tests.support.tier.copy_tasks import FIRST, SECOND

ACTIVE = ListedSegment(251, None)


@pytest.mark.parametrize("form", FORMS)
def test_segment_when_read_from_both_sides_is_the_same(form: str) -> None:
    """A segment reads the same from the broker's folder and from the tier."""
    tiered = example(form).open()
    files = example_partition()
    listed = list_segments(files.facts())[1]
    assert listed == SECOND
    source = FolderSegment(files, listed)
    assert source.log_bytes == tiered.log_bytes
    for ends in ((0, None), (100, 5000)):
        assert b"".join(source.pieces(*ends)) == b"".join(tiered.pieces(*ends))
    for part in SegmentPart:
        if part is not SegmentPart.LOG:
            assert source.index(part) == tiered.index(part)


def test_index_when_the_folder_has_none_is_none() -> None:
    """An index that the folder lacks is none, as for a segment without aborted transactions."""
    source = FolderSegment(example_partition(), FIRST)
    assert source.index(SegmentPart.TXN_INDEX) is None


def test_active_segment_when_read_has_its_indexes_without_what_was_allocated() -> None:
    """The indexes of the active segment are read without their preallocated rest."""
    files = example_partition()
    entry, time = bytes.fromhex("0000000400000100"), bytes.fromhex("0000018bcfe577a900000004")
    files.contents["00000000000000000251.index"] = entry + bytes(8 * 100)
    files.contents["00000000000000000251.timeindex"] = time + bytes(12 * 100)
    source = FolderSegment(files, ACTIVE)
    assert source.index(SegmentPart.OFFSET_INDEX) == entry
    assert source.index(SegmentPart.TIME_INDEX) == time
    assert source.index(SegmentPart.PRODUCER_SNAPSHOT) is None
    assert source.index(SegmentPart.LEADER_EPOCHS) == b"0\n2\n4 0\n6 251\n"
    assert len(b"".join(source.pieces())) == source.log_bytes


def test_log_when_it_shrinks_while_it_is_read_is_changed() -> None:
    """A log that shrinks during a read is reported as changed."""
    files = example_partition()
    source = FolderSegment(files, FIRST)
    files.contents[source.where] = files.contents[source.where][:-1]
    with pytest.raises(SegmentUnreadable) as raised:
        list(source.pieces())
    assert raised.value.fault is ReadFault.CHANGED


def test_segment_when_its_files_are_not_there_or_no_such_is_told() -> None:
    """A segment without its files, or with an unusable one, is reported with the file's name."""
    with pytest.raises(SegmentUnreadable) as raised:
        FolderSegment(MemoryFiles({}), FIRST)
    assert raised.value.fault is ReadFault.MISSING
    source = FolderSegment(changed(example_partition(), checkpoint=b"none"), FIRST)
    with pytest.raises(SegmentUnreadable) as raised:
        source.index(SegmentPart.LEADER_EPOCHS)
    assert raised.value.where == "leader-epoch-checkpoint"
    with pytest.raises(InvalidArgument):
        list(source.pieces(2, 1))
