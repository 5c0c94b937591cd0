"""The leader epochs of a log, as its leader keeps them, and the segments that fit them."""

from __future__ import annotations

import pytest

from rlmm.metadata.segment import SegmentState
from rlmm.retention.segment_lineage import LogLeaderEpochs
from tests.support.builders import started

CF = SegmentState.COPY_SEGMENT_FINISHED
LINEAGE = LogLeaderEpochs(((0, 0), (1, 10), (2, 20), (3, 30), (4, 40), (5, 50), (7, 70)), 90)
OVERLAPPED = LogLeaderEpochs(((7, 51), (9, 100)), 210)
"""After the log start has moved into epoch 7."""


@pytest.mark.parametrize(
    ("log", "start", "last", "epochs", "is_held"),
    [
        (LINEAGE, 15, 35, {1: 15, 2: 20, 3: 30}, True),
        (LINEAGE, 15, 19, {1: 15}, True),
        (LINEAGE, 0, 5, {0: 0}, True),
        (LINEAGE, 70, 75, {7: 70}, True),
        (LINEAGE, 15, 29, {1: 15, 2: 20}, True),
        (LINEAGE, 55, 85, {5: 55, 6: 60, 7: 70}, False),
        (LINEAGE, 15, 45, {1: 15, 2: 20, 4: 40}, False),
        (LINEAGE, 70, 95, {7: 70}, False),
        (LINEAGE, 70, 90, {7: 70}, False),
        (LINEAGE, 5, 25, {1: 5, 2: 20}, False),
        (LINEAGE, 15, 35, {1: 15, 2: 20}, False),
        (OVERLAPPED, 14, 150, {5: 14, 7: 15, 9: 100}, True),
        (OVERLAPPED, 2, 7, {2: 2, 3: 6}, False),
        (OVERLAPPED, 15, 250, {7: 15, 9: 100, 10: 200}, False),
        (OVERLAPPED, 75, 100, {8: 75}, False),
        (OVERLAPPED, 15, 150, {7: 15, 9: 101}, False),
        (OVERLAPPED, 99, 150, {9: 99}, False),
        (LogLeaderEpochs(()), 0, 9, {0: 0}, False),
        (LogLeaderEpochs(((7, 70),)), 70, 1_000, {7: 70}, True),
    ],
)
def test_segment_when_held_against_the_epochs_then_fits_as_for_a_broker(
    log: LogLeaderEpochs, start: int, last: int, epochs: dict[int, int], is_held: bool
) -> None:
    """Segments fit the epochs as in Kafka's own tests, also for a log whose end is unknown."""
    assert log.holds(started("one", start, last, epochs)) is is_held


def test_epochs_when_nobody_wrote_in_some_then_these_are_left_out() -> None:
    """The example of Kafka's own test."""
    entries = ((0, 0), (1, 0), (2, 0), (3, 30), (4, 40), (5, 60), (6, 60), (7, 70), (8, 70))
    kept = LogLeaderEpochs(entries).with_records().entries
    assert kept == ((2, 0), (3, 30), (4, 40), (6, 60), (8, 70))


@pytest.mark.parametrize(
    ("log_start", "entries"),
    [
        (0, ((0, 0), (2, 40), (5, 90))),
        (39, ((0, 39), (2, 40), (5, 90))),
        (40, ((2, 40), (5, 90))),
        (60, ((2, 60), (5, 90))),
        (500, ((5, 500),)),
    ],
)
def test_epochs_when_the_log_start_moves_then_begin_there(
    log_start: int, entries: tuple[tuple[int, int], ...]
) -> None:
    """The epoch that holds the log start begins there, and older ones are gone."""
    log = LogLeaderEpochs(((0, 0), (2, 40), (5, 90)), 100).from_start(log_start)
    assert (log.entries, log.end, log.earliest) == (entries, 100, entries[0][0])


def test_epochs_when_the_log_starts_before_all_that_is_known_then_stay() -> None:
    """The epochs stay unchanged when the log starts before all known ones."""
    log = LogLeaderEpochs(((3, 100),))
    assert log.from_start(50) == log
    assert LogLeaderEpochs(()).from_start(50).earliest is None


def test_epochs_of_segments_when_some_are_finished_then_those_alone_tell_them() -> None:
    """
    Finished segments define the epochs, and open ones do only when there are no finished ones.
    """
    finished = started("a", 0, 99, {1: 0, 2: 50}, state=CF)
    opened = started("b", 100, 199, {9: 100})
    assert LogLeaderEpochs.of_segments([finished, opened]).entries == ((1, 0), (2, 50))
    assert LogLeaderEpochs.of_segments([opened]).entries == ((9, 100),)
    assert LogLeaderEpochs.of_segments([]).earliest is None
