"""`rlmm explain`: the choice of the partition, facts about it, and one screen with all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rlmm.cli.queries.explain_answer import ExplainQuestion, explain_answer
from rlmm.errors import NotPermitted, NotReady
from rlmm.inspection.cluster_facts import PartitionOffsets, TopicFacts
from rlmm.inspection.moment import ReplayEnd
from rlmm.inspection.selectors import parse_position
from rlmm.inspection.source_status import MetadataPartitionStatus, SourceStatus, StateSourceKind
from rlmm.metadata.ids import Uuid
from rlmm.metadata.segment import PartitionDeleteState
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
from tests.support.cli.memory_source import looking_at, printed, valid_document_of
from tests.support.cli.metadata_history import START_MS, History
from tests.support.cli.recorded_outputs import require_golden
from tests.support.kafka.fake_cluster import FakeCluster, settings

if TYPE_CHECKING:
    from rlmm.cli.common.query_run import QueryContext
    from rlmm.cli.printing.answer import CommandAnswer

AGAIN = tp(topic_id=Uuid.of(7, 7))


async def a_history() -> History:
    history = History()
    await history.add(
        started(1, 0, 200, max_timestamp_ms=START_MS), finished(1),
        started(2, 0, 100), finished(2),
        started(3, 300, 399, event_timestamp_ms=START_MS), started(4, 400, 499), finished(4),
        delete_started(4, broker_id=3), delete_finished(4, broker_id=3),
        started(5, 500, 599), finished(5),
    )  # fmt: skip
    return history


def a_cluster(**of_topic: str) -> FakeCluster:
    orders = TopicFacts("orders", TOPIC_ID, {}, settings(remote_storage_enable="true", **of_topic))
    ends = {tp(): PartitionOffsets(earliest=0, earliest_local=550, latest=700, latest_tiered=599)}
    return FakeCluster({"orders": orders}, ends)


async def answered(looking: QueryContext, text: str, **more: Any) -> CommandAnswer:
    label, offset = parse_position(text)
    return await explain_answer(looking, asking=ExplainQuestion(label, offset, **more))


async def explained(looking: QueryContext, text: str, **more: Any) -> Any:
    return await valid_document_of(await answered(looking, text, **more))


def codes(document: Any) -> list[str]:
    return [one["code"] for one in document["items"]]


async def test_explain_golden_screen_of_what_only_cover_lookup_finds() -> None:
    """KAFKA-20932: the screen names slot, rule, the stock broker's answer and the cause."""
    answer = await answered(looking_at(await a_history()), "orders-7@150")
    require_golden("explain-cover-lookup.txt", await printed(answer))
    assert answer.exit_code == 1


async def test_explain_of_what_is_fine_is_short_and_ends_with_0() -> None:
    """The answer has no finding and exit code 0."""
    answer = await answered(looking_at(await a_history()), "orders-7@50")
    text = await printed(answer)
    assert text.startswith("orders-7@50 is found, and can be read from the tier\n")
    assert "the slot at 0 has it" in text
    assert "stock broker    finds the same" in text
    assert "held as well    AAAAAAAAAAAAAAAAAAAAAQ, COPY_FINISHED, found by no look-up" in text
    assert answer.exit_code == 0


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        ("orders-7@250", ["LOOKUP-HOLE"]),
        ("orders-7@350", ["COPY-UNFINISHED"]),
        ("orders-7@450", ["SEGMENT-DELETED"]),
        ("orders-7@9999", ["OFFSET-ABOVE-TIER"]),
        ("nobody-0@1", ["PARTITION-UNKNOWN"]),
        (f"{AGAIN.topic_id}:orders-7@1", ["PARTITION-UNKNOWN"]),
    ],
)
async def test_explain_of_nothing_found_says_why(position: str, expected: list[str]) -> None:
    """Each miss has its code, and exit code 1 unless the miss is normal."""
    document = await explained(looking_at(await a_history()), position)
    assert codes(document) == expected
    answer = await answered(looking_at(await a_history()), position)
    assert answer.exit_code == (0 if expected == ["OFFSET-ABOVE-TIER"] else 1)
    head = await printed(answer)
    assert "is not found: " in head or "cannot be explained: " in head


async def test_explain_where_the_log_may_not_be_read_says_what_is_missing() -> None:
    """Without the right to the log the answer notes the missing history."""
    history = await a_history()
    looking = looking_at(history)

    class Closed:
        """A log that gives its identity and nothing else."""

        identity = history.log.identity

        async def bounds(self, *_: object, **__: object) -> Any:
            raise NotPermitted("the role admin alone")

    async def now(*_: object, **__: object) -> Any:
        return await history.moment()

    looking.source.log = Closed()  # type: ignore[assignment,misc]  # all that is asked for
    looking.source.now = now  # type: ignore[method-assign]
    document = await explained(looking, "orders-7@450")
    assert codes(document) == ["LOOKUP-HOLE"]
    assert document["explained"]["history"] is None
    assert document["notes"] == [
        "what happened is not known, the log was not read: the role admin alone"
    ]
    document = await explained(looking_at(history), "orders-7@450", reads_history=False)
    assert (codes(document), document["notes"]) == (["LOOKUP-HOLE"], [])


