"""`rlmm doctor`: settings and rights that will hurt."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec import UNSET

from rlmm.cli.common.answer_header import Notes, SourceHead, source_fields
from rlmm.cli.common.query_options import STRICT
from rlmm.cli.common.query_run import answer
from rlmm.cli.common.source_choice import query
from rlmm.cli.queries.finding_answer import finding_answer
from rlmm.errors import ConfigError, LogError
from rlmm.inspection.doctor import METADATA_TOPIC, DoctorFacts, examine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.cli.common.query_run import QueryContext
    from rlmm.cli.common.source_choice import SourceChoice
    from rlmm.cli.printing.answer import CommandAnswer
    from rlmm.findings.finding import Finding
    from rlmm.inspection.cluster_facts import ClusterFacts, ClusterSetting, TopicFacts

_LOOKED_BYTES = 64 * 1024


class DoctorHead(SourceHead):
    cluster_id: str
    notes: Notes = UNSET


async def doctor_answer(looking: QueryContext, *, is_strict: bool) -> CommandAnswer:
    cluster = required_cluster(looking, "doctor")
    found = await doctor_findings(looking, cluster)
    head = DoctorHead(**source_fields(looking), cluster_id=await cluster.cluster_id())
    return finding_answer("doctor", found, head, is_strict=is_strict)


def required_cluster(looking: QueryContext, command: str) -> ClusterFacts:
    """Return the cluster; raises `ConfigError` where no broker is named."""
    if looking.source.cluster is None:
        raise _no_brokers(command)
    return looking.source.cluster


def require_brokers(asked: SourceChoice, command: str) -> None:
    """Raise `ConfigError` where no broker is named, before any source is asked."""
    if not asked.settings.bootstrap_servers:
        raise _no_brokers(command)


def _no_brokers(command: str) -> ConfigError:
    return ConfigError(
        f"{command} asks the cluster itself: name its brokers with --bootstrap-server"
    )


async def doctor_findings(looking: QueryContext, cluster: ClusterFacts) -> list[Finding]:
    topics = dict(await cluster.topics())
    metadata = topics.pop(METADATA_TOPIC, None)
    brokers: dict[int, Mapping[str, ClusterSetting] | None] = {}
    for broker in sorted(await cluster.brokers()):
        try:
            brokers[broker] = await cluster.broker_settings(broker)
        except LogError:
            brokers[broker] = None
    null_keys, seen = await _keys(looking, metadata)
    facts = DoctorFacts(
        metadata,
        {name: topic for name, topic in topics.items() if _concerns_us(topic)},
        brokers,
        await cluster.rights([METADATA_TOPIC]),
        null_keys,
        seen,
    )
    return examine(facts)


def _concerns_us(topic: TopicFacts) -> bool:
    if topic.is_internal:
        return False
    leftover = topic.setting("remote.log.delete.on.disable") == "true"
    return topic.is_tiered or leftover or topic.settings is None


async def _keys(looking: QueryContext, topic: TopicFacts | None) -> tuple[int | None, int]:
    """Count the first records of each place without a key, and all; keys matter for compaction."""
    from rlmm.records.batch import Batch, walk  # noqa: PLC0415  # not for --help
    from rlmm.records.damage import DamagedRecords  # noqa: PLC0415  # not for --help

    if topic is None or "compact" not in (topic.setting("cleanup.policy") or ""):
        return None, 0
    log, without, seen = looking.source.log, 0, 0
    try:
        bounds = await log.bounds(sorted(topic.partitions), timeout_s=looking.timeout_s)
        for place, held in bounds.items():
            if isinstance(held, LogError) or held.log_start_offset >= held.high_watermark:
                continue
            record_set = await log.read(
                place, held.log_start_offset, timeout_s=looking.timeout_s, bytes_max=_LOOKED_BYTES
            )
            for batch in walk(b"" if record_set is None else record_set.data):
                if isinstance(batch, Batch) and not batch.is_control:
                    for record in batch.records():
                        if not isinstance(record, DamagedRecords):
                            seen += 1
                            without += record.key is None
    except LogError:
        return None, 0
    return without, seen


@click.command("doctor")
@query
@STRICT
def doctor(asked: SourceChoice, is_strict: bool) -> None:
    """
    Examine the settings of the metadata topic, brokers and topics.

    Asks the cluster, so --bootstrap-server is needed: replicas, min.insync.replicas, cleanup
    policy and retention of the metadata topic, its partition count against what brokers reckon
    with, settings of brokers and tiered topics that contradict one another, and what these
    credentials may do. Each finding has its reason and its fix. Nothing is ever changed. Exit code
    1 when something was found that is more than a note; every code is explained in
    docs/findings.md.

    \b
    Examples:
      rlmm doctor --bootstrap-server kafka:9092
      rlmm doctor --bootstrap-server kafka:9092 --command-config client.properties --output json
    """
    require_brokers(asked, "doctor")
    answer(asked, doctor_answer, is_strict=is_strict)
