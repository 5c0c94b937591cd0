"""Segments that a broker copied by our storage plugin, in every form, read by Spark."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from rlmm.metadata.segment import SegmentMetadata
from spark_tiering.layout.manifest import Manifest
from spark_tiering.layout.manifest_document import parse_manifest
from spark_tiering.layout.object_names import ObjectKind
from spark_tiering.stores.local import LocalStore
from spark_tiering.stores.local_settings import LocalSettings
from tests.kafka.ledger import Ledger, Traffic
from tests.support.plugin.operator_commands import (
    assert_consumers_have,
    assert_spark_has,
    folder_operator,
)
from tests.support.stores.encrypted_segments import KeyFiles, seal_segment

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kafka.plugin_kafka import PluginKafka

pytestmark = [pytest.mark.long, pytest.mark.timeout(1_200)]

FORMS = {
    "plain": {"rsm.config.chunk.size": "4096"},
    "zstd": {"rsm.config.compression.enabled": "true"},
    "sealed": {"rsm.config.custom.metadata.fields.include": "NONE"},
}
"""A segment is encrypted after the copy here, so its size is not the broker's."""


def manifests(kafka: PluginKafka, topic: str) -> list[Manifest]:
    found = [
        parse_manifest(path.read_bytes()) for path in kafka.objects(topic, ObjectKind.MANIFEST)
    ]
    return [one for one in found if isinstance(one, Manifest)]


def seal(kafka: PluginKafka, topic: str) -> None:
    segments = [
        one.event for one in kafka.metadata_events(topic) if isinstance(one.event, SegmentMetadata)
    ]
    with LocalStore(LocalSettings(kafka.store)) as store:
        for segment in segments:
            seal_segment(store, segment)


async def test_copies_of_every_form_are_read(our_kafka: PluginKafka, tmp_path: Path) -> None:
    """Spark and consumers read the records from plain, zstd and encrypted chunks alike."""
    kafka, operator = our_kafka, folder_operator(our_kafka)
    keys = KeyFiles(tmp_path / "keys")
    ledgers = []
    for number, (topic, settings) in enumerate(FORMS.items()):
        kafka.node.properties |= settings
        kafka.restart_broker()
        await kafka.create_topic(topic)
        ledgers.append(Ledger(topic))
        await Traffic(kafka.login, ledgers[-1], random.Random(number)).everything(5)
        await kafka.wait_until_trimmed(topic, deadline_s=90.0)
    seal(kafka, "sealed")
    forms = {
        topic: {(one.is_compressed, one.encryption is not None) for one in manifests(kafka, topic)}
        for topic in FORMS
    }
    assert forms == {"plain": {(False, False)}, "zstd": {(True, False)}, "sealed": {(True, True)}}
    kafka.node.properties["rsm.config.encryption.key.ring.file"] = str(keys.ring)
    kafka.restart_broker()
    for ledger in ledgers:
        await assert_consumers_have(kafka, ledger)
    await assert_spark_has(operator, ledgers, tmp_path / "spark", {"keyRing": str(keys.ring)})
    await operator.report_of("verify", "--deep", "--key-ring", str(keys.ring), *operator.of_cluster)
    await operator.audit()
