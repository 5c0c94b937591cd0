"""Every version of Kafka that our plugins are for: the same jars of ours, one story."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.kafka.clients import create_topic
from tests.kafka.core_story import CoreStory
from tests.kafka.plugin_kafka import PATIENT_READS, plugin_kafka
from tests.kafka.versions import OTHERS, USUAL, jars_of, tiered_topic

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kafka.jars import Jars

pytestmark = pytest.mark.long


@pytest.mark.parametrize("version", [*OTHERS, USUAL])
async def test_records_of_every_kind_when_a_broker_is_of_another_version_are_read_and_deleted(
    kafka_jars: Jars, plugins: Path, tmp_path: Path, version: str
) -> None:
    """A broker of another version produces, tiers, trims, serves by time, and deletes."""
    del kafka_jars  # who cannot run a broker is told what is missing
    jars = await asyncio.to_thread(jars_of, version)
    with plugin_kafka(jars, tmp_path / "ours", plugins, properties=PATIENT_READS) as kafka:
        assert f"kafka_2.13-{version}.jar" in jars.class_path()
        await create_topic(kafka.login, "orders", partitions=2, settings=tiered_topic(version))
        story = CoreStory.of(kafka, "orders")
        await story.produce()
        await story.wait_until_in_the_tier_alone()
        assert min(story.segments_of(story.aborted_through).values()) > 1
        await story.assert_read()
        await kafka.delete_topic("orders")
        await kafka.wait_until_deleted("orders", len(story.segments()))
        assert [path for path in kafka.store.rglob("*") if path.is_file()] == []
        assert kafka.tiering_errors() == []
