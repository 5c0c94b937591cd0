"""
A tier for a blocking driver, and its request: metadata as it is now, objects, engine, writer. For
one thread; an event loop in another thread reads the metadata. Invariant: `moment` never answers
from state that was read before the call.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from rlmm.base.loop_thread import BlockingCalls, blocking
from rlmm.errors import ConfigError, UnknownPartition
from rlmm.inspection.cluster_facts import ClusterFacts
from spark_tiering.copy_plan.rules import SegmentSelection
from spark_tiering.execution.settings import ExecutionSettings
from spark_tiering.tier_metadata.possible_partitions import impossible, possible

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping
    from pathlib import Path
    from typing import Any

    from rlmm.base.loop_thread import LoopThread
    from rlmm.errors import LogError
    from rlmm.findings.finding import Finding
    from rlmm.inspection.moment import Moment, PartitionSummary
    from rlmm.inspection.replay import EventLog
    from rlmm.log.protocol import LogBounds, LogIdentity
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.metadata.shard import Shard
    from rlmm.records.record_set import RecordSet
    from rlmm.state_sources.settings import SourceSettings
    from spark_tiering.execution.protocol import ExecutionEngine
    from spark_tiering.stores.opening import StoreSettings
    from spark_tiering.stores.protocol import ObjectStore
    from spark_tiering.tier_metadata.protocol import TierMetadata


@dataclass(frozen=True, slots=True)
class CareRequest:
    """The metadata is at *source* or in *embedded*, or a job needs none."""

    source: SourceSettings | None = None
    """A running service, a cluster, or copied folders, which are read-only."""
    embedded: Path | None = None
    """The folder of an embedded log, as copy jobs make it."""
    store: StoreSettings | None = None
    prefix: str = ""
    """Of the keys that are written now."""
    topics: SegmentSelection = field(default_factory=SegmentSelection)
    engine: ExecutionSettings = field(default_factory=ExecutionSettings)
    wait_s: float = 0.0
    """How long a job waits for a source that is not caught up."""

    def __post_init__(self) -> None:
        source = self.source
        if self.embedded is not None and source is not None and (source.log_dirs or source.sidecar):
            msg = "the metadata is in --embedded or at another source: name one of the two"
            raise ConfigError(msg)

    @property
    def require_store(self) -> StoreSettings:
        """Return the store. Raise `ConfigError` where the request names none."""
        if self.store is None:
            raise ConfigError(
                "no store of objects is named: --store s3://BUCKET/PREFIX or a folder"
            )
        return self.store

    @property
    def require_source(self) -> SourceSettings:
        """Return the source. Raise `ConfigError` where the request names none."""
        if self.source is None:
            msg = "no metadata is named: --sidecar, --bootstrap-server, --log-dirs or --embedded"
            raise ConfigError(msg)
        return self.source


def unmet_notes(request: CareRequest, known: Iterable[PartitionSummary]) -> tuple[str, ...]:
    """Return notes about topics of `--topic` that the metadata lacks: they may be mistyped."""
    names = request.topics.unmet({one.partition.topic for one in known})
    return tuple(f"the metadata knows no topic {name}" for name in names)


T = TypeVar("T")


class TierMoment:
    """The metadata at one moment, without the topics that the filter excludes."""

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
        """Return the next offset, exclusive, by metadata partition."""
        return self.moment.positions

    def partitions(self) -> list[PartitionSummary]:
        """Return every wanted partition that a broker can have, by topic, partition, topic id."""
        return possible(self._wanted())

    def impossible(self) -> list[Finding]:
        """Return findings about the wanted partitions that `partitions` leaves out."""
        return impossible(self._wanted())

    def _wanted(self) -> list[PartitionSummary]:
        known = self._thread.wait(self.moment.user_partitions())
        return [one for one in known if self._wants(one.partition.topic)]

    def segments(self, partition: TopicIdPartition) -> Iterator[SegmentMetadata]:
        """Yield segments in every state by start offset, then id, a page at a time, if any."""
        pages = aiter(self.moment.segments(partition))

        async def next_page() -> list[SegmentMetadata] | None:
            return await anext(pages, None)

        with suppress(UnknownPartition):
            while (page := self._thread.wait(next_page())) is not None:
                yield from page

    def state(self, partition: TopicIdPartition) -> Shard:
        """Return a shard that holds all of *partition*, for look-ups; see `Moment.state`."""
        return self._thread.wait(self.moment.state(partition))


class TierLog:
    def __init__(self, log: EventLog, thread: LoopThread, timeout_s: float) -> None:
        self.readable = log
        self._thread = thread
        self._timeout_s = timeout_s

    def identity(self) -> LogIdentity:
        return self._thread.wait(self.readable.identity(timeout_s=self._timeout_s))

    def bounds(self, places: Collection[int]) -> Mapping[int, LogBounds | LogError]:
        return self._thread.wait(self.readable.bounds(places, timeout_s=self._timeout_s))

    def read(self, place: int, position: int, *, bytes_max: int = 1 << 20) -> RecordSet | None:
        """Return record sets from *position* on; see `MetadataLog.read`."""
        return self._thread.wait(
            self.readable.read(place, position, timeout_s=self._timeout_s, bytes_max=bytes_max)
        )


class TierTopics(BlockingCalls[ClusterFacts]):
    """The cluster, see `ClusterFacts`; a hidden topic looks like one that does not exist."""

    def __init__(self, cluster: ClusterFacts, thread: LoopThread) -> None:
        super().__init__(cluster, thread.wait, "ClusterFacts")

    cluster_id = blocking(ClusterFacts.cluster_id)
    brokers = blocking(ClusterFacts.brokers)
    topics = blocking(ClusterFacts.topics)
    offsets = blocking(ClusterFacts.offsets)
    rights = blocking(ClusterFacts.rights)


class Tier:
    """The parts of a job, opened at first use; `writer` raises `ConfigError` for copied folders."""

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
        self._open_store = cache(open_store)
        self.engine = cache(open_engine)
        self.writer = cache(open_writer)
        self._take_moment = take_moment
        self._open_log = open_log
        self._find_cluster = find_cluster

    @property
    def store(self) -> ObjectStore:
        """Return the store. Raise `ConfigError` where the request names none."""
        return self._open_store()

    @property
    def cluster(self) -> TierTopics | None:
        """Return the cluster; None where the request names none."""
        found = self._thread.wait(self._find_cluster())
        return None if found is None else TierTopics(found, self._thread)

    @property
    def log(self) -> TierLog:
        source = self.request.source
        timeout_s = 30.0 if source is None else source.timeout_s
        return TierLog(self._thread.wait(self._open_log()), self._thread, timeout_s)

    def moment(self) -> TierMoment:
        """Read the metadata anew. Raise `NotReady` where it is not caught up in time."""
        moment = self._thread.wait(self._take_moment())
        return TierMoment(moment, self._thread, self.request.topics.wants_topic)


def unwritable() -> ConfigError:
    return ConfigError(
        "copied folders are only looked at: to publish, name --sidecar, --bootstrap-server or "
        "--embedded"
    )