async def test_explain_where_the_cluster_tells_goes_by_its_settings_and_offsets() -> None:
    """The explanation uses the cluster's offsets and settings for local data and retention."""
    cluster = a_cluster(retention_ms="3600000", retention_bytes="-1")
    looking = looking_at(await a_history(), cluster=cluster, now_ms=START_MS + 1_000)
    document = await explained(looking, "orders-7@560")
    assert codes(document) == ["STILL-LOCAL"]
    assert document["explained"]["cluster"] == {
        "earliest": 0, "earliest_local": 550, "latest": 700, "latest_tiered": 599
    }  # fmt: skip
    document = await explained(looking, "orders-7@150")
    assert document["explained"]["retention"] == {
        "fate": "stays", "due_ms": START_MS + 3_600_001,
        "due": "2023-11-14T23:13:20.001Z", "segments_before": 0, "retention_ms": 3_600_000,
        "retention_bytes": -1, "log_start": 0, "unknown": [],
    }  # fmt: skip
    text = await printed(await answered(looking, "orders-7@150"))
    assert "by time (retention.ms is 1h) from" in text
    away = looking_at(await a_history(), cluster=FakeCluster(is_away=True))
    document = await explained(away, "orders-7@50")
    assert document["notes"] == ["the cluster was not asked: no broker answers"]


async def test_explain_of_a_past_moment_is_as_it_was_then() -> None:
    """A past moment is answered without the cluster, which knows only the present."""
    at = ReplayEnd(time_ms=START_MS + 1_500)
    looking = looking_at(await a_history(), bound=at, cluster=a_cluster())
    document = await explained(looking, "orders-7@150")
    assert codes(document) == []
    assert document["explained"]["look_up"]["rule"] == "slot"
    assert document["explained"]["cluster"] is None
    assert document["notes"] == [
        "of a past moment the cluster's settings and offsets are not known"
    ]


async def test_explain_of_a_topic_that_was_made_again_explains_the_one_of_the_cluster() -> None:
    """The answer is about the cluster's topic id and names the former one."""
    history = await a_history()
    await history.add(started(segment_id(8, AGAIN), 0, 99), finished(segment_id(8, AGAIN)))
    document = await explained(looking_at(history, cluster=a_cluster()), "orders-7@50")
    assert codes(document) == ["TOPIC-RECREATED"]
    assert document["asked"]["topic_id"] == str(TOPIC_ID)
    now = TopicFacts("orders", AGAIN.topic_id, {})
    cluster = FakeCluster({"orders": now})
    document = await explained(looking_at(history, cluster=cluster), "orders-7@50")
    assert document["asked"]["topic_id"] == str(AGAIN.topic_id)
    assert document["explained"]["segment"]["segment_id"] == str(segment_id(8).uuid)
    assert str(TOPIC_ID) in document["items"][0]["detail"]
    old = await explained(looking_at(history, cluster=cluster), f"{TOPIC_ID}:orders-7@50")
    assert codes(old) == ["TOPIC-GONE"]
    assert old["explained"]["is_read"] is False


async def test_explain_of_a_new_topic_without_any_event_names_the_old_one() -> None:
    """The explanation of a new topic without events names the older topic id of the same name."""
    cluster = FakeCluster({"orders": TopicFacts("orders", AGAIN.topic_id, {})})
    looking = looking_at(await a_history(), cluster=cluster)
    for kind in (StateSourceKind.KAFKA, StateSourceKind.FOLDERS):
        looking.source.kind = kind  # type: ignore[misc]  # as if it were one
        document = await explained(looking, "orders-7@50")
        assert codes(document) == ["PARTITION-UNKNOWN", "TOPIC-RECREATED"]


async def test_explain_of_several_topics_without_a_cluster_takes_the_one_that_lives() -> None:
    """Without a cluster the command takes the topic that is not marked as deleted."""
    history = await a_history()
    await history.add(started(segment_id(8, AGAIN), 0, 99), finished(segment_id(8, AGAIN)))
    mark = partition_delete(PartitionDeleteState.DELETE_PARTITION_MARKED)
    await history.add(mark)
    document = await explained(looking_at(history), "orders-7@50")
    assert document["asked"]["topic_id"] == str(AGAIN.topic_id)
    assert codes(document) == ["TOPIC-RECREATED"]


def standing_of(place: int, state: str, detail: str) -> SourceStatus:
    one = MetadataPartitionStatus(
        place, state, "why", detail, None, None, None, None, None, None, None, None, None
    )
    return SourceStatus(StateSourceKind.SIDECAR, "a service", None, (one,))


async def test_explain_where_the_metadata_partition_is_not_read_says_so() -> None:
    """The explanation uses the log for an unread state, or fails without it."""
    history = await a_history()
    standing = standing_of(2, "absent", "it is not one of those assigned")
    looking = looking_at(history, standing=standing)
    document = await explained(looking, "orders-7@50")
    assert codes(document) == ["PARTITION-NOT-READ"]
    assert document["explained"]["is_found"] is True

    async def bounds(*_: object, **__: object) -> Any:
        raise NotReady("it was not copied")

    history.log.bounds = bounds  # type: ignore[method-assign]
    document = await explained(looking, f"{TOPIC_ID}:orders-7@50")
    assert (codes(document), document["explained"]) == (["PARTITION-NOT-READ"], None)
    with pytest.raises(NotReady):
        await explained(looking_at(history), f"{TOPIC_ID}:orders-7@50")


async def test_explain_where_the_service_is_not_caught_up_says_that_it_does_not_answer() -> None:
    """The explanation comes from the log, and a note says that the service is not caught up."""
    standing = standing_of(2, "replaying", "37 records are left")
    document = await explained(looking_at(await a_history(), standing=standing), "orders-7@50")
    assert codes(document) == []
    assert document["notes"] == [
        "memory does not answer for metadata partition 2 now: 37 records are left"
    ]
