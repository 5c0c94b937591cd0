"""Adoptions that die in each of nine steps on a stock broker, and the commands that end them."""

from __future__ import annotations

import asyncio
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.metadata.segment import SegmentState
from spark_tiering.adopt.adoption import windows
from spark_tiering.adopt.outcomes import TopicStatus
from spark_tiering.job_registry.job_store import JobStore
from spark_tiering.stores.local_settings import LocalSettings
from spark_tiering.stores.opening import open_store
from tests.kafka.clients import until
from tests.kafka.node import PATIENT
from tests.kafka.tiered import TieredKafka, tiered_node
from tests.support.tier.adopted_broker import (
    ADOPTED_TOPIC,
    PREFIX,
    SLOW_COPYING,
    Adopter,
    Death,
    finished_ranges,
    producing,
    values_of,
)
from tests.support.tier.driver_process import WRITING, Point
from tests.support.tier.job_folders import LATER_MS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Iterator
    from pathlib import Path

    from spark_tiering.adopt.adoption import OpenWindow
    from tests.kafka.jars import Jars
    from tests.support.tier.driver_process import Drivers, Ended

RECORDS = 120
MOST_RECORDS = 1_500
DEATHS = {
    "journalled": Death("write", 1),
    "opened": Death("change", 2),
    "quiet": Death("look", 3),
    "copying": Death("copies", 2),
    "copied": Death("copy_round", 1),
    "ended": Death("end_open", 1),
    "closing": Death("write", 3),
    "enabled": Death("change", 3),
    "taken-up": Death("latest_tiered", 1),
    "restoring": Death("write", 4),
    "restored": Death("change", 4),
}
"""After which effect the driver dies; the first change is only asked about."""
JOURNAL = "{:020d}".format
SIGKILLS = {
    "journalled": Point(JOURNAL(1)),
    "writing": Point(f"{WRITING}rsm-manifest"),
    "finished": Point("event:CF"),
    "closing": Point(JOURNAL(3)),
    "restoring": Point(JOURNAL(4)),
}
QUICK_ONES = {("copying", "resume"), ("copying", "abort"), ("enabled", "abort")}


def cases(names: Iterable[str], quick: set[tuple[str, str]]) -> list[object]:
    return [
        pytest.param(*case, marks=() if case in quick else pytest.mark.long, id="-".join(case))
        for case in product(names, ("resume", "abort"))
    ]


@pytest.fixture(scope="module")
def slow_kafka(kafka_jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TieredKafka]:
    folder = tmp_path_factory.mktemp("kafka") / "slow"
    with tiered_node(kafka_jars, folder, {**PATIENT, **SLOW_COPYING}) as node:
        yield TieredKafka(node.start())
        node.stop()


def windows_of(store: Path) -> list[OpenWindow]:
    with open_store(LocalSettings(store)) as opened:
        return windows(JobStore(opened, PREFIX))


@pytest.mark.parametrize(("name", "way"), cases(DEATHS, QUICK_ONES))
async def test_driver_when_killed_in_a_step_then_the_window_is_taken_up_and_nothing_is_lost(
    slow_kafka: TieredKafka, tmp_path: Path, name: str, way: str
) -> None:
    """Resuming copies the rest, aborting does not; both restore settings and lose no record."""
    topic = f"{name}-{way}"
    adopter = Adopter(slow_kafka.login, (str(slow_kafka.node.data),), tmp_path / "store")
    await slow_kafka.create_topic(topic, settings=ADOPTED_TOPIC)
    before = await adopter.explicit(topic)
    async with producing(slow_kafka.login, topic) as written:
        await until(lambda: len(written) > RECORDS, "enough was written")
        death = DEATHS[name]
        assert await adopter.die(topic, Death(death.call, death.number))
        (shown,) = windows_of(adopter.store)
        assert shown.journal.topic.name == topic
        outcome = await (adopter.resume(topic) if way == "resume" else adopter.abort(topic))
    assert outcome.standing in (TopicStatus.ADOPTED, TopicStatus.ABORTED), outcome
    assert outcome.findings == ()
    if way == "abort":
        assert not outcome.receipts
    assert await adopter.explicit(topic) == before
    await check_closed(slow_kafka, adopter, topic, written)


async def check_closed(
    kafka: TieredKafka, adopter: Adopter, topic: str, written: list[bytes]
) -> None:
    assert windows_of(adopter.store) == []
    image = await adopter.image(topic)
    ours = [one for one in image.segments if adopter.is_ours(one)]
    assert {one.state for one in ours} <= {SegmentState.COPY_SEGMENT_FINISHED}
    ranges = finished_ranges(image)
    assert all(one[1] == other[0] for one, other in pairwise(ranges))
    start, _, tiered = await adopter.ends(topic)
    assert start == 0
    if ours:
        assert tiered >= max(one.last_offset for one in ours)
    local = [path.read_bytes() for path in kafka.local_segments(topic) if path.exists()]
    copied = [path.read_bytes() for path in kafka.objects(topic)]
    assert values_of([*local, *copied, *map(adopter.log_of, ours)]) >= set(written)


@pytest.mark.parametrize(("name", "way"), cases(SIGKILLS, {("finished", "resume")}))
async def test_command_when_killed_in_a_window_then_status_shows_it_until_it_is_taken_up(
    slow_kafka: TieredKafka, tmp_path: Path, drivers: Drivers, name: str, way: str
) -> None:
    """No adoption begins after a SIGKILL until resuming or aborting closes the window."""
    topic = f"sigkill-{name}-{way}"
    adopter = Adopter(slow_kafka.login, (str(slow_kafka.node.data),), tmp_path / "store")
    await slow_kafka.create_topic(topic, settings=ADOPTED_TOPIC)
    before = await adopter.explicit(topic)
    store = ("--store", str(adopter.store), "--prefix", PREFIX)
    places = ("--log-dir", *adopter.folders, "--bootstrap-server", slow_kafka.bootstrap)
    flags = (*places, *store, "--no-spark")

    async def tier(*arguments: str, dies_at: Point | None = None, later_ms: int = 0) -> Ended:
        call = ("tier", *arguments)
        return await asyncio.to_thread(drivers.run, *call, dies_at=dies_at, later_ms=later_ms)

    def adopting(**when: Any) -> Awaitable[Ended]:
        return tier("run", "--adopt", "--topic", topic, *flags, **when)

    async with producing(slow_kafka.login, topic, MOST_RECORDS) as written:
        await until(lambda: len(written) > RECORDS, "enough was written")
        assert (await adopting(dies_at=SIGKILLS[name])).exit_code is None
    shown = await tier("status", *store)
    assert "topics whose copying and retention are off" in shown.output
    assert topic in shown.output
    for early in (await adopting(), await tier("adopt", way, topic, *flags)):
        assert (early.exit_code, "topic-busy: " in early.output) == (4, True), early.output
    again = await adopting(later_ms=LATER_MS)
    assert (again.exit_code, "window-open: " in again.output) == (1, True), again.output
    restored = "--allow-shrinking-retention"  # the window itself keeps everything
    done = await tier("adopt", way, topic, *flags, restored, later_ms=2 * LATER_MS)
    assert done.exit_code == 0, done.output
    assert await adopter.explicit(topic) == before
    assert "topics whose copying" not in (await tier("status", *store)).output
    await check_closed(slow_kafka, adopter, topic, written)
