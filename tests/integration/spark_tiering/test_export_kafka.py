"""Frozen plans of a real broker's tier: the topic, a service on it and copies of its folders."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from rlmm.cli.main import cli
from rlmm_demo.world.service import DemoService
from spark_tiering.read_plan.plan_files import require_plan
from tests.kafka.clients import produce
from tests.kafka.tiered import METADATA_PARTITIONS
from tests.kafka.tools import METADATA_TOPIC
from tests.support.cli.tier_command import forget_environment

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kafka.tiered import TieredKafka

TOPIC = "frozen"
SEGMENTS = 4
RETENTION_MS = 3_600_000
RECORDS = [b"%03d" % number + b"x" * 497 for number in range(28 * (SEGMENTS - 1) + 5)]


async def test_f78_export_when_a_real_broker_tiers_then_each_source_gives_the_same_plan(
    kafka_broker: TieredKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every source exports the same plan of a real broker's tier, each offset once."""
    forget_environment(monkeypatch, tmp_path)
    await kafka_broker.create_topic(TOPIC, settings={"retention.ms": str(RETENTION_MS)})
    await produce(kafka_broker.login, TOPIC, RECORDS)
    await kafka_broker.wait_until_tiered(TOPIC, SEGMENTS)
    await kafka_broker.wait_until_trimmed(TOPIC)  # and no other segment is to come
    await asyncio.to_thread(_compare, kafka_broker, tmp_path)


def _compare(kafka: TieredKafka, folder: Path) -> None:
    cluster = ["--bootstrap-server", kafka.bootstrap]
    whole = folder / "topic.json"
    _call(*cluster, "--topic", TOPIC, "--wait", "20s", "--save", str(whole))
    plan = require_plan(whole)
    copied = folder / "copied"
    copied.mkdir()
    data = kafka.node.data
    shutil.copy(data / "meta.properties", copied)
    for one in data.glob(f"{METADATA_TOPIC}-*"):
        shutil.copytree(one, copied / one.name)
    of_copies = ["--log-dirs", str(copied), "--partition-count", str(METADATA_PARTITIONS)]
    _compare_with(folder / "folders", [*of_copies, *cluster], whole)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RLMM_LOG_KIND", "kafka")
        patch.setenv("RLMM_KAFKA_BOOTSTRAP_SERVERS", kafka.bootstrap)
        with DemoService(folder / "data", folder / "s") as service:
            patch.undo()
            service.wait_ready()
            source = ["--sidecar", str(folder / "s"), *cluster]
            _compare_with(folder / "service", source, whole)
            service.stop()
    offsets = [one for row in plan.segments for one in range(row.read_first, row.read_last + 1)]
    assert offsets == list(range(len(RECORDS)))
    assert not list(plan.gaps)
    assert {one.expires_at_ms for one in plan.segments} == {
        one.max_timestamp_ms + RETENTION_MS + 1 for one in plan.segments
    }


def _compare_with(folder: Path, source: list[str], whole: Path) -> None:
    folder.mkdir()
    plan, now, then = require_plan(whole), folder / "now.json", folder / "then.json"
    _call(*source, "--topic", TOPIC, "--wait", "20s", "--save", str(now))
    assert require_plan(now).partitions == plan.partitions
    assert require_plan(now).facts == plan.facts
    _call(*source, "--token", plan.token, "--save", str(then))
    assert then.read_bytes() == whole.read_bytes()


def _call(*arguments: str) -> None:
    result = CliRunner().invoke(cli, ["tier", "export", *arguments])
    assert result.exit_code == 0, result.output
