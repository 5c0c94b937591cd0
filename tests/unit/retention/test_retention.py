"""The next steps of retention, as a leader takes them, and the leader epochs of a log."""

from __future__ import annotations

from typing import Any

import pytest

from rlmm.inspection.cluster_facts import ClusterSetting, PartitionOffsets, TopicFacts
from rlmm.metadata.segment import SegmentState
from rlmm.retention.retention import RetentionFate, RetentionSettings, due_of, start_after
from rlmm.retention.segment_lineage import LogLeaderEpochs
from tests.support.builders import TOPIC_ID, segment_id, started

CF = SegmentState.COPY_SEGMENT_FINISHED
NOW_MS = 10_000


def three(**states: SegmentState) -> list:  # type: ignore[type-arg]
    return [
        started(name, at * 100, at * 100 + 99, size_bytes=100, max_timestamp_ms=(at + 1) * 1_000,
                state=states.get(name, CF))
        for at, name in enumerate("abc")
    ]  # fmt: skip


def fates(segments: list, rules: RetentionSettings, **more: Any) -> list[str]:  # type: ignore[type-arg]
    found = due_of(segments, rules, NOW_MS, **more)
    return [str(one.fate) for one in sorted(found, key=lambda one: one.segment.start_offset)]


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (RetentionSettings(), ["stays"] * 3),
        (RetentionSettings(retention_ms=-1, retention_bytes=-1, log_start=0), ["stays"] * 3),
        (RetentionSettings(retention_ms=9_000), ["stays"] * 3),
        (RetentionSettings(retention_ms=8_999), ["time", "stays", "stays"]),
        (RetentionSettings(retention_ms=0), ["time"] * 3),
        (RetentionSettings(retention_bytes=300), ["stays"] * 3),
        (RetentionSettings(retention_bytes=201), ["stays"] * 3),
        (RetentionSettings(retention_bytes=200), ["size", "stays", "stays"]),
        (RetentionSettings(retention_bytes=200, only_local_bytes=100), ["size", "size", "stays"]),
        (RetentionSettings(retention_bytes=0), ["size"] * 3),
        (RetentionSettings(log_start=100), ["before-log-start", "stays", "stays"]),
        (RetentionSettings(log_start=99), ["stays"] * 3),
        (RetentionSettings(retention_ms=8_999, retention_bytes=100), ["time", "size", "stays"]),
        (RetentionSettings(retention_ms=8_999, retention_bytes=200), ["time", "stays", "stays"]),
    ],
)
def test_f117_retention_goes_strictly_beyond_its_limits_and_stops_at_the_first_that_stays(
    rules: RetentionSettings, expected: list[str]
) -> None:
    """A segment deleted by time also counts as deleted for the limit by size."""
    assert fates(three(), rules) == expected


@pytest.mark.parametrize(
    ("state", "fate"),
    [
        (SegmentState.COPY_SEGMENT_STARTED, "unfinished"),
        (SegmentState.DELETE_SEGMENT_STARTED, "being-deleted"),
    ],
)
def test_f117_copies_that_are_not_finished_count_for_nothing(
    state: SegmentState, fate: str
) -> None:
    """KAFKA-17062: else good segments go early."""
    rules = RetentionSettings(retention_bytes=200)
    assert fates(three(b=state), rules) == ["stays", fate, "stays"]


def test_retention_when_the_first_stays_then_older_ones_behind_it_stay_too() -> None:
    """A producer's clock was wrong once: the scan does not go past it."""
    found = three()
    found[0] = started("a", 0, 99, max_timestamp_ms=NOW_MS, size_bytes=100, state=CF)
    assert fates(found, RetentionSettings(retention_ms=8_500)) == ["stays"] * 3


def test_retention_when_an_epoch_was_replaced_then_its_segments_go() -> None:
    """Segments of a replaced epoch go at any age."""
    found = [started("old", 50, 99, {1: 50}, state=CF), started("new", 40, 149, {2: 40}, state=CF)]
    assert fates(found, RetentionSettings()) == ["stays", "superseded"]


def test_due_time_is_the_first_millisecond_in_which_a_segment_is_too_old() -> None:
    """The due time is absent when it is unknown or retention is unlimited."""
    first = due_of(three(), RetentionSettings(retention_ms=500), NOW_MS)[0]
    assert (first.segment.id, first.due_ms) == (segment_id("a"), 1_501)
    assert due_of(three(), RetentionSettings(retention_ms=-1), NOW_MS)[0].due_ms is None
    assert due_of(three(), RetentionSettings(), NOW_MS)[0].due_ms is None


