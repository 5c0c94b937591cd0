"""An assignment that follows the partitions that a broker leads and follows."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from rlmm.engine.broker_watch import BrokerWatch
from rlmm.errors import LogNotPermitted, LogUnavailable
from rlmm.metadata.assignment import Assignment
from tests.support.builders import tp
from tests.support.engines import until

if TYPE_CHECKING:
    from rlmm.metadata.ids import TopicIdPartition

A, B = tp("a", 1), tp("b", 2)
REFRESH_S = 30.0


class TalkingCluster:
    def __init__(self, *answers: set[TopicIdPartition] | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[int, float]] = []

    async def tiered_partitions_of(
        self, broker_id: int, *, timeout_s: float
    ) -> frozenset[TopicIdPartition]:
        assert timeout_s > 0
        self.asked.append((broker_id, asyncio.get_running_loop().time()))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return frozenset(answer)


async def assigned(
    cluster: TalkingCluster, count: int, refresh_s: float = REFRESH_S
) -> tuple[BrokerWatch, list[Assignment]]:
    found: list[Assignment] = []

    def reconcile(assignment: Assignment) -> int:
        found.append(assignment)
        return len(found)

    watch = BrokerWatch(cluster, 7, refresh_s, reconcile)
    running = asyncio.create_task(watch.run())
    await until(lambda: len(cluster.asked) == count)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    return watch, found


async def test_watch_when_the_broker_gets_another_partition_then_it_is_assigned() -> None:
    """Each answer replaces the assignment, and the cluster is asked at the interval."""
    cluster = TalkingCluster({A}, {A, B}, set())
    watch, found = await assigned(cluster, 3)
    assert found == [Assignment.of_user([A]), Assignment.of_user([A, B]), Assignment.of_user([])]
    assert [broker_id for broker_id, _ in cluster.asked] == [7, 7, 7]
    times = [at_s for _, at_s in cluster.asked]
    assert times == pytest.approx([0.0, REFRESH_S, 2 * REFRESH_S], abs=0.1)
    assert watch.statistics().failures == 0


@pytest.mark.parametrize("before", [[], [{A}]], ids=["from the start", "later"])
async def test_watch_when_no_partition_is_shown_then_warns_what_may_hide_them(
    before: list[set[TopicIdPartition]], caplog: pytest.LogCaptureFixture
) -> None:
    """The watch warns that missing rights may hide all topics from the service."""
    caplog.set_level("INFO")
    await assigned(TalkingCluster(*before, set(), set(), {B}), len(before) + 3)
    warnings = [found.getMessage() for found in caplog.records if found.levelname == "WARNING"]
    assert len(warnings) == 1
    assert "broker 7 has no partition of a tiered topic" in warnings[0]
    assert "DESCRIBE" in warnings[0]


async def test_d17_watch_before_the_first_answer_then_asks_sooner_and_later_at_the_interval() -> (
    None
):
    """Pauses double up to the interval; after the first answer a failure costs one interval."""
    away = LogUnavailable("away")
    cluster = TalkingCluster(*[away] * 3, {A}, away, {A, B})
    watch, found = await assigned(cluster, 6)
    assert found == [Assignment.of_user([A]), Assignment.of_user([A, B])]
    times = [at_s for _, at_s in cluster.asked]
    pauses = [after - before for before, after in pairwise(times)]
    assert pauses == pytest.approx([1, 2, 4, 30, 30], abs=0.01)
    stands = watch.statistics()
    assert (stands.answers, stands.failures, stands.partitions) == (2, 4, 2)
    assert stands.heard_s == pytest.approx(times[-1], abs=0.01)


@pytest.mark.parametrize(
    ("refresh_s", "waited_s"),
    [(0.25, [0.25, 0.25, 0.25]), (3, [1, 2, 3]), (4.5, [1, 2, 4])],
    ids=["below-the-first", "reached", "not-reached"],
)
async def test_watch_when_never_answered_then_no_pause_is_longer_than_the_interval(
    refresh_s: float, waited_s: list[float]
) -> None:
    """The interval bounds the first pause, too, and the log line says why there is no answer."""
    cluster = TalkingCluster(LogNotPermitted("no right"))
    watch, found = await assigned(cluster, 4, refresh_s=refresh_s)
    times = [at_s for _, at_s in cluster.asked]
    assert [after - before for before, after in pairwise(times)] == pytest.approx(
        waited_s, abs=0.01
    )
    assert found == []
    stands = watch.statistics()
    assert (stands.answers, stands.heard_s, stands.last_trouble) == (0, None, "no right")


async def test_watch_when_the_cluster_does_not_answer_then_nothing_is_taken_away() -> None:
    """A missing answer, or one without rights, changes nothing and is counted."""
    cluster = TalkingCluster({A}, LogUnavailable("away"), LogNotPermitted("no right"), {B})
    watch, found = await assigned(cluster, 4)
    assert found == [Assignment.of_user([A]), Assignment.of_user([B])]
    stands = watch.statistics()
    assert (stands.failures, stands.partitions, stands.last_trouble) == (2, 1, "")
