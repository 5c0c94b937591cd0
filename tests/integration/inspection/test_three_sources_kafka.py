"""The shared history at a real broker: topic, service and folders give the same answers."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rlmm.log.files.log_folder import TOPIC
from rlmm.state_sources.brokers import Brokers
from rlmm.state_sources.opening import kafka_settings_of
from rlmm.state_sources.settings import SourceSettings
from rlmm_demo.world.service import DemoService
from tests.kafka.clients import create_topic, producer
from tests.support.cli.every_question import OF_CLUSTER, questions
from tests.support.cli.shared_history import NOW_MS, PLACES, SharedHistory, TopicIds, write_folder
from tests.support.cli.state_commands import (
    MAY_DIFFER,
    OF_A_TOPIC,
    RESTORED,
    stop_the_clock,
    told,
    without,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kafka.fixtures import FreshKafka
    from tests.kafka.login import Login

OF_METADATA_TOPIC = {"cleanup.policy": "delete", "retention.ms": "-1"}


async def fill(login: Login) -> SharedHistory:
    await create_topic(login, "orders", partitions=4)
    await create_topic(login, "payments")
    await create_topic(login, TOPIC, partitions=PLACES, settings=OF_METADATA_TOPIC)
    settings = kafka_settings_of(SourceSettings(bootstrap_servers=login.bootstrap))
    assert settings is not None
    cluster = await Brokers.open(settings, 30.0)
    try:
        topics = await cluster.topics(["orders", "payments"])
    finally:
        await cluster.close()
    ids = {name: topic.topic_id for name, topic in topics.items()}
    history = SharedHistory(replace(TopicIds.made_up(), **ids))
    async with producer(login) as client:
        for one in history.records:
            batch = client.create_batch()  # which takes tombstones without keys, as a log has them
            batch.append(key=None, value=one.value, timestamp=one.timestamp_ms)
            await (await client.send_batch(batch, TOPIC, partition=one.place))
    return history


def test_f78_commands_when_asked_of_a_brokers_topic_then_answers_are_those_of_every_source(
    fresh_kafka: FreshKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the cluster's facts added, all three sources give the same answers."""
    stop_the_clock(monkeypatch, NOW_MS)
    login = fresh_kafka.node().start().login
    history = asyncio.run(fill(login))
    asyncio.run(write_folder(tmp_path / "data" / "log", history))
    shutil.copytree(tmp_path / "data" / "log", tmp_path / "copy")
    cluster = ["--bootstrap-server", login.bootstrap]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RLMM_PUMP_UNDECODABLE_SHARE_MAX", "1")
        with DemoService(tmp_path / "data", tmp_path / "s") as service:
            patch.undo()
            service.wait_ready()
            sources = {
                "topic": cluster,
                "service": ["--sidecar", str(tmp_path / "s"), *cluster],
                "folders": ["--log-dirs", str(tmp_path / "copy"), *cluster],
            }
            for question in (*questions(history), *OF_CLUSTER):
                answers = {name: told(*question.words, *flags) for name, flags in sources.items()}
                documents = [
                    without(one.document, MAY_DIFFER | OF_A_TOPIC) for one in answers.values()
                ]
                assert documents[0], (question, answers)
                assert documents[0] == documents[1] == documents[2], str(question)
                assert {one.exit_code for one in answers.values()} <= {0, 1}, str(question)
            service.stop()
    cache = ["--snapshot-cache", str(tmp_path / "cache")]
    for question in (one for one in questions(history) if one.command != "check"):
        without_cache = told(*question.words, *cluster)
        for _ in ("filled", "used"):
            answer = told(*question.words, *cluster, *cache)
            assert without(answer.document, RESTORED) == without(
                without_cache.document, RESTORED
            ), str(question)
    assert list((tmp_path / "cache").rglob("*"))
    checked = [told("check", *cluster, *more).document for more in ([], cache)]
    codes = [[one["code"] for one in found["items"]] for found in checked if found is not None]
    assert codes[0] == codes[1]
    assert "RECORDS-UNDECODABLE" in codes[0]
