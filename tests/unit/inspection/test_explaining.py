"""Why an offset is found, or is not: each reason by its code, from events alone or with facts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rlmm.inspection.cluster_facts import PartitionOffsets, TopicFacts
from rlmm.inspection.explain import explain
from rlmm.inspection.explain_facts import ExplainFacts, of_topic, of_unknown
from rlmm.inspection.history import EventHistory, HistorySubject
from rlmm.inspection.lookup_trace import LookupMiss, LookupRule
from rlmm.inspection.moment import ReplayEnd
from rlmm.inspection.offset_history import OffsetHistory
from rlmm.inspection.replay import PartitionReplay
from rlmm.metadata.ids import TopicIdPartition, Uuid
from rlmm.metadata.segment import PartitionDeleteState
from rlmm.retention.retention import RetentionFate
from tests.support.builders import (
    TOPIC_ID,
    delete_finished,
    delete_started,
    finished,
    partition_delete,
    segment_id,
    started,
    tp,
)
from tests.support.cli.metadata_history import START_MS, History
from tests.support.kafka.fake_cluster import settings

if TYPE_CHECKING:
    from rlmm.inspection.explain import Explanation
    from rlmm.metadata.events import Event

HOUR_MS = 3_600_000
TWO = (started("a", 0, 99), finished("a"), started("b", 100, 199), finished("b"))


async def explained(
    offset: int, *events: Event, epoch: int | None = None, facts: ExplainFacts | None = None,
    head: int = 0,
) -> Explanation:  # fmt: skip
    history = History(1)
    await history.add(*events, place=0)
    history.topic.partitions[0].truncate_head(head)
    chronicle, story = EventHistory(HistorySubject.of(tp())), OffsetHistory(offset)
    replay = PartitionReplay(history.log, 0, ReplayEnd(), timeout_s=5)
    async for chunk in replay.chunks():
        for one in chunk.happened(chronicle.wanted):
            line = chronicle.tell(one)
            if line is not None:
                story.hear(line)
    known = replace(facts or ExplainFacts(START_MS), story=story, log_start=replay.log_start)
    return explain(replay.shard, tp(), offset, epoch, known)


def codes(explanation: Explanation) -> list[str]:
    return [one.kind.code for one in explanation.findings]


async def test_explain_where_a_slot_has_it_then_says_so_and_nothing_else() -> None:
    """The answer is the slot's segment, as a stock broker finds it."""
    found = await explained(50, *TWO)
    assert codes(found) == []
    assert (found.is_read, found.is_fine, found.epoch) == (True, True, 0)
    assert not found.is_epoch_said
    look_up = found.look_up
    assert look_up is not None
    assert (look_up.rule, look_up.why, look_up.slot_offset, look_up.slot_last) == (
        LookupRule.SLOT, LookupMiss.FOUND, 0, 99
    )  # fmt: skip
    assert look_up.stock == look_up.found
    assert found.found is not None
    assert found.found.id == segment_id("a")


async def test_f75_explain_where_only_cover_lookup_finds_it_then_names_the_rule() -> None:
    """A stock broker finds nothing, because a late, shorter copy has the slot."""
    events = (started("a", 0, 200), finished("a"), started("b", 0, 100), finished("b"))
    found = await explained(150, *events)
    assert codes(found) == ["STOCK-LOOKUP-EMPTY", "HIDDEN-SEGMENT"]
    look_up = found.look_up
    assert look_up is not None
    assert (look_up.rule, look_up.why, look_up.stock) == (
        LookupRule.COVER_LOOKUP, LookupMiss.SLOT_ENDS_BEFORE, None
    )  # fmt: skip
    assert (look_up.slot_last, found.is_read) == (100, True)
    assert "ends there at 100" in found.findings[0].detail


async def test_f74_explain_where_another_took_its_place_then_shows_the_hidden_one_as_well() -> None:
    """KAFKA-20932: the answer has the found segment and the hidden one."""
    found = await explained(50, *TWO, started("c", 0, 150), finished("c"))
    assert codes(found) == []
    assert [(one.segment.id, one.epochs) for one in found.held.held] == [
        (segment_id("c"), (0,)), (segment_id("a"), ())
    ]  # fmt: skip


MARKED, BEGUN, ENDED = (partition_delete(state) for state in PartitionDeleteState)
LATE = started("z", 300, 399), finished("z")
LATER_DELETED = started("x", 100, 199), delete_started("x"), delete_finished("x")
OPEN_COPY = started("a", 0, 99, broker_id=3, event_timestamp_ms=START_MS)


