"""Logs of a stock broker with every kind of batch, tiered by a job and accepted by the broker."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, NamedTuple

from rlmm.partition_log.names import LOG, segment_file
from spark_tiering.adopt.outcomes import TopicStatus
from spark_tiering.copy_job.report import CopyFate
from spark_tiering.segments.segment_listing import TXN_INDEX
from tests.integration.spark_tiering.test_segments_of_kafka import (
    TOPIC,
    write_everything,
    write_transactions,
)
from tests.kafka.clients import delete_topic, produce, until
from tests.kafka.node import CLEAN_STATUS
from tests.support.tier.adopted_broker import ADOPTED_TOPIC, SLOW_COPYING, Adopter, finished_ranges

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kafka.fixtures import FreshKafka
    from tests.kafka.tiered import TieredKafka

RARELY = {"remote.log.manager.task.interval.ms": "3600000"}
"""Its tasks run when copying is switched on again, and never else."""
DAY_MS = 86_400_000


class Local(NamedTuple):
    log: bytes
    has_aborts: bool


def local_files(kafka: TieredKafka, topic: str) -> dict[int, Local]:
    """Return the broker's remaining segments of partition 0 by base offset."""
    found = {}
    for path in kafka.local_segments(topic):
        base = int(path.stem)
        txn_index = path.with_name(segment_file(base, TXN_INDEX))
        has_aborts = txn_index.exists() and txn_index.stat().st_size > 0
        found[base] = Local(path.with_name(segment_file(base, LOG)).read_bytes(), has_aborts)
    return found


async def test_adopted_log_equals_its_copies(fresh_kafka: FreshKafka, tmp_path: Path) -> None:
    """Copies of every kind of batch equal the broker's segments, and the broker goes on."""
    kafka = fresh_kafka.tiered(SLOW_COPYING)
    adopter = Adopter(kafka.login, (str(kafka.node.data),), tmp_path / "store")
    await kafka.create_topic(TOPIC, settings=ADOPTED_TOPIC)
    before = await adopter.explicit(TOPIC)
    for seed in range(2):
        await write_everything(kafka.node, seed)
        assert kafka.node.stop() == CLEAN_STATUS
        kafka.node.start()
    await write_transactions(kafka.login, random.Random(9), 12)
    local = local_files(kafka, TOPIC)
    outcome = await adopter.adopt(TOPIC)
    assert (outcome.standing, outcome.why, outcome.findings) == (TopicStatus.ADOPTED, None, ())
    assert outcome.is_fine
    image = await adopter.image(TOPIC)
    ours = [one for one in image.segments if adopter.is_ours(one) and one.start_offset in local]
    for one in ours:
        held = local[one.start_offset]
        assert adopter.log_of(one) == held.log, one
        assert one.txn_index_empty is not held.has_aborts, one
    assert len(ours) >= 4
    assert {len(one.epochs) for one in ours} == {1, 2}
    assert {one.txn_index_empty for one in ours} == {True, False}
    ranges = finished_ranges(image)
    assert ranges[0][0] == 0
    last = max(one.last_offset for one in outcome.receipts)
    start, _, tiered = await adopter.ends(TOPIC)
    assert (start, tiered >= last) == (0, True)
    await until(
        lambda: all(int(one.stem) > last for one in kafka.local_segments(TOPIC)),
        "the local segments below the last copy were deleted",
    )
    assert await adopter.explicit(TOPIC) == before


async def test_old_records_stay_in_the_window(fresh_kafka: FreshKafka, tmp_path: Path) -> None:
    """In a window records past retention are copied and do not expire."""
    kafka = fresh_kafka.tiered(RARELY)
    adopter = Adopter(kafka.login, (str(kafka.node.data),), tmp_path / "store")
    await kafka.create_topic(TOPIC, settings={**ADOPTED_TOPIC, "retention.ms": str(DAY_MS)})
    before = await adopter.explicit(TOPIC)
    old_ms = time.time_ns() // 1_000_000 - 2 * DAY_MS
    values = [b"x" * 500] * 150
    await produce(kafka.login, TOPIC, values, timestamp_ms=old_ms)
    outcome = await adopter.adopt(TOPIC)
    assert (outcome.standing, outcome.why, outcome.findings) == (TopicStatus.ADOPTED, None, ())
    assert {one.fate for one in outcome.receipts} == {CopyFate.FINISHED}
    assert min(one.start_offset for one in outcome.receipts) == 0
    assert max(one.last_offset for one in outcome.receipts) >= len(values) - 30
    assert await adopter.explicit(TOPIC) == before


async def test_new_topic_gets_no_window(fresh_kafka: FreshKafka, tmp_path: Path) -> None:
    """No window opens for a topic that the broker's manager does not know yet."""
    kafka = fresh_kafka.tiered()
    adopter = Adopter(kafka.login, (str(kafka.node.data),), tmp_path / "store")
    await kafka.create_topic(TOPIC, settings=ADOPTED_TOPIC)
    outcome = await adopter.adopt(TOPIC)
    assert (outcome.standing, outcome.is_fine) == (TopicStatus.NOTHING_TO_DO, True)
    await delete_topic(kafka.login, TOPIC)
    assert not kafka.metadata_events(TOPIC) or all(
        one.event.broker_id != -1 for one in kafka.metadata_events(TOPIC)
    )
    written = [one.relative_to(adopter.store).parts[:2] for one in adopter.store.rglob("*.json")]
    assert set(written) == {("tier", "rlmm-jobs")}
    assert not (adopter.store / "tier/rlmm-jobs/adopt").exists()
