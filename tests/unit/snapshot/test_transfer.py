"""Sets of snapshots out to a backup and in from one. Nothing of it runs on an event loop."""

from __future__ import annotations

import asyncio
import io
import os
import tarfile
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import ConfigError, SnapshotCorrupt, SnapshotForeign, SnapshotUnsupported
from rlmm.log.protocol import LogIdentity
from rlmm.metadata.ids import Uuid
from rlmm.snapshot.catalog import identity_folder
from rlmm.snapshot.encoding import encode
from rlmm.snapshot.folder_check import stored_below
from rlmm.snapshot.format import SnapshotHeader
from rlmm.snapshot.transfer import export, import_from
from tests.support.engine.snapshots import (
    HISTORY,
    IDENTITY,
    file_of,
    files_below,
    frozen_of,
    segments,
    shard_of,
    store_in,
)
from tests.support.memory import memory_below

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

END = 1_000_000
OTHER = LogIdentity("another", Uuid.of(0, 9), 50)
NEWEST = [f"1/{6:020d}.snapshot", f"2/{8:020d}.snapshot"]


def filled(root: Path, identity: LogIdentity = IDENTITY) -> Path:
    async def fill() -> None:
        store = store_in(root, identity=identity)
        for partition in (1, 2):
            for count in (1, 2 + partition):
                await store.write(frozen_of(shard_of(segments(count), partition)))

    asyncio.run(fill())
    return root


def snapshot_of(root: Path, partition: int, position: int) -> Path:
    return identity_folder(root, IDENTITY) / str(partition) / f"{position:020d}.snapshot"


