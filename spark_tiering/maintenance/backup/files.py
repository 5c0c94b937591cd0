"""Backup files by their name, whole or not at all: a `Backup` was read to its end and checked."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rlmm.errors import ConfigError
from spark_tiering.maintenance.backup.rows import (
    BackupDigest,
    BackupHeader,
    BackupOrder,
    BackupRow,
    Footer,
    LostOffsets,
    footer_fields,
    header_fields,
    parse_footer,
    parse_header,
    parse_row,
    row_fields,
)
from spark_tiering.maintenance.backup.tables import TableReader, TableWriter
from spark_tiering.maintenance.json_lines import (
    GZIP,
    LINE_BYTES_MAX,
    ZSTD,
    LineFault,
    LineWriter,
    compact_line,
    compressing,
    read_objects,
)
from spark_tiering.maintenance.new_file import new_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

LINES, TABLE = ".jsonl", ".parquet"


def is_table(path: Path) -> bool:
    """Return whether the name says Parquet. Raise `ConfigError` for an unknown name."""
    if path.name.endswith(TABLE):
        return True
    if path.name.endswith((LINES, LINES + GZIP, LINES + ZSTD)):
        return False
    msg = f"{path}: name it .jsonl, .jsonl.gz, .jsonl.zst or .parquet: it is written as that"
    raise ConfigError(msg)


@contextmanager
def writing(path: Path, header: BackupHeader) -> Iterator[_Writing]:
    """Write the records of a new file, which exists only when the block has ended."""
    as_table = is_table(path)
    with new_file(path) as file:
        if as_table:
            table = TableWriter(path, file, header)
            taken = _Writing(table.add)
            try:
                yield taken
                table.close(taken.digest.footer)
            except BaseException:
                table.give_up()
                raise
            return
        with compressing(path, file) as write:
            lines = LineWriter(write, compact_line)
            lines.put(header_fields(header))
            taken = _Writing(lambda row: lines.put(row_fields(row)))
            yield taken
            write(compact_line(footer_fields(taken.digest.footer, lines.sha256)))


class _Writing:
    def __init__(self, put: Callable[[BackupRow | LostOffsets], None]) -> None:
        self.digest = BackupDigest()
        self._put = put

    def add(self, row: BackupRow | LostOffsets) -> None:
        self.digest.add(row)
        self._put(row)


@dataclass(frozen=True, slots=True)
class Backup:
    """A file that was read whole once."""

    path: Path
    header: BackupHeader
    footer: Footer

    def rows(self) -> Iterator[BackupRow | LostOffsets]:
        """Yield everything once more. Raise `ConfigError` at the end where the file has changed."""
        digest = BackupDigest()
        for found in _read(self.path):
            if isinstance(found, BackupRow | LostOffsets):
                digest.add(found)
                yield found
        if digest.footer != self.footer:
            raise ConfigError(f"{self.path}: it was changed while it was read")

    def places(self) -> Iterator[tuple[int, Iterator[BackupRow | LostOffsets]]]:
        """Yield the rows by metadata partition; each must be read before the next."""
        yield from groupby(self.rows(), lambda row: row.place)


def open_backup(
    path: Path, on_row: Callable[[BackupRow | LostOffsets], None] = lambda row: None
) -> Backup:
    """Read the backup to its end, or raise `ConfigError`; *on_row* gets unconfirmed rows."""
    header: BackupHeader | None = None
    footer: Footer | None = None
    digest, order = BackupDigest(), None
    for found in _read(path):
        if isinstance(found, BackupHeader):
            header, order = found, BackupOrder(found)
        elif isinstance(found, Footer):
            footer = found
        else:
            assert order is not None
            why = order.wrong(found)
            if why:
                raise ConfigError(f"{path}: {why}")
            digest.add(found)
            on_row(found)
    assert header is not None
    if footer is None:
        raise ConfigError(f"{path}: it is cut: what stands at its end is missing")
    if digest.footer != footer:
        raise ConfigError(f"{path}: not what was written: its digest differs")
    return Backup(path, header, footer)


def _read(path: Path) -> Iterator[BackupHeader | BackupRow | LostOffsets | Footer]:
    """Yield the content in order; the digest of its lines is checked here."""
    if is_table(path):
        try:
            yield from _read_table(path)
        except LineFault as error:
            raise ConfigError(f"{path}: {error}") from error
    else:
        yield from read_objects(path, _parse, LINE_BYTES_MAX, "backup")


def _read_table(path: Path) -> Iterator[BackupHeader | BackupRow | LostOffsets | Footer]:
    reader = TableReader(path)
    try:
        yield reader.header()
        yield from reader.rows()
        yield reader.footer()
    finally:
        reader.close()


def _parse(
    number: int, found: dict[str, Any], lines_sha256: str
) -> BackupHeader | BackupRow | LostOffsets | Footer:
    if number == 1:
        return parse_header(found)
    if not lines_sha256:
        return parse_row(found)
    footer, expected = parse_footer(found)
    if lines_sha256 != expected:
        raise LineFault("not what was written: the digest of the lines differs")
    return footer
