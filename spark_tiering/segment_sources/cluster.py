"""
The cluster, for blocking callers of any thread: partitions, offsets, settings of topics. Answers
are of the moment of the call, each from the partition's leader, in an order in which offsets may be
too low, never too high: log start, last stable offset, high watermark.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rlmm.base.closing import ClosedByWith
from rlmm.base.loop_thread import LoopThread
from rlmm.config import client_settings as client_settings_module
from rlmm.errors import ConfigError, Stopped, UnsupportedVersion
from rlmm.kafka_client.admin.user_topics import UserTopics
from rlmm.kafka_client.code_errors import error_for
from rlmm.kafka_client.connections.connection import Dialer
from rlmm.kafka_client.offsets.log_ends import (
    HIGH_WATERMARK,
    LAST_STABLE,
    LOCAL_START,
    LOG_START,
    TIER_END,
    LogEnd,
    ends_of,
)
from rlmm.kafka_messages.configs import AlterTopicRequest
from rlmm.kafka_messages.error_codes import DENIED, ErrorCode, name_of
from rlmm.kafka_messages.offsets import LATEST_TIERED, EpochEndsRequest, ListOffsetsRequest
from rlmm.metadata.ids import TopicIdPartition
from spark_tiering.segment_sources.protocol import is_user_topic
from spark_tiering.segment_sources.survey import ClusterPartition

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence

    from rlmm.kafka_client.settings import KafkaSettings
    from rlmm.kafka_messages.cluster import TopicMetadata

_TIERED = "remote.storage.enable"
_RETENTION = "retention.ms"
_CLEANUP = "cleanup.policy"
_INDEX_INTERVAL = "index.interval.bytes"
_OF_TOPIC = (_TIERED, _RETENTION, _CLEANUP, _INDEX_INTERVAL)
_FOR_EVER = "-1"

_IMPOSSIBLE = frozenset(
    {
        ErrorCode.INVALID_CONFIG,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""Answers to a change which say that it was not made, and never will be as it is asked for."""


_OF_LOG = (LOG_START, LAST_STABLE, HIGH_WATERMARK)
_OF_TIER = (LOCAL_START, TIER_END)

_NODE_ID = "tiering"
"""Stands in our client ids, so that an operator sees whose connections these are."""


class TopicSettingInForce(NamedTuple):
    """A setting in force; *is_explicit* where it is set on the topic itself."""

    value: str | None
    """A secret has no value here."""
    is_explicit: bool


