"""
Answers to an operator from the service beside a stock broker, which follows its partitions only.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from rlmm.metadata.assignment import place_of
from rlmm.metadata.ids import TopicIdPartition, Uuid
from tests.kafka.core_story import CoreStory
from tests.kafka.tiered import METADATA_PARTITIONS
from tests.support.cli.state_commands import called

if TYPE_CHECKING:
    from collections.abc import Collection

    from click.testing import Result

    from tests.kafka.plugin_kafka import PluginKafka

OF_ALL = (
    "segments list", "usage", "verify", "stuck --no-history", "offsets", "check", "lag",
    "preflight reassign orders",
)  # fmt: skip
OF_THE_LOG = ("history orders-0", "events", "diff --from 0:0,1:0,2:0,3:0,4:0")


async def asked(words: str, *source: str) -> Result:
    return await asyncio.to_thread(called, *words.split(), *source)


def document_of(result: Result) -> Any:
    assert result.exit_code in {0, 1}, result.output
    return json.loads(result.stdout)


def one_of_others(places: Collection[int]) -> TopicIdPartition:
    """Return a user partition whose events lie in none of the metadata partitions *places*."""
    made_up = (
        TopicIdPartition(Uuid(bytes(15) + bytes([number])), "orders", 0) for number in range(2, 256)
    )
    return next(one for one in made_up if place_of(one, METADATA_PARTITIONS) not in places)


async def test_operator_when_service_is_a_brokers_own_then_answered(our_kafka: PluginKafka) -> None:
    """The service answers with a note, refuses by name what it cannot answer, and logs both."""
    await our_kafka.create_topic("orders", partitions=2)
    story = CoreStory.of(our_kafka, "orders")
    await story.traffic().plain(60)
    await story.wait_until_in_the_tier_alone()
    ours = "--sidecar", our_kafka.sidecar.address
    topic = "--bootstrap-server", our_kafka.bootstrap
    orders = [our_kafka.user_partition("orders", number) for number in range(2)]
    places = {place_of(one, METADATA_PARTITIONS) for one in orders}
    note = (
        f"{METADATA_PARTITIONS - len(places)} of {METADATA_PARTITIONS} metadata partitions are not "
        "read by the service: it answers for "
    )
    for words in OF_ALL:
        is_of_cluster = words.startswith(("lag", "preflight"))
        source = (*ours, *topic) if is_of_cluster else ours
        mine, whole = await asked(words, *source), await asked(words, *topic)
        assert mine.exit_code == whole.exit_code, (words, mine.output)
        document = document_of(mine)
        if not words.startswith("preflight"):
            assert document["notes"][0].startswith(note), words
        if words in {"segments list", "lag"}:
            assert document["items"] == document_of(whole)["items"] != [], words
        if "as_of_offsets" in document:
            assert {int(one) for one in document["as_of_offsets"]} == places, words
    for words in OF_THE_LOG:
        mine, whole = await asked(words, *ours), await asked(words, *topic)
        assert document_of(mine)["items"] == document_of(whole)["items"] != [], words
    found = await asked(f"segments find {orders[0]} --offset 0", *ours)
    assert document_of(found)["is_found"] is True
    refused = await asked(f"segments find {one_of_others(places)} --offset 0", *ours)
    assert (refused.exit_code, refused.stdout) == (4, "")
    assert "not-assigned" in refused.stderr
    assert "--bootstrap-server" in refused.stderr
    assert (await asked("preflight delete orders", *ours)).exit_code == 4
