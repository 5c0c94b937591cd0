"""
The metadata topic: its fit to the configuration, its creation, its loss, its dangerous settings.

Nothing here alters a topic that exists. Brokers take an empty topic for an empty tier: they move
log start offsets past the tier and later delete its data. So where an earlier topic is remembered,
an empty one is neither made nor followed.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rlmm.base.backoff import RETRY, Backoff
from rlmm.errors import ConfigError, LogError, LogRecreated, LogUnavailable, TopicAbsent
from rlmm.kafka_client.code_errors import error_for
from rlmm.kafka_client.offsets.log_bounds import topic_id_error
from rlmm.kafka_client.settings import PARTITION_COUNT
from rlmm.kafka_messages.configs import CreateTopicsRequest, DescribeTopicsRequest
from rlmm.kafka_messages.error_codes import DENIED, ErrorCode, name_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from rlmm.kafka_client.connections.cluster_view import ClusterConnection, ClusterView, TopicView
    from rlmm.kafka_client.connections.connection import BrokerConnection
    from rlmm.kafka_client.settings import KafkaSettings, TopicSettings
    from rlmm.kafka_messages.configs import TopicSetting
    from rlmm.log.protocol import LogBounds, LogIdentity

    Remember = Callable[[str], Awaitable[frozenset[str]]]
    """Of which topics of a cluster some record is remembered: their ids."""
    AskBounds = Callable[..., Awaitable[Mapping[int, LogBounds | LogError]]]


_WAY_OUT: Final = (
    "brokers would take an empty one for an empty tier; rebuild it while no service runs "
    "(docs/operating.md, lost topic)"
)


async def nothing(_: str) -> frozenset[str]:
    return frozenset()


def gone(name: str, cluster_id: str) -> TopicAbsent:
    msg = f"topic {name} of cluster {cluster_id} was there before and is gone: {_WAY_OUT}"
    return TopicAbsent(msg)


def another_than(bound: LogIdentity | None, view: ClusterView, name: str) -> LogRecreated | None:
    if bound is None or view.topic is None:
        return None
    if view.cluster_id != bound.cluster_id:
        return LogRecreated(
            f"this is another cluster: its id was {bound.cluster_id}, now {view.cluster_id}"
        )
    count = len(view.topic.partitions)
    if view.topic.topic_id == bound.topic_id and count > bound.partition_count:
        return LogRecreated(
            f"topic {name} had {bound.partition_count} partitions and has {count} now, which must "
            "never change: most user partitions have another place among them"
        )
    if view.topic.topic_id == bound.topic_id:
        return None
    return LogRecreated(str(topic_id_error(name, bound.topic_id, view.topic.topic_id)))


async def refuse_empty(
    found: LogIdentity, name: str, remember: Remember, ask: AskBounds, timeout_s: float
) -> None:
    """Raise `TopicAbsent` where *found* is empty and an earlier topic was not."""
    known = await remember(found.cluster_id)
    if not known:
        return
    told = await ask(range(found.partition_count), timeout_s=timeout_s)
    for bounds in told.values():
        if isinstance(bounds, LogError):
            msg = f"topic {name}: whether it is empty cannot be asked: {bounds}"
            raise LogUnavailable(msg) from bounds
        if bounds.high_watermark:
            return
    raise TopicAbsent(
        f"topic {name} of cluster {found.cluster_id} is {found.topic_id} and empty, while "
        f"snapshots of {', '.join(sorted(known))} are here: it was lost, and {_WAY_OUT}. Where the "
        "tier is really given up, move those snapshots away"
    )


_IMPOSSIBLE = frozenset(
    {
        ErrorCode.INVALID_PARTITIONS,
        ErrorCode.INVALID_CONFIG,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.POLICY_VIOLATION,
    }
)
"""Answers to a creation which say that it can never succeed as it is asked for."""

_POLICY_S = 3.0
"""How long a start waits for the cleanup policy; without it, holes are taken for compaction's."""
_ASKED = (
    "min.insync.replicas",
    "cleanup.policy",
    "retention.ms",
    "retention.bytes",
    "remote.storage.enable",
    "unclean.leader.election.enable",
)


