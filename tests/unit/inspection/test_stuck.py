"""Copies and deletions that are open for too long, and thresholds judged once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlmm.inspection.check_thresholds import Thresholds, judge
from rlmm.inspection.cluster_facts import PartitionPlace, TopicFacts
from rlmm.inspection.moment import PartitionSummary
from rlmm.inspection.source_status import MetadataPartitionStatus, SourceStatus, StateSourceKind
from rlmm.inspection.stuck import StuckFacts, half_deleted, stuck_in
from rlmm.log.protocol import LogIdentity
from rlmm.metadata.ids import Uuid
from rlmm.metadata.segment import PartitionDeleteState
from tests.support.builders import (
    TOPIC_ID,
    delete_started,
    finished,
    partition_delete,
    segment_id,
    started,
    tp,
)
from tests.support.cli.metadata_history import moment_of

HOUR_MS = 3_600_000
KNOWN = StuckFacts(now_ms=10 * HOUR_MS, copy_open_ms=HOUR_MS, delete_open_ms=2 * HOUR_MS)


def orders(leader: int | None, topic_id: Uuid = TOPIC_ID) -> dict[str, TopicFacts]:
    return {
        "orders": TopicFacts("orders", topic_id, {7: PartitionPlace(leader, 3, (1, 2), (1, 2))})
    }


async def segments_of(*events: object) -> list:  # type: ignore[type-arg]
    moment = await moment_of(events)  # type: ignore[arg-type]
    return (await moment.state(tp())).segments(tp())


@pytest.mark.parametrize(
    ("leader", "brokers", "why"),
    [
        (1, {1, 2}, "wrote it and leads the partition"),
        (2, {1, 2}, "does not lead any more: broker 2 does"),
        (None, {1, 2}, "has no leader"),
        (2, {2}, "which wrote it, is not there"),
    ],
)
async def test_f102_copy_that_never_ends_when_nothing_followed_then_is_stalled(
    leader: int | None, brokers: set[int], why: str
) -> None:
    """An open copy with no later event is stalled, with the reason."""
    segments = await segments_of(
        started("before", 0, 99), finished("before"), started("open", 100, 199)
    )
    known = replace(KNOWN, topics=orders(leader), brokers=frozenset(brokers))
    (found,) = stuck_in(segments, known)
    assert found.kind.code == "COPY-STALLED"
    assert found.subject == f"orders-7 {segment_id('open').uuid}"
    assert why in found.detail
    assert found.fields["age_s"] == 36_000
    assert found.fields["broker_id"] == 1


AGAIN = started("again", 0, 149, broker_id=2), finished("again", broker_id=2)
PIECES = started("a", 0, 49), finished("a"), started("b", 50, 149), finished("b")


@pytest.mark.parametrize(
    ("later", "said"),
    [(AGAIN, f"{segment_id('again').uuid} of broker 2"), (PIECES, "up to offset 149")],
    ids=["whole", "pieces"],
)
async def test_f102_copy_when_it_was_made_again_then_is_abandoned_and_says_by_whom(
    later: tuple[object, ...], said: str
) -> None:
    """A later copy of the same offsets, whole or in pieces, names the broker that made it."""
    (found,) = stuck_in(await segments_of(started("open", 0, 99), *later), KNOWN)
    assert found.kind.code == "COPY-ABANDONED"
    assert said in found.detail


@pytest.mark.parametrize(
    ("epoch", "code"), [(3, "COPY-ABANDONED"), (2, "COPY-ABANDONED"), (1, "COPY-STALLED")]
)
async def test_f102_copy_when_the_clock_of_the_next_broker_is_behind_then_goes_by_its_epoch(
    epoch: int, code: str
) -> None:
    """A copy is abandoned when one of its or a later epoch went further."""
    segments = await segments_of(
        started("open", 100, 199, {2: 100}, event_timestamp_ms=HOUR_MS),
        started("again", 100, 249, {epoch: 100}, broker_id=2),
        finished("again", broker_id=2, event_timestamp_ms=HOUR_MS - 60_000),
    )
    assert [one.kind.code for one in stuck_in(segments, KNOWN)] == [code]


async def test_f114_what_is_open_for_less_than_its_own_threshold_is_no_finding() -> None:
    """Deletions have a limit of their own; a healthy copy takes its time."""
    segments = await segments_of(started("a"), finished("a"), delete_started("a"))
    (found,) = stuck_in(segments, KNOWN)
    assert found.kind.code == "DELETE-STALLED"
    assert stuck_in(segments, replace(KNOWN, delete_open_ms=10 * HOUR_MS)) == []
    segments = await segments_of(started("open", 0, 99), started("a", 100, 199), finished("a"))
    assert stuck_in(segments, replace(KNOWN, now_ms=HOUR_MS)) == []


async def test_f116_half_finished_topic_deletion_is_listed_with_bytes() -> None:
    """The list has one entry for each topic id until every segment is gone."""
    moment = await moment_of(
        [
            started("a", size_bytes=1_000), finished("a"), started("b", 100, 199, size_bytes=500),
            finished("b"),
            partition_delete(PartitionDeleteState.DELETE_PARTITION_MARKED),
            partition_delete(PartitionDeleteState.DELETE_PARTITION_STARTED),
            delete_started("a"),
        ]
    )  # fmt: skip
    summaries = await moment.user_partitions()
    (found,) = half_deleted(summaries, {tp(): HOUR_MS}, KNOWN)
    assert found.kind.code == "TOPIC-DELETE-UNFINISHED"
    assert found.subject == f"orders {TOPIC_ID}"
    assert (found.fields["segments"], found.fields["size_bytes"]) == (2, 1_500)
    assert found.fields["last_event_ms"] == HOUR_MS
    assert half_deleted(summaries, {tp(): KNOWN.now_ms}, KNOWN) == []


def summary(segments: int) -> PartitionSummary:
    return PartitionSummary(tp(), 0, 0, segments, 0, 10 * segments)


@pytest.mark.parametrize(
    ("known", "codes"),
    [
        (replace(KNOWN, topics=None), []),
        (replace(KNOWN, topics=orders(1)), []),
        (replace(KNOWN, topics=orders(1, Uuid.of(0, 1))), ["TOPIC-GONE"]),
        (replace(KNOWN, topics={}), ["TOPIC-GONE"]),
        (replace(KNOWN, topics={}, untold=frozenset({"orders"})), []),
    ],
    ids=["no-answer", "there", "another-id", "gone", "without-the-right-to-describe-it"],
)
def test_f116_topic_id_that_the_cluster_does_not_know_then_is_gone(
    known: StuckFacts, codes: list[str]
) -> None:
    """An unknown topic id is gone, unless the cluster gave no answer or may not show it."""
    assert [one.kind.code for one in half_deleted([summary(3)], {}, known)] == codes
    assert half_deleted([summary(0)], {}, known) == []


WELL = MetadataPartitionStatus(
    3, "open", None, "", log_start=0, position=10, target=10, log_end=10, lag_records=0, lag_s=0.0,
    user_partitions=1, segments={}, size_bytes=0, is_history_complete=True, snapshot_age_s=60.0,
)  # fmt: skip
STRICT = Thresholds(5.0, 5, 0, 0, 3_600.0, needs_whole_history=True)


def standing(*places: MetadataPartitionStatus) -> SourceStatus:
    return SourceStatus(
        StateSourceKind.SIDECAR, "here", LogIdentity("c", Uuid.of(0, 1), 50), places
    )


@pytest.mark.parametrize(
    ("place", "codes", "said"),
    [
        (WELL, [], ""),
        (replace(WELL, state="replaying", why="behind"), ["NOT-READY"], "replaying: behind"),
        (replace(WELL, lag_s=6.0, lag_records=2), ["BEHIND"], "6 s old, and there are 2 later"),
        (replace(WELL, lag_records=6), ["BEHIND"], "6 records"),
        (replace(WELL, rejected={"illegal-transition": 2}), ["EVENTS-REJECTED"],
         "2 illegal-transition"),
        (replace(WELL, undecodable={"truncated": 1}), ["RECORDS-UNDECODABLE"], "1 truncated"),
        (replace(WELL, lost_records=4), ["RECORDS-UNDECODABLE"], "4 in all that its state is made"),
        (replace(WELL, lost_records=4, undecodable={"truncated": 1}), ["RECORDS-UNDECODABLE"],
         "1 truncated"),
        (replace(WELL, snapshot_age_s=3_601.0), ["SNAPSHOT-OLD"], "3601 s"),
        (replace(WELL, is_history_complete=False, log_start=40), ["HISTORY-INCOMPLETE"],
         "at offset 40"),
        (replace(WELL, lag_s=None, lag_records=None, snapshot_age_s=None), [], ""),
    ],
)  # fmt: skip
def test_check_names_what_is_beyond_its_threshold_and_what_is_unknown_is_not(
    place: MetadataPartitionStatus, codes: list[str], said: str
) -> None:
    """Each finding names its metadata partition, and unknown values give none."""
    found = judge(standing(WELL, place), STRICT)
    assert [one.kind.code for one in found] == codes
    assert all(one.subject == "__remote_log_metadata-3" and said in one.detail for one in found)


def test_check_when_thresholds_are_not_set_then_only_what_is_always_wrong_is_told() -> None:
    """Exactly at a threshold is fine."""
    place = replace(WELL, lag_s=300.0, rejected={"unknown-segment": 9}, snapshot_age_s=1e9)
    assert judge(standing(place), Thresholds()) == []


def test_check_when_the_log_was_never_reached_then_is_not_ready() -> None:
    """A log that was never reached is not ready, because its partitions are unknown."""
    (found,) = judge(SourceStatus(StateSourceKind.SIDECAR, "here", None, ()), Thresholds())
    assert (found.kind.code, found.subject) == ("NOT-READY", "here")