def contents(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("name", ["backup", "backup.tar"], ids=["folder", "tar"])
def test_export_when_imported_then_has_the_newest(tmp_path: Path, name: str) -> None:
    """A new machine starts from an export as the old one would have from its own snapshots."""
    root, target, new = filled(tmp_path / "old"), tmp_path / name, tmp_path / "new"
    exported = export(root, target)
    assert exported.is_complete
    assert len(exported.done) == 2
    imported = import_from(target, new)
    assert imported.is_complete
    assert len(imported.done) == 2
    assert files_below(new) == NEWEST
    assert all(contents(root)[place] == content for place, content in contents(new).items())
    restored = asyncio.run(store_in(new).restore(2, 0, END))
    assert restored is not None
    assert restored.shard.image() == shard_of(segments(4), 2).image()


def test_export_as_tar_is_read_by_any_tool_and_always_the_same(tmp_path: Path) -> None:
    """The members of the tar are plain files under the paths of a snapshot folder."""
    root = filled(tmp_path / "root")
    export(root, tmp_path / "a.tar")
    export(root, tmp_path / "b.tar")
    assert (tmp_path / "a.tar").read_bytes() == (tmp_path / "b.tar").read_bytes()
    with tarfile.open(tmp_path / "a.tar") as archive:
        archive.extractall(tmp_path / "out", filter="data")
    assert files_below(tmp_path / "out") == NEWEST
    assert import_from(tmp_path / "out", tmp_path / "new").is_complete


def test_export_when_the_newest_is_damaged_then_takes_the_one_before(tmp_path: Path) -> None:
    """A backup holds good snapshots only, and the damaged one is a finding."""
    root = filled(tmp_path / "root")
    path = snapshot_of(root, 2, 8)
    path.write_bytes(path.read_bytes()[:-1])
    exported = export(root, tmp_path / "backup")
    assert not exported.is_complete
    assert [judged.name for judged in exported.refused] == [str(path)]
    assert files_below(tmp_path / "backup") == [f"1/{6:020d}.snapshot", f"2/{2:020d}.snapshot"]
    assert path.exists()


def test_export_when_nothing_is_good_then_makes_nothing(tmp_path: Path) -> None:
    """An empty backup is not mistaken for one."""
    root = filled(tmp_path / "root")
    for stored in stored_below(root):
        stored.path.write_bytes(b"x")
    exported = export(root, tmp_path / "backup.tar")
    assert len(exported.refused) == 4
    assert not (tmp_path / "backup.tar").exists()


@pytest.mark.parametrize("name", ["backup", "backup.tar"], ids=["folder", "tar"])
def test_export_when_the_target_is_there_then_is_refused(tmp_path: Path, name: str) -> None:
    """The export overwrites nothing."""
    root = filled(tmp_path / "root")
    export(root, tmp_path / name)
    before = contents(tmp_path)
    with pytest.raises(ConfigError, match="is there already"):
        export(root, tmp_path / name)
    assert contents(tmp_path) == before


def test_export_when_there_are_several_logs_then_one_has_to_be_chosen(tmp_path: Path) -> None:
    """The refusal lists the logs, because an export is of one."""
    root = filled(filled(tmp_path / "root"), OTHER)
    with pytest.raises(ConfigError, match="2 logs") as raised:
        export(root, tmp_path / "backup")
    assert IDENTITY.cluster_id in str(raised.value)
    assert export(root, tmp_path / "a", cluster_id="another").is_complete
    assert export(root, tmp_path / "b", topic_id=str(IDENTITY.topic_id)).is_complete
    assert import_from(tmp_path / "a", tmp_path / "new", cluster_id="another").is_complete
    with pytest.raises(ConfigError, match="no snapshots of such a log"):
        export(root, tmp_path / "c", cluster_id="unknown")


# ----------------------------------------------------------------------------------- importing


def source_with(folder: Path, *contents_of: bytes) -> Path:
    folder.mkdir()
    for number, content in enumerate(contents_of):
        (folder / f"{number}.snapshot").write_bytes(content)
    return folder


def forged(image: bytes) -> bytes:
    return b"".join(encode(SnapshotHeader(IDENTITY, 3, 10, HISTORY, 1, 0), [lambda: image]))


GOOD = file_of(shard_of(segments(3)))


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        pytest.param(
            GOOD[:200] + bytes([GOOD[200] ^ 1]) + GOOD[201:], SnapshotCorrupt, id="f8 damaged"
        ),
        pytest.param(GOOD[:-1], SnapshotCorrupt, id="f11 cut"),
        pytest.param(b"", SnapshotCorrupt, id="f11 empty"),
        pytest.param(GOOD[:8] + b"\x00\x63" + GOOD[10:], SnapshotUnsupported, id="f12 version"),
        pytest.param(forged(b"\x03keyno image"), SnapshotCorrupt, id="f19 ghost"),
        pytest.param(
            file_of(shard_of(segments(3)), identity=OTHER), SnapshotForeign, id="f6 another log"
        ),
        pytest.param(
            file_of(
                shard_of(segments(3)),
                identity=LogIdentity(IDENTITY.cluster_id, IDENTITY.topic_id, 100),
            ),
            SnapshotForeign,
            id="f7 another count",
        ),
    ],
)
def test_f19_import_of_a_bad_one_is_none(
    tmp_path: Path, bad: bytes, error: type[Exception]
) -> None:
    """Everything is examined before the first is installed, rows of states included."""
    good = file_of(shard_of(segments(3), 1))
    source = source_with(tmp_path / "source", good, bad)
    imported = import_from(source, tmp_path / "new")
    assert [type(judged.error) for judged in imported.refused] == [error]
    assert imported.refused[0].name == str(source / "1.snapshot")
    assert not imported.done
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "meant", [("unknown", None), (None, str(Uuid.of(0, 1)))], ids=["cluster", "topic"]
)
def test_f19_import_when_another_log_is_meant_then_installs_nothing(
    tmp_path: Path, meant: tuple[str | None, str | None]
) -> None:
    """The import refuses snapshots of another log than the operator names."""
    source = source_with(tmp_path / "source", GOOD)
    imported = import_from(source, tmp_path / "new", *meant)
    assert [type(judged.error) for judged in imported.refused] == [SnapshotForeign]
    assert not (tmp_path / "new").exists()


def test_f7_import_beside_another_partition_count_installs_nothing(tmp_path: Path) -> None:
    """The import installs nothing beside snapshots of another partition count."""
    root = filled(tmp_path / "root")
    identity = LogIdentity(IDENTITY.cluster_id, IDENTITY.topic_id, 100)
    source = source_with(tmp_path / "source", file_of(shard_of(segments(3)), identity=identity))
    before = contents(root)
    imported = import_from(source, root)
    assert "100 metadata partitions, expected are 50" in str(imported.refused[0].error)
    assert contents(root) == before


def test_import_when_something_is_there_then_never_changes_it(tmp_path: Path) -> None:
    """The import leaves an equal file and refuses to replace another one."""
    root = filled(tmp_path / "root")
    same = snapshot_of(root, 1, 6).read_bytes()
    other = file_of(shard_of(segments(4), 2), written_ms=5)
    new = file_of(shard_of(segments(9), 2))
    source = source_with(tmp_path / "source", same, other, new)
    before = contents(root)
    imported = import_from(source, root)
    assert not imported.is_complete
    assert [judged.name for judged in imported.unchanged] == [str(source / "0.snapshot")]
    assert [judged.name for judged in imported.in_the_way] == [str(source / "1.snapshot")]
    assert [judged.name for judged in imported.done] == [str(source / "2.snapshot")]
    after = contents(root)
    assert {place: after[place] for place in before} == before
    assert len(after) == len(before) + 1


