"""The watches on a cluster: the assignment of a broker, and topics that are not copied."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.engine.broker_watch import BrokerWatch
from rlmm.engine.copy_watch import CopyWatch
from rlmm.errors import LogNotPermitted, LogUnavailable
from rlmm.metadata.assignment import Assignment
from rlmm.views.status import copying_view
from tests.support.builders import tp
from tests.support.engines import until

if TYPE_CHECKING:
    from rlmm.engine.copy_watch import CopyingStatistics
    from rlmm.metadata.ids import TopicIdPartition

A, B = tp("a", 1), tp("b", 2)
REFRESH_S = 30.0


class TalkingCluster:
    def __init__(self, *answers: set[Any] | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[int, float]] = []

    async def _answer(self, broker_id: int, timeout_s: float) -> frozenset[Any]:
        assert timeout_s > 0
        self.asked.append((broker_id, asyncio.get_running_loop().time()))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return frozenset(answer)

    async def tiered_partitions_of(self, broker_id: int, *, timeout_s: float) -> frozenset[Any]:
        return await self._answer(broker_id, timeout_s)

    async def topics_not_copied(self, *, timeout_s: float) -> frozenset[Any]:
        return await self._answer(-1, timeout_s)

    async def hold(self, watch: BrokerWatch | CopyWatch, count: int) -> None:
        """Run *watch* until it has asked *count* times."""
        running = asyncio.create_task(watch.run())
        await until(lambda: len(self.asked) == count)
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def assigned(
    cluster: TalkingCluster, count: int, refresh_s: float = REFRESH_S
) -> tuple[BrokerWatch, list[Assignment]]:
    found: list[Assignment] = []

    def reconcile(assignment: Assignment) -> int:
        found.append(assignment)
        return len(found)

    watch = BrokerWatch(cluster, 7, refresh_s, reconcile)
    await cluster.hold(watch, count)
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


WARN_S = 40.0


async def watched(cluster: TalkingCluster, count: int, warn_s: float = WARN_S) -> CopyingStatistics:
    watch = CopyWatch(cluster, warn_s)
    await cluster.hold(watch, count)
    return watch.statistics()


def lines(caplog: pytest.LogCaptureFixture, level: str) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelname == level]


async def test_topic_not_copied_for_long_has_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    """A window that was left open is named, and how it is closed; once, not at every look."""
    caplog.set_level("INFO")
    stands = await watched(TalkingCluster({"orders"}), 9)
    (warning,) = lines(caplog, "WARNING")
    assert "1 tiered topics are not copied" in warning
    assert "orders" in warning
    assert "rlmm tier adopt resume" in warning
    assert stands.overdue(stands.heard_s or 0.0) == ["orders"]


async def test_topic_when_copied_again_in_time_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    """A topic that is copied again in time causes no warning."""
    caplog.set_level("INFO")
    stands = await watched(TalkingCluster(set(), {"orders"}, {"orders"}, set(), {"orders"}), 6)
    assert lines(caplog, "WARNING") == []
    assert list(stands.not_copied_since_s) == ["orders"]


async def test_topic_when_copied_again_after_a_warning_then_is_said_and_counts_anew(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The watch takes back its warning when copying resumes, and warns again later."""
    caplog.set_level("INFO")
    await watched(TalkingCluster(*[{"orders"}] * 6, set(), {"orders"}), 14)
    assert len(lines(caplog, "WARNING")) == 2
    assert lines(caplog, "INFO") == ["copied again: orders"]


@pytest.mark.parametrize("error", [LogUnavailable("away"), LogNotPermitted("no right")])
async def test_watch_when_the_cluster_does_not_answer_then_what_is_known_stays(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """The watch keeps its last result, counts the failures, and logs them once."""
    caplog.set_level("INFO")
    stands = await watched(TalkingCluster({"orders"}, error), 4)
    assert (stands.answers, stands.failures, stands.last_trouble) == (1, 3, str(error))
    assert list(stands.not_copied_since_s) == ["orders"]
    assert len(lines(caplog, "INFO")) == 1


async def test_watch_when_it_asks_then_often_enough_to_warn_in_time() -> None:
    """The interval is at most five minutes and a fraction of the time before a warning."""
    cluster = TalkingCluster(set())
    await watched(cluster, 4, warn_s=40.0)
    pauses = [after - before for before, after in pairwise(at_s for _, at_s in cluster.asked)]
    assert pauses == pytest.approx([10.0] * 3, abs=0.1)
    assert CopyWatch(cluster, 3_600.0).interval_s == 300.0


async def test_status_when_a_topic_is_not_copied_then_says_for_how_long() -> None:
    """Times are shown as ages."""
    stands = await watched(TalkingCluster({"orders"}), 2)
    since_s = stands.not_copied_since_s["orders"]
    shown = copying_view(stands, since_s + 12.0)
    assert shown["not_copied"] == [{"topic": "orders", "age_s": 12.0}]
    assert shown["answers"] == 2
