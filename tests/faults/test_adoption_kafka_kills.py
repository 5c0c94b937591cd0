"""Jobs that die in each of the nine steps on a stock broker, and whoever takes up their windows."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from rlmm.metadata.segment import SegmentState
from spark_tiering.adopt.adoption import windows
from spark_tiering.adopt.outcomes import Standing
from spark_tiering.jobs.job_store import JobStore
from spark_tiering.stores.local_settings import LocalSettings
from spark_tiering.stores.opening import open_store
from tests.kafka.clients import until
from tests.kafka.node import PATIENT
from tests.kafka.tiered import TieredKafka, tiered_node
from tests.support.adopted_kafka import (
    ADOPTED_TOPIC,
    PREFIX,
    SLOW_COPYING,
    Adopter,
    Death,
    finished_ranges,
    producing,
    values_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from spark_tiering.adopt.adoption import OpenWindow
    from tests.kafka.jars import Jars

RECORDS = 120
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
QUICK_ONES = {("copying", "resume"), ("copying", "abort"), ("enabled", "abort")}


def cases() -> list[object]:
    """Every death with each of the two ways out of it; most of them are long."""
    return [
        pytest.param(
            name, way, marks=() if (name, way) in QUICK_ONES else pytest.mark.long,
            id=f"{name}-{way}",
        )
        for name in DEATHS
        for way in ("resume", "abort")
    ]  # fmt: skip


@pytest.fixture(scope="module")
def slow_kafka(kafka_jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TieredKafka]:
    """One broker that copies slowly, for all of this module: a test uses a topic of its own."""
    folder = tmp_path_factory.mktemp("kafka") / "slow"
    with tiered_node(kafka_jars, folder, {**PATIENT, **SLOW_COPYING}) as node:
        yield TieredKafka(node.start())
        node.stop()


def windows_of(store: Path) -> list[OpenWindow]:
    """What `rlmm tier status` would show."""
    with open_store(LocalSettings(store)) as opened:
        return windows(JobStore(opened, PREFIX))


@pytest.mark.parametrize(("name", "way"), cases())
async def test_driver_when_killed_in_a_step_then_the_window_is_taken_up_and_nothing_is_lost(
    slow_kafka: TieredKafka, tmp_path: Path, name: str, way: str
) -> None:
    """
    The window left open is shown; resuming copies the rest and aborting does not; either way the
    settings are as before, each range is copied once, and every record is somewhere.
    """
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
    assert outcome.standing in (Standing.ADOPTED, Standing.ABORTED), outcome
    assert outcome.findings == ()
    assert windows_of(adopter.store) == []
    assert await adopter.explicit(topic) == before
    image = await adopter.image(topic)
    ours = [one for one in image.segments if adopter.is_ours(one)]
    assert {one.state for one in ours} <= {SegmentState.COPY_SEGMENT_FINISHED}
    if way == "abort":
        assert not outcome.receipts
    ranges = finished_ranges(image)
    assert all(one[1] == other[0] for one, other in pairwise(ranges))
    start, _, tiered = await adopter.ends(topic)
    assert start == 0
    if ours:
        assert tiered >= max(one.last_offset for one in ours)
    local = [path.read_bytes() for path in slow_kafka.local_segments(topic) if path.exists()]
    copied = [path.read_bytes() for path in slow_kafka.objects(topic)]
    assert values_of([*local, *copied, *map(adopter.log_of, ours)]) >= set(written)
