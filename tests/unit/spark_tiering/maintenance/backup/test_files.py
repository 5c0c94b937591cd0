"""Rows and files of backups."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from rlmm.errors import ConfigError, LogTruncated, NotReady
from rlmm.log.protocol import LogIdentity
from rlmm.metadata.encoding import encode
from rlmm.metadata.ids import Uuid
from rlmm.records.control import ControlType
from rlmm.records.record_set import RecordSet
from rlmm.records.records import Record
from rlmm.records.writer import Producer, build_batch, build_control_batch, records_of
from spark_tiering.maintenance.backup import tables
from spark_tiering.maintenance.backup.files import Backup, open_backup, writing
from spark_tiering.maintenance.backup.import_ import RUNS_MAX, RestoredOffsets, begun
from spark_tiering.maintenance.backup.records import SkippedRecords, rows_of
from spark_tiering.maintenance.backup.rows import (
    BackupDigest,
    BackupExtent,
    BackupHeader,
    BackupOrder,
    BackupRow,
    LostOffsets,
    event_of,
    parse_row,
    row_fields,
)
from spark_tiering.maintenance.json_lines import LineFault, arrow_for, parse_line, read_lines
from spark_tiering.maintenance.new_file import new_file
from tests.support.builders import started

if TYPE_CHECKING:
    from pathlib import Path


HEADER = BackupHeader(
    LogIdentity("cluster", Uuid(bytes(16)), 3),
    {0: BackupExtent(0, 9), 2: BackupExtent(5, 7)},
    {1: "its disk is gone"},
)
EVENT = BackupRow(0, 3, 77, None, encode(started("a")))
ODD = BackupRow(2, 5, -1, b"key", None, (("h", b"\xff"), ("h", None)))
LOST = LostOffsets(2, 6, 7, "bad crc")


def test_event_when_people_read_it_then_says_what_the_record_says() -> None:
    """Events have the names of `rlmm events`, and unreadable ones their reason."""
    told = event_of(EVENT)
    assert (told["kind"], told["state"], told["topic"]) == (
        "segment", "COPY_SEGMENT_STARTED", "orders",
    )  # fmt: skip
    assert set(event_of(BackupRow(0, 0, 0, None, b"junk"))) == {"undecodable", "detail"}


def test_digest_when_anything_differs_then_is_another() -> None:
    """The digest differs for other places, times, order, or null instead of empty."""

    def of(*rows: BackupRow | LostOffsets) -> str:
        digest = BackupDigest()
        for row in rows:
            digest.add(row)
        return digest.footer.sha256

    changed = [
        of(EVENT, ODD), of(ODD, EVENT), of(EVENT), of(replace(EVENT, timestamp_ms=78), ODD),
        of(replace(EVENT, key=b""), ODD), of(EVENT, replace(ODD, value=b"")),
        of(EVENT, replace(ODD, headers=ODD.headers[:1])), of(EVENT, LOST),
        of(replace(EVENT, offset=4), ODD), of(replace(EVENT, place=1), ODD),
    ]  # fmt: skip
    assert len(set(changed)) == len(changed)


def test_row_when_a_text_is_no_utf8_then_is_refused() -> None:
    """A header's name that is no UTF-8 is refused; recorded lines show the other faults."""
    with pytest.raises(LineFault):
        parse_row(row_fields(ODD) | {"headers": [["\ud800", None]]})


@pytest.mark.parametrize("line", [b"{}", b"[]\n", b"{,}\n", b"\xff\n", b"[" * 99_999 + b"\n"])
def test_line_when_it_is_no_object_then_is_refused(line: bytes) -> None:
    """A line that is no JSON object, as a cut one, is refused."""
    with pytest.raises(LineFault):
        parse_line(line)


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([EVENT, EVENT], id="twice"),
        pytest.param([ODD, EVENT], id="partition behind"),
        pytest.param([BackupRow(1, 0, 0, None, b"")], id="partition that was missing"),
        pytest.param([BackupRow(0, 9, 0, None, b"")], id="behind the end"),
        pytest.param([BackupRow(2, 4, 0, None, b"")], id="before the start"),
        pytest.param([LostOffsets(2, 6, 8, "")], id="lost beyond the end"),
        pytest.param([LostOffsets(2, 6, 6, "")], id="nothing lost"),
        pytest.param([replace(EVENT, timestamp_ms=-2)], id="no time"),
    ],
)
def test_order_when_rows_cannot_be_so_then_is_wrong(rows: list[BackupRow | LostOffsets]) -> None:
    """Rows out of order or bounds are refused at the first such row."""
    order = BackupOrder(HEADER)
    assert [bool(order.wrong(row)) for row in rows] == [False] * (len(rows) - 1) + [True]
    fine = BackupOrder(HEADER)
    assert not any(fine.wrong(row) for row in (EVENT, ODD, LOST))


