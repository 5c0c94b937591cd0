"""The parts of a job, opened in order and closed in reverse. The composition root."""

from __future__ import annotations

import socket
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from rlmm.base.clock import SYSTEM_CLOCK
from spark_tiering.execution.opening import open_engine
from spark_tiering.job_registry.ids import new_job_id
from spark_tiering.job_registry.job_store import FOLDER, JobStore
from spark_tiering.segment_sources.cluster import TierCluster
from spark_tiering.segment_sources.opening import open_source
from spark_tiering.stores.opening import open_store
from spark_tiering.stores.s3_settings import S3Settings
from spark_tiering.tier_metadata.opening import open_metadata_access

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from spark_tiering.copy_job.request import JobRequest
    from spark_tiering.execution.protocol import ExecutionEngine
    from spark_tiering.segment_sources.protocol import SegmentSource
    from spark_tiering.stores.protocol import ObjectStore
    from spark_tiering.tier_metadata.protocol import TierMetadata


class CopyJobContext:
    """The parts of one job, for one thread; the engine is opened when it is first needed."""

    def __init__(
        self,
        request: JobRequest,
        job_id: str,
        *,
        source: SegmentSource,
        cluster: TierCluster | None,
        store: ObjectStore,
        metadata: TierMetadata,
        now_ms: Callable[[], int],
        open_engine: Callable[[], ExecutionEngine],
    ) -> None:
        self.request = request
        self.job_id = job_id
        self.source = source
        self.cluster = cluster
        self.store = store
        self.metadata = metadata
        self.now_ms = now_ms
        self.jobs = JobStore(store, request.prefix, now_ms)
        self._open_engine = open_engine
        self._engine: ExecutionEngine | None = None

    def with_request(self, request: JobRequest) -> CopyJobContext:
        """Return these parts with another request, which names the same parts."""
        return CopyJobContext(
            request,
            self.job_id,
            source=self.source,
            cluster=self.cluster,
            store=self.store,
            metadata=self.metadata,
            now_ms=self.now_ms,
            open_engine=self.engine,
        )

    def open_own_store(self) -> ObjectStore:
        return open_store(self.request.store)

    def engine(self) -> ExecutionEngine:
        if self._engine is None:
            self._engine = self._open_engine()
        return self._engine


@contextmanager
def open_surroundings(
    request: JobRequest,
    *,
    now_ms: Callable[[], int] = SYSTEM_CLOCK.now_ms,
    engine: ExecutionEngine | None = None,
) -> Iterator[CopyJobContext]:
    """Open the parts that *request* names; a given *engine* stays open. Raises their errors."""
    with ExitStack() as opened:
        source = open_source(request.source)
        opened.callback(source.close)
        store = opened.enter_context(open_store(request.store))
        if isinstance(request.store, S3Settings):
            # One that cannot be used is told before segments are read for it.
            next(iter(store.list(f"{request.prefix}{FOLDER}")), None)
        cluster = None
        if request.cluster is not None:
            access = request.cluster
            config = access.command_config or None
            cluster = opened.enter_context(
                TierCluster(access.bootstrap_servers, config, access.timeout_s)
            )
        metadata = open_metadata_access(request.metadata)
        opened.callback(metadata.close)

        def opened_engine() -> ExecutionEngine:
            return engine or opened.enter_context(open_engine(request.engine))

        yield CopyJobContext(
            request,
            new_job_id(now_ms(), socket.gethostname()),
            source=source,
            cluster=cluster,
            store=store,
            metadata=metadata,
            now_ms=now_ms,
            open_engine=opened_engine,
        )
