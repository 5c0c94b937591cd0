"""Files as a unit sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.errors import (
    ConfigError,
    InvalidArgument,
    LogNotPermitted,
    LogUnavailable,
    SidecarUnavailable,
)
from spark_tiering.executor.limited_io import READINGS, LimitedFiles, UnitEnd
from spark_tiering.executor.tasks import UnitOutcome
from spark_tiering.executor.throttle import PaceLimits
from spark_tiering.segments.findings import SegmentPart
from tests.support.partitions.segments import MemoryFiles
from tests.support.tier.copy_tasks import Time, watch

if TYPE_CHECKING:
    from spark_tiering.segments.partition_files import SourceFileFacts

LOG, INDEX = "00000000000000000000.log", "00000000000000000000.index"
FILES = MemoryFiles({LOG: b"x" * 100, INDEX: b"y" * 8})


class Broken(MemoryFiles):
    def __init__(self, error: Exception) -> None:
        super().__init__({})
        self.error = error

    def facts(self) -> dict[str, SourceFileFacts]:
        raise self.error

    def read(self, name: str, start: int, size: int) -> bytes:
        raise self.error


def test_files_when_they_say_in_which_pieces_to_read_them_then_a_unit_reads_in_these() -> None:
    """A watched file is read in the piece sizes that its source asks for, as an unwatched one."""

    class Far(MemoryFiles):
        piece_bytes = 7

    far = Far({LOG: b"x" * 100})
    assert b"".join(LimitedFiles(far, watch()).pieces(LOG, 100, SegmentPart.LOG)) == b"x" * 100
    assert far.largest_read == 7


@pytest.mark.parametrize(
    "error",
    [
        LogUnavailable("away"),
        LogNotPermitted("not permitted"),
        ConfigError("no partition's folder"),
        SidecarUnavailable("no answer"),
        OSError("anything"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_source_when_it_cannot_be_read_then_ends_the_unit(error: Exception) -> None:
    """An error of the source ends the unit with the source's own words."""
    files = LimitedFiles(Broken(error), watch())
    for call in (files.facts, lambda: files.read(LOG, 0, 1)):
        with pytest.raises(UnitEnd, match=str(error)) as caught:
            call()
        assert caught.value.outcome is UnitOutcome.SOURCE_FAILED


def test_mistake_of_who_calls_when_made_is_raised() -> None:
    """A programming error in a source is raised and not taken for a source failure."""
    files = LimitedFiles(Broken(InvalidArgument("a mistake")), watch())
    with pytest.raises(InvalidArgument):
        files.facts()


def test_facts_when_asked_for_again_are_those_of_the_first_look() -> None:
    """A unit keeps the facts of its first look until it asks for new ones."""
    source = MemoryFiles(FILES.contents)
    files = LimitedFiles(source, watch())
    first = files.facts()
    del source.contents[INDEX]
    assert files.facts() is first
    assert list(files.look_again()) == [LOG]
    assert files.facts() is first


@pytest.mark.parametrize(
    ("part", "taken", "outcome"),
    [
        (SegmentPart.LOG, {LOG: None}, UnitOutcome.SOURCE_GONE),
        (SegmentPart.LOG, {LOG: b"x" * 99}, UnitOutcome.SOURCE_CHANGED),
        (SegmentPart.LOG, {LOG: b"x" * 101}, UnitOutcome.SOURCE_CHANGED),
        (SegmentPart.OFFSET_INDEX, {INDEX: None}, UnitOutcome.SOURCE_FAILED),
        (SegmentPart.OFFSET_INDEX, {INDEX: None, LOG: None}, UnitOutcome.SOURCE_GONE),
    ],
    ids=["gone", "shorter", "longer", "index", "segment"],
)
def test_file_when_it_is_another_one_then_ends_the_unit_as_the_log_tells(
    part: SegmentPart, taken: dict[str, bytes | None], outcome: UnitOutcome
) -> None:
    """A changed log vanished; a changed file beside it is to be read again."""
    source = MemoryFiles(FILES.contents)
    files = LimitedFiles(source, watch(), LOG)
    sizes = files.facts()
    for name, content in taken.items():
        if content is None:
            del source.contents[name]
        else:
            source.contents[name] = content
    name = LOG if part is SegmentPart.LOG else INDEX
    with pytest.raises(UnitEnd) as caught:
        list(files.pieces(name, sizes[name].size_bytes, part))
    assert caught.value.outcome is outcome


def test_f105_unit_when_its_time_is_up_then_reads_and_asks_nothing_more() -> None:
    """A unit past its time makes no more reads and requests."""
    time = Time()
    seen = watch(time, deadline_s=10)
    source = MemoryFiles(FILES.contents)
    files = LimitedFiles(source, seen)
    files.facts()
    assert files.read(LOG, 0, 10)
    time.now_s += 10
    for call in (files.look_again, lambda: files.read(LOG, 0, 1), seen.ask):
        with pytest.raises(UnitEnd, match="10 s") as caught:
            call()
        assert caught.value.outcome is UnitOutcome.TIMED_OUT
    assert source.bytes_read[LOG] == 10


def test_pace_that_cannot_be_kept_in_time_when_met_ends_the_unit_without_a_wait() -> None:
    """A wait that exceeds the unit's time ends it at once."""
    time = Time()
    seen = watch(time, deadline_s=10, pace=PaceLimits(bytes_per_s=1))
    seen.read(1000 * READINGS)
    with pytest.raises(UnitEnd, match="pace"):
        seen.read(1)
    assert not time.slept
