"""Backups as files: whole or not at all, by their names, and broken in every way."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import ConfigError
from rlmm.log.protocol import LogIdentity
from rlmm.metadata.encoding import encode
from rlmm.metadata.ids import Uuid
from spark_tiering.maintenance.backup import tables
from spark_tiering.maintenance.backup.files import Backup, open_backup, writing
from spark_tiering.maintenance.backup.rows import BackupExtent, BackupHeader, BackupRow, LostOffsets
from spark_tiering.maintenance.json_lines import arrow_for, read_lines
from spark_tiering.maintenance.new_file import new_file
from tests.support.builders import started

if TYPE_CHECKING:
    from pathlib import Path

HEADER = BackupHeader(
    LogIdentity("cluster", Uuid(bytes(16)), 3), {0: BackupExtent(0, 90), 2: BackupExtent(5, 9)}
)
ROWS: list[BackupRow | LostOffsets] = [
    *(BackupRow(0, offset, offset, None, encode(started(offset))) for offset in range(30)),
    BackupRow(0, 40, -1, b"k", None, (("h", b"\0"), ("n", None))),
    BackupRow(2, 5, 7, None, b"nobody understands this"),
    LostOffsets(2, 6, 9, "bad crc"),
]
NAMES = ("a.jsonl", "a.jsonl.gz", "a.jsonl.zst", "a.parquet")


def write(path: Path, rows: list[BackupRow | LostOffsets] = ROWS) -> Path:
    with writing(path, HEADER) as into:
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
    assert seen == ROWS == list(backup.rows())
    assert backup.header == HEADER
    assert (backup.footer.records, backup.footer.lost) == (32, 3)
    assert [(place, len(list(rows))) for place, rows in backup.places()] == [(0, 31), (2, 2)]
    other = write(path.with_name(f"b{path.name[1:]}"))
    assert other.read_bytes() == path.read_bytes()
    lines = open_backup(write(path.with_name("c.jsonl")))
    assert lines.footer == backup.footer


def test_backup_when_rows_are_many_then_tables_are_written_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup of many rows is written in pieces, and one piece is held."""
    monkeypatch.setattr(tables, "ROWS_MAX", 10)
    backup = open_backup(write(tmp_path / "a.parquet"))
    assert list(backup.rows()) == ROWS


def test_backup_when_nothing_was_there_then_it_is_empty(path: Path) -> None:
    """The backup of an empty topic is a valid file."""
    backup = open_backup(write(path, []))
    assert (backup.footer.records, list(backup.rows())) == (0, [])


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
            assert seen == ROWS, at
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
        [*lines[:-1], write(tmp_path / "b.jsonl", ROWS[:5]).read_bytes().splitlines(True)[-1]],
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


def test_backup_when_it_is_changed_behind_our_back_then_its_second_reading_says_so(
    tmp_path: Path,
) -> None:
    """A backup changed after its check is refused in its second reading, before it is used."""
    path = write(tmp_path / "a.jsonl")
    backup = open_backup(path)
    path.unlink()
    write(path, ROWS[:-1])
    with pytest.raises(ConfigError, match="changed while"):
        list(Backup(path, backup.header, backup.footer).rows())


def test_new_file_when_the_writing_fails_then_nothing_is_left(tmp_path: Path, path: Path) -> None:
    """A failed write leaves no file, and an existing file is not replaced."""

    def fail(how: Exception) -> None:
        with writing(path, HEADER) as into:
            into.add(ROWS[0])
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