ROWS = [BackupRow(0, offset, 5, None, b"%d" % offset) for offset in (3, 4, 7)]


def there(count: int) -> list[BackupRow | LostOffsets]:
    return [
        BackupRow(0, number, 9, row.key, row.value, row.headers)
        for number, row in enumerate(ROWS[:count])
    ]


def test_begun_when_records_are_there_then_counts_the_first_or_says_what_else() -> None:
    """The comparison counts the first records, whatever their times, or names another one."""
    for count in range(4):
        assert begun(iter(ROWS), iter(there(count))) == (count, "")
    other = [*there(1), BackupRow(0, 1, 9, None, b"other")]
    assert "offset 1 holds another record than 4 had" in begun(iter(ROWS), iter(other)).why_not
    assert begun(iter(ROWS), iter([replace(ROWS[0], key=b"k")])).why_not
    assert begun(iter(ROWS), iter([LostOffsets(0, 0, 1, "")])).why_not
    assert "no such" in begun(iter(ROWS[:1]), iter(there(2))).why_not


def test_offsets_when_records_moved_then_stretches_that_moved_together_are_told() -> None:
    """Moved stretches are reported, the first of very many, without those that kept offsets."""
    offsets, many = RestoredOffsets(), RestoredOffsets()
    for place, offset, new in ((0, 0, 0), (0, 1, 1), (0, 5, 2), (0, 6, 3), (0, 9, 4), (1, 4, 4)):
        offsets.add(place, offset, new)
    offsets.close()
    assert (offsets.records, offsets.moved) == (6, 3)
    assert [str(run) for run in offsets.runs] == [
        "metadata partition 0: 5 to 6 became 2 to 3",
        "metadata partition 0: 9 to 9 became 4 to 4",
    ]
    for number in range(RUNS_MAX + 5):
        many.add(0, 2 * number + 1, number)
    many.close()
    assert (len(many.runs), many.moved) == (RUNS_MAX, RUNS_MAX + 5)


WRITER = Producer(7, 0, 0, is_transactional=True)


class Log:
    def __init__(self, *batches: tuple[bytes, int], together: bool = False) -> None:
        self._batches = batches
        self._together = together

    def read(self, place: int, position: int) -> RecordSet | None:
        left = [one for one in self._batches if one[1] > position]
        if not left:
            return None
        chosen = left if self._together else left[:1]
        return RecordSet(place, b"".join(data for data, _ in chosen), chosen[-1][1])


def batch(base: int, *records: Record, last: int | None = None) -> bytes:
    return build_batch(records, base, last_offset=last)


FIRST = batch(0, Record(0, 5, b"k", b"v", (("h", None),)), Record(1, 6, None, None))
MARKER = build_control_batch(ControlType.COMMIT, 2, producer=WRITER, timestamp_ms=7)
CLEANED = batch(3, Record(4, 8, None, b"w"), last=6)
LAST = build_batch(records_of([b"x", b"y"], 9, 9), 9)
ALL = ((FIRST, 2), (MARKER, 3), (CLEANED, 9), (LAST, 11))


@pytest.mark.parametrize("together", [False, True])
def test_rows_when_a_log_was_cleaned_then_everything_that_is_there_is_told(together: bool) -> None:
    """The backup of a cleaned log holds all records, and counts markers and empty offsets."""
    passed = SkippedRecords()
    found = list(rows_of(Log(*ALL, together=together).read, 3, BackupExtent(0, 11), passed))
    assert found == [
        BackupRow(3, 0, 5, b"k", b"v", (("h", None),)),
        BackupRow(3, 1, 6, None, None),
        BackupRow(3, 4, 8, None, b"w"),
        BackupRow(3, 9, 9, None, b"x"),
        BackupRow(3, 10, 9, None, b"y"),
    ]
    assert (passed.control, passed.holes) == (1, 5)


