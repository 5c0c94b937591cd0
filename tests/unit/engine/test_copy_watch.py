"""Tiered topics whose copying is disabled: detection and warning."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from rlmm.engine.copy_watch import CopyWatch
from rlmm.errors import LogNotPermitted, LogUnavailable
from rlmm.views.status import copying_view
from tests.support.engines import until

if TYPE_CHECKING:
    from rlmm.engine.copy_watch import CopyingStatistics

WARN_S = 40.0


class TalkingCluster:
    def __init__(self, *answers: set[str] | Exception) -> None:
        self.answers = list(answers)
        self.asked_s: list[float] = []

    async def topics_not_copied(self, *, timeout_s: float) -> frozenset[str]:
        assert timeout_s > 0
        self.asked_s.append(asyncio.get_running_loop().time())
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return frozenset(answer)


async def watched(cluster: TalkingCluster, count: int, warn_s: float = WARN_S) -> CopyingStatistics:
    watch = CopyWatch(cluster, warn_s)
    running = asyncio.create_task(watch.run())
    await until(lambda: len(cluster.asked_s) == count)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
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
    pauses = [after - before for before, after in pairwise(cluster.asked_s)]
    assert pauses == pytest.approx([10.0] * 3, abs=0.1)
    assert CopyWatch(cluster, 3_600.0).interval_s == 300.0


async def test_status_when_a_topic_is_not_copied_then_says_for_how_long() -> None:
    """Times are shown as ages."""
    stands = await watched(TalkingCluster({"orders"}), 2)
    since_s = stands.not_copied_since_s["orders"]
    shown = copying_view(stands, since_s + 12.0)
    assert shown["not_copied"] == [{"topic": "orders", "age_s": 12.0}]
    assert shown["answers"] == 2
