"""The events that the cleaner would keep, and the segments that compaction would lose."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.inspection.compaction_rehearsal import (
    LEVELS,
    CompactionOutlook,
    FeatureLevel,
    LogCleaner,
    RehearsalTopic,
    rehearse,
)
from rlmm.inspection.event_record import EventRecord
from rlmm.inspection.moment import ReplayEnd
from rlmm.metadata.verdicts import APPLIED
from tests.support.builders import delete_finished, delete_started, finished, started
from tests.support.cli.metadata_history import START_MS, History

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlmm.inspection.compaction_rehearsal import CompactionHarm

DELETE, BOTH, COMPACT, PER_OFFSET, PER_STATE = LEVELS
DAY_MS = 86_400_000


async def a_history() -> tuple[History, int]:
    history = History()
    (place, _), *_ = await history.add(
        started("lives", 0, 99), finished("lives"),
        started("gone", 100, 199), finished("gone"),
        delete_started("gone"), delete_finished("gone"), started("given up", 200, 299),
        started("again", 200, 299), finished("again"),
    )  # fmt: skip
    return history, place


def short(harms: Iterable[CompactionHarm]) -> list[tuple[str, int]]:
    return [(str(one.effect), one.segment.start_offset) for one in harms]


@pytest.mark.parametrize(
    ("level", "kept", "harms"),
    [
        (DELETE, 9, []),
        (BOTH, 9, []),
        (COMPACT, 0, [("lost", 0), ("lost", 200), ("lost", 200)]),
        # One key for all updates leaves a deletion that was never begun, which is refused; and two
        # segments that end at one offset have one key.
        (PER_OFFSET, 6, [("resurrected", 100), ("lost", 200)]),
        (PER_STATE, 9, []),
    ],
)
async def test_rehearsal_at_each_level_then_names_what_would_be_lost(
    level: FeatureLevel, kept: int, harms: list[tuple[str, int]]
) -> None:
    """Brokers write no keys, so the last level would lose every event."""
    history, place = await a_history()
    found = await rehearse(
        history.log, place, level, RehearsalTopic(START_MS + DAY_MS), timeout_s=5
    )
    assert (found.records, found.kept) == (9, kept)
    assert short(found.harms) == harms
    assert found.outlook is (CompactionOutlook.UNSAFE if harms else CompactionOutlook.SAFE)


async def test_rehearsal_when_retention_is_finite_then_says_until_when_to_wait() -> None:
    """The youngest record without a key has to be older than the retention."""
    history, place = await a_history()
    topic = RehearsalTopic(START_MS + DAY_MS, retention_ms=2 * DAY_MS)
    found = await rehearse(history.log, place, COMPACT, topic, timeout_s=5)
    assert found.outlook is CompactionOutlook.WAIT
    assert found.wait_until_ms == START_MS + 8 * 1_000 + 2 * DAY_MS
    assert found.lost == 3


@pytest.mark.parametrize("level", [DELETE, BOTH])
async def test_rehearsal_when_retention_takes_records_of_what_lives_then_it_is_lost(
    level: FeatureLevel,
) -> None:
    """Finite retention of the metadata topic alone costs segments; compaction has no part in it."""
    history, place = await a_history()
    topic = RehearsalTopic(START_MS + 2_500, retention_ms=1_500)
    found = await rehearse(history.log, place, level, topic, timeout_s=5)
    assert short(found.harms) == [("lost", 0)]
    assert found.outlook is CompactionOutlook.UNSAFE


async def test_rehearsal_when_two_segments_share_a_key_then_the_last_update_hides_the_others() -> (
    None
):
    """The last update is the deleted segment's, so the finished copy looks open."""
    history = History()
    (place, _), *_ = await history.add(
        started("old", 0, 99), finished("old"), delete_started("old"), delete_finished("old"),
        started("new", 0, 99), finished("new"), finished("old"),
    )  # fmt: skip
    found = await rehearse(history.log, place, PER_OFFSET, RehearsalTopic(START_MS), timeout_s=5)
    assert short(found.harms) == [("changed", 0)]


def record(offset: int, value: bytes | None = b"v", at_ms: int = 0) -> EventRecord:
    return EventRecord(0, offset, offset + 1, at_ms, None, APPLIED, value)


def test_cleaner_keeps_the_last_of_each_key_below_its_bound_and_all_above() -> None:
    """The cleaner keeps the last record of each key below its bound and every record above it."""
    keyed = [(record(0), b"a"), (record(1), b"b"), (record(2), b"a"), (record(3), None),
             (record(4, None), b"c"), (record(5), b"b"), (record(6), None)]  # fmt: skip
    cleaner = LogCleaner(5)
    for one, key in keyed:
        cleaner.see(one, key)
    assert [one.offset for one, key in keyed if cleaner.keeps(one, key)] == [1, 2, 5, 6]
    assert cleaner.without_key == 1


async def test_rehearsal_when_bounded_then_goes_by_what_was_there_at_that_moment() -> None:
    """A bound by offset or time leaves out later records, which neither replace nor count."""
    history, place = await a_history()
    for bound in (ReplayEnd({place: 4}), ReplayEnd(time_ms=START_MS + 4_000)):
        topic = RehearsalTopic(START_MS + 4_000, bound=bound)
        found = await rehearse(history.log, place, COMPACT, topic, timeout_s=5)
        assert (found.records, found.without_key) == (5, 5)
        assert short(found.harms) == [("lost", 0), ("lost", 100)]
