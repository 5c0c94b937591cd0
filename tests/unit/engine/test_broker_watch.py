"""An assignment that follows what a broker leads and follows."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from rlmm.assignment import Assignment
from rlmm.broker_watch import BrokerWatch
from rlmm.errors import LogNotPermitted, LogUnavailable
from tests.support.builders import tp
from tests.support.engines import until

if TYPE_CHECKING:
    from rlmm.metadata.ids import TopicIdPartition

A, B = tp("a", 1), tp("b", 2)
REFRESH_S = 30.0


class TalkingCluster:
    """Answers, one after the other, what it was told to; the last one for ever."""

    def __init__(self, *answers: set[TopicIdPartition] | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[int, float]] = []

    async def tiered_partitions_of(
        self, broker_id: int, *, timeout_s: float
    ) -> frozenset[TopicIdPartition]:
        """The next answer."""
        assert timeout_s > 0
        self.asked.append((broker_id, asyncio.get_running_loop().time()))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return frozenset(answer)


async def assigned(cluster: TalkingCluster, count: int) -> tuple[BrokerWatch, list[Assignment]]:
    """What was assigned until the cluster was asked *count* times."""
    found: list[Assignment] = []

    def reconcile(assignment: Assignment) -> int:
        found.append(assignment)
        return len(found)

    watch = BrokerWatch(cluster, 7, REFRESH_S, reconcile)
    running = asyncio.create_task(watch.run())
    await until(lambda: len(cluster.asked) == count)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    return watch, found


async def test_watch_when_the_broker_gets_another_partition_then_it_is_assigned() -> None:
    """Every answer is the whole assignment; the cluster is asked at the interval."""
    cluster = TalkingCluster({A}, {A, B}, set())
    watch, found = await assigned(cluster, 3)
    assert found == [Assignment.of_user([A]), Assignment.of_user([A, B]), Assignment.of_user([])]
    assert [broker_id for broker_id, _ in cluster.asked] == [7, 7, 7]
    times = [at_s for _, at_s in cluster.asked]
    assert times == pytest.approx([0.0, REFRESH_S, 2 * REFRESH_S], abs=0.1)
    assert watch.statistics().failures == 0


async def test_watch_when_the_cluster_does_not_answer_then_nothing_is_taken_away() -> None:
    """An answer that does not come, or that we have no right to, changes nothing; it is counted."""
    cluster = TalkingCluster({A}, LogUnavailable("away"), LogNotPermitted("no right"), {B})
    watch, found = await assigned(cluster, 4)
    assert found == [Assignment.of_user([A]), Assignment.of_user([B])]
    stands = watch.statistics()
    assert (stands.failures, stands.partitions, stands.last_trouble) == (2, 1, "")
