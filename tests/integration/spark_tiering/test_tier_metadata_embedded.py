"""The metadata by an engine of this process's own, over a folder and over a cluster's topic."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import ConfigError, EventRejected, FolderInUse, LogUnavailable, Stopped
from rlmm.log.kafka.kafka_log import KafkaLog
from rlmm.log.memory.memory_log import MemoryLog
from rlmm.log.memory.partition import AppendOutcome
from rlmm.log.memory.script import LogScript
from rlmm.log.memory.topic import MemoryTopic
from rlmm.metadata.encoding import encode_any
from rlmm.metadata.partitioner import metadata_partition_for
from spark_tiering.tier_metadata.embedded import kafka_settings
from spark_tiering.tier_metadata.opening import open_metadata_access
from spark_tiering.tier_metadata.settings import EmbeddedAccess
from tests.support.builders import finished, segment_id, started, tp
from tests.support.tier.metadata_accesses import COUNT, WAIT_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlmm.kafka_client.settings import KafkaSettings

NOBODY = "127.0.0.1:1"


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) - before == set()


class Clusters:
    """Open logs of in-memory topics by bootstrap servers in place of clusters."""

    def __init__(self) -> None:
        self.topics: list[MemoryTopic] = []
        self.asked: list[KafkaSettings] = []

    async def open(self, settings: KafkaSettings) -> MemoryLog:
        self.asked.append(settings)
        self.topics.append(MemoryTopic(COUNT))
        return MemoryLog(self.topics[-1])


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch) -> Clusters:
    made = Clusters()
    monkeypatch.setattr(KafkaLog, "open", made.open)
    return made


def test_folder_when_opened_again_then_has_what_was_published(tmp_path: Path) -> None:
    """A reopened folder has the published events, also from snapshots written at the end."""
    access = EmbeddedAccess(
        folder=tmp_path / "log", snapshots=tmp_path / "snapshots", partition_count=COUNT
    )
    first = open_metadata_access(access)
    first.publish(started("one"), WAIT_S)
    first.publish(finished("one"), WAIT_S)
    before = first.image([tp()], {}, WAIT_S)
    first.close()
    first.close()
    assert list((tmp_path / "snapshots").rglob("*.*"))
    again = open_metadata_access(access)
    assert again.image([tp()], {}, WAIT_S) == before
    assert again.cluster_id == first.cluster_id
    again.close()


def test_access_when_closed_then_says_so(tmp_path: Path) -> None:
    """A closed access raises on every call and never hangs."""
    metadata = open_metadata_access(EmbeddedAccess(folder=tmp_path / "log", partition_count=1))
    metadata.close()
    for ask in (
        lambda: metadata.image([tp()], {}, WAIT_S),
        lambda: metadata.segment(segment_id("one"), WAIT_S),
        lambda: metadata.publish(started("one"), WAIT_S),
    ):
        with pytest.raises(Stopped):
            ask()


def test_folder_when_somebody_has_it_then_refused(tmp_path: Path) -> None:
    """A folder used by a service or another job is refused, as two writers would conflict."""
    access = EmbeddedAccess(folder=tmp_path / "log", partition_count=1)
    metadata = open_metadata_access(access)
    with pytest.raises(FolderInUse):
        open_metadata_access(access)
    metadata.close()


def test_folder_when_it_is_none_then_said(tmp_path: Path) -> None:
    """A file, or a folder of other content, is refused."""
    (tmp_path / "file").write_text("no folder")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "holiday.jpg").write_text("no log")
    for name in ("file", "other"):
        with pytest.raises(ConfigError):
            open_metadata_access(EmbeddedAccess(folder=tmp_path / name))


@pytest.mark.parametrize("outcome", [AppendOutcome.UNCERTAIN_STORED, AppendOutcome.UNCERTAIN_LOST])
def test_f126_unclear_event_is_stored_once(outcome: AppendOutcome, clusters: Clusters) -> None:
    """After an unclear append the event is stored only if the log lacks it."""
    metadata = open_metadata_access(EmbeddedAccess(bootstrap_servers=NOBODY))
    (topic,) = clusters.topics
    place = metadata_partition_for(tp().topic_id, tp().partition, COUNT)
    for event in (started("one"), finished("one")):
        LogScript(topic).plan_appends(place, outcome)
        metadata.publish(event, WAIT_S)
    image = metadata.image([tp()], {}, WAIT_S)
    assert image.positions == {place: 2}
    assert image.cluster_id == topic.cluster_id
    with pytest.raises(EventRejected):
        metadata.publish(started("one"), WAIT_S)
    metadata.close()


def test_image_when_others_stored_just_before_then_has_it(clusters: Clusters) -> None:
    """An image contains the events that brokers stored on the topic just before."""
    metadata = open_metadata_access(EmbeddedAccess(bootstrap_servers=NOBODY))
    (topic,) = clusters.topics
    place = metadata_partition_for(tp().topic_id, tp().partition, COUNT)

    async def store(number: int) -> None:
        event = started(number, number * 10, number * 10 + 9)
        LogScript(topic).write(place, encode_any(event))

    for number in range(1, 21):
        metadata._thread.wait(store(number))  # type: ignore[attr-defined]
        (image,) = metadata.image([tp()], {}, WAIT_S).partitions
        assert len(image.segments) == number
    metadata.close()


def test_cluster_when_only_some_is_asked_for_then_only_that_is_read(clusters: Clusters) -> None:
    """A request for one partition reads only its metadata partition."""
    metadata = open_metadata_access(EmbeddedAccess(bootstrap_servers=NOBODY))
    metadata.image([tp()], {}, WAIT_S)
    assert len(metadata._metadata.read_token()) == 1  # type: ignore[attr-defined]
    metadata.image([tp(partition=number) for number in range(30)], {}, WAIT_S)
    assert len(metadata._metadata.read_token()) == COUNT  # type: ignore[attr-defined]
    metadata.close()


def test_cluster_when_its_client_needs_properties_then_they_are_kept(tmp_path: Path) -> None:
    """The client properties are those of Kafka's tools, and the log writes but creates no topic."""
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nssl.truststore.type=PEM\n"
        "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="job" password="its-own-secret";\n'
    )
    access = EmbeddedAccess(bootstrap_servers="a:1,b:2", command_config=config, topic="copied")
    settings = kafka_settings(access)
    assert settings.bootstrap_servers == ("a:1", "b:2")
    assert settings.topic.name == "copied"
    assert settings.security.sasl_username == "job"
    assert not settings.is_observer
    assert not settings.topic.is_created
    assert "its-own-secret" not in repr((access, settings))


@pytest.mark.parametrize(
    ("access", "error", "text"),
    [
        *(({"bootstrap_servers": name}, ConfigError, None) for name in ("a", "a:port", ":1", ",")),
        ({"command_config": Path("none.properties")}, ConfigError, r"none\.properties"),
        ({"timeout_ms": 300}, LogUnavailable, None),
    ],
    ids=["no-port", "port", "no-host", "comma", "properties", "silent"],
)
def test_cluster_when_it_cannot_be_reached_then_refused_in_time(
    access: dict[str, Any], error: type[Exception], text: str | None
) -> None:
    """A wrong address or file is refused before any connection, a silent cluster in time."""
    with pytest.raises(error, match=text):
        open_metadata_access(EmbeddedAccess(**{"bootstrap_servers": NOBODY, **access}))