@dataclass(frozen=True, slots=True)
class TopicFinding:
    """A topic setting that endangers the metadata: its value, why it matters, and what to do."""

    key: str
    value: str
    reason: str
    fix: str

    def __str__(self) -> str:
        return f"{self.key} = {self.value}: {self.reason}; {self.fix}"


def require_topic(settings: TopicSettings, view: ClusterView) -> TopicView:
    """Return the topic of *view*; `ConfigError` if absent, or of another partition count."""
    topic = view.topic
    if topic is None:
        if is_absent(view):
            raise TopicAbsent(
                f"topic {settings.name} does not exist in cluster {view.cluster_id}: Kafka's own "
                "manager makes it when a broker with tiered storage starts, or this service does "
                "(kafka.topic.is.created)"
            )
        raise error_for(f"topic {settings.name}", view.topic_code, "DESCRIBE the topic")
    count, expected = len(topic.partitions), settings.num_partitions
    if expected is not None and count != expected:
        raise ConfigError(
            f"topic {settings.name} has {count} partitions, the configuration says {expected} "
            "(remote.log.metadata.topic.num.partitions): user partitions would be looked for in "
            "the wrong places; correct the configuration"
        )
    return topic


def require_cluster(settings: KafkaSettings, view: ClusterView) -> None:
    """Refuse a cluster that is not the one that is meant, before anything is made in it."""
    if settings.cluster_id not in {None, view.cluster_id}:
        raise ConfigError(f"there is cluster {view.cluster_id}, not {settings.cluster_id}")


def is_absent(view: ClusterView) -> bool:
    return view.topic is None and view.topic_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class TopicCreation:
    """Creates the topic, by one attempt at a time and for each view, unless it existed before."""

    def __init__(
        self, settings: KafkaSettings, cluster: ClusterConnection, now: Callable[[], float]
    ) -> None:
        self.trouble: LogUnavailable | None = None
        """Why the last attempt failed; None when it did not."""
        self._settings = settings
        self._cluster = cluster
        self._backoff = Backoff(RETRY, now)
        self._is_running = False
        self._seen = 0
        self._known: set[str] = set()
        """Clusters that have the topic, or had it."""

    def require(self, view: ClusterView) -> TopicView:
        """Require the topic as `require_topic` does; one that existed before counts as lost."""
        if is_absent(view):
            self._refuse_anew(view)
        found = require_topic(self._settings.topic, view)
        self.saw(view)
        return found

    def saw(self, view: ClusterView) -> None:
        self._known.add(view.cluster_id)

    def _refuse_anew(self, view: ClusterView) -> None:
        if view.cluster_id in self._known:
            raise gone(self._settings.topic.name, view.cluster_id)

    async def attempt(self, view: ClusterView) -> None:
        """
        Create the topic that *view* lacks, unless another attempt has.

        Returns after a pause when another attempt may succeed; raises like `create_topic` when none
        can, and `TopicAbsent` where the topic existed before.
        """
        self._refuse_anew(view)
        if self._is_running or view.number <= self._seen:
            return
        self._is_running = True
        try:
            connection = await self._cluster.any_node().control()
            await create_topic(self._settings, connection)
            self.trouble = None
            self._backoff.succeeded()
        except LogUnavailable as error:
            self.trouble = error
            await asyncio.sleep(self._backoff.failed())
        finally:
            self._is_running = False
            self._seen = self._cluster.attempts.made


