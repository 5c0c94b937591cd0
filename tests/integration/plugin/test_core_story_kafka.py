"""A stock broker with both plugins: produced records are tiered, trimmed and read unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.kafka.core_story import CoreStory

if TYPE_CHECKING:
    from tests.kafka.plugin_kafka import PluginKafka


async def test_records_of_every_kind_when_tiered_are_read_unchanged(our_kafka: PluginKafka) -> None:
    """Both consumers read codecs, headers, idempotence and transactions from the tier."""
    await our_kafka.create_topic("orders", partitions=2)
    story = CoreStory.of(our_kafka, "orders")
    await story.produce()
    await story.wait_until_in_the_tier_alone()
    assert min(story.segments_of(story.aborted_through).values()) > 1
    await story.assert_read()
    bounds = await story.stock_consumer().bounds(0, 1)
    assert bounds == [(0, end) for end in (await story.ends()).values()]
