"""However a query is cut into tasks, its rows are those of one naive read of the log."""

from __future__ import annotations

import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from spark_tiering.data_source.pushed_filters import PushedFilters
from spark_tiering.executor.tasks import CopyOptions
from spark_tiering.stores.local import LocalStore
from spark_tiering.stores.local_settings import LocalSettings
from tests.support.datasource.readable_tiers import rows_read
from tests.support.partitions.written_logs import WrittenLog

if TYPE_CHECKING:
    from collections.abc import Iterator

import pytest

SEEDS = (0, 1, 2)


class _Places(NamedTuple):
    log: WrittenLog
    options: tuple[dict[str, str], ...]
    """The same log as it is, in chunks of zstd, and in a broker's folder."""


_FOLDER = Path(tempfile.gettempdir())
_made: list[Path] = []


@pytest.fixture(scope="module", autouse=True)
def _clean() -> Iterator[None]:
    yield
    _written.cache_clear()
    while _made:
        shutil.rmtree(_made.pop())


@cache
def _written(seed: int) -> _Places:
    folder = Path(tempfile.mkdtemp(prefix="cuts-", dir=_FOLDER))
    _made.append(folder)
    log = WrittenLog(seed)
    log.fill(90, segment_bytes=6_000)
    if seed % 2:
        log.settle()
    log.into_store(LocalStore(LocalSettings(folder / "plain")), "kafka/")
    zstd = CopyOptions(is_compressed=True, chunk_bytes=4096)
    log.into_store(LocalStore(LocalSettings(folder / "zstd")), options=zstd)
    log.into_folder(folder / "logs")
    return _Places(
        log,
        (
            {"store": str(folder / "plain"), "prefix": "kafka/"},
            {"store": str(folder / "zstd")},
            {"logDirs": str(folder / "logs")},
        ),
    )


SIZES = st.one_of(st.none(), st.integers(50, 12_000))


@given(
    st.sampled_from(SEEDS),
    st.integers(0, 2),
    st.tuples(st.floats(0, 1), st.floats(0, 1)),
    st.fixed_dictionaries(
        {
            "maxPartitionBytes": SIZES,
            "windowBytes": SIZES,
            "maxRecordsPerPartition": st.one_of(st.none(), st.integers(1, 80)),
            "minPartitions": st.one_of(st.none(), st.integers(1, 40)),
        }
    ),
    st.booleans(),
)
def test_any_cut_of_any_range_gives_the_rows_of_one_naive_read(
    seed: int,
    place: int,
    ends: tuple[float, float],
    cuts: dict[str, int | None],
    is_committed: bool,
) -> None:
    """Any cut, within batches or at index entries, gives each row once and in order."""
    log, places = _written(seed)
    stable = log.stable_end if is_committed else log.tier_end
    first, behind = sorted(int(end * stable) for end in ends)
    options = {
        **places[place],
        "subscribe": log.topic,
        "startingOffsets": f'{{"{log.topic}": {{"0": {first}}}}}',
        "endingOffsets": f'{{"{log.topic}": {{"0": {behind}}}}}',
        "isolationLevel": "read_committed" if is_committed else "read_uncommitted",
        **{name: str(value) for name, value in cuts.items() if value is not None},
    }
    assert rows_read(options) == log.rows(first, behind, committed=is_committed)


@given(
    st.sampled_from(SEEDS),
    st.integers(0, 2),
    st.tuples(st.integers(0, 300), st.integers(0, 300)),
    st.tuples(st.floats(0, 1.1), st.floats(0, 1.1)),
    st.booleans(),
    st.one_of(st.none(), st.integers(50, 12_000)),
)
def test_pruning_by_filters_never_leaves_out_a_row_that_matches(
    seed: int,
    place: int,
    offsets: tuple[int, int],
    times: tuple[float, float],
    is_disorder_known: bool,
    partition_bytes: int | None,
) -> None:
    """Pruning keeps every matching row; without a bound on disorder it ends nothing early."""
    log, places = _written(seed)
    rows = log.rows()
    spans = sorted(row.timestamp.timestamp() * 1000 for row in rows)
    low_ms, high_ms = sorted(round(spans[0] + end * (spans[-1] - spans[0])) for end in times)
    low, high = sorted(offsets)
    pushed = PushedFilters(
        first_offset=low, last_offset=high, first_time_ms=low_ms, last_time_ms=high_ms
    )
    options = {**places[place], "subscribe": log.topic}
    if is_disorder_known:
        # A marker's time counts as a record's: this is how far any time is behind another.
        options["timestampDisorderMs"] = str(log.disorder_ms)
    if partition_bytes is not None:
        options["maxPartitionBytes"] = str(partition_bytes)
    matching = [
        row
        for row in rows
        if low <= row.offset <= high and low_ms <= row.timestamp.timestamp() * 1000 <= high_ms
    ]
    assert rows_read(options, pushed) == matching


@given(st.sampled_from(SEEDS), st.integers(0, 2), st.floats(-0.1, 1.1), st.booleans())
def test_a_time_as_a_bound_means_the_offset_of_the_first_record_that_is_not_older(
    seed: int, place: int, part: float, is_end: bool
) -> None:
    """A bound by time means the first record that is not older, as on a broker."""
    log, places = _written(seed)
    rows = log.rows()
    spans = sorted(int(row.timestamp.timestamp() * 1000) for row in rows)
    time_ms = max(0, round(spans[0] + part * (spans[-1] - spans[0])))
    found = next((row.offset for row in rows if row.timestamp.timestamp() * 1000 >= time_ms), None)
    name = "endingTimestamp" if is_end else "startingTimestamp"
    options = {**places[place], "subscribe": log.topic, name: str(time_ms)}
    options["startingOffsetsByTimestampStrategy"] = "latest"
    expected = log.rows(0, found) if is_end else log.rows(log.tier_end if found is None else found)
    assert rows_read(options) == expected