def test_rules_of_a_topic_are_what_the_cluster_tells() -> None:
    """The rules are the cluster's settings, and unknown ones are named."""
    topic = TopicFacts("orders", TOPIC_ID, {}, {"retention.ms": ClusterSetting("500", True)})
    rules = RetentionSettings.of(topic, PartitionOffsets(earliest=7), 9)
    assert rules == RetentionSettings(500, None, 7, 9)
    assert rules.unknown == ["retention.bytes"]
    unknown = RetentionSettings.of(None, None).unknown
    assert unknown == ["retention.ms", "retention.bytes", "log start"]
    assert RetentionFate.STAYS.is_deleted is False
    assert RetentionFate.TIME.is_deleted


def kafka_case(**states: SegmentState) -> list:  # type: ignore[type-arg]
    """Return the case of KAFKA-17062: failed copies, and eleven good ones of 100 bytes each."""
    open_state = SegmentState.COPY_SEGMENT_STARTED
    again = SegmentState.DELETE_SEGMENT_STARTED
    return [
        started("s1", 0, 99, size_bytes=100, state=open_state),
        started("s3", 0, 99, size_bytes=100, state=again),
        started("s4", 200, 299, size_bytes=100, state=states.get("s4", open_state)),
        *(
            started(f"f{at}", at * 100, at * 100 + 99, size_bytes=100, state=CF)
            for at in (0, 1, *range(3, 12))
        ),
    ]


def gone(segments: list, rules: RetentionSettings, **more: object) -> list[str]:  # type: ignore[type-arg]
    labels = {
        segment_id(name): name for name in ["s1", "s3", "s4", *(f"f{at}" for at in range(12))]
    }
    dues = due_of(segments, rules, NOW_MS, **more)  # type: ignore[arg-type]
    return [labels[one.segment.id] for one in dues if one.fate.is_deleted]


def test_f117_size_when_copies_failed_then_good_segments_do_not_go_early() -> None:
    """Of eleven segments for ten the unfinished goes, and the first good one stays."""
    found = gone(kafka_case(), RetentionSettings(retention_bytes=1_000))
    assert set(found) == {"s3", min("s1", "f0", key=lambda label: segment_id(label).uuid)}
    # Now there are twelve, of which two have to go.
    found = gone(kafka_case(s4=CF), RetentionSettings(retention_bytes=1_000))
    assert set(found) == {"s3", "s1", "f0"}


def test_f120_scan_when_a_copy_is_at_work_then_stops_there() -> None:
    """The scan stops at a copy at work and goes on with deletions that have begun."""
    found = three(a=SegmentState.COPY_SEGMENT_STARTED, c=SegmentState.DELETE_SEGMENT_STARTED)
    rules = RetentionSettings(retention_ms=0)
    stopped = fates(found, rules, being_copied=[found[0].id])
    assert stopped == ["unfinished", "stays", "being-deleted"]
    assert fates(found, rules)[:2] == ["time", "time"]


def test_retention_when_the_log_start_has_moved_over_epochs_then_all_before_it_goes() -> None:
    """Every segment below the log start goes, also those of dropped epochs."""
    found = [
        started("old", 0, 99, {0: 0}, state=CF),
        started("over", 100, 199, {1: 100, 2: 150}, state=CF),
        started("new", 200, 299, {2: 200}, state=CF),
    ]
    rules = RetentionSettings(log_start=200)
    assert fates(found, rules) == ["before-log-start", "before-log-start", "stays"]
    assert start_after(due_of(found, rules, NOW_MS)) is None


def test_retention_when_a_segment_is_of_another_log_then_it_is_passed_by() -> None:
    """Retention skips a segment of another lineage and does not count its size."""
    log = LogLeaderEpochs(((0, 0), (1, 200)), 300)
    found = [
        started("a", 0, 99, {0: 0}, size_bytes=100, state=CF),
        started("diverged", 100, 250, {0: 100}, size_bytes=100, state=CF),
        started("b", 200, 299, {1: 200}, size_bytes=100, state=CF),
    ]
    nothing, two = RetentionSettings(retention_bytes=0), RetentionSettings(retention_bytes=200)
    assert fates(found, nothing, epochs=log) == ["size", "stays", "size"]
    assert start_after(due_of(found, nothing, NOW_MS, epochs=log)) == 300
    assert fates(found, two, epochs=log) == ["stays"] * 3


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
    """Finished segments define the epochs, open ones only if there are no others."""
    finished = started("a", 0, 99, {1: 0, 2: 50}, state=CF)
    opened = started("b", 100, 199, {9: 100})
    assert LogLeaderEpochs.of_segments([finished, opened]).entries == ((1, 0), (2, 50))
    assert LogLeaderEpochs.of_segments([opened]).entries == ((9, 100),)
    assert LogLeaderEpochs.of_segments([]).earliest is None
