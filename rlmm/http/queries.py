"""
The queries of `/v1` with one short answer: from parameters to the view that answers it.

What has to be fresh waits first; nothing is awaited between admission and answer.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from rlmm.access.roles import Role
from rlmm.engine import freshness
from rlmm.errors import InvalidArgument, NotReady, RlmmError
from rlmm.http.parameters import partition_of, segment_id_of
from rlmm.http.refusals import refused_view
from rlmm.http.schemas import (
    HighestOffsetView,
    PartitionDeleteOrNoneView,
    ReadTokenView,
    ReadyView,
    SegmentOrNoneView,
    SizeView,
    StatusView,
)
from rlmm.views.segment import partition_delete_view, segment_view
from rlmm.views.status import engine_view

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from rlmm.access.roles import Client
    from rlmm.engine.engine import Engine
    from rlmm.gate.reads import Lookup, PartitionQueries
    from rlmm.http.settings import HttpSettings
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.metrics.served_state import ServedState
    from rlmm.views.values import ViewObject


def reads_of(engine: Engine, client: Client) -> PartitionQueries:
    """Return the reads that *client* may use: for an administrator all that is stored."""
    return engine.reads.of_everyone() if client.role is Role.ADMIN else engine.reads


def timeout_s_of(values: Mapping[str, Any], settings: HttpSettings) -> float | None:
    """Return how long the answer may wait; `None` is the configured time."""
    timeout_ms = values.get("timeout_ms")
    if timeout_ms is None:
        return None
    if timeout_ms > settings.wait_timeout_ms_max:
        msg = f"timeout_ms is at most {settings.wait_timeout_ms_max}, got {timeout_ms}"
        raise InvalidArgument(msg)
    return float(timeout_ms) / 1_000


async def wait_fresh(
    engine: Engine,
    partitions: Collection[TopicIdPartition],
    values: Mapping[str, Any],
    settings: HttpSettings,
) -> None:
    await freshness.wait_fresh(
        engine,
        partitions,
        values.get("at_least"),
        linearizable=values.get("linearizable", False),
        timeout_s=timeout_s_of(values, settings),
    )


def _segment_or_none(found: SegmentMetadata | None) -> SegmentOrNoneView:
    return SegmentOrNoneView(segment=None if found is None else segment_view(found))


def segment(reads: PartitionQueries, values: Mapping[str, Any]) -> SegmentOrNoneView:
    return _segment_or_none(reads.segment(segment_id_of(values)))


def segment_for(reads: PartitionQueries, values: Mapping[str, Any]) -> SegmentOrNoneView:
    found = reads.segment_for(partition_of(values), values["epoch"], values["offset"])
    return _segment_or_none(found)


def next_segment_with_txn_index(
    reads: PartitionQueries, values: Mapping[str, Any]
) -> SegmentOrNoneView:
    found = reads.next_segment_with_txn_index(
        partition_of(values), values["epoch"], values["offset"]
    )
    return _segment_or_none(found)


def highest_offset(reads: PartitionQueries, values: Mapping[str, Any]) -> HighestOffsetView:
    found = reads.highest_offset(partition_of(values), values["epoch"])
    return HighestOffsetView(highest_offset=found)


def size(reads: PartitionQueries, values: Mapping[str, Any]) -> SizeView:
    partition, epoch = partition_of(values), values.get("epoch")
    found = reads.size(partition) if epoch is None else reads.size_of_epoch(partition, epoch)
    return SizeView(size_bytes=found)


def partition_delete(
    reads: PartitionQueries, values: Mapping[str, Any]
) -> PartitionDeleteOrNoneView:
    found = reads.partition_delete(partition_of(values))
    return PartitionDeleteOrNoneView(
        partition_delete=None if found is None else partition_delete_view(found)
    )


QUESTIONS: Mapping[str, Callable[[PartitionQueries, Mapping[str, Any]], ViewObject]] = {
    "segment": segment,
    "segment-for": segment_for,
    "next-segment-with-txn-index": next_segment_with_txn_index,
    "highest-offset": highest_offset,
    "size": size,
    "partition-delete": partition_delete,
}


async def segments_for(
    engine: Engine,
    reads: PartitionQueries,
    lookups: list[Lookup],
    values: Mapping[str, Any],
    settings: HttpSettings,
) -> dict[str, list[ViewObject]]:
    await wait_fresh(engine, {partition for partition, _, _ in lookups}, values, settings)
    return {
        "answers": [
            refused_view(found) if isinstance(found, RlmmError) else _segment_or_none(found)
            for found in reads.segments_for(lookups)
        ]
    }


async def ready(
    engine: Engine, reads: PartitionQueries, values: Mapping[str, Any], settings: HttpSettings
) -> ReadyView:
    partition, timeout_s = partition_of(values), timeout_s_of(values, settings)
    is_ready = reads.is_ready(partition)
    if not is_ready and timeout_s:
        try:
            await engine.wait_ready(partition, timeout_s=timeout_s)
        except NotReady:
            return ReadyView(is_ready=False)
        is_ready = reads.is_ready(partition)
    return ReadyView(is_ready=is_ready)


def read_token(engine: Engine) -> ReadTokenView:
    token = engine.read_token()
    return ReadTokenView(
        read_token={str(place): offset for place, offset in token.items()},
        at_least=",".join(f"{place}:{offset}" for place, offset in sorted(token.items())),
    )


def status(sources: ServedState, cluster: str | None) -> StatusView:
    process = sources.process
    now_s, now_ms = asyncio.get_running_loop().time(), sources.now_ms()
    if process is None:
        raise NotReady("the service is only starting", reason="connecting")
    names = list(process.engines) if cluster is None else [sources.engine(cluster)[0]]
    return StatusView(
        is_ready=sources.standing().is_ready,
        clusters=[
            engine_view(
                process.engines[name].statistics(), now_s=now_s, now_ms=now_ms, cluster=name
            )
            for name in names
        ],
        process=UNSET if cluster is not None else sources.process_view(now_s),
    )
