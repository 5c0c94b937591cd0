"""The nine steps on three stock brokers: leaders and followers go on behind the same copies."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from spark_tiering.adopt.outcomes import TopicStatus
from spark_tiering.copy_job.report import CopyFate
from tests.kafka.clients import create_topic, until, wait_for_leader
from tests.kafka.cluster import SIZE, Cluster
from tests.kafka.tiered import TIERED_TOPIC
from tests.support.tier.adopted_broker import (
    ADOPTED_TOPIC,
    SLOW_COPYING,
    Adopter,
    Death,
    finished_ranges,
    producing,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.kafka.jars import Jars

RECORDS = 120


@pytest.fixture(scope="module")
def slow_cluster(kafka_jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("kafka") / "cluster"
    with Cluster(kafka_jars, folder, tiered=True, properties=SLOW_COPYING) as cluster:
        yield cluster.start()


def local_starts(cluster: Cluster, topic: str) -> list[int]:
    return [
        min(int(path.stem) for path in (node.data / f"{topic}-0").glob("*.log"))
        for node in cluster.nodes.values()
    ]


async def adopted_topic(cluster: Cluster, topic: str) -> None:
    settings = {**TIERED_TOPIC, **ADOPTED_TOPIC}
    await create_topic(cluster.login, topic, replicas=SIZE, settings=settings)


async def test_topic_when_adopted_then_replicas_trim(slow_cluster: Cluster, tmp_path: Path) -> None:
    """After an adoption on three nodes each range has one copy and every replica trims."""
    folders = tuple(str(node.data) for node in slow_cluster.nodes.values())
    adopter = Adopter(slow_cluster.login, folders, tmp_path / "store")
    await adopted_topic(slow_cluster, "orders")
    before = await adopter.explicit("orders")
    async with producing(slow_cluster.login, "orders") as written:
        await until(lambda: len(written) > RECORDS, "enough was written", deadline_s=60)
        outcome = await adopter.adopt("orders")
        assert (outcome.standing, outcome.why, outcome.findings) == (TopicStatus.ADOPTED, None, ())
        assert {one.fate for one in outcome.receipts} == {CopyFate.FINISHED}
        last = max(one.last_offset for one in outcome.receipts)
        await until(
            lambda: min(local_starts(slow_cluster, "orders")) > last,
            "every replica has trimmed",
            deadline_s=60,
        )
    assert await adopter.explicit("orders") == before
    ranges = finished_ranges(await adopter.image("orders"))
    assert ranges[0][0] == 0
    assert all(one[1] == other[0] for one, other in pairwise(ranges))


async def test_window_is_resumed_under_next_leader(slow_cluster: Cluster, tmp_path: Path) -> None:
    """After driver and leader died the resumed window goes on under the next leader."""
    folders = tuple(str(node.data) for node in slow_cluster.nodes.values())
    adopter = Adopter(slow_cluster.login, folders, tmp_path / "store")
    await adopted_topic(slow_cluster, "led")
    before = await adopter.explicit("led")
    async with producing(slow_cluster.login, "led") as written:
        await until(lambda: len(written) > RECORDS, "enough was written", deadline_s=60)
        assert await adopter.die("led", Death("copies", 2))
    leader = await wait_for_leader(slow_cluster.login, "led")
    slow_cluster.kill(leader)
    await wait_for_leader(slow_cluster.login, "led", besides=leader)
    adopter.login = slow_cluster.login
    slow_cluster.restart(leader)
    outcome = await adopter.resume("led")
    assert (outcome.standing, outcome.why) == (TopicStatus.ADOPTED, None)
    assert await adopter.explicit("led") == before
    ranges = finished_ranges(await adopter.image("led"))
    assert ranges[0][0] == 0
    assert all(one[1] == other[0] for one, other in pairwise(ranges))
