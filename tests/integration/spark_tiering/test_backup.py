"""Every event of a metadata log out to a file and in again, as `rlmm tier backup` does it."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from rlmm.cli.main import cli
from rlmm.errors import ConfigError
from rlmm.log.files.files_log import FilesLog
from rlmm.log.files.log_folder import TOPIC
from rlmm.partition_log.registry import LogRegistry
from rlmm.records.records import Record
from rlmm.records.writer import build_batch
from spark_tiering.maintenance.backup import import_
from spark_tiering.maintenance.backup.files import open_backup, writing
from spark_tiering.maintenance.backup.import_ import import_backup
from spark_tiering.maintenance.backup.rows import BackupExtent, BackupRow
from spark_tiering.maintenance.tier import CareRequest
from spark_tiering.maintenance.wiring import open_tier
from spark_tiering.reporting.progress import Meter
from spark_tiering.tier_metadata.settings import EmbeddedAccess
from tests.support.builders import finished, segment_id, started, tp
from tests.support.server.memory_service import ServedMetadata
from tests.support.tier.job_folders import begin_log, digest_of_tree
from tests.support.tier.lost_tiers import answers_in

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

ODD = (
    Record(0, 5, b"key", b"nobody understands this", (("h", b"\0"), ("n", None))),
    Record(1, 6, b"key", None),
)


pytestmark = pytest.mark.usefixtures("bare_environment")


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    folder = tmp_path / "archive"
    asyncio.run(begin_log(folder / "log"))
    with open_tier(CareRequest(embedded=folder)) as tier:
        writer = tier.writer()
        for number in range(6):
            copy = segment_id(number, tp("orders", number))
            writer.publish(started(copy, 0, 99, {0: 0}), 20)
            writer.publish(finished(copy, custom_metadata=b"\0"), 20)
    asyncio.run(append_odd(folder / "log"))
    return folder


async def append_odd(log: Path) -> None:
    async with await LogRegistry.open(log) as registry:
        partition = await registry.partition(TOPIC, 0)
        await partition.append(build_batch(ODD, 0), timeout_s=5)


def backup(*arguments: object, code: int = 0) -> Result:
    result = CliRunner().invoke(cli, ["tier", "backup", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result


def exported(file: Path, folder: Path) -> bytes:
    done = backup("export", file, "--embedded", folder)
    assert "14 of 14 offsets read" in done.stderr
    return file.read_bytes()


def records_in(folder: Path) -> dict[str, str]:
    files = digest_of_tree(folder / "log")
    return {name: digest for name, digest in files.items() if name.endswith(".log")}


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.jsonl.zst", "a.parquet"])
def test_backup_imported_is_exported_the_same(archive: Path, tmp_path: Path, name: str) -> None:
    """The export of an import equals the backup byte for byte, and the new log serves it."""
    first, blank = tmp_path / name, tmp_path / "blank"
    content = exported(first, archive)
    tried = backup("import", first, "--embedded", blank)
    assert not blank.exists()
    assert "14 events would be appended" in tried.stdout
    done = backup("import", first, "--embedded", blank, "--apply")
    assert "14 events were appended" in done.stdout
    assert "14 of 14 events appended" in done.stderr
    assert "14 of 14 events read back" in done.stderr
    assert "other offsets" not in done.stdout
    assert exported(tmp_path / f"b{name[1:]}", blank) == content
    assert answers_in(blank) == answers_in(archive)
    with open_tier(CareRequest(embedded=blank)) as tier:
        copy = segment_id(77, tp("orders", 0))
        tier.writer().publish(started(copy, 100, 199, {0: 100}), 20)
    again = backup("import", first, "--embedded", blank, "--apply", code=2)
    assert "goes into an empty log" in again.output


def test_export_when_programs_read_it_then_has_everything(archive: Path, tmp_path: Path) -> None:
    """The export holds the bounds of each partition, unknown records, tombstones and the digest."""
    report = tmp_path / "report.json"
    done = backup(
        "export", tmp_path / "a.jsonl", "--embedded", archive, "--output", "json", "--report",
        report,
    )  # fmt: skip
    told = json.loads(done.stdout)
    assert told == json.loads(report.read_text())
    assert (told["records"], told["undecodable"], told["tombstones"]) == (14, 1, 1)
    assert sum(one["records"] for one in told["partitions"].values()) == 14
    assert told["sha256"] == open_backup(tmp_path / "a.jsonl").footer.sha256
    taken = backup("export", tmp_path / "a.jsonl", "--embedded", archive, code=2)
    assert "nothing is overwritten" in taken.output


def test_import_when_it_was_broken_off_then_the_same_command_goes_on(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An import broken off at any group continues by the same command, without repeats."""
    monkeypatch.setattr(import_, "GROUP_ROWS", 3)
    file, blank = tmp_path / "a.jsonl", tmp_path / "blank"
    content = exported(file, archive)
    access = EmbeddedAccess(folder=blank / "log")
    asked = iter(["", "", "SIGTERM"])
    report = import_backup(access, file, is_applied=True, why_stop=lambda: next(asked))
    assert (report.stopped_by, report.appended > 0, report.is_fine) == ("SIGTERM", True, False)
    assert "goes on behind them" in "\n".join(report.lines())
    assert not (blank / "log").exists()
    again = import_backup(access, file, is_applied=True)
    assert (again.present, again.appended) == (report.appended, 14 - report.appended)
    assert exported(tmp_path / "b.jsonl", blank) == content
    assert [one.name for one in blank.iterdir()] == ["log"]


