"""
By its name, a backup written or read.

    .jsonl  .jsonl.gz  .jsonl.zst    lines of JSON
    .parquet                         a table

Invariants: a file is there whole or not at all. `Backup` is made only of a file of which everything
was read, in order, and whose digest is right; what it gives afterwards is read anew, and checked
again.
"""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Protocol

from rlmm.errors import ConfigError
from spark_tiering.maintenance.backup.lines import (
    BackupLineFault,
    footer_fields,
    header_fields,
    line_of,
    parse_footer,
    parse_header,
    parse_line,
    parse_row,
    row_fields,
)
from spark_tiering.maintenance.backup.new_file import new_file
from spark_tiering.maintenance.backup.rows import (
    BackupDigest,
    BackupHeader,
    BackupOrder,
    BackupRow,
    Footer,
    LostOffsets,
)
from spark_tiering.maintenance.backup.streams import GZIP, ZSTD, compressing, read_lines
from spark_tiering.maintenance.backup.tables import TableReader, TableWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

LINES, TABLE = ".jsonl", ".parquet"


class BackupWriter(Protocol):
    """Takes a backup, record by record."""

    def add(self, row: BackupRow | LostOffsets) -> None: ...


def is_table(path: Path) -> bool:
    """
    Whether the name says Parquet. Raises `ConfigError` for one that says nothing that is known.
    """
    if path.name.endswith(TABLE):
        return True
    if path.name.endswith((LINES, LINES + GZIP, LINES + ZSTD)):
        return False
    msg = f"{path}: name it .jsonl, .jsonl.gz, .jsonl.zst or .parquet: it is written as that"
    raise ConfigError(msg)


# ------------------------------------------------------------------------------------- writing


@contextmanager
def writing(path: Path, header: BackupHeader) -> Iterator[_Writing]:
    """
    What takes the records of a new file, which is there when the block has ended; where it raises,
    there is none.
    """
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
            lines = _Lines(write)
            lines.put(header_fields(header))
            taken = _Writing(lambda row: lines.put(row_fields(row)))
            yield taken
            write(line_of(footer_fields(taken.digest.footer, lines.sha256)))


class _Lines:
    """Lines on their way into a file, with their digest."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._hash = hashlib.sha256()

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def put(self, fields: dict[str, object]) -> None:
        line = line_of(fields)
        self._hash.update(line)
        self._write(line)


class _Writing:
    """Takes records, and knows their digest."""

    def __init__(self, put: Callable[[BackupRow | LostOffsets], None]) -> None:
        self.digest = BackupDigest()
        self._put = put

    def add(self, row: BackupRow | LostOffsets) -> None:
        self.digest.add(row)
        self._put(row)


# ------------------------------------------------------------------------------------- reading


@dataclass(frozen=True, slots=True)
class Backup:
    """A file that was read whole once."""

    path: Path
    header: BackupHeader
    footer: Footer

    def rows(self) -> Iterator[BackupRow | LostOffsets]:
        """
        Everything in it, once more. Raises `ConfigError` at the end where that is not what it was.
        """
        digest = BackupDigest()
        for found in _read(self.path):
            if isinstance(found, BackupRow | LostOffsets):
                digest.add(found)
                yield found
        if digest.footer != self.footer:
            msg = f"{self.path}: it was changed while it was read"
            raise ConfigError(msg)

    def places(self) -> Iterator[tuple[int, Iterator[BackupRow | LostOffsets]]]:
        """The same, a metadata partition at a time, each to be read before the next is asked."""
        yield from groupby(self.rows(), lambda row: row.place)


def open_backup(
    path: Path, on_row: Callable[[BackupRow | LostOffsets], None] = lambda row: None
) -> Backup:
    """
    The backup in *path*, read to its end; *on_row* is told of everything in it, but believes it
    only when this has returned.

    Raises `ConfigError`, in one line, for what is no backup, is of another version, is cut, or is
    not what was written.
    """
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
    """What a file says, in order; the digest of its lines is checked here."""
    if is_table(path):
        try:
            yield from _read_table(path)
        except BackupLineFault as error:
            raise ConfigError(f"{path}: {error}") from error
    else:
        yield from _read_lines(path)


def _read_table(path: Path) -> Iterator[BackupHeader | BackupRow | LostOffsets | Footer]:
    reader = TableReader(path)
    try:
        yield reader.header()
        yield from reader.rows()
        yield reader.footer()
    finally:
        reader.close()


def _read_lines(path: Path) -> Iterator[BackupHeader | BackupRow | LostOffsets | Footer]:
    number = 0
    parser = _Parser()
    for number, line in enumerate(read_lines(path), 1):
        try:
            found = parser.parse(line)
        except BackupLineFault as error:
            where = f"{path}, line {number}" if number > 1 else str(path)
            raise ConfigError(f"{where}: {error}") from error
        yield found
    if not number:
        raise ConfigError(f"{path}: an empty file, and no backup")


class _Parser:
    """Line by line, with the digest of those that came before; raises `BackupLineFault`."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._is_begun = self._is_over = False

    def parse(self, line: bytes) -> BackupHeader | BackupRow | LostOffsets | Footer:
        if self._is_over:
            raise BackupLineFault("more stands behind the end")
        found = parse_line(line)
        if not self._is_begun:
            self._is_begun = True
            self._hash.update(line)
            return parse_header(found)
        if "end" in found:
            footer, lines_sha256 = parse_footer(found)
            if lines_sha256 != self._hash.hexdigest():
                raise BackupLineFault("not what was written: the digest of the lines differs")
            self._is_over = True
            return footer
        self._hash.update(line)
        return parse_row(found)