def test_rows_when_the_extent_begins_or_ends_inside_a_batch_then_only_that_is_told() -> None:
    """Of a batch that the extent cuts, at either end, the records inside are kept."""
    passed = SkippedRecords()
    found = list(rows_of(Log(*ALL, together=True).read, 0, BackupExtent(1, 10), passed))
    assert [row.offset for row in found] == [1, 4, 9]


@pytest.mark.parametrize("together", [False, True])
def test_rows_when_a_batch_is_damaged_then_it_is_lost_and_the_rest_is_kept(together: bool) -> None:
    """A damaged batch is lost with its offsets and reason, and the rest is kept."""
    broken = bytearray(CLEANED)
    broken[-1] ^= 1
    log = Log((FIRST, 2), (MARKER, 3), (bytes(broken), 9), (LAST, 11), together=together)
    found = list(rows_of(log.read, 0, BackupExtent(0, 11), SkippedRecords()))
    lost = [row for row in found if isinstance(row, LostOffsets)]
    assert [(row.offset, row.next_offset) for row in lost] == [(3, 9)]
    assert [row.offset for row in found if isinstance(row, BackupRow)] == [0, 1, 9, 10]


def test_rows_when_nothing_comes_then_it_is_not_told_as_all() -> None:
    """A read that brings nothing in time is an error and not the end."""
    with pytest.raises(NotReady):
        list(rows_of(Log((FIRST, 2)).read, 0, BackupExtent(0, 5), SkippedRecords()))

    def stuck(place: int, position: int) -> RecordSet:
        return RecordSet(place, b"", position)

    with pytest.raises(LogTruncated):
        list(rows_of(stuck, 0, BackupExtent(0, 5), SkippedRecords()))
    assert list(rows_of(stuck, 0, BackupExtent(5, 5), SkippedRecords())) == []


FILE_HEADER = BackupHeader(
    LogIdentity("cluster", Uuid(bytes(16)), 3), {0: BackupExtent(0, 90), 2: BackupExtent(5, 9)}
)
FILE_ROWS: list[BackupRow | LostOffsets] = [
    *(BackupRow(0, offset, offset, None, encode(started(offset))) for offset in range(30)),
    BackupRow(0, 40, -1, b"k", None, (("h", b"\0"), ("n", None))),
    BackupRow(2, 5, 7, None, b"nobody understands this"),
    LostOffsets(2, 6, 9, "bad crc"),
]
NAMES = ("a.jsonl", "a.jsonl.gz", "a.jsonl.zst", "a.parquet")


def write(path: Path, rows: list[BackupRow | LostOffsets] = FILE_ROWS) -> Path:
    with writing(path, FILE_HEADER) as into:
        for row in rows:
            into.add(row)
    return path


@pytest.fixture(params=NAMES)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    name: str = request.param
    return tmp_path / name


def test_backup_when_written_and_read_then_is_the_same(path: Path) -> None:
    """A backup in every form reads back with one digest, and equal content gives an equal file."""
    seen: list[BackupRow | LostOffsets] = []
    backup = open_backup(write(path), seen.append)
    assert seen == FILE_ROWS == list(backup.rows())
    assert backup.header == FILE_HEADER
    assert (backup.footer.records, backup.footer.lost) == (32, 3)
    assert [(place, len(list(rows))) for place, rows in backup.places()] == [(0, 31), (2, 2)]
    other = write(path.with_name(f"b{path.name[1:]}"))
    assert other.read_bytes() == path.read_bytes()
    lines = open_backup(write(path.with_name("c.jsonl")))
    assert lines.footer == backup.footer
    empty = open_backup(write(path.with_name(f"d{path.name[1:]}"), []))
    assert (empty.footer.records, list(empty.rows())) == (0, [])


