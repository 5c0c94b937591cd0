"""The parts of an engine, as its configuration names them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rlmm.config.loading import load
from rlmm.log.kafka.kafka_log import KafkaLog
from rlmm.log.protocol import LogIdentity
from rlmm.metadata.ids import Uuid
from rlmm.process.wiring import SNAPSHOT_FOLDER, plan_of
from rlmm.snapshot.catalog import identity_folder, snapshot_name

if TYPE_CHECKING:
    from pathlib import Path

    from rlmm.log.kafka.metadata_topic import Remember

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"


@pytest.mark.parametrize("is_created", [True, False])
async def test_log_of_kafka_when_the_data_folder_has_snapshots_then_knows_that_there_was_a_topic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_created: bool
) -> None:
    """The engine never makes a new topic in place of a lost one when snapshots exist."""
    told: list[frozenset[str]] = []

    async def opened(_settings: Any, remember: Remember) -> None:
        told.append(await remember(CLUSTER_ID))

    monkeypatch.setattr(KafkaLog, "open", opened)
    said = {"data_dir": str(tmp_path), "kafka_bootstrap_servers": "broker:9092", "mode": "serve"}
    plan = plan_of(load({**said, "kafka_topic_is_created": str(is_created).lower()}).config)
    await plan.open_log()
    folder = identity_folder(tmp_path / SNAPSHOT_FOLDER, LogIdentity(CLUSTER_ID, Uuid.of(1, 2), 5))
    (folder / "3").mkdir(parents=True)
    (folder / "3" / snapshot_name(7)).touch()
    await plan.open_log()
    assert told == [frozenset(), frozenset({str(Uuid.of(1, 2))})]