def test_import_of_one_file_puts_it_where_it_says_it_belongs(tmp_path: Path) -> None:
    """The header of a single file decides its place, not its name."""
    source = tmp_path / "from-the-backup"
    source.write_bytes(GOOD)
    assert import_from(source, tmp_path / "new").is_complete
    assert files_below(tmp_path / "new") == [f"3/{6:020d}.snapshot"]


def tar_with(path: Path, add: Callable[[tarfile.TarFile], None]) -> Path:
    with tarfile.open(path, "w") as archive:
        add(archive)
    return path


def test_f19_import_of_a_tar_ignores_its_paths_and_all_but_plain_files(tmp_path: Path) -> None:
    """The import takes plain files by their headers and ignores the paths in the archive."""

    def add(archive: tarfile.TarFile) -> None:
        evil = tarfile.TarInfo("../../../evil.snapshot")
        evil.size = len(GOOD)
        archive.addfile(evil, io.BytesIO(GOOD))
        link = tarfile.TarInfo("link.snapshot")
        link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path / "secret")
        archive.addfile(link)
        other = tarfile.TarInfo("notes.txt")
        other.size = 4
        archive.addfile(other, io.BytesIO(b"note"))

    source = tar_with(tmp_path / "a.tar", add)
    assert import_from(source, tmp_path / "new").is_complete
    assert files_below(tmp_path / "new") == [f"3/{6:020d}.snapshot"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar", "new"]


def test_f10_import_of_a_tar_with_huge_lengths_allocates_nothing_by_them(tmp_path: Path) -> None:
    """A member of 2^60 bytes, and a name of as many, are refused."""
    member = tarfile.TarInfo("x.snapshot")
    member.size = 2**60
    (tmp_path / "member.tar").write_bytes(member.tobuf(tarfile.GNU_FORMAT) + GOOD)
    name = tarfile.TarInfo("x.snapshot")
    name.size, name.type = 2**60, tarfile.GNUTYPE_LONGNAME
    (tmp_path / "name.tar").write_bytes(name.tobuf(tarfile.GNU_FORMAT) + GOOD)
    for source in ("member.tar", "name.tar"):
        try:
            imported = import_from(tmp_path / source, tmp_path / "new")
        except ConfigError:
            continue
        assert len(imported.refused) == 1
    assert not (tmp_path / "new").exists()


def header_of(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    """Return a header with any size, also one below zero, and a checksum that is right."""
    member = tarfile.TarInfo(name)
    member.type = kind
    block = bytearray(member.tobuf(tarfile.GNU_FORMAT))
    block[124:136] = bytes([255 if size < 0 else 128]) + (size % 2**88).to_bytes(11)
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


HOSTILE_TARS = {
    "size below zero": header_of("a.snapshot", 0) + header_of("b.snapshot", -512),
    "size far below zero": header_of("a.snapshot", 0) + header_of("b.snapshot", -(2**40)),
    "name of a size below zero": header_of("x", -512, tarfile.GNUTYPE_LONGNAME) + GOOD,
    "extension of a size below zero": header_of("x", -512, tarfile.XHDTYPE) + GOOD,
    "size below zero in an extension": (
        header_of("x", 13, tarfile.XHDTYPE) + b"13 size=-512\n".ljust(512, b"\0")
        + header_of("a.snapshot", 512) + bytes(512)
    ),
    "name without an end": header_of("x", 2**20, tarfile.GNUTYPE_LONGNAME) + b"n" * 2**20,
    "names of names": header_of("x", 1, tarfile.GNUTYPE_LONGNAME).ljust(1_024, b"\0") * 3_000,
    "too many files": header_of("a", 0) * 1_001,
}  # fmt: skip


@pytest.mark.parametrize("content", HOSTILE_TARS.values(), ids=HOSTILE_TARS)
def test_import_of_a_tar_with_hostile_headers_is_refused_in_bounded_time_and_memory(
    tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sizes below zero, headers without an end and too many files are refused, by any Python."""
    monkeypatch.setattr("rlmm.snapshot.archive.MEMBERS_MAX", 1_000)
    (tmp_path / "a.tar").write_bytes(content + bytes(1_024))
    with memory_below(8 << 20), pytest.raises(ConfigError, match="nor a plain tar of snapshots"):
        import_from(tmp_path / "a.tar", tmp_path / "new")


@pytest.mark.parametrize("content", [b"", b"no tar at all", bytes(2_000), os.urandom(2_000)])
def test_import_of_what_holds_no_snapshot_is_refused(tmp_path: Path, content: bytes) -> None:
    """A source without a snapshot is a mistake of the caller's."""
    (tmp_path / "source").write_bytes(content)
    with pytest.raises(ConfigError):
        import_from(tmp_path / "source", tmp_path / "new")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ConfigError, match="holds no snapshots"):
        import_from(tmp_path / "folder", tmp_path / "new")
