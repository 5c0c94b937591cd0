"""`stuck`, `verify`, `check`, `usage`, `rehearse-compaction`: their questions and their output."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.cli.queries.check import check_answer
from rlmm.cli.queries.doctor import doctor_answer
from rlmm.cli.queries.lag import offsets_answer
from rlmm.cli.queries.preflight import delete_answer
from rlmm.cli.queries.rehearse_compaction import rehearsal_answer
from rlmm.cli.queries.stuck import stuck_answer
from rlmm.cli.queries.usage import usage_answer
from rlmm.cli.queries.verify import verify_answer
from rlmm.errors import ConfigError, InvalidArgument
from rlmm.inspection.check_thresholds import Thresholds
from rlmm.inspection.cluster_facts import (
    LogDir,
    PartitionOffsets,
    PartitionPlace,
    Rights,
    TopicFacts,
)
from rlmm.inspection.moment import ReplayEnd
from tests.support.builders import TOPIC_ID, finished, segment_id, started, tp
from tests.support.cli.memory_source import exit_code, looking_at, printed
from tests.support.cli.memory_source import valid_document_of as document_of
from tests.support.cli.metadata_history import START_MS, History
from tests.support.kafka.fake_cluster import FakeCluster, settings

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rlmm.cli.common.query_run import QueryContext
    from rlmm.metadata.ids import TopicIdPartition

HOUR_MS = 3_600_000


async def a_history() -> History:
    history = History()
    at = START_MS
    await history.add(
        started("a", 0, 99, event_timestamp_ms=at, max_timestamp_ms=at),
        finished("a", event_timestamp_ms=at),
        started("b", 150, 199, event_timestamp_ms=at, max_timestamp_ms=at),
        finished("b", event_timestamp_ms=at),
        finished("early"), started("early", 200, 299, event_timestamp_ms=at),
    )  # fmt: skip
    return history


def a_cluster(**of_topic: str) -> FakeCluster:
    orders = TopicFacts(
        "orders", TOPIC_ID, {7: PartitionPlace(2, 3, (1, 2), (1, 2))}, settings(**of_topic)
    )
    ends = {tp(): PartitionOffsets(earliest=0, earliest_local=220, latest=400)}
    return FakeCluster({"orders": orders}, ends)


async def stuck(
    looking: QueryContext, *, reads_history: bool = True, topic: str | None = None
) -> Any:
    return await stuck_answer(
        looking, topic=topic, copy_open_ms=HOUR_MS, delete_open_ms=HOUR_MS,
        reads_history=reads_history,
    )  # fmt: skip


async def test_f80_stuck_when_the_log_may_be_read_then_says_that_the_finish_came_first() -> None:
    """With the log the finding names the rejected finish, and without it only the open copy."""
    history = await a_history()
    later = START_MS + 2 * HOUR_MS
    answer = await stuck(looking_at(history, now_ms=later))
    document = await document_of(answer)
    assert [one["code"] for one in document["items"]] == ["COPY-FINISHED-FIRST"]
    assert document["items"][0]["fields"]["segment_id"] == str(segment_id("early").uuid)
    assert exit_code(answer) == 1
    answer = await stuck(looking_at(history, now_ms=later), reads_history=False)
    assert [one["code"] for one in (await document_of(answer))["items"]] == ["COPY-STALLED"]


async def test_f102_stuck_when_the_cluster_is_away_then_a_note_says_so() -> None:
    """`stuck` explains each finding, and a note says when the cluster was not asked."""
    later = START_MS + 2 * HOUR_MS
    looking = looking_at(await a_history(), cluster=FakeCluster(is_away=True), now_ms=later)
    text = await printed(await stuck(looking, reads_history=False))
    for part in ("ERROR COPY-STALLED", "fix: "):
        assert part in text
    assert "note: the cluster was not asked: no broker answers" in text


async def test_stuck_when_nothing_is_then_says_so() -> None:
    """Exit code 0; another topic is not looked at; a wrong expression is refused."""
    history = await a_history()
    answer = await stuck(looking_at(history, now_ms=START_MS))
    assert await printed(answer) == "nothing found\n"
    assert exit_code(answer) == 0
    later = looking_at(history, now_ms=START_MS + 2 * HOUR_MS)
    assert exit_code(await stuck(later, topic="order")) == 0
    assert exit_code(await stuck(later, topic="order.")) == 1
    with pytest.raises(InvalidArgument, match="no regular expression"):
        await stuck(later, topic="(")


async def test_stuck_at_a_moment_in_the_past_goes_by_its_clock() -> None:
    """The command judges the copies that were open at that moment by the clock of that moment."""
    history = await a_history()
    at = ReplayEnd(time_ms=START_MS + 10_000)
    answer = await stuck(looking_at(history, bound=at, now_ms=START_MS + 99 * HOUR_MS))
    assert exit_code(answer) == 0


async def test_verify_tells_holes_and_against_the_cluster_what_is_nowhere() -> None:
    """Each finding has a code, and the exit code says that there are findings."""
    history = await a_history()
    answer = await verify_answer(looking_at(history), topic=None, is_strict=False)
    document = await document_of(answer)
    assert [one["code"] for one in document["items"]] == ["LOOKUP-HOLE"]
    assert document["is_compared_with_cluster"] is False
    assert exit_code(answer) == 1
    looking = looking_at(history, cluster=a_cluster())
    document = await document_of(await verify_answer(looking, topic=None, is_strict=False))
    assert [one["code"] for one in document["items"]] == ["LOOKUP-HOLE", "NOWHERE"]
    assert document["items"][1]["detail"].startswith("offsets 200 to 219")
    assert document["totals"] == {"errors": 2, "warnings": 0, "notes": 0}


async def test_verify_when_there_are_notes_alone_then_only_strict_fails() -> None:
    """An overlap of two leaders is only a note and fails the check only with `--strict`."""
    history = History()
    await history.add(started("a", 0, 99), finished("a"), started("b", 50, 199), finished("b"))
    for is_strict in (False, True):
        answer = await verify_answer(looking_at(history), topic=None, is_strict=is_strict)
        assert [one["code"] for one in (await document_of(answer))["items"]] == ["OVERLAP"]
        assert exit_code(answer) == is_strict


async def test_check_when_a_copy_is_open_for_too_long_then_is_a_finding() -> None:
    """The same as `stuck`, beside the thresholds of the service."""
    history = await a_history()
    looking = looking_at(history, now_ms=START_MS + 2 * HOUR_MS)
    answer = await check_answer(
        looking, thresholds=Thresholds(), copy_open_ms=HOUR_MS, delete_open_ms=HOUR_MS
    )
    assert [one["code"] for one in (await document_of(answer))["items"]] == ["COPY-STALLED"]
    assert exit_code(answer) == 1
    answer = await check_answer(
        looking, thresholds=Thresholds(), copy_open_ms=9 * HOUR_MS, delete_open_ms=HOUR_MS
    )
    assert exit_code(answer) == 0


async def usage(looking: QueryContext, **more: Any) -> Any:
    asked = {"topic": None, "grouping": "topic", "due_within_ms": HOUR_MS, "copy_open_ms": HOUR_MS,
             "gib_month": 0.0, "put_thousand": 0.0, **more}  # fmt: skip
    return await document_of(await usage_answer(looking, **asked))


async def test_f117_usage_when_the_cluster_tells_retention_then_says_what_is_due() -> None:
    """The answer has the segments due within the given time by the topic's own settings."""
    history = await a_history()
    cluster = a_cluster(retention_ms=str(2 * HOUR_MS), retention_bytes="-1")
    looking = looking_at(history, cluster=cluster, now_ms=START_MS + HOUR_MS)
    document = await usage(looking, due_within_ms=0)
    assert (document["items"][0]["cost_month"], document["totals"]["due_segments"]) == (None, 0)
    document = await usage(looking, due_within_ms=HOUR_MS + 1)
    # A leader gives up copies that were never finished as well, once they are old enough.
    assert document["totals"]["due_segments"] == 3
    assert document["metadata_topic"]["longest_retention_ms"] == 2 * HOUR_MS
    assert document["metadata_topic"]["safe_retention_ms"] == 2 * HOUR_MS + 7 * 24 * HOUR_MS