async def create_topic(settings: KafkaSettings, connection: BrokerConnection) -> None:
    """
    Create the topic as Kafka's own manager does; that it exists already is success.

    Raises `ConfigError` when the cluster can never create it as asked, `LogNotPermitted`, or
    `LogUnavailable` when another attempt may succeed.
    """
    topic = settings.topic
    request = CreateTopicsRequest(
        topic.name,
        partition_count=topic.num_partitions or PARTITION_COUNT,
        replication_factor=topic.replication_factor,
        settings={
            "cleanup.policy": "delete",
            "retention.ms": str(topic.retention_ms),
            "remote.storage.enable": "false",
            "min.insync.replicas": str(topic.min_isr),
        },
        timeout_ms=settings.request_timeout_ms // 2,
    )
    outcome = await connection.call(request)
    if outcome.code in {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}:
        return
    if outcome.code in _IMPOSSIBLE:
        raise ConfigError(
            f"topic {topic.name} cannot be created: {outcome.reason or name_of(outcome.code)}"
        )
    if outcome.code == ErrorCode.INVALID_REPLICATION_FACTOR:
        # Also what a cluster says that is just starting: the other brokers may be on their way.
        raise LogUnavailable(
            f"creating topic {topic.name}: {outcome.reason or name_of(outcome.code)}: start that "
            "many brokers, or lower remote.log.metadata.topic.replication.factor "
            f"({topic.replication_factor})"
        )
    raise error_for(f"creating topic {topic.name}", outcome.code, "CREATE topics")


async def is_never_compacted(settings: KafkaSettings, cluster: ClusterConnection) -> bool:
    """Return whether the topic's cleanup policy can be read, and is not compaction."""
    request = DescribeTopicsRequest([settings.topic.name], ("cleanup.policy",))
    try:
        async with asyncio.timeout(_POLICY_S):
            connection = await cluster.any_node().control()
            (described,) = await connection.call(request)
    except (LogError, TimeoutError):
        return False
    policy = described.settings.get("cleanup.policy")
    if described.code != ErrorCode.NONE or policy is None or policy.value is None:
        return False
    return "compact" not in policy.value


async def find_dangers(
    settings: KafkaSettings, cluster: ClusterConnection, topic: TopicView
) -> list[TopicFinding]:
    """Report settings that endanger the metadata, or the missing right to read them."""
    connection = await cluster.any_node().control()
    (described,) = await connection.call(DescribeTopicsRequest([settings.topic.name], _ASKED))
    replication = min((len(p.replicas) for p in topic.partitions.values()), default=0)
    if described.code in DENIED:
        unread = TopicFinding(
            "settings", "unknown", "they cannot be read", "grant DESCRIBE_CONFIGS on the topic"
        )
        return [*_replication_dangers(replication), unread]
    if described.code != ErrorCode.NONE:
        raise error_for("the topic's settings", described.code, "DESCRIBE_CONFIGS of the topic")
    return dangers(described.settings, replication)


def dangers(told: Mapping[str, TopicSetting], replication: int) -> list[TopicFinding]:
    """Say which settings endanger the metadata; *replication* is the smallest of any partition."""
    values = {key: setting.value or "" for key, setting in told.items()}
    found = _replication_dangers(replication)
    if values.get("min.insync.replicas") == "1":
        found.append(
            TopicFinding(
                "min.insync.replicas",
                "1",
                "an event counts as stored while one broker alone has it",
                "set it to 2, with 3 replicas",
            )
        )
    policy = values.get("cleanup.policy", "delete")
    if "compact" in policy:
        reason = "events have no key: brokers refuse them in a compacted topic"
        found.append(TopicFinding("cleanup.policy", policy, reason, "set it to delete"))
    for key, unit in (("retention.ms", "age"), ("retention.bytes", "size")):
        if "delete" in policy and values.get(key, "-1") != "-1":
            reason = f"events go by {unit}, those of live segments too: their data is lost to sight"
            found.append(TopicFinding(key, values[key], reason, "set it to -1"))
    if values.get("remote.storage.enable") == "true":
        reason = "the metadata of the tier would itself lie in the tier"
        found.append(TopicFinding("remote.storage.enable", "true", reason, "set it to false"))
    if values.get("unclean.leader.election.enable") == "true":
        reason = "a replica that lacks acknowledged events may become leader"
        fix = "set it to false"
        found.append(TopicFinding("unclean.leader.election.enable", "true", reason, fix))
    return found


def _replication_dangers(replication: int) -> list[TopicFinding]:
    if replication != 1:
        return []
    reason = "the loss of one disk loses events"
    return [TopicFinding("replication.factor", "1", reason, "reassign it to 3 replicas")]
