"""The data source over damaged or incomplete places, in this process, as Spark's workers do it."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path
from traceback import walk_tb
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import ConfigError, DataLost, StoreAbsent, TierUnreadable
from spark_tiering.data_source.piece_reading import read_piece
from spark_tiering.data_source.source import iterated_in_one_line, told_in_one_line
from spark_tiering.layout.object_names import ObjectKind
from spark_tiering.segments.findings import SegmentPart
from spark_tiering.storage import TierStorage
from tests.support.datasource.readable_tiers import (
    PREFIX,
    embedded,
    path_of,
    planned,
    rows_read,
    store_in,
)
from tests.support.stores.encrypted_segments import IDS, KeyFiles, seal_segment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spark_tiering.stores.local import LocalStore
    from tests.support.partitions.written_logs import WrittenLog


def test_gap_when_a_segment_is_missing_then_it_is_an_error_or_left_out(
    log: WrittenLog, read_options: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """A missing segment is an error with its offsets, or left out where losses are allowed."""
    gone = log.tiered[2]
    path_of(read_options, gone, ObjectKind.MANIFEST).unlink()
    told = f"orders-0: no offsets {gone.start_offset} to {gone.last_offset}"
    with pytest.raises(DataLost, match=f"{told}: no segment of the tier has them"):
        rows_read(read_options)
    left = rows_read({**read_options, "failOnDataLoss": "false"})
    assert left == [*log.rows(0, gone.start_offset), *log.rows(gone.last_offset + 1)]
    offsets = gone.last_offset - gone.start_offset + 1
    assert f"{offsets} offsets are left out: {told}" in caplog.text


def test_gap_when_committed_rows_are_read_then_none_of_an_undecided_transaction_is_given(
    log: WrittenLog, read_options: dict[str, str]
) -> None:
    """A committed read returns no row of a transaction whose marker may lie in a gap."""
    gone = log.tiered[2]
    path_of(read_options, gone, ObjectKind.MANIFEST).unlink()
    options = {**read_options, "isolationLevel": "read_committed"}
    with pytest.raises(DataLost):
        rows_read(options)
    found = rows_read({**options, "failOnDataLoss": "false"})
    assert not set(found) - set(log.rows(committed=True))
    behind = gone.last_offset + 1
    assert [row for row in found if row.offset >= behind] == log.rows(behind, committed=True)
    assert found[0] == log.rows()[0]


def test_expired_start_below_the_tier_named(log: WrittenLog, read_options: dict[str, str]) -> None:
    """A start below the tier names the expired offsets; `earliest` is the first available one."""
    for kind in ObjectKind:
        path_of(read_options, log.tiered[0], kind).unlink()
    first = log.tiered[1].start_offset
    assert rows_read(read_options) == log.rows(first)
    options = {**read_options, "startingOffsets": '{"orders": {"0": 2}}'}
    with pytest.raises(DataLost, match=f"no offsets 2 to {first - 1}: they lie below all"):
        rows_read(options)
    assert rows_read({**options, "failOnDataLoss": "false"}) == log.rows(first)


@pytest.mark.parametrize("bound", ["startingOffsets", "endingOffsets"])
def test_bound_behind_tier(bound: str, log: WrittenLog, read_options: dict[str, str]) -> None:
    """A start or an end behind the tier is an error with the offsets that are not tiered yet."""
    end = log.tier_end
    options = {**read_options, bound: f'{{"orders": {{"0": {end + 7}}}}}'}
    with pytest.raises(DataLost, match=f"no offsets {end} to {end + 6}: they lie behind all"):
        rows_read(options)
    left = log.rows() if bound == "endingOffsets" else []
    assert rows_read({**options, "failOnDataLoss": "false"}) == left


def test_object_when_gone_is_lost_by_name(log: WrittenLog, read_options: dict[str, str]) -> None:
    """A segment deleted during a query is reported by its object, and earlier rows are right."""

    shares, reading = planned(read_options)
    gone = log.tiered[3]
    path_of(read_options, gone, ObjectKind.LOG).unlink()
    pieces = [piece for share in shares for piece in share]
    with pytest.raises(DataLost, match=r"TIER-OBJECT-MISSING.*when this was planned"):
        list(read_piece(pieces[3], reading))
    assert list(read_piece(pieces[2], reading))


def test_topic_when_it_has_no_data_then_it_is_refused(read_options: dict[str, str]) -> None:
    """A named topic without data is an error with its keys; a pattern may match no topic."""
    with pytest.raises(ConfigError, match="nothing is there of payments"):
        rows_read({**read_options, "subscribe": "orders,payments"})
    without = {name: value for name, value in read_options.items() if name != "subscribe"}
    with pytest.raises(ConfigError, match="nothing is there of orders-4"):
        rows_read({**without, "assign": '{"orders": [0, 4]}'})
    assert rows_read({**without, "subscribePattern": "nothing.*"}) == []
    with pytest.raises(ConfigError, match="of orders; looked for keys that begin with 'kaorders-'"):
        rows_read({**read_options, "prefix": "ka"})


def tier_with(folder: Path, log: WrittenLog, part: SegmentPart, content: bytes) -> dict[str, str]:
    """Store the second segment alone, with *content* for *part*; return the options to read it."""
    report = log.reports[1]
    parts = {**log.parts(report), part: content}
    segment = replace(log.metadata(report), size_bytes=len(parts[SegmentPart.LOG]))
    TierStorage(store_in(folder)).copy(segment, parts)
    return {"store": str(folder / "tier"), "subscribe": "orders"}


def damage(read_options: dict[str, str], log: WrittenLog, what: str) -> None:
    segment, other = log.tiered[1], log.tiered[2]
    path = path_of(read_options, segment, ObjectKind.LOG)
    content = bytearray(path.read_bytes())
    manifest = path_of(read_options, segment, ObjectKind.MANIFEST)
    match what:
        case "cut object":
            path.write_bytes(content[:-30])
        case "object of another segment":
            foreign = path_of(read_options, other, ObjectKind.LOG).read_bytes()
            path.write_bytes(foreign[: len(content)])
        case "changed byte":
            content[len(content) // 2] ^= 1
            path.write_bytes(content)
        case "unknown codec":
            content[22] = content[22] & ~0x07 | 0x07
            path.write_bytes(content)
        case "manifest of another segment":
            manifest.write_bytes(path_of(read_options, other, ObjectKind.MANIFEST).read_bytes())
        case "manifest that is none":
            manifest.write_bytes(b"<html>not found</html>")
        case "empty manifest":
            manifest.write_bytes(b"")


@pytest.mark.parametrize(
    ("what", "code"),
    [
        ("cut object", "TIER-OBJECT-LENGTH"),
        ("object of another segment", "TIER-(BATCH-DAMAGED|OBJECT-LENGTH)"),
        ("changed byte", "TIER-BATCH-DAMAGED"),
        ("unknown codec", "TIER-BATCH-DAMAGED.*unknown-compression"),
        ("manifest of another segment", "TIER-MANIFEST-MALFORMED"),
        ("manifest that is none", "TIER-MANIFEST-MALFORMED"),
        ("empty manifest", "TIER-MANIFEST-MALFORMED"),
    ],
)
def test_bad_input_when_it_is_read_then_one_line_names_it_and_no_row_is_wrong(
    what: str, code: str, log: WrittenLog, read_options: dict[str, str]
) -> None:
    """A query over a damaged segment ends with one line about the fault, without a wrong row."""
    damage(read_options, log, what)
    verify = "none" if what == "unknown codec" else "crc"
    with pytest.raises(TierUnreadable, match=code) as told:
        rows_read({**read_options, "verify": verify})
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("what", ["manifest of another segment", "manifest that is none"])
def test_bad_input_when_a_plan_trusts_the_metadata_then_the_manifest_is_refused_where_it_is_read(
    what: str, log: WrittenLog, read_options: dict[str, str], tmp_path: Path
) -> None:
    """A bad manifest behind a correct plan is refused where it is read."""
    embedded(tmp_path / "archive", log.tiered)
    damage(read_options, log, what)
    with pytest.raises(TierUnreadable, match="TIER-MANIFEST"):
        rows_read({**read_options, "embedded": str(tmp_path / "archive")})


def test_wrong_index_when_it_leads_into_a_batch_is_named(log: WrittenLog, tmp_path: Path) -> None:
    """An index that leads into the middle of a batch is an error: rows would be missing."""
    segment = log.reports[1].segment
    index = bytearray(log.parts(log.reports[1])[SegmentPart.OFFSET_INDEX])
    index[-1] ^= 1
    options = tier_with(tmp_path, log, SegmentPart.OFFSET_INDEX, bytes(index))
    with pytest.raises(TierUnreadable, match=r"TIER-(INDEX-WRONG|BATCH-DAMAGED)"):
        rows_read({**options, "maxPartitionBytes": "300"})
    assert rows_read(options) == log.rows(segment.base_offset, segment.next_offset)


def test_log_when_it_ends_within_a_batch_is_read_up_to_it(log: WrittenLog, tmp_path: Path) -> None:
    """A log cut within a batch is an error, and all rows before the cut are right."""
    content = log.parts(log.reports[1])[SegmentPart.LOG]
    options = tier_with(tmp_path, log, SegmentPart.LOG, content[:-20])
    with pytest.raises(TierUnreadable, match=r"TIER-BATCH-DAMAGED.*torn"):
        rows_read(options)
    first = log.reports[1].segment.base_offset
    bounds = {"endingOffsets": f'{{"orders": {{"0": {first + 5}}}}}'}
    assert rows_read({**options, **bounds}) == log.rows(first, first + 5)


@pytest.mark.parametrize("part", [SegmentPart.PRODUCER_SNAPSHOT, SegmentPart.TXN_INDEX])
def test_state_of_transactions_when_it_cannot_be_read_then_committed_rows_are_refused(
    part: SegmentPart, log: WrittenLog, store: LocalStore, tmp_path: Path
) -> None:
    """Committed rows need a readable transaction index; uncommitted rows do not."""
    for report in log.reports:
        parts = log.parts(report)
        if part in parts:
            parts[part] = parts[part][:-1]
        TierStorage(store).copy(log.metadata(report), parts)
    options = {"store": str(tmp_path / "tier"), "subscribe": "orders"}
    assert rows_read(options) == log.rows()
    with pytest.raises(TierUnreadable, match="TIER-INDEX-WRONG"):
        rows_read({**options, "isolationLevel": "read_committed"})


def test_index_when_its_entries_lie_far_above_reads_on(log: WrittenLog, tmp_path: Path) -> None:
    """A look-up by index entries far above their batches reads on past their positions."""
    segment = log.reports[1].segment
    index = log.parts(log.reports[1])[SegmentPart.OFFSET_INDEX]
    positions = [position for _, position in struct.iter_unpack(">ii", index)]
    base, behind = segment.base_offset, segment.next_offset or 0
    least = behind - base - len(positions)
    assert len(positions) > 3
    late = b"".join(struct.pack(">ii", *entry) for entry in enumerate(positions, least))
    options = tier_with(tmp_path, log, SegmentPart.OFFSET_INDEX, late)
    for last in range(base + 1, behind, 7):
        bounds = {"endingOffsets": f'{{"orders": {{"0": {last}}}}}'}
        assert rows_read({**options, **bounds}) == log.rows(base, last)
    assert rows_read({**options, "minPartitions": "4"}) == log.rows(base, behind)


def test_foreign_bucket_when_it_is_named_then_it_holds_nothing_of_the_topic(tmp_path: Path) -> None:
    """A bucket of unrelated files lacks the topic; a missing folder is an error of its own."""
    foreign = tmp_path / "foreign"
    (foreign / "photos/2024").mkdir(parents=True)
    (foreign / "photos/2024/a.jpg").write_bytes(b"x")
    (foreign / "orders-xyz.rsm-manifest").write_bytes(b"{}")
    options = {"store": str(foreign), "subscribe": "orders"}
    with pytest.raises(ConfigError, match="nothing is there of orders"):
        rows_read(options)
    with pytest.raises(StoreAbsent):
        rows_read({**options, "store": str(tmp_path / "nowhere")})


def test_encrypted_segments_when_a_key_ring_is_named_then_they_are_read_and_else_named(
    log: WrittenLog, store: LocalStore, read_options: dict[str, str], tmp_path: Path
) -> None:
    """Encrypted segments are read with the ring; planning needs it only for transactions."""
    keys = KeyFiles(tmp_path / "keys")
    for number, segment in enumerate(log.tiered):
        seal_segment(store, segment, PREFIX, IDS[number % 2])
    options = {**read_options, "keyRing": str(keys.ring)}
    assert rows_read(options) == log.rows()
    committed = {**options, "isolationLevel": "read_committed", "maxPartitionBytes": "900"}
    assert rows_read(committed) == log.rows(committed=True)
    assert planned(read_options)[0]
    with pytest.raises(TierUnreadable, match=f"TIER-OBJECT-ENCRYPTED.*{IDS[0]}.*no key ring"):
        rows_read(read_options)
    keys.write({IDS[0]: "", IDS[1]: IDS[0]})
    with pytest.raises(TierUnreadable, match="TIER-KEY-WRONG"):
        rows_read(options)


def test_error_when_it_leaves_then_nothing_that_led_to_it_goes_with_it() -> None:
    """An error leaves the data source without its chain of causes, so that Spark shows one line."""

    def fail() -> Iterator[int]:
        try:
            Path("/nowhere").read_bytes()
        except OSError as error:
            msg = "in one line"
            raise ConfigError(msg) from error
        yield 1

    for called in (told_in_one_line(lambda: next(fail())), lambda: [*iterated_in_one_line(fail())]):
        with pytest.raises(ConfigError, match="in one line") as told:
            called()
        assert told.value.__cause__ is None
        assert told.value.__suppress_context__
        frames = [frame.f_code.co_name for frame, _ in walk_tb(told.value.__traceback__)]
        assert "fail" not in frames
