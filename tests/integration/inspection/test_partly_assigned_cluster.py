"""Questions that need a cluster, with a service beside it that was given a part of the metadata."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from rlmm.cli.common.query_run import QueryContext
from rlmm.cli.queries.lag import lag_answer, offsets_answer
from rlmm.cli.queries.preflight import reassign_answer
from rlmm.errors import NotReady
from rlmm.inspection.cluster_facts import LogDir, PartitionPlace, TopicFacts
from rlmm.inspection.source_status import NOT_ASSIGNED
from rlmm.metadata.assignment import Assignment, place_of
from tests.support.builders import TOPIC_ID, finished, started, tp
from tests.support.cli.memory_source import document_of
from tests.support.cli.service_source import asking, served_world, world_of
from tests.support.engines import until_open
from tests.support.kafka.fake_cluster import FakeCluster, settings
from tests.support.kafka.kafka_sources import COUNT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

MINE = tp("orders", 7)
NOT_MINE = next(
    one for one in (tp("orders", number) for number in range(8, 40))
    if place_of(one, COUNT) != place_of(MINE, COUNT)
)  # fmt: skip


@asynccontextmanager
async def beside_the_cluster() -> AsyncIterator[QueryContext]:
    world = world_of(started("a", 0, 99), finished("a"), partition_count=COUNT)
    place = PartitionPlace(1, 3, (1, 2), (1, 2))
    orders = TopicFacts(
        "orders", TOPIC_ID, {MINE.partition: place, NOT_MINE.partition: place},
        settings(remote_storage_enable="true"),
    )  # fmt: skip
    on = settings(remote_log_storage_system_enable="true")
    cluster = FakeCluster(
        {"orders": orders}, {}, (1, 2), {1: on, 2: on},
        [LogDir(1, "/a", 10_000, 4_096, {("orders", MINE.partition): 1_000})],
    )  # fmt: skip
    assignment = Assignment.of_metadata([place_of(MINE, COUNT)])
    async with (
        served_world(world, is_ready=False, assignment=assignment) as (engine, served),
        asking(str(served.path)) as source,
    ):
        await until_open(engine, place_of(MINE, COUNT))
        source.cluster = cluster  # type: ignore[assignment]
        try:
            yield QueryContext(source, 0)
        finally:
            source.cluster = None


async def test_lag_when_the_service_reads_some_then_of_others_no_tier_is_not_said() -> None:
    """A metadata partition that was not read does not count as never copied."""
    async with beside_the_cluster() as looking:
        for answer in (
            await lag_answer(looking, topic=None, window_ms=1_000, shows_disks=False),
            await offsets_answer(looking, topic=None),
        ):
            document = await document_of(answer)
            found = [(one["partition"], one["tier_end"]) for one in document["items"]]
            assert found == [(MINE.partition, 99)], answer.kind
            assert document.get("totals", {}).get("first_full_in_s") is None
        assert len(looking.notes) == 1
        with pytest.raises(NotReady) as raised:
            await lag_answer(looking, topic=None, window_ms=1_000, shows_disks=True)
        assert raised.value.reason == NOT_ASSIGNED


async def test_preflight_of_a_move_when_the_service_reads_its_partitions_then_answered() -> None:
    """The check answers for partitions that the service reads, and refuses others."""
    async with beside_the_cluster() as looking:
        mine, every = str(MINE.partition), None
        answer = await reassign_answer(looking, topic="orders", partitions=mine, to_brokers=None)
        assert list((await document_of(answer))["as_of_offsets"]) == [str(place_of(MINE, COUNT))]
        for partitions in (str(NOT_MINE.partition), every):
            with pytest.raises(NotReady, match="is not-assigned"):
                await reassign_answer(
                    looking, topic="orders", partitions=partitions, to_brokers=None
                )
