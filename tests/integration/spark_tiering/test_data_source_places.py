"""The data source over every place, right or wrong, in this process, and in its benchmark."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from bench.data_source import QUICK, WINDOW_SHARE_MAX, measure_window
from bench.figures import Run
from rlmm.errors import ConfigError, DataLost
from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.segment import SegmentState
from spark_tiering.data_source.extents import LogFolderSegment
from spark_tiering.data_source.options import parse_options
from spark_tiering.data_source.query_planning import QueryPlanner
from spark_tiering.layout.custom_metadata import CustomMetadata, format_custom_metadata
from spark_tiering.layout.object_names import ObjectKind
from spark_tiering.maintenance.tier import CareRequest
from spark_tiering.maintenance.wiring import open_tier
from spark_tiering.read_plan.document import format_plan
from spark_tiering.read_plan.parquet import format_parquet
from spark_tiering.read_plan.question import RecordBounds
from spark_tiering.tier_metadata.opening import open_metadata_access
from tests.support.datasource.readable_tiers import (
    PREFIX,
    TIMEOUT_S,
    embedded,
    frozen,
    path_of,
    planned,
    publish,
    rows_read,
)
from tests.support.partitions.written_logs import WrittenLog
from tests.support.server.memory_service import ServedMetadata

if TYPE_CHECKING:
    from pathlib import Path

    from spark_tiering.stores.local import LocalStore


def test_service_is_read_by_its_metadata(log: WrittenLog, read_options: dict[str, str]) -> None:
    """With a service the data source reads only finished segments of its metadata."""
    with ServedMetadata() as served:
        publish(open_metadata_access(served.access), log.tiered[:3])
        options = {**read_options, "sidecar": served.address}
        assert rows_read(options) == log.rows(0, log.tiered[3].start_offset)


def test_embedded_is_current(log: WrittenLog, read_options: dict[str, str], tmp_path: Path) -> None:
    """The data source reads the current state of an embedded log that copy jobs use."""
    embedded(tmp_path / "archive", log.tiered)
    assert rows_read({**read_options, "embedded": str(tmp_path / "archive")}) == log.rows()
    with pytest.raises(ConfigError, match=r"embedded log .*nowhere is not there"):
        rows_read({**read_options, "embedded": str(tmp_path / "nowhere")})


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_plan_when_it_is_frozen_then_later_segments_change_nothing(
    form: str, log: WrittenLog, store: LocalStore, read_options: dict[str, str], tmp_path: Path
) -> None:
    """A frozen plan gives the same rows in either file form and for any cut."""
    request = embedded(tmp_path / "archive", log.tiered)
    plan = frozen(request, topics=("orders",))
    file = tmp_path / f"plan.{form}"
    file.write_bytes(format_plan(plan) if form == "json" else format_parquet(plan))
    del read_options["subscribe"]
    options = {**read_options, "plan": str(file), "planToken": plan.token}
    expected, before = log.rows(), len(log.tiered)
    log.fill(20)
    log.into_store(store, PREFIX)
    assert len(log.tiered) > before
    assert rows_read(options) == expected
    assert rows_read({**options, "minPartitions": "9"}) == expected
    with pytest.raises(ConfigError, match="another plan than the one of planToken"):
        rows_read({**options, "planToken": "rlmm-plan-1.other"})


def test_plan_when_its_bounds_cut_segments_then_committed_rows_are_decided_within_them(
    log: WrittenLog, read_options: dict[str, str], tmp_path: Path
) -> None:
    """A plan that cuts segments decides committed rows by markers behind its end."""
    request = embedded(tmp_path / "archive", log.tiered)
    file = tmp_path / "plan.json"
    for behind in range(20, log.stable_end, 37):
        plan = frozen(request, bounds=RecordBounds(from_offset=10, to_offset=behind))
        file.write_bytes(format_plan(plan))
        options = {**read_options, "plan": str(file), "isolationLevel": "read_committed"}
        found = rows_read(options)
        expected = log.rows(10, behind, committed=True)
        # A plan that ends inside a transaction does not know what became of it.
        assert found == expected[: len(found)]
        assert len(found) == len(expected) or log.tiered[-1].last_offset >= behind


def test_plan_when_it_was_asked_for_more_than_there_is_then_what_is_expired_is_named(
    log: WrittenLog, read_options: dict[str, str], tmp_path: Path
) -> None:
    """A plan that covers more than the tier names its expired offsets, not those behind it."""
    request = embedded(tmp_path / "archive", log.tiered[1:])
    plan = frozen(request, bounds=RecordBounds(from_offset=0, to_offset=log.tier_end + 500))
    file = tmp_path / "plan.json"
    file.write_bytes(format_plan(plan))
    options = {**read_options, "plan": str(file)}
    first = log.tiered[1].start_offset
    with pytest.raises(DataLost, match=f"orders-0: no offsets 0 to {first - 1}: expired"):
        rows_read(options)
    assert rows_read({**options, "failOnDataLoss": "false"}) == log.rows(first)
    behind = frozen(request, bounds=RecordBounds(from_offset=first, to_offset=log.tier_end + 500))
    file.write_bytes(format_plan(behind))
    assert rows_read(options) == log.rows(first)


def test_log_folders_are_read_up_to_the_high_watermark(log: WrittenLog, tmp_path: Path) -> None:
    """Log folders are read up to the checkpointed high watermark, in the active segment too."""
    log.append(3)
    log.append(3)
    until, end = log.next_offset, log.rows
    log.append(5)
    log.into_folder(tmp_path / "logs", high_watermark=until)
    options = {"logDirs": str(tmp_path / "logs"), "subscribe": "orders"}
    found = rows_read(options)
    assert len(found) == len(end()) + 6
    assert found[: len(end())] == end()
    assert found[-1].offset == until - 1
    committed = rows_read({**options, "isolationLevel": "read_committed"})
    assert committed == [row for row in log.rows(committed=True) if row.offset < until]
    shutil.rmtree(tmp_path / "logs")
    early = log.tiered[-1].start_offset + 2
    log.into_folder(tmp_path / "logs", high_watermark=early)
    assert rows_read(options) == log.rows(0, early)
    shutil.rmtree(tmp_path / "logs")
    log.into_folder(tmp_path / "logs")
    assert rows_read(options) == end()


def test_log_folders_when_records_were_deleted_omit_them(log: WrittenLog, tmp_path: Path) -> None:
    """Deleted records are not read from log folders although their segment still has them."""
    log.into_folder(tmp_path / "logs")
    (tmp_path / "logs/log-start-offset-checkpoint").write_text("0\n1\norders 0 17\n")
    options = {"logDirs": str(tmp_path / "logs"), "subscribe": "orders"}
    assert rows_read(options) == log.rows(17)
    with pytest.raises(DataLost, match="no offsets 3 to 16"):
        rows_read({**options, "startingOffsets": '{"orders": {"0": 3}}'})


def test_log_folders_when_there_are_two_the_farther_wins(log: WrittenLog, tmp_path: Path) -> None:
    """Of two replicas the data source reads the longer one, and each row once."""
    log.into_folder(tmp_path / "a")
    log.fill(20)
    log.into_folder(tmp_path / "b")
    options = {"logDirs": f"{tmp_path / 'a'},{tmp_path / 'b'}", "subscribe": "orders"}
    found, _ = planned(options)
    places = {piece.extent.place for share in found for piece in share}
    assert {one.folder for one in places if isinstance(one, LogFolderSegment)} == {
        str(tmp_path / "b/orders-0")
    }
    assert rows_read(options) == log.rows()


def test_partitions_when_several_are_read_by_own_bounds(store: LocalStore, tmp_path: Path) -> None:
    """Each partition is read by its own bounds, and one without data in them gives no row."""
    logs = [WrittenLog(5, "orders", 0), WrittenLog(6, "orders", 1), WrittenLog(7, "payments", 0)]
    for log in logs:
        log.fill(20)
        log.into_store(store)
    read_options = {"store": str(tmp_path / "tier")}
    expected = [row for log in logs for row in log.rows()]
    assert rows_read({**read_options, "subscribePattern": "ord.*|pay.*"}) == expected
    one = logs[1]
    assert rows_read({**read_options, "assign": '{"orders": [1]}'}) == one.rows()
    bounds = {
        "startingOffsets": '{"orders": {"0": 9, "1": -2}}',
        "endingOffsets": '{"orders": {"0": 9, "1": -1}}',
    }
    assert rows_read({**read_options, "subscribe": "orders", **bounds}) == one.rows()


def test_f125_changed_prefix_finds_both(log: WrittenLog, store: LocalStore, tmp_path: Path) -> None:
    """After a change of the prefix (F125) a plan finds old objects by their metadata."""
    log.into_store(store, "old/")
    custom = format_custom_metadata(CustomMetadata(1, "old/", None))
    old = [replace(one, custom_metadata=custom) for one in log.tiered]
    folder = tmp_path / "archive"
    with open_tier(CareRequest(embedded=folder)) as opened:
        for segment in old:
            started = replace(segment, state=SegmentState.COPY_SEGMENT_STARTED)
            opened.writer().publish(started, TIMEOUT_S)
            finished = SegmentState.COPY_SEGMENT_FINISHED
            update = SegmentUpdate(segment.id, 7, 1, custom, finished)
            opened.writer().publish(update, TIMEOUT_S)
    options = {"store": str(tmp_path / "tier"), "prefix": "new/", "embedded": str(folder)}
    assert rows_read({**options, "subscribe": "orders"}) == log.rows()


def test_two_topics_of_one_name_when_nobody_says_which_then_they_are_not_mixed(
    log: WrittenLog, store: LocalStore, read_options: dict[str, str]
) -> None:
    """Two topics of one name are not mixed, because their offsets belong to different records."""
    other = WrittenLog(9)
    other.id = replace(other.id, topic_id=type(other.id.topic_id)(bytes(range(16))))
    other.fill(15)
    other.into_store(store, PREFIX)
    with pytest.raises(ConfigError, match="2 topics have had the name orders"):
        rows_read(read_options)
    with pytest.raises(ConfigError, match=f"no orders of the id hello, but .*{log.id.topic_id}"):
        rows_read({**read_options, "topicIds": '{"orders": "hello"}'})
    wanted = f'{{"orders": "{other.id.topic_id}"}}'
    assert rows_read({**read_options, "topicIds": wanted}) == other.rows()


def test_listing_when_it_is_made_again_then_known_manifests_are_not_read_again(
    log: WrittenLog, store: LocalStore, read_options: dict[str, str]
) -> None:
    """A repeated listing of a stream does not read known manifests again."""
    planner = QueryPlanner(parse_options(read_options, is_streaming=True))
    (before,) = planner.listing().held
    manifests = [path_of(read_options, segment, ObjectKind.MANIFEST) for segment in log.tiered]
    contents = [path.read_bytes() for path in manifests]
    for path in manifests:
        path.write_bytes(b"{}")
    assert planner.listing().held == (before,)
    for path, content in zip(manifests, contents, strict=True):
        path.write_bytes(content)
    log.fill(20)
    log.into_store(store, PREFIX)
    (after,) = planner.listing().held
    assert after.next_offset == log.tier_end > before.next_offset


def test_window_of_time_when_it_is_one_minute_then_little_is_read(tmp_path: Path) -> None:
    """A query of one minute reads few bytes of the tier and returns every row of that minute."""
    run = Run()
    measure_window(run, QUICK.large, tmp_path)
    assert [figure.at_most for figure in run.asked] == [WINDOW_SHARE_MAX] * 2
    assert all(figure.is_met for figure in run.asked), run.asked
    requests = [figure.value for figure in run.figures if figure.unit == "requests"]
    of_tier = QUICK.large.partitions * QUICK.large.segments
    assert all(value < 4 * of_tier for value in requests)
