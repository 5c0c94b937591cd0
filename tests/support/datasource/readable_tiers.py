"""Tiers to read, and the data source planned and read in this process."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.segment import SegmentState
from spark_tiering.data_source.options import parse_options
from spark_tiering.data_source.piece_reading import read_piece
from spark_tiering.data_source.pushed_filters import EVERYTHING
from spark_tiering.data_source.query_planning import QueryPlanner
from spark_tiering.decoding import COLUMNS
from spark_tiering.layout.object_names import object_keys
from spark_tiering.maintenance.tier import CareRequest
from spark_tiering.maintenance.wiring import open_tier
from spark_tiering.read_plan.question import Question
from spark_tiering.read_plan.tier_plans import plan_of_moment
from spark_tiering.stores.local import LocalStore
from spark_tiering.stores.local_settings import LocalSettings
from tests.support.partitions.written_logs import Row, WrittenLog, row_of

if TYPE_CHECKING:
    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.data_source.piece_reading import PieceReading
    from spark_tiering.data_source.pushed_filters import PushedFilters
    from spark_tiering.data_source.task_splits import SegmentPiece
    from spark_tiering.layout.object_names import ObjectKind
    from spark_tiering.read_plan.plan import FrozenPlan
    from spark_tiering.tier_metadata.protocol import TierMetadata


PREFIX = "kafka/"
TIMEOUT_S = 20.0


def usual_log() -> WrittenLog:
    log = WrittenLog(4)
    log.fill(80)
    assert log.stable_end < log.tier_end
    return log


def store_in(folder: Path) -> LocalStore:
    return LocalStore(LocalSettings(folder / "tier"))


def tier_in(folder: Path, log: WrittenLog) -> dict[str, str]:
    log.into_store(store_in(folder), PREFIX)
    return {"store": str(folder / "tier"), "prefix": PREFIX, "subscribe": "orders"}


def path_of(tier: dict[str, str], segment: SegmentMetadata, kind: ObjectKind) -> Path:
    return Path(tier["store"]) / object_keys(segment.id, segment.start_offset, PREFIX)[kind]


def publish(metadata: TierMetadata, segments: list[SegmentMetadata]) -> None:
    for segment in segments:
        started = replace(segment, state=SegmentState.COPY_SEGMENT_STARTED)
        metadata.publish(started, TIMEOUT_S)
        update = SegmentUpdate(segment.id, 7, 1, None, SegmentState.COPY_SEGMENT_FINISHED)
        metadata.publish(update, TIMEOUT_S)


def embedded(folder: Path, segments: list[SegmentMetadata]) -> CareRequest:
    request = CareRequest(embedded=folder)
    with open_tier(request) as opened:
        publish(opened.writer(), segments)
    return request


def frozen(request: CareRequest, **asked: Any) -> FrozenPlan:
    with open_tier(request) as opened:
        return plan_of_moment(opened.moment(), Question(prefix=PREFIX, **asked))


def planned(
    options: dict[str, str], pushed: PushedFilters = EVERYTHING
) -> tuple[list[tuple[SegmentPiece, ...]], PieceReading]:
    planner = QueryPlanner(parse_options(options, is_streaming=False))
    listing = planner.listing()
    found = planner.shares(listing, planner.starts(listing), planner.ends(listing), pushed)
    travelled: Any = pickle.loads(pickle.dumps((found, planner.reading(COLUMNS, pushed))))
    return travelled  # type: ignore[no-any-return]


def rows_read(options: dict[str, str], pushed: PushedFilters = EVERYTHING) -> list[Row]:
    found, reading = planned(options, pushed)
    return [
        row_of(one)
        for share in found
        for piece in share
        for batch in read_piece(piece, reading)
        for one in batch.to_pylist()
    ]