def test_backup_of_many_rows_is_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backup of many rows is written in pieces, and one piece is held."""
    monkeypatch.setattr(tables, "ROWS_MAX", 10)
    backup = open_backup(write(tmp_path / "a.parquet"))
    assert list(backup.rows()) == FILE_ROWS


def test_backup_when_it_is_cut_anywhere_then_is_refused(path: Path) -> None:
    """A backup cut at any byte is refused in one line, in every form."""
    whole = write(path).read_bytes()
    steps = max(1, len(whole) // 40)
    for size in [*range(0, len(whole), steps), len(whole) - 1]:
        path.write_bytes(whole[:size])
        with pytest.raises(ConfigError) as refused:
            open_backup(path)
        assert str(path) in str(refused.value)
        assert "\n" not in str(refused.value)


def test_backup_when_any_byte_is_changed_then_is_refused_or_the_same(path: Path) -> None:
    """A changed byte is refused, or unread as in a table of contents."""
    whole = write(path).read_bytes()
    refusals = 0
    for at in range(0, len(whole), max(1, len(whole) // 150)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        seen: list[BackupRow | LostOffsets] = []
        try:
            open_backup(path, seen.append)
        except ConfigError:
            refusals += 1
        else:
            assert seen == FILE_ROWS, at
    assert refusals > (30 if path.suffix == ".parquet" else 100)


def test_backup_when_lines_are_exchanged_or_left_out_then_is_refused(tmp_path: Path) -> None:
    """A backup with exchanged or missing lines is refused, although each line is valid."""
    path = write(tmp_path / "a.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    for wrong in (
        [*lines[:3], *lines[4:]],
        [*lines, lines[-1]],
        [*lines, lines[3]],
        [lines[0], *lines],
        lines[1:],
        [lines[-1]],
        [*lines[:-1], write(tmp_path / "b.jsonl", FILE_ROWS[:5]).read_bytes().splitlines(True)[-1]],
    ):
        path.write_bytes(b"".join(wrong))
        with pytest.raises(ConfigError):
            open_backup(path)
        (tmp_path / "b.jsonl").unlink(missing_ok=True)


def test_backup_when_it_is_of_something_else_then_is_refused(tmp_path: Path) -> None:
    """A backup whose content differs from its name's form is refused."""
    whole = write(tmp_path / "a.jsonl").read_bytes()
    for name in NAMES[1:]:
        wrong = tmp_path / f"wrong-{name}"
        wrong.write_bytes(whole)
        with pytest.raises(ConfigError):
            open_backup(wrong)
    with pytest.raises(ConfigError, match="name it"):
        open_backup(tmp_path / "a.csv")
    with pytest.raises(ConfigError, match="No such file"):
        open_backup(tmp_path / "absent.jsonl")
    arrow = arrow_for(tmp_path)
    table = tmp_path / "table.parquet"
    arrow_for(table, "pyarrow.parquet").write_table(arrow.table({"a": [1]}), table)
    with pytest.raises(ConfigError, match="a table of something else"):
        open_backup(table)


def test_backup_when_it_is_changed_meanwhile_then_its_second_read_fails(tmp_path: Path) -> None:
    """A backup changed after its check is refused in its second reading, before it is used."""
    path = write(tmp_path / "a.jsonl")
    backup = open_backup(path)
    path.unlink()
    write(path, FILE_ROWS[:-1])
    with pytest.raises(ConfigError, match="changed while"):
        list(Backup(path, backup.header, backup.footer).rows())


def test_new_file_when_the_writing_fails_then_nothing_is_left(tmp_path: Path, path: Path) -> None:
    """A failed write leaves no file, and an existing file is not replaced."""

    def fail(how: Exception) -> None:
        with writing(path, FILE_HEADER) as into:
            into.add(FILE_ROWS[0])
            raise how

    with pytest.raises(RuntimeError):
        fail(RuntimeError("broken off"))
    assert list(tmp_path.iterdir()) == []
    path.write_bytes(b"mine")
    with pytest.raises(ConfigError, match="nothing is overwritten"):
        write(path)
    path.unlink()

    def race() -> None:
        with new_file(path) as file:
            file.write(b"ours")
            path.write_bytes(b"mine")

    with pytest.raises(ConfigError, match="nothing is overwritten"):
        race()
    assert path.read_bytes() == b"mine"
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    with pytest.raises(ConfigError, match="no such folder"):
        write(tmp_path / "nowhere" / path.name)


def test_lines_when_one_is_endless_then_it_is_not_read(tmp_path: Path) -> None:
    """A line longer than the limit is refused without being read, also from compressed zeros."""
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b"0" * 5_000_000))
    with pytest.raises(ConfigError, match="a line of more than"):
        list(read_lines(path, 1_000_000))
