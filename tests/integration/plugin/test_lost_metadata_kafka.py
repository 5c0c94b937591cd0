"""The lost metadata topic, rebuilt from the bucket by `docs/operating.md`, serves both managers."""

from __future__ import annotations

import random
import shutil
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from tests.kafka.clients import until
from tests.kafka.ledger import Ledger, Traffic
from tests.kafka.node import CLEAN_STATUS, STARTED, TIERED
from tests.kafka.sidecar import CLEAN_STATUS as CLEAN_SIDECAR
from tests.kafka.tiered import METADATA_PARTITIONS
from tests.kafka.tools import METADATA_TOPIC
from tests.support.plugin.operator_commands import (
    FOUND,
    SLOW,
    SPOKEN_FOR,
    Operator,
    assert_consumers_have,
    folder_operator,
    log_start,
    quicken,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from tests.integration.plugin.conftest import NewKafka
    from tests.kafka.plugin_kafka import PluginKafka

pytestmark = [pytest.mark.long, pytest.mark.timeout(1_200)]

TOPIC = "orders"
TRIMMED_S = 90.0


@pytest.fixture
def kafka(new_kafka: NewKafka) -> PluginKafka:
    return new_kafka(properties=SLOW)


def finished(kafka: PluginKafka) -> list[tuple[int, int]]:
    events = [one.event for one in kafka.metadata_events(TOPIC)]
    done = {
        one.id
        for one in events
        if isinstance(one, SegmentUpdate) and one.state is SegmentState.COPY_SEGMENT_FINISHED
    }
    return sorted(
        (one.start_offset, one.last_offset)
        for one in events
        if isinstance(one, SegmentMetadata) and one.id in done
    )


def written(kafka: PluginKafka) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in kafka.objects(TOPIC)}


async def tier_of_both(kafka: PluginKafka, operator: Operator, traffic: Traffic) -> None:
    await kafka.create_topic(TOPIC, settings=SPOKEN_FOR)
    await traffic.everything(8)
    kafka.restart_broker()
    await traffic.everything(8)
    await operator.adopt(TOPIC, operator.of_both)
    quicken(kafka)
    await kafka.wait_until_trimmed(TOPIC, deadline_s=TRIMMED_S)


async def lose_by_deletion(kafka: PluginKafka) -> None:
    """Delete the topic; no empty one may be created or followed, no segment given up."""
    kafka.tools.topics("--delete", "--topic", METADATA_TOPIC)
    await until(lambda: not kafka.local_segments(METADATA_TOPIC, 0), "its log is gone")
    assert kafka.sidecar.stop() == CLEAN_SIDECAR
    position = kafka.sidecar.log.position
    kafka.sidecar.start()
    kafka.restart_broker()
    gone = "was there before and is gone: brokers would take an empty one"
    await until(
        lambda: any(gone in line for line in kafka.sidecar.log.since(position)),
        "the service says so",
    )
    assert METADATA_TOPIC not in kafka.tools.topics("--list")
    kafka.tools.topics(
        "--create", "--topic", METADATA_TOPIC, "--partitions", str(METADATA_PARTITIONS),
        "--replication-factor", "1", "--config", "retention.ms=-1",
        "--config", "cleanup.policy=delete",
    )  # fmt: skip
    await refused_as_empty(kafka, position)


async def refused_as_empty(kafka: PluginKafka, position: int) -> None:
    empty = "and empty, while snapshots of"
    await until(
        lambda: any(empty in line for line in kafka.sidecar.log.since(position)),
        "the service says so",
    )
    assert await log_start(kafka, TOPIC) == 0
    assert kafka.sidecar.stop() == CLEAN_SIDECAR


async def lose_by_disk(kafka: PluginKafka) -> None:
    assert kafka.sidecar.stop() == CLEAN_SIDECAR
    assert kafka.node.stop() == CLEAN_STATUS
    for folder in kafka.node.data.glob(f"{METADATA_TOPIC}-*"):
        shutil.rmtree(folder)
    position = kafka.sidecar.log.position
    kafka.sidecar.start()
    kafka.node.start()
    await refused_as_empty(kafka, position)


async def rebuild(operator: Operator, snapshots: Path, file: Path) -> int:
    custom, at = ("--custom-metadata", "remote-size"), operator.of_cluster
    known = ("--snapshot", str(snapshots))
    made = await operator.report_of(
        "rebuild", "--save", str(file), *custom, *known, *at, status=FOUND
    )
    assert {fate for fate, count in made["segments"].items() if count} == {"missing"}, made
    of_file = Operator(operator.kafka, ())
    await of_file.report_of("rebuild", "--apply", str(file), "--dry-run", *at)
    applied = await of_file.report_of("rebuild", "--apply", str(file), *at)
    left = await operator.report_of("rebuild", *custom, *at)
    assert left["segments"]["equal"] == applied["published"], left
    return int(applied["published"])


@pytest.mark.parametrize("lose", [lose_by_deletion, lose_by_disk])
async def test_metadata_topic_when_lost_and_rebuilt_then_the_broker_serves_its_tier_again(
    kafka: PluginKafka, tmp_path: Path, lose: Callable[[PluginKafka], Awaitable[None]]
) -> None:
    """The broker serves its whole tier from the rebuilt topic, which Kafka's manager reads too."""
    operator = folder_operator(kafka)
    ledger = Ledger(TOPIC)
    traffic = Traffic(kafka.login, ledger, random.Random(3))
    await tier_of_both(kafka, operator, traffic)
    before, ranges = written(kafka), finished(kafka)
    await lose(kafka)
    await traffic.plain(60)
    assert await log_start(kafka, TOPIC) == 0
    snapshots = kafka.sidecar.folder / "rlmm-data" / "snapshots"
    assert await rebuild(operator, snapshots, tmp_path / "events.jsonl") == len(ranges)
    # The topic that has its old id is another log all the same: snapshots of it would be believed.
    snapshots.rename(tmp_path / "snapshots-of-before")
    kafka.sidecar.start()
    await assert_goes_on(kafka, ledger)
    after = finished(kafka)
    assert after[: len(ranges)] == ranges
    assert {path: written(kafka)[path] for path in before} == before
    await operator.audit()
    await operator.report_of("verify", "--deep", *operator.of_cluster)

    assert kafka.sidecar.stop() == CLEAN_SIDECAR
    for name in ("class.name", "class.path"):
        del kafka.node.properties[f"remote.log.metadata.manager.{name}"]
    kafka.node.ready = (STARTED, TIERED)
    kafka.restart_broker()
    await traffic.plain(60)
    await assert_goes_on(kafka, ledger)
    assert finished(kafka)[: len(after)] == after
    await operator.audit()


async def assert_goes_on(kafka: PluginKafka, ledger: Ledger) -> None:
    await kafka.wait_until_trimmed(TOPIC, deadline_s=TRIMMED_S)
    assert await log_start(kafka, TOPIC) == 0
    await assert_consumers_have(kafka, ledger)
    ranges = finished(kafka)
    assert all(one[1] + 1 == other[0] for one, other in pairwise(ranges))
    assert len(kafka.objects(TOPIC)) == len(ranges)
