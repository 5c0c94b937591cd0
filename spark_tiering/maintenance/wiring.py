"""The wiring of a tier from its request: the composition root of every maintenance job."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from rlmm.base.clock import SYSTEM_CLOCK
from rlmm.base.loop_thread import LoopThread
from rlmm.errors import ConfigError, SidecarUnavailable, UnknownPartition
from rlmm.log.files.log_folder import PARTITION_COUNT, UNKNOWN_CLUSTER_ID, UNKNOWN_TOPIC_ID
from rlmm.log.protocol import LogIdentity
from rlmm.state_sources.opening import kafka_settings_of, open_source
from rlmm.state_sources.settings import SourceSettings
from spark_tiering.execution.opening import open_engine
from spark_tiering.maintenance.tier import Tier, unwritable
from spark_tiering.stores.local_settings import LocalSettings
from spark_tiering.stores.opening import open_store
from spark_tiering.tier_metadata.embedded import has_log
from spark_tiering.tier_metadata.opening import open_metadata_access
from spark_tiering.tier_metadata.settings import EmbeddedAccess, SidecarAccess

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping
    from pathlib import Path

    from rlmm.inspection.cluster_facts import ClusterFacts
    from rlmm.inspection.moment import Moment, PartitionSummary
    from rlmm.inspection.replay import EventLog
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.metadata.shard import Shard
    from rlmm.state_sources.protocol import StateSource
    from spark_tiering.execution.protocol import ExecutionEngine
    from spark_tiering.maintenance.tier import CareRequest
    from spark_tiering.stores.protocol import ObjectStore
    from spark_tiering.tier_metadata.opening import AccessSettings
    from spark_tiering.tier_metadata.protocol import TierMetadata

THREAD = "rlmm-care"
_METADATA_FLAGS = "--sidecar, --bootstrap-server, --log-dirs or --embedded"
LOG_FOLDER, SNAPSHOT_FOLDER = "log", "snapshots"


class EmptyMoment:
    """The metadata of a log that does not exist yet."""

    identity = LogIdentity(UNKNOWN_CLUSTER_ID, UNKNOWN_TOPIC_ID, PARTITION_COUNT)
    positions: Mapping[int, int] = {}

    async def user_partitions(self) -> list[PartitionSummary]:
        return []

    async def segments(
        self, partition: TopicIdPartition, epoch: int | None = None
    ) -> AsyncIterator[list[SegmentMetadata]]:
        del partition, epoch
        pages: tuple[list[SegmentMetadata], ...] = ()
        for page in pages:
            yield page

    async def state(self, partition: TopicIdPartition) -> Shard:
        raise UnknownPartition(f"{partition}: nothing was ever stored")


class _Sources:
    """Sources, opened at their first use; on the event loop."""

    def __init__(self, request: CareRequest) -> None:
        self._request = request
        self._source: StateSource | None = None
        self._cluster: ClusterFacts | None = None
        self._is_cluster_known = False

    async def source(self) -> StateSource:
        """Return the source; an embedded log gets a new one, as a folder is read only once."""
        if self._request.embedded is not None:
            await self._close_source()
            timeout_s = 30.0 if self._request.source is None else self._request.source.timeout_s
            log_dirs = (self._request.embedded / LOG_FOLDER,)
            self._source = await open_source(SourceSettings(log_dirs=log_dirs, timeout_s=timeout_s))
        elif self._source is None:
            try:
                self._source = await open_source(self._request.require_source)
            except SidecarUnavailable as error:
                msg = f"{error}; name the metadata: {_METADATA_FLAGS}"
                raise SidecarUnavailable(msg) from error
        return self._source

    async def moment(self) -> Moment:
        """Return the state as it is now; an embedded log that does not exist is empty."""
        folder = self._request.embedded
        if folder is not None and not has_log(folder / LOG_FOLDER):
            return EmptyMoment()
        return await (await self.source()).now(wait_s=self._request.wait_s)

    async def log(self) -> EventLog:
        """Raise `ConfigError` where an embedded log does not exist."""
        folder = self._request.embedded
        if folder is not None and not has_log(folder / LOG_FOLDER):
            raise _never_begun(folder)
        return (await self.source()).log

    async def cluster(self) -> ClusterFacts | None:
        settings = self._request.source
        if not self._is_cluster_known and settings is not None and settings.bootstrap_servers:
            if self._request.embedded is None:
                return (await self.source()).cluster
            kafka = kafka_settings_of(settings)
            assert kafka is not None, "servers are named"
            # Large, and not needed without a cluster.
            from rlmm.state_sources.brokers import Brokers  # noqa: PLC0415

            self._cluster = await Brokers.open(kafka, settings.timeout_s)
            self._is_cluster_known = True
        return self._cluster

    async def _close_source(self) -> None:
        if self._source is not None:
            source, self._source = self._source, None
            await source.close()

    async def close(self) -> None:
        await self._close_source()
        if self._cluster is not None:
            await self._cluster.close()  # type: ignore[attr-defined]  # it is ours: `Brokers`


@contextmanager
def open_tier(
    request: CareRequest,
    *,
    now_ms: Callable[[], int] = SYSTEM_CLOCK.now_ms,
    engine: ExecutionEngine | None = None,
) -> Iterator[Tier]:
    """Yield the tier of *request*, and close it at the end; a given *engine* stays open."""
    with ExitStack() as opened:
        thread = LoopThread(THREAD)
        opened.callback(thread.close)
        sources = _Sources(request)
        opened.callback(lambda: thread.wait(sources.close()))

        def opened_store() -> ObjectStore:
            return opened.enter_context(open_store(request.require_store))

        def opened_engine() -> ExecutionEngine:
            return engine or opened.enter_context(open_engine(request.engine))

        def opened_writer() -> TierMetadata:
            writer = open_metadata_access(access_of(request))
            opened.callback(writer.close)
            return writer

        yield Tier(
            request,
            now_ms=now_ms,
            thread=thread,
            open_store=opened_store,
            open_engine=opened_engine,
            open_writer=opened_writer,
            take_moment=sources.moment,
            open_log=sources.log,
            find_cluster=sources.cluster,
        )


def access_of(request: CareRequest) -> AccessSettings:
    """Return where events are published. Raise `ConfigError` for a read-only source."""
    if request.embedded is not None:
        folder = request.embedded
        return EmbeddedAccess(folder=folder / LOG_FOLDER, snapshots=folder / SNAPSHOT_FOLDER)
    source = request.require_source
    if source.log_dirs:
        raise unwritable()
    if source.sidecar:
        return SidecarAccess(
            source.sidecar,
            token_file=str(source.token_file or ""),
            ca_file=str(source.ca_file or ""),
            certificate_file=str(source.certificate_file or ""),
            key_file=str(source.key_file or ""),
            is_tls=source.is_tls,
            cluster_id=source.cluster_id,
            is_plaintext_token=source.is_plaintext_token,
        )
    if source.command_properties:
        msg = "--command-property is for commands that only look: put it into --command-config"
        raise ConfigError(msg)
    return EmbeddedAccess(
        bootstrap_servers=source.bootstrap_servers, command_config=source.command_config
    )


def require_begun(request: CareRequest) -> CareRequest:
    """Return *request*. Raise `ConfigError` without an embedded log: its folder may be mistyped."""
    folder = request.embedded
    if folder is not None and not has_log(folder / LOG_FOLDER):
        raise _never_begun(folder)
    return request


def _never_begun(folder: Path) -> ConfigError:
    hint = f"; it lies in {folder.parent}: name that" if has_log(folder) else ""
    return ConfigError(f"{folder}: there is no embedded log{hint}")


def only_looking(request: CareRequest) -> CareRequest:
    """Return *request* without the right to create a folder of objects."""
    store = request.store
    if isinstance(store, LocalSettings):
        store = replace(store, is_made=False)
    return replace(request, store=store)
