"""Refusals, ids and statistics of an engine in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import NotAssigned, NotReady, PumpFailed, Stopped, UnknownPartition
from tests.support.builders import segment_id, tp

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.engine.engine import Engine
    from rlmm.gate.reads import PartitionQueries
    from rlmm.log.replay_progress import ReplayHistory
    from rlmm.metadata.ids import SegmentId
    from rlmm.pump.statistics import FollowerStatistics
    from tests.support.engines import World

TP = tp()

QUESTIONS: dict[str, Callable[[PartitionQueries], Any]] = {
    "point-lookup": lambda reads: reads.segment_for(TP, 0, 50),
    "segment": lambda reads: reads.segment(segment_id("a")),
    "highest-offset": lambda reads: reads.highest_offset(TP, 0),
    "list": lambda reads: reads.segments(TP),
    "listing": lambda reads: reads.listing(TP),
    "list-by-epoch": lambda reads: reads.segments_of_epoch(TP, 0),
    "next-with-transactions": lambda reads: reads.next_segment_with_txn_index(TP, 0, 0),
    "size": lambda reads: reads.size(TP),
    "size-by-epoch": lambda reads: reads.size_of_epoch(TP, 0),
    "partition-delete": lambda reads: reads.partition_delete(TP),
}


def refusals(engine: Engine) -> set[type[Exception] | None]:
    found: set[type[Exception] | None] = set()
    for ask in QUESTIONS.values():
        try:
            ask(engine.reads)
            found.add(None)
        except (NotReady, NotAssigned, UnknownPartition, Stopped, PumpFailed) as error:
            found.add(type(error))
    return found


def refusal(engine: Engine) -> NotReady:
    with pytest.raises(NotReady) as caught:
        engine.reads.segments(TP)
    return caught.value


def ids(engine: Engine) -> list[SegmentId]:
    return [found.id for found in engine.reads.segments(TP)]


def follower(engine: Engine, world: World) -> FollowerStatistics:
    return engine.statistics().pump.followers[world.place(TP)]


def history(engine: Engine, world: World) -> ReplayHistory:
    return follower(engine, world).history


def log_end(world: World) -> int:
    return world.topic.partitions[world.place(TP)].next_offset