class TierCluster(ClosedByWith):
    """
    Connects to a cluster; the caller closes it. Calls raise `LogUnavailable` without an answer in
    time, `LogNotPermitted` without a right: half of an answer would look like a whole one.
    """

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str],
        command_config: Mapping[str, str] | str | Path | None = None,
        timeout_s: float = 30.0,
        *,
        prepare: Callable[[KafkaSettings], Awaitable[Dialer]] = Dialer.prepare,
    ) -> None:
        """*command_config*: as `client_settings` takes it. *prepare* makes the client."""
        settings = client_settings(bootstrap_servers, command_config, timeout_s)

        async def opened() -> UserTopics:
            return UserTopics(settings, await prepare(settings), timeout_s)

        self._thread = LoopThread("tier-cluster")
        self._topics: UserTopics | None = None
        try:
            self._topics = self._thread.wait(opened())
            self.cluster_id = self._thread.wait(self._topics.metadata([])).cluster_id
        except BaseException:
            self.close()
            raise

    def partition_facts(
        self, wants_topic: Callable[[str], bool]
    ) -> dict[TopicIdPartition, ClusterPartition]:
        """Return facts on every wanted partition that this user may DESCRIBE; None if not told."""
        topics = {
            topic.name: topic
            for topic in self._thread.wait(self._asked.metadata()).topics
            if not topic.is_internal and is_user_topic(topic.name) and wants_topic(topic.name)
        }
        for topic in topics.values():
            if topic.code in DENIED:
                raise error_for(f"topic {topic.name}", topic.code, "DESCRIBE the topic")
        settings = self.topic_settings(topics, _OF_TOPIC)
        # One without settings was deleted in between.
        leaders = _leaders([topic for name, topic in topics.items() if name in settings])
        is_tiered = {name: _value(told, _TIERED) == "true" for name, told in settings.items()}
        logs = self._ends([one for one, leader in leaders.items() if leader >= 0], *_OF_LOG)
        tiers = self._ends_if_known([one for one in logs if is_tiered[one.topic]], *_OF_TIER)
        facts: dict[TopicIdPartition, ClusterPartition] = {}
        for one, leader in leaders.items():
            log_start, stable, high_watermark = logs.get(one, (None,) * 3)
            local_start, latest_tiered = tiers.get(one, (None,) * 2)
            told = settings[one.topic]
            interval = _value(told, _INDEX_INTERVAL)
            facts[one] = ClusterPartition(
                is_tiered[one.topic],
                log_start,
                stable,
                high_watermark,
                _retention_ms(_value(told, _RETENTION)),
                leader if leader >= 0 else None,
                local_start,
                latest_tiered,
                "compact" in (_value(told, _CLEANUP) or ""),
                None if interval is None else int(interval),
            )
        return facts

    def offsets(
        self, partitions: Collection[TopicIdPartition], time: int
    ) -> dict[TopicIdPartition, int]:
        """
        Return one end of each partition from its leader: -1 the high watermark, -2 the log start,
        -4 the first offset on its disk, -5 the highest tiered one, -1 for an empty tier. A
        partition without an answering leader is left out. Raises `UnsupportedVersion` where a
        leader is too old for -4 or -5.
        """
        return _single(self._ends(partitions, LogEnd(time)))

    def last_stable_offsets(
        self, partitions: Collection[TopicIdPartition]
    ) -> dict[TopicIdPartition, int]:
        return _single(self._ends(partitions, LAST_STABLE))

    def _ends_if_known(
        self, partitions: Collection[TopicIdPartition], *asked: LogEnd
    ) -> dict[TopicIdPartition, tuple[int | None, ...]]:
        try:
            return self._ends(partitions, *asked)
        except UnsupportedVersion:
            return {}

    def _ends(
        self, partitions: Collection[TopicIdPartition], *asked: LogEnd
    ) -> dict[TopicIdPartition, tuple[int | None, ...]]:
        return self._thread.wait(ends_of(self._asked, partitions, *asked))

    def epoch_ends(
        self, epochs: Mapping[TopicIdPartition, int]
    ) -> dict[TopicIdPartition, tuple[int, int]]:
        """Return each leader's largest epoch up to the given one, and its end offset; -1: none."""
        numbers = {(one.topic, one.partition): epoch for one, epoch in epochs.items()}

        def request_of(by_topic: Mapping[str, Sequence[int]]) -> EpochEndsRequest:
            return EpochEndsRequest(
                {
                    topic: {partition: numbers[topic, partition] for partition in partitions}
                    for topic, partitions in by_topic.items()
                }
            )

        told = self._thread.wait(self._asked.of_leaders(epochs, request_of))
        return {one: (end.epoch, end.next_offset) for one, (end,) in told.items()}

    def topic_settings(
        self, topics: Collection[str], names: Sequence[str] | None
    ) -> dict[str, dict[str, TopicSettingInForce]]:
        """Return settings in force, all without *names*; they may be of before a recent change."""
        told = self._thread.wait(self._asked.settings(topics, names))
        return {
            topic: {
                name: TopicSettingInForce(setting.value, not setting.is_default)
                for name, setting in settings.items()
            }
            for topic, settings in told.items()
        }

    def alter_topic_settings(
        self,
        topic: str,
        given: Mapping[str, str],
        unset: Sequence[str] = (),
        *,
        is_only_checked: bool = False,
    ) -> None:
        """
        Change settings of a topic, all or none; *unset* ones follow the brokers' again. Raises
        `ConfigError`, or `LogUnavailable`: then the change may be made, and may be repeated.
        """
        request = AlterTopicRequest(topic, given, unset, is_only_checked=is_only_checked)
        outcome = self._thread.wait(self._asked.alter(request))
        if outcome.code == ErrorCode.NONE:
            return
        where = f"changing settings of topic {topic}"
        if outcome.code in _IMPOSSIBLE:
            msg = f"{where}: {outcome.reason or name_of(outcome.code)}"
            raise ConfigError(msg)
        raise error_for(where, outcome.code, "ALTER_CONFIGS of the topic")

    def why_too_old(self) -> str:
        """Return why a broker cannot answer for its tier (`offsets`); empty where all can."""
        nothing = ListOffsetsRequest({}, LATEST_TIERED)
        return self._thread.wait(self._asked.why_too_old(nothing))

    @property
    def _asked(self) -> UserTopics:
        if self._topics is None:
            raise Stopped("the client of the cluster is closed")
        return self._topics

    def close(self) -> None:
        """End all calls and connections; once is enough."""
        topics, self._topics = self._topics, None
        if topics is not None:
            self._thread.wait(topics.close())
        self._thread.close()


def _leaders(topics: Sequence[TopicMetadata]) -> dict[TopicIdPartition, int]:
    return {
        TopicIdPartition(topic.topic_id, topic.name, one.partition): one.leader
        for topic in topics
        for one in topic.partitions
    }


def _single(
    ends: Mapping[TopicIdPartition, tuple[int | None, ...]],
) -> dict[TopicIdPartition, int]:
    return {one: end for one, (end,) in ends.items() if end is not None}


def _value(settings: Mapping[str, TopicSettingInForce], name: str) -> str | None:
    return settings[name].value if name in settings else None


def _retention_ms(value: str | None) -> int | None:
    return None if value is None or value == _FOR_EVER else int(value)


def client_settings(
    bootstrap_servers: str | Sequence[str],
    command_config: Mapping[str, str] | str | Path | None,
    timeout_s: float,
) -> KafkaSettings:
    """
    Return the settings of a client of the cluster behind *bootstrap_servers*, `host:port` each.
    *command_config* is the path of a `client.properties`, or properties. Raises `ConfigError` for a
    property that can neither be taken over nor left out. One without an equivalent is logged where
    a file has it, and refused where the caller passes it.
    """
    if not isinstance(bootstrap_servers, str):
        bootstrap_servers = ",".join(bootstrap_servers)
    file: Path | None = None
    properties: list[str] = []
    if isinstance(command_config, Mapping):
        properties = [f"{key}={value}" for key, value in command_config.items()]
    elif command_config is not None:
        file = Path(command_config)
    return client_settings_module.client_settings(
        bootstrap_servers, file, properties, timeout_s=timeout_s, node_id=_NODE_ID
    )
