"""The exact output, as a table and as JSON, of the commands that judge and sum up."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.cli.queries.check import check_answer
from rlmm.cli.queries.doctor import doctor_answer
from rlmm.cli.queries.lag import lag_answer, offsets_answer
from rlmm.cli.queries.preflight import delete_answer, reassign_answer
from rlmm.cli.queries.rehearse_compaction import rehearsal_answer
from rlmm.cli.queries.stuck import stuck_answer
from rlmm.cli.queries.usage import usage_answer
from rlmm.cli.queries.verify import verify_answer
from rlmm.inspection.check_thresholds import Thresholds
from rlmm.inspection.cluster_facts import LogDir, PartitionOffsets, PartitionPlace, TopicFacts
from rlmm.log.memory.memory_log import MemoryLog
from tests.support.builders import TOPIC_ID, finished, started, tp
from tests.support.cli.json_schemas import require_valid
from tests.support.cli.memory_source import CLUSTER_ID, METADATA_TOPIC_ID, looking_at, printed
from tests.support.cli.metadata_history import START_MS, History
from tests.support.cli.recorded_outputs import require_golden
from tests.support.kafka.fake_cluster import FakeCluster, settings

if TYPE_CHECKING:
    from rlmm.cli.common.query_run import QueryContext
    from rlmm.cli.printing.answer import CommandAnswer
    from rlmm.metadata.segment import SegmentMetadata

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
NOW_MS = START_MS + DAY_MS
METADATA = "__remote_log_metadata"


def begun(label: str, start: int, last: int, at_ms: int) -> SegmentMetadata:
    return started(label, start, last, event_timestamp_ms=at_ms, max_timestamp_ms=at_ms)


async def a_history() -> History:
    """Return a hole, a hidden segment, a copy that never ends, a rejected event."""
    history = History()
    history.topic.cluster_id = CLUSTER_ID
    history.topic.topic_id = METADATA_TOPIC_ID
    history.log = MemoryLog(history.topic)
    late = START_MS + HOUR_MS
    await history.add(
        begun("a", 0, 200, START_MS), finished("a", event_timestamp_ms=START_MS),
        begun("b", 50, 100, late), finished("b", event_timestamp_ms=late),
        begun("c", 300, 399, late), finished("c", event_timestamp_ms=late),
        started("open", 400, 499, event_timestamp_ms=late), finished("nobody"),
    )  # fmt: skip
    return history


def a_cluster() -> FakeCluster:
    place = PartitionPlace(1, 3, (1, 2), (1, 2))
    orders = TopicFacts(
        "orders", TOPIC_ID, {7: place},
        settings(remote_storage_enable="true", retention_ms=str(12 * HOUR_MS)),
    )  # fmt: skip
    metadata = TopicFacts(
        METADATA, METADATA_TOPIC_ID, dict.fromkeys(range(3), PartitionPlace(1, 3, (1, 2), (1, 2))),
        settings(min_insync_replicas="1", cleanup_policy="delete", retention_ms="-1"),
    )  # fmt: skip
    ends = PartitionOffsets(0, 450, 600, 590, 399, None)
    return FakeCluster(
        {"orders": orders, METADATA: metadata},
        {tp(): ends},
        (1, 2),
        {1: settings(remote_log_storage_system_enable="true"),
         2: settings(remote_log_storage_system_enable="false")},
        [LogDir(1, "/kafka", 10**9, 10**8, {("orders", 7): 4_096})],
    )  # fmt: skip


async def _stuck(looking: QueryContext) -> CommandAnswer:
    return await stuck_answer(
        looking, topic=None, copy_open_ms=HOUR_MS, delete_open_ms=HOUR_MS, reads_history=True
    )


async def _verify(looking: QueryContext) -> CommandAnswer:
    return await verify_answer(looking, topic=None, is_strict=False, reads_history=True)


async def _check(looking: QueryContext) -> CommandAnswer:
    return await check_answer(
        looking, thresholds=Thresholds(), copy_open_ms=HOUR_MS, delete_open_ms=HOUR_MS
    )


async def _doctor(looking: QueryContext) -> CommandAnswer:
    return await doctor_answer(looking, is_strict=False)


async def _usage(looking: QueryContext) -> CommandAnswer:
    return await usage_answer(
        looking, topic=None, grouping="topic", due_within_ms=HOUR_MS, copy_open_ms=HOUR_MS,
        gib_month=1_000.0, put_thousand=0.0,
    )  # fmt: skip


async def _lag(looking: QueryContext) -> CommandAnswer:
    return await lag_answer(looking, topic=None, window_ms=2 * DAY_MS, shows_disks=False)


async def _disks(looking: QueryContext) -> CommandAnswer:
    return await lag_answer(looking, topic=None, window_ms=2 * DAY_MS, shows_disks=True)


async def _offsets(looking: QueryContext) -> CommandAnswer:
    return await offsets_answer(looking, topic=None)


async def _preflight_reassign(looking: QueryContext) -> CommandAnswer:
    return await reassign_answer(looking, topic="orders", partitions=None, to_brokers="2")


async def _preflight_delete(looking: QueryContext) -> CommandAnswer:
    return await delete_answer(looking, topic="orders")


async def _rehearsal(looking: QueryContext) -> CommandAnswer:
    return await rehearsal_answer(looking, partitions=None, retention_ms=None, shows_segments=False)


async def _rehearsal_segments(looking: QueryContext) -> CommandAnswer:
    return await rehearsal_answer(looking, partitions=None, retention_ms=None, shows_segments=True)


ANSWERS = (
    _stuck, _verify, _check, _doctor, _usage, _lag, _disks, _offsets, _preflight_reassign,
    _preflight_delete, _rehearsal, _rehearsal_segments,
)  # fmt: skip


@pytest.mark.parametrize("ask", ANSWERS, ids=lambda ask: ask.__name__.strip("_"))
async def test_answer_when_printed_is_what_was_printed_before(ask: Any) -> None:
    """The table and the document of each, with the cluster beside the source."""
    looking = looking_at(await a_history(), cluster=a_cluster(), now_ms=NOW_MS)
    name = ask.__name__.strip("_").replace("_", "-")
    require_golden(f"{name}.txt", await printed(await ask(looking)))
    whole = await printed(await ask(looking), "json")
    require_valid(json.loads(whole))
    require_golden(f"{name}.json", whole)