def test_import_into_an_empty_log_then_keeps_its_identity(archive: Path, tmp_path: Path) -> None:
    """An import into another cluster's empty log needs consent and keeps its identity."""
    file, begun = tmp_path / "a.jsonl", tmp_path / "begun"
    exported(file, archive)
    asyncio.run(begin_log(begun / "log"))
    refused = backup("import", file, "--embedded", begun, "--apply", code=2)
    assert "--other-cluster" in refused.output
    done = backup("import", file, "--embedded", begun, "--apply", "--other-cluster")
    assert "the backup is of" in done.stdout
    exported(tmp_path / "b.jsonl", begun)
    first, second = open_backup(file), open_backup(tmp_path / "b.jsonl")
    assert first.footer == second.footer
    assert first.header.identity != second.header.identity


def test_import_when_the_log_is_unfit_then_appends_nothing(archive: Path, tmp_path: Path) -> None:
    """An import into a log of other size or content, or of a broken file, begins nothing."""
    file, other, full = tmp_path / "a.jsonl", tmp_path / "other", tmp_path / "full"
    exported(file, archive)
    asyncio.run(begin_log(other / "log", 4))
    shutil.copytree(archive, full)
    with open_tier(CareRequest(embedded=full)) as tier:
        tier.writer().publish(started(segment_id("x", tp("logs", 9)), 0, 9, {0: 0}), 20)
    for folder, said in (
        (other, "4 metadata partitions, the backup is of 3"),
        (full, "a backup goes into an empty log"),
    ):
        before = records_in(folder)
        refused = backup("import", file, "--embedded", folder, "--apply", code=2)
        assert (refused.exit_code, said in refused.output) == (2, True), refused.output
        assert records_in(folder) == before
    with ServedMetadata() as served:
        refused = backup("import", file, "--sidecar", served.address, "--apply", code=2)
        assert "no records as they are" in refused.output
        backup("export", tmp_path / "served.jsonl", "--sidecar", served.address)
    filtered = backup(
        "export", tmp_path / "b.jsonl", "--embedded", archive, "--topic", "orders", code=2
    )
    assert "No such option '--topic'" in filtered.output
    file.write_text(file.read_text().replace("orders", "orderz"))
    refused = backup("import", file, "--embedded", tmp_path / "blank", "--apply", code=2)
    assert refused.output.count("\n") == 1
    assert not (tmp_path / "blank").exists()


def test_import_when_the_log_had_holes_then_tells_offsets(archive: Path, tmp_path: Path) -> None:
    """An import of a log with holes keeps the order and reports the new offsets."""
    whole = open_backup(tmp_path / "a.jsonl") if exported(tmp_path / "a.jsonl", archive) else None
    assert whole is not None
    header = whole.header
    rows = [row for row in whole.rows() if isinstance(row, BackupRow)]
    place = rows[0].place
    extents = {one: BackupExtent(extent.first_offset, extent.next_offset + 100) for one, extent in
               header.extents.items()}  # fmt: skip
    holed = tmp_path / "holed.jsonl"
    with writing(holed, type(header)(header.identity, extents)) as into:
        for row in rows:
            moved = row.offset + (50 if row.place == place and row.offset > 0 else 0)
            into.add(replace(row, offset=moved))
    expected = sum(row.place == place and row.offset > 0 for row in rows)
    for more in ((), ("--apply",)):
        done = backup("import", holed, "--embedded", tmp_path / "blank", *more)
        assert f"{expected} events" in done.stdout
        assert f"metadata partition {place}: 51 to {50 + expected} became 1 to" in done.stdout


def test_export_when_records_are_damaged_writes_the_rest(archive: Path, tmp_path: Path) -> None:
    """An export of damaged records exits with 1 and names the lost offsets."""
    log = next(path for path in sorted(archive.rglob("*.log")) if path.stat().st_size)
    content = bytearray(log.read_bytes())
    content[-3] ^= 0xFF
    log.write_bytes(content)
    file = tmp_path / "a.jsonl"
    done = backup("export", file, "--embedded", archive, code=1)
    assert "TIER-RECORDS-LOST" in done.stdout
    imported = backup("import", file, "--embedded", tmp_path / "blank", "--apply", code=1)
    assert "TIER-RECORDS-LOST" in imported.stdout
    assert open_backup(file).footer.lost > 0


def test_import_when_somebody_has_the_folder_then_says_so(archive: Path, tmp_path: Path) -> None:
    """An import refuses a folder that another process uses."""
    file = tmp_path / "a.jsonl"
    exported(file, archive)

    async def while_open() -> None:
        log = await FilesLog.open(archive / "log")
        try:
            access = EmbeddedAccess(folder=archive / "log")
            with pytest.raises(ConfigError, match="in use"):
                await asyncio.to_thread(import_backup, access, file, is_applied=True)
        finally:
            await log.close()

    asyncio.run(while_open())


def test_export_when_sigterm_comes_then_leaves_no_file_and_nothing_half_made(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An export that gets SIGTERM, like Ctrl-C, leaves no file."""
    monkeypatch.setattr(Meter, "reach", lambda *_: signal.raise_signal(signal.SIGTERM))
    kept = tmp_path / "kept"
    kept.mkdir()
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        backup("export", kept / "events.parquet", "--embedded", archive, code=143)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert list(kept.iterdir()) == []