@pytest.mark.parametrize(
    ("offset", "events", "expected", "said"),
    [
        pytest.param(150, (*TWO[:2], *LATE), ["LOOKUP-HOLE"], "offsets 100 to 299", id="hole"),
        pytest.param(
            5, (started("a", 10, 99), finished("a")), ["OFFSET-BELOW-TIER"], "", id="below"
        ),
        pytest.param(500, TWO, ["OFFSET-ABOVE-TIER"], "", id="above"),
        pytest.param(50, (OPEN_COPY,), ["COPY-UNFINISHED"], "of broker 3", id="open"),
        pytest.param(50, (OPEN_COPY,), ["COPY-UNFINISHED"], "open for 1h", id="open-since"),
        pytest.param(
            50, (finished("a"), started("a", 0, 99)), ["COPY-FINISHED-FIRST"],
            "its finish at offset 0 came first", id="f80",
        ),
        pytest.param(
            150, (*TWO[:2], *LATER_DELETED, *LATE), ["LOOKUP-HOLE"], "", id="deleted-unfinished"
        ),
        pytest.param(
            5, (started("a", 0, 99, {0: 10}), finished("a")), ["NOT-IN-EPOCH"], "", id="no-epoch"
        ),
        pytest.param(
            50, (*TWO, MARKED, BEGUN), ["PARTITION-BEING-DELETED"], "", id="f116-half-deleted"
        ),
        pytest.param(
            50, (*TWO, MARKED, BEGUN, ENDED), ["PARTITION-DELETED", "SEGMENT-DELETED"],
            "with its whole partition", id="f116-deleted",
        ),
    ],
)  # fmt: skip
async def test_f80_f116_explain_of_what_cannot_be_read_then_says_why(
    offset: int, events: tuple[Event, ...], expected: list[str], said: str
) -> None:
    """Each reason has its code and a detail; only a partition that is being deleted is found."""
    found = await explained(offset, *events, facts=ExplainFacts(START_MS + HOUR_MS))
    assert codes(found) == expected
    assert said in found.findings[-1].detail
    assert not found.is_read
    assert (found.found is not None) is (expected == ["PARTITION-BEING-DELETED"])
    assert found.is_fine is (expected == ["OFFSET-ABOVE-TIER"])
    if said == "offsets 100 to 299":
        assert "rlmm history orders-7" in found.findings[0].fix


async def test_explain_of_a_deleted_segment_says_by_whom_and_when() -> None:
    """The answer has the broker and time of the deletion, also while it is going on."""
    gone = (delete_started("a", broker_id=5), delete_finished("a", broker_id=6))
    found = await explained(50, *TWO, gone[0])
    assert codes(found) == ["SEGMENT-BEING-DELETED"]
    found = await explained(50, *TWO, *gone)
    assert codes(found) == ["SEGMENT-DELETED"]
    assert found.findings[0].fields["broker_id"] == 6
    assert found.findings[0].fields["timestamp_ms"] == START_MS + 5_000
    assert found.findings[0].fields["segment_id"] == str(segment_id("a").uuid)


async def test_f110_explain_goes_by_the_leader_epoch() -> None:
    """An unknown epoch finds nothing, and the answer names the epoch that holds the offset."""
    events = (started("a", 0, 99, {1: 0, 4: 50}), finished("a"))
    assert (await explained(20, *events)).epoch == 1
    assert (await explained(70, *events)).epoch == 4
    found = await explained(70, *events, epoch=9)
    assert codes(found) == ["EPOCH-UNKNOWN", "OTHER-EPOCH"]
    assert found.is_epoch_said
    assert [one.epoch for one in found.others] == [4]
    found = await explained(70, *events, epoch=1)
    assert codes(found) == ["OTHER-EPOCH"]
    assert found.look_up is not None
    assert found.look_up.why is LookupMiss.ABOVE_HIGHEST


async def test_f65_explain_where_the_head_of_the_log_is_gone_then_says_what_that_costs() -> None:
    """Updates without their base are all that is left of segments."""
    events = (*TWO, delete_started("a"))
    found = await explained(50, *events, head=2)
    assert codes(found) == ["OFFSET-BELOW-TIER", "HISTORY-TRIMMED"]
    assert found.findings[1].fields == {
        "metadata_partition": 0, "log_start": 2, "updates_without_base": 1
    }  # fmt: skip
    assert codes(await explained(150, *events, head=2)) == []


@pytest.mark.parametrize(
    ("offsets", "offset", "expected", "is_read"),
    [
        (PartitionOffsets(earliest=60), 50, ["BELOW-LOG-START"], False),
        (PartitionOffsets(earliest=0, earliest_local=40), 50, ["STILL-LOCAL"], True),
        (PartitionOffsets(earliest=0, earliest_local=150), 50, [], True),
        (PartitionOffsets(earliest=0, latest=300), 250, ["OFFSET-ABOVE-TIER"], False),
        (PartitionOffsets(earliest=0, latest=250), 250, ["OFFSET-BEYOND-LOG"], False),
        (PartitionOffsets(earliest=260, latest=300), 250, ["BELOW-LOG-START"], False),
    ],
    ids=["before the log", "local", "tiered alone", "not tiered yet", "beyond", "gone"],
)
async def test_explain_where_the_cluster_tells_the_ends_of_the_log_then_goes_by_them(
    offsets: PartitionOffsets, offset: int, expected: list[str], is_read: bool
) -> None:
    """The answer uses the cluster's log ends, and says nothing of them without a cluster."""
    found = await explained(offset, *TWO, facts=ExplainFacts(START_MS, offsets=offsets))
    assert codes(found) == expected
    assert found.is_read is is_read


