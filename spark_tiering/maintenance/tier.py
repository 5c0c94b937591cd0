"""
A tier for a driver that waits: its metadata as it is now, its objects, an engine, a writer.

For one thread. What is asked of the metadata is asked on an event loop in a thread of its own.
Invariant: `moment` never answers from what was read before it was called.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from rlmm.errors import ConfigError, UnknownPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping
    from typing import Any

    from rlmm.base.loop_thread import LoopThread
    from rlmm.errors import LogError
    from rlmm.inspection.cluster_facts import ClusterFacts, PartitionOffsets, Rights, TopicFacts
    from rlmm.inspection.moment import Moment, PartitionSummary
    from rlmm.inspection.replay import EventLog
    from rlmm.log.protocol import LogBounds, LogIdentity
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.metadata.shard import Shard
    from rlmm.records.record_set import RecordSet
    from spark_tiering.execution.protocol import ExecutionEngine
    from spark_tiering.maintenance.request import CareRequest
    from spark_tiering.stores.protocol import ObjectStore
    from spark_tiering.tier_metadata.protocol import TierMetadata

T = TypeVar("T")


class TierMoment:
    """The metadata at one moment. What the topic filter does not want is not there."""

    def __init__(
        self, moment: Moment, thread: LoopThread, wants_topic: Callable[[str], bool]
    ) -> None:
        self.moment = moment
        self._thread = thread
        self._wants = wants_topic

    @property
    def identity(self) -> LogIdentity:
        return self.moment.identity

    @property
    def positions(self) -> Mapping[int, int]:
        """By metadata partition: the next offset that is not in here any more."""
        return self.moment.positions

    def partitions(self) -> list[PartitionSummary]:
        """Every user partition of a topic that is wanted, by topic, partition, topic id."""
        known = self._thread.wait(self.moment.user_partitions())
        return [one for one in known if self._wants(one.partition.topic)]

    def segments(self, partition: TopicIdPartition) -> Iterator[SegmentMetadata]:
        """
        Its segments in whatever state, by rising start offset, then by id; a page at a time. None
        where nothing was ever stored of it.
        """
        pages = aiter(self.moment.segments(partition))

        async def next_page() -> list[SegmentMetadata] | None:
            return await anext(pages, None)

        with suppress(UnknownPartition):
            while (page := self._thread.wait(next_page())) is not None:
                yield from page

    def state(self, partition: TopicIdPartition) -> Shard:
        """A shard that holds all of *partition*, for look-ups; see `Moment.state`."""
        return self._thread.wait(self.moment.state(partition))


class TierLog:
    """The records of the metadata topic."""

    def __init__(self, log: EventLog, thread: LoopThread, timeout_s: float) -> None:
        self.readable = log
        self._thread = thread
        self._timeout_s = timeout_s

    def identity(self) -> LogIdentity:
        return self._thread.wait(self.readable.identity(timeout_s=self._timeout_s))

    def bounds(self, places: Collection[int]) -> Mapping[int, LogBounds | LogError]:
        """What each metadata partition holds."""
        return self._thread.wait(self.readable.bounds(places, timeout_s=self._timeout_s))

    def read(self, place: int, position: int, *, bytes_max: int = 1 << 20) -> RecordSet | None:
        """Record sets from *position* on; see `MetadataLog.read`."""
        return self._thread.wait(
            self.readable.read(place, position, timeout_s=self._timeout_s, bytes_max=bytes_max)
        )


class TierTopics:
    """The cluster, as far as it tells. See `rlmm.inspection.cluster_facts.ClusterFacts`."""

    def __init__(self, cluster: ClusterFacts, thread: LoopThread) -> None:
        self._cluster = cluster
        self._thread = thread

    def cluster_id(self) -> str:
        return self._thread.wait(self._cluster.cluster_id())

    def brokers(self) -> Collection[int]:
        """Ids of the brokers that are there."""
        return self._thread.wait(self._cluster.brokers())

    def topics(self, names: Collection[str] | None = None) -> Mapping[str, TopicFacts]:
        """Topics by name, settings included; those that are absent are not there."""
        return self._thread.wait(self._cluster.topics(names))

    def offsets(
        self, partitions: Collection[TopicIdPartition]
    ) -> Mapping[TopicIdPartition, PartitionOffsets]:
        """The ends of each; whoever was not told about is not there."""
        return self._thread.wait(self._cluster.offsets(partitions))

    def rights(self, topics: Collection[str]) -> Rights:
        """What we may do: a topic that is hidden from us looks like one that is gone."""
        return self._thread.wait(self._cluster.rights(topics))


class Tier:
    """What a job works with; what is not needed is not opened. Made by `open_tier`."""

    def __init__(  # noqa: PLR0913 - the parts of a job, each opened by its own hand
        self,
        request: CareRequest,
        *,
        now_ms: Callable[[], int],
        thread: LoopThread,
        open_store: Callable[[], ObjectStore],
        open_engine: Callable[[], ExecutionEngine],
        open_writer: Callable[[], TierMetadata],
        take_moment: Callable[[], Coroutine[Any, Any, Moment]],
        open_log: Callable[[], Coroutine[Any, Any, EventLog]],
        find_cluster: Callable[[], Coroutine[Any, Any, ClusterFacts | None]],
    ) -> None:
        self.request = request
        self.now_ms = now_ms
        self._thread = thread
        self._open_store = open_store
        self._open_engine = open_engine
        self._open_writer = open_writer
        self._take_moment = take_moment
        self._open_log = open_log
        self._find_cluster = find_cluster
        self._store: ObjectStore | None = None
        self._engine: ExecutionEngine | None = None
        self._writer: TierMetadata | None = None

    @property
    def store(self) -> ObjectStore:
        """Where the objects are. Raises `ConfigError` where no store was named."""
        if self._store is None:
            self._store = self._open_store()
        return self._store

    @property
    def cluster(self) -> TierTopics | None:
        """The cluster; None where none can be asked."""
        found = self._thread.wait(self._find_cluster())
        return None if found is None else TierTopics(found, self._thread)

    @property
    def log(self) -> TierLog:
        """The records of the metadata topic."""
        source = self.request.source
        timeout_s = 30.0 if source is None else source.timeout_s
        return TierLog(self._thread.wait(self._open_log()), self._thread, timeout_s)

    def moment(self) -> TierMoment:
        """
        The metadata as it is now, asked anew. Raises `NotReady` where it is not caught up in the
        time that the request grants.
        """
        moment = self._thread.wait(self._take_moment())
        return TierMoment(moment, self._thread, self.request.topics.wants_topic)

    def engine(self) -> ExecutionEngine:
        """Where units of work are run."""
        if self._engine is None:
            self._engine = self._open_engine()
        return self._engine

    def writer(self) -> TierMetadata:
        """
        Who publishes events and tells what became of them. Raises `ConfigError` for copied folders:
        what is written there is read by nobody.
        """
        if self._writer is None:
            self._writer = self._open_writer()
        return self._writer


def unwritable() -> ConfigError:
    """What is told of a source that only looks."""
    return ConfigError(
        "copied folders are only looked at: to publish, name --sidecar, --bootstrap-server or "
        "--embedded"
    )
