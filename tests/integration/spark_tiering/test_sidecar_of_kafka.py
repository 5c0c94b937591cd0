"""Segments of a stock broker through the service beside it: the sealed ones, and no others."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from typing import TYPE_CHECKING

import pytest
from aiokafka import AIOKafkaProducer

from rlmm.errors import LogNotPermitted, LogUnavailable
from spark_tiering.segment_sources.cluster import TierCluster
from spark_tiering.segment_sources.settings import SidecarSourceSettings
from spark_tiering.segment_sources.sidecar import SidecarFiles, SidecarSegmentSource
from spark_tiering.segment_sources.survey import survey
from spark_tiering.segments.log_folder import PartitionFolder
from spark_tiering.segments.segment_listing import list_segments
from tests.integration.spark_tiering.test_cluster_of_kafka import properties_of
from tests.kafka.clients import DEADLINE_S, create_topic, delete_topic, produce, until
from tests.kafka.secured import POWERLESS, Way
from tests.support.kafka.kafka_logs import own_topic
from tests.support.partitions.segments import inspect_all
from tests.support.server.serve_process import FOLDER, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from spark_tiering.segments.segment_listing import ListedSegment
    from tests.kafka.fixtures import FreshKafka
    from tests.kafka.node import Node
    from tests.kafka.secured import SecuredKafka

SEGMENTS = {"internal.segment.bytes": "16384", "index.interval.bytes": "100"}
VALUES = [b"%d" % number + b"x" * 500 for number in range(120)]
"""Some segments of them."""


@contextlib.asynccontextmanager
async def sidecar_beside(
    node: Node, folder: Path, *arguments: str
) -> AsyncIterator[SidecarSegmentSource]:
    options = (
        *("--http-listen", "127.0.0.1:0", "--log-kind", "memory", "--log-num-partitions", "1"),
        *("--broker-log-folders", str(node.data), "--broker-log-stable-age-ms-max", "100"),
    )
    async with serving(folder, *options, *arguments) as served:
        said = await served.until("health, metrics and API at")
        address = str(said["message"]).rpartition(" ")[2]
        await served.until("are served by HTTP")
        token_file = str(folder / FOLDER / "http.token")
        yield SidecarSegmentSource(SidecarSourceSettings((address,), token_file=token_file))
        assert await served.end(signal.SIGTERM) == 0


def files_of(source: SidecarSegmentSource, topic: str) -> SidecarFiles:
    found, _ = source.partitions()
    (files,) = [one.files for one in found if one.partition.topic == topic]
    assert isinstance(files, SidecarFiles)
    return files


def served_of(files: SidecarFiles) -> dict[ListedSegment, bool]:
    """Map each segment to whether its log is served; refusals must be about offsets."""
    return {segment: given(files, segment) for segment in list_segments(files.facts())}


def given(files: SidecarFiles, segment: ListedSegment) -> bool:
    try:
        return len(files.read(segment.file(".log"), 0, 1)) == 1
    except LogUnavailable as error:
        return "is not to be read now" not in str(error)


async def until_stable(files: SidecarFiles, offset: int) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while (await asyncio.to_thread(files.last_stable_offset) or 0) < offset:
            pass


async def test_sealed_segments_alone_are_served(fresh_kafka: FreshKafka, tmp_path: Path) -> None:
    """The sidecar serves rolled, stable segments as in the folder, and no others."""
    node = fresh_kafka.node()
    node.start()
    topic = own_topic("sealed")
    await create_topic(node.login, topic, settings=SEGMENTS)
    await produce(node.login, topic, VALUES)
    producer = AIOKafkaProducer(**node.login.for_aiokafka(), transactional_id="held-back")
    async with (
        producer,
        sidecar_beside(node, tmp_path, "--broker-log-bootstrap-servers", node.bootstrap) as source,
    ):
        await producer.begin_transaction()
        await producer.send_and_wait(topic, b"not yet", partition=0)
        await produce(node.login, topic, VALUES)

        files = await asyncio.to_thread(files_of, source, topic)
        assert await asyncio.to_thread(files.last_stable_offset) == len(VALUES)
        before = await asyncio.to_thread(served_of, files)
        assert {segment for segment, is_given in before.items() if is_given} == {
            segment
            for segment in before
            if segment.next_offset is not None and segment.next_offset <= len(VALUES)
        }
        held_back = [
            segment for segment, is_given in before.items() if segment.is_rolled and not is_given
        ]
        assert len([*filter(None, before.values())]) >= 2
        assert len(held_back) >= 2

        await producer.commit_transaction()
        await until_stable(files, 2 * len(VALUES) + 1)
        after = await asyncio.to_thread(served_of, files)
        assert {segment for segment, is_given in after.items() if not is_given} == {[*after][-1]}

        local = PartitionFolder(str(node.data / f"{topic}-0"))
        reports = await asyncio.to_thread(inspect_all, files)
        assert not [str(found) for report in reports for found in report.findings]
        assert [one.parts for one in reports] == [one.parts for one in inspect_all(local)]
        for segment in after:
            if segment.is_rolled:
                name = segment.file(".log")
                content = await asyncio.to_thread(files.read, name, 0, 1 << 20)
                assert content == local.read(name, 0, 1 << 20)


async def test_survey_by_sidecar_is_the_folders(fresh_kafka: FreshKafka, tmp_path: Path) -> None:
    """A survey by the sidecar equals the folder's, and tells a recreated topic apart."""
    node = fresh_kafka.node()
    node.start()
    topic = own_topic("surveyed")
    await create_topic(node.login, topic, settings=SEGMENTS)
    await produce(node.login, topic, VALUES)

    def surveyed(source: SidecarSegmentSource) -> None:
        with TierCluster(node.bootstrap) as cluster:
            facts = cluster.partition_facts(lambda name: name == topic)
            taken, unusable = survey(
                source,
                facts,
                lambda name: name == topic,
                cluster_id=cluster.cluster_id,
                epoch_ends=cluster.epoch_ends,
            )
        assert unusable == []
        (one,) = taken
        local = list_segments(PartitionFolder(str(node.data / f"{topic}-0")).facts())
        assert [segment.listed for segment in one.source.segments] == local
        assert one.source.last_stable_offset == len(VALUES)
        ((found, *_), _) = source.partitions()
        assert (found.origin.node_id, found.origin.cluster_id) == (node.node_id, node.cluster_id)

    async with sidecar_beside(
        node, tmp_path, "--broker-log-bootstrap-servers", node.bootstrap
    ) as source:
        await asyncio.to_thread(surveyed, source)
        files = await asyncio.to_thread(files_of, source, topic)
        await delete_topic(node.login, topic)
        await until(lambda: not (node.data / f"{topic}-0").exists(), "the folder is gone")
        await create_topic(node.login, topic, settings=SEGMENTS)
        await produce(node.login, topic, VALUES)
        name = f"{0:020d}.log"
        assert (node.data / f"{topic}-0" / name).exists()
        assert await asyncio.to_thread(files.read, name, 0, 10) == b""
        again = await asyncio.to_thread(files_of, source, topic)
        assert len(await asyncio.to_thread(again.read, name, 0, 10)) == 10


async def test_undescribed_topic_is_not_served(secured_kafka: SecuredKafka, tmp_path: Path) -> None:
    """A service without DESCRIBE serves no segment and names the right; with it, at once."""
    topic = own_topic("undescribed")
    await create_topic(secured_kafka.admin_login, topic, settings=SEGMENTS)
    await produce(secured_kafka.admin_login, topic, VALUES)
    login = secured_kafka.login(Way.SCRAM_512_OVER_TLS, POWERLESS)
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in properties_of(login).items()))
    options = (
        *("--broker-log-bootstrap-servers", login.bootstrap),
        *("--broker-log-command-config", str(file)),
    )
    name = f"{0:020d}.log"
    async with sidecar_beside(secured_kafka.node, tmp_path, *options) as source:
        files = await asyncio.to_thread(files_of, source, topic)
        with pytest.raises(LogNotPermitted, match="right to DESCRIBE the topic"):
            await asyncio.to_thread(files.read, name, 0, 10)
        await asyncio.to_thread(secured_kafka.allow, POWERLESS, "Describe", topic=topic)
        assert len(await asyncio.to_thread(files.read, name, 0, 10)) == 10