async def test_explain_where_the_cluster_tells_retention_then_says_what_comes_next() -> None:
    """The answer names the limits of retention that come next and notes those that are unknown."""
    events = (
        started("a", 0, 99, max_timestamp_ms=START_MS), finished("a"),
        started("b", 100, 199, max_timestamp_ms=START_MS + HOUR_MS), finished("b"),
    )  # fmt: skip
    topic = TopicFacts("orders", TOPIC_ID, {}, settings(retention_ms=str(2 * HOUR_MS)))
    found = await explained(150, *events, facts=ExplainFacts(START_MS, topic=topic))
    assert found.due is not None
    assert (found.due.fate, found.due.due_ms) == (RetentionFate.STAYS, START_MS + 3 * HOUR_MS + 1)
    assert found.ahead == 1
    assert found.rules.unknown == ["retention.bytes", "log start"]
    late = ExplainFacts(START_MS + 4 * HOUR_MS, topic=topic)
    found = await explained(150, *events, facts=late)
    assert found.due is not None
    assert found.due.fate is RetentionFate.TIME
    found = await explained(999, *events, facts=late)
    assert found.due is None


def test_topic_of_another_id_in_the_cluster_is_gone_or_was_made_again() -> None:
    """The finding says whether the topic is gone or made anew under another id."""
    other = tp(topic_id=Uuid.of(7, 7))
    now = TopicFacts("orders", other.topic_id, {})
    known = ExplainFacts(START_MS, topic=now, is_cluster_known=True, same_name=(other,))
    found = list(of_topic(tp(), known))
    assert [one.kind.code for one in found] == ["TOPIC-GONE", "TOPIC-RECREATED"]
    assert str(other.topic_id) in found[0].detail
    assert found[1].fields["topic_ids"] == [str(TOPIC_ID), str(other.topic_id)]
    gone = ExplainFacts(START_MS, is_cluster_known=True)
    assert [one.kind.code for one in of_topic(tp(), gone)] == ["TOPIC-GONE"]
    assert list(of_topic(tp(), ExplainFacts(START_MS))) == []


@pytest.mark.parametrize(
    ("facts", "detail"),
    [
        (ExplainFacts(START_MS), "is not known"),
        (ExplainFacts(START_MS, is_cluster_known=True), "no such topic"),
        (
            ExplainFacts(START_MS, is_cluster_known=True, topic=TopicFacts("orders", TOPIC_ID, {})),
            "remote.storage.enable is not true",
        ),
        (
            ExplainFacts(
                START_MS, is_cluster_known=True,
                topic=TopicFacts("orders", TOPIC_ID, {}, settings(remote_storage_enable="true")),
            ),
            "nothing of this partition was copied yet",
        ),
    ],
    ids=["nobody asked", "no topic", "not tiered", "tiered"],
)  # fmt: skip
def test_partition_of_which_nothing_is_known_says_what_the_cluster_knows(
    facts: ExplainFacts, detail: str
) -> None:
    """The answer has the cluster's facts and notes that the log is trimmed."""
    (found,) = of_unknown("orders-7", 50, facts)
    assert found.kind.code == "PARTITION-UNKNOWN"
    assert detail in found.detail
    trimmed = list(of_unknown("orders-7", 50, replace(facts, log_start=5)))
    assert [one.kind.code for one in trimmed] == ["PARTITION-UNKNOWN", "HISTORY-TRIMMED"]


async def test_explain_where_a_copy_below_has_stalled_then_names_it_first() -> None:
    """An offset above a copy that never ended is not tiered because of that copy."""
    stalled = started("c", 200, 299, event_timestamp_ms=START_MS)
    facts = ExplainFacts(START_MS + 25 * HOUR_MS)
    found = await explained(400, *TWO, stalled, facts=facts)
    assert codes(found) == ["COPY-STALLED", "OFFSET-ABOVE-TIER"]
    assert not found.is_fine
    young = await explained(400, *TWO, stalled, facts=ExplainFacts(START_MS + 60_000))
    assert codes(young) == ["OFFSET-ABOVE-TIER"]


async def test_explain_where_the_topic_was_recreated_then_the_deletion_stands_first() -> None:
    """The deletion of the segment is the reason, and the other topic id is only beside it."""
    facts = ExplainFacts(START_MS, same_name=(TopicIdPartition(Uuid(bytes(16)), "orders", 0),))
    found = await explained(150, *TWO, delete_started("b"), delete_finished("b"), facts=facts)
    assert codes(found) == ["SEGMENT-DELETED", "TOPIC-RECREATED"]