@pytest.mark.parametrize("partitions", ["3", "x", "-1"])
async def test_rehearsal_of_a_metadata_partition_that_there_is_not_is_refused(
    partitions: str,
) -> None:
    """The rehearsal refuses numbers out of range, and unsafe outlooks end with exit code 1."""
    looking = looking_at(await a_history())
    ask = partial(rehearsal_answer, looking, retention_ms=None, shows_segments=False)
    with pytest.raises(InvalidArgument):
        await ask(partitions=partitions)
    answer = await ask(partitions="0,1,2")
    await printed(answer)
    assert exit_code(answer) == 1


async def test_f70_doctor_asks_the_cluster_and_counts_keys_where_that_matters() -> None:
    """The command needs a cluster, and counts keys only for a compacted topic."""
    history = await a_history()
    with pytest.raises(ConfigError, match="--bootstrap-server"):
        await doctor_answer(looking_at(history), is_strict=False)
    place = PartitionPlace(1, 3, (1, 2, 3), (1, 2, 3))
    topics = {
        "__remote_log_metadata": TopicFacts(
            "__remote_log_metadata", TOPIC_ID, dict.fromkeys(range(3), place),
            settings(cleanup_policy="compact", min_insync_replicas="1"),
        ),
        "plain": TopicFacts("plain", TOPIC_ID, {0: place}, settings(segment_bytes="1")),
    }  # fmt: skip
    answer = await doctor_answer(
        looking_at(history, cluster=FakeCluster(topics, brokers_there=())), is_strict=False
    )
    document = await document_of(answer)
    assert [one["code"] for one in document["items"]] == ["METADATA-COMPACTED", "MIN-ISR-1"]
    assert "6 of 6 records have no key" in document["items"][0]["detail"]
    assert exit_code(answer) == 1


