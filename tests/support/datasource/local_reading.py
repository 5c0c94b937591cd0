"""The data source without Spark: planned here, read here, as executors would."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

from spark_tiering.data_source.options import parse_options
from spark_tiering.data_source.piece_reading import read_piece
from spark_tiering.data_source.pushed_filters import EVERYTHING
from spark_tiering.data_source.query_planning import QueryPlanner
from spark_tiering.decoding import COLUMNS
from tests.support.partitions.written_logs import Row, row_of

if TYPE_CHECKING:
    from spark_tiering.data_source.piece_reading import PieceReading
    from spark_tiering.data_source.pushed_filters import PushedFilters
    from spark_tiering.data_source.task_splits import SegmentPiece


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
