"""
The transfer of whole sets of snapshots, to a backup and back. Blocks. An export is a snapshot
folder, or the same in one plain tar. An import examines every file before it installs the first,
and never overwrites or removes one.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlmm.base.private_files import read_regular
from rlmm.errors import ConfigError, SnapshotCorrupt, SnapshotForeign
from rlmm.log.protocol import LogIdentity
from rlmm.metadata.ids import Uuid
from rlmm.snapshot.archive import tar_of, tar_source
from rlmm.snapshot.atomic import SNAPSHOT_DISK, make_durable_folder, write_atomically
from rlmm.snapshot.catalog import SUFFIX, Catalog, identity_folder
from rlmm.snapshot.files import opened, require_identity
from rlmm.snapshot.folder_check import (
    CheckedSnapshot,
    chosen_folder,
    examine,
    examine_stranger,
    glance,
    stored_in,
)
from rlmm.snapshot.format import DIGEST_BYTES, MAGIC

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from rlmm.snapshot.archive import Opener
    from rlmm.snapshot.atomic import SnapshotDisk
    from rlmm.snapshot.catalog import CatalogEntry
    from rlmm.snapshot.files import SnapshotFile
    from rlmm.snapshot.format import SnapshotHeader

TAR = ".tar"


@dataclass(frozen=True, slots=True)
class TransferResult:
    done: tuple[CheckedSnapshot, ...] = ()
    """Written, and on the medium."""
    unchanged: tuple[CheckedSnapshot, ...] = ()
    """There already, byte for byte."""
    refused: tuple[CheckedSnapshot, ...] = ()
    """An export takes an older one in its place; an import then installs nothing."""
    in_the_way: tuple[CheckedSnapshot, ...] = ()
    """Not installed: another file is at their place, and stays."""

    @property
    def is_complete(self) -> bool:
        return not self.refused and not self.in_the_way


def export(
    root: Path,
    target: Path,
    cluster_id: str | None = None,
    topic_id: str | None = None,
    disk: SnapshotDisk = SNAPSHOT_DISK,
) -> TransferResult:
    """
    Copy the newest good snapshot of each metadata partition of one log into *target*. That is a tar
    when its name ends so, else a new or empty folder. Raises `ConfigError` for a target that
    exists, and for a choice of no log or several; `OSError` when it cannot be written.
    """
    folder = chosen_folder(root, cluster_id, topic_id)
    if target.is_file() or (target.is_dir() and any(target.iterdir())):
        msg = f"{target} is there already, and nothing is overwritten: name another"
        raise ConfigError(msg)
    good: dict[int, tuple[CatalogEntry, CheckedSnapshot]] = {}
    refused: list[CheckedSnapshot] = []
    for stored in stored_in(folder, disk):
        if stored.partition in good:
            continue
        judged = examine(stored, disk)
        if judged.is_good:
            good[stored.partition] = stored, judged
        else:
            refused.append(judged)
    if not good:
        return TransferResult(refused=tuple(refused))
    if target.name.endswith(TAR):
        write_atomically(disk, target, _tar(good.values(), root, disk))
    else:
        for stored, judged in good.values():
            copy = target / stored.path.relative_to(root)
            make_durable_folder(disk, copy.parent, target)
            with opened(disk, stored.path) as file:
                write_atomically(disk, copy, _checked(file, judged))
    return TransferResult(tuple(judged for _, judged in good.values()), refused=tuple(refused))


def import_from(
    source: Path,
    root: Path,
    cluster_id: str | None = None,
    topic_id: str | None = None,
    disk: SnapshotDisk = SNAPSHOT_DISK,
) -> TransferResult:
    """
    Install the snapshots of *source*, a folder, a tar or one snapshot, below *root*.

    All must be good and of one log: that of *cluster_id* and *topic_id* where given, with the
    partition count of those in *root*; else nothing is installed. Paths in *source* mean nothing.

    Raises `ConfigError` for a source without snapshots, `OSError` when *root* cannot be written.
    """
    files = dict(files_of(source, disk))
    if not files:
        msg = f"{source} holds no snapshots"
        raise ConfigError(msg)
    judged = [examine_stranger(name, opener) for name, opener in files.items()]
    judged = _of_one_log(judged, root, disk, cluster_id, topic_id)
    refused = tuple(found for found in judged if not found.is_good)
    if refused:
        return TransferResult(refused=refused)
    done: list[CheckedSnapshot] = []
    unchanged: list[CheckedSnapshot] = []
    in_the_way: list[CheckedSnapshot] = []
    for found in judged:
        path = _place_of(found, root, disk)
        with files[found.name]() as file:
            if not path.exists():
                make_durable_folder(disk, path.parent, root)
                write_atomically(disk, path, _checked(file, found))
                done.append(found)
            elif _is_same(file, path, disk):
                unchanged.append(found)
            else:
                in_the_way.append(found)
    return TransferResult(tuple(done), tuple(unchanged), (), tuple(in_the_way))


def files_of(source: Path, disk: SnapshotDisk = SNAPSHOT_DISK) -> Iterator[tuple[str, Opener]]:
    """Yield each snapshot of *source* by name, and how to open it; else raise `ConfigError`."""

    def opener_of(path: Path) -> Opener:
        return lambda: opened(disk, path)

    if source.is_dir():
        for path in sorted(source.rglob(f"*{SUFFIX}")):
            if path.is_file():
                yield str(path), opener_of(path)
        return
    if read_regular(source, len(MAGIC)) == MAGIC:
        yield str(source), opener_of(source)
    else:
        yield from tar_source(source, SUFFIX)


def _of_one_log(
    judged: list[CheckedSnapshot],
    root: Path,
    disk: SnapshotDisk,
    cluster_id: str | None,
    topic_id: str | None,
) -> list[CheckedSnapshot]:
    """Return *judged* with an error for each snapshot that is not of the chosen log."""
    first = next((found.header.identity for found in judged if found.header is not None), None)
    if first is None:
        return judged
    expected = LogIdentity(
        first.cluster_id if cluster_id is None else cluster_id,
        first.topic_id if topic_id is None else Uuid.parse(topic_id),
        first.partition_count,
    )
    for stored in stored_in(identity_folder(root, expected), disk):
        there = glance(stored, disk).header
        if there is not None:
            expected = replace(expected, partition_count=there.identity.partition_count)
            break
    return [_require_log(found, expected) for found in judged]


def _require_log(found: CheckedSnapshot, expected: LogIdentity) -> CheckedSnapshot:
    if found.header is None:
        return found
    try:
        require_identity(found.header, expected)
    except SnapshotForeign as error:
        named = SnapshotForeign(f"{found.name}: {error}")
        return CheckedSnapshot(found.name, found.size_bytes, None, named)
    return found


def _place_of(found: CheckedSnapshot, root: Path, disk: SnapshotDisk) -> Path:
    header = found.header
    assert header is not None, found
    catalog = Catalog(identity_folder(root, header.identity), disk)
    return catalog.path_of(header.partition, header.position)


def _is_same(file: SnapshotFile, path: Path, disk: SnapshotDisk) -> bool:
    with opened(disk, path) as there:
        return file.size == there.size and all(
            ours == theirs for ours, theirs in zip(file.pieces(), there.pieces(), strict=True)
        )


def _checked(file: SnapshotFile, examined: CheckedSnapshot) -> Iterator[bytes]:
    """Yield the file as it is; raises if it is not the one that was examined."""
    if (file.size, file.peek()) != (examined.size_bytes, examined.header):
        msg = f"{examined.name} changed while it was copied"
        raise SnapshotCorrupt(msg)
    digest = hashlib.sha256()
    tail = b""
    for piece in file.pieces():
        tail += piece
        digest.update(tail[:-DIGEST_BYTES])
        tail = tail[-DIGEST_BYTES:]
        yield piece
    if tail != digest.digest():
        msg = f"{examined.name} changed while it was copied"
        raise SnapshotCorrupt(msg)


def _tar(
    good: Iterable[tuple[CatalogEntry, CheckedSnapshot]], root: Path, disk: SnapshotDisk
) -> Iterator[bytes]:
    return tar_of(
        (
            stored.path.relative_to(root).as_posix(),
            judged.size_bytes,
            _written_s(judged.header),
            _content(stored, judged, disk),
        )
        for stored, judged in good
    )


def _written_s(header: SnapshotHeader | None) -> int:
    return 0 if header is None else header.written_ms // 1_000


def _content(stored: CatalogEntry, judged: CheckedSnapshot, disk: SnapshotDisk) -> Iterator[bytes]:
    with opened(disk, stored.path) as file:
        yield from _checked(file, judged)