async def test_usage_on_a_terminal_ends_with_totals_in_words() -> None:
    """The output ends with totals in words, and names values that are not known."""
    history = await a_history()
    answer = await usage_answer(
        looking_at(history, now_ms=START_MS + 2 * HOUR_MS), topic=None, grouping="topic",
        due_within_ms=0, copy_open_ms=HOUR_MS, gib_month=2.0**30, put_thousand=0.0,
    )  # fmt: skip
    said = " ".join((await printed(answer)).split())
    assert "3 segments, 3.0 KiB, of which 1.0 KiB are waste, and it is not known how much " in said
    assert "orders 3 3.0 KiB 1.0 KiB 1.0 KiB - 3072.0" in said
    assert "cost of a month: 3,072.00" in said
    assert "metadata topic: 6 records, 17% of them not needed any more" in said
    assert "its smallest safe retention: not known" in said
    assert "note: retention is not known" in said


async def test_f44_commands_when_events_lie_where_nobody_looks_then_leave_them_out_and_say_so() -> (
    None
):
    """The commands count no misplaced event twice, note it, and still report all other events."""
    history = History()
    for place in range(3):
        await history.add(started(f"s{place}"), finished(f"s{place}"), place=place)
    looking = looking_at(history, now_ms=START_MS + 2 * HOUR_MS)
    note = "2 of 3 user partitions lie in a metadata partition where no broker looks for them"
    document = await usage(looking)
    assert document["totals"]["segments"] == 1
    assert note in document["notes"][0]
    offsets = await offsets_answer(looking, topic=None)
    assert len((await document_of(offsets))["items"]) == 1
    for answer in (offsets, await stuck(looking), await delete_answer(looking, topic="orders")):
        assert note in (await document_of(answer))["notes"][0]
        assert "note: 2 of 3" in await printed(answer)
    alone = History()
    (right, _), *_ = await alone.add(started("a"))
    for place in {0, 1, 2} - {right}:
        alone = History()
        await alone.add(started("a"), finished("a"), place=place)
        assert (await usage(looking_at(alone)))["items"] == []
        assert exit_code(await stuck(looking_at(alone))) == 0


class MovingCluster(FakeCluster):
    later: PartitionOffsets = PartitionOffsets(earliest=150, earliest_local=400, latest=500)

    async def offsets(
        self, partitions: Collection[TopicIdPartition]
    ) -> Mapping[TopicIdPartition, PartitionOffsets]:
        told = await super().offsets(partitions)
        self.ends = dict.fromkeys(self.ends, self.later)
        return told


@pytest.mark.parametrize("is_copied", [True, False])
async def test_verify_when_the_log_moves_on_meanwhile_then_looks_a_second_time(
    *, is_copied: bool
) -> None:
    """The check reads the metadata again, and finds segments that left the local disk meanwhile."""
    history = History()
    await history.add(started("a", 0, 149), finished("a"))
    before = PartitionOffsets(earliest=0, earliest_local=300, latest=400)
    cluster = MovingCluster(ends={tp(): before})
    looking = looking_at(history, cluster=cluster)
    source, now = looking.source, looking.source.now

    async def now_and_then(*words: Any, **more: Any) -> Any:
        found = await now(*words, **more)
        if is_copied and cluster.ends[tp()] is before:
            await history.add(started("b", 150, 299), finished("b"))
        return found

    source.now = now_and_then  # type: ignore[method-assign]
    answer = await verify_answer(looking, topic=None, is_strict=False)
    codes = {one["code"] for one in (await document_of(answer))["items"]}
    assert codes == ({"BELOW-LOG-START"} if is_copied else {"BELOW-LOG-START", "NOWHERE"})


async def test_f117_usage_when_size_is_limited_then_counts_what_only_local_disks_have() -> None:
    """The size limit counts local bytes as a leader does; a note names unknown sizes."""
    history = await a_history()
    cluster = a_cluster(retention_ms="-1", retention_bytes="3000")
    # Of 180 local offsets 180 are not tiered; with them the two segments are too much by one.
    cluster.dirs = [LogDir(2, "/a", None, None, {("orders", 7): 2_000})]
    looking = looking_at(history, cluster=cluster)
    document = await usage(looking)
    assert (document["totals"]["due_segments"], "notes" in document) == (1, False)
    cluster.dirs = []
    document = await usage(looking)
    assert document["totals"]["due_segments"] == 0
    assert "sizes of local logs were not told" in document["notes"][0]


async def test_f116_stuck_when_topics_are_not_shown_to_us_then_says_that_it_cannot_know() -> None:
    """Without the right to see topics the command does not call them gone."""
    history = History()
    await history.add(started("a"), finished("a"))
    for rights, codes in ((frozenset[str](), []), (None, ["TOPIC-GONE"])):
        cluster = FakeCluster(told_rights=Rights(None, {"orders": rights}))
        looking = looking_at(history, cluster=cluster, now_ms=START_MS)
        document = await document_of(await stuck(looking))
        assert [one["code"] for one in document["items"]] == codes
        assert ("notes" in document) is (not codes)
