"""`rlmm snapshot`: its output, its exit codes, and how a running service is asked."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from rlmm.base.folder_lock import folder_lock
from rlmm.cli import main
from rlmm.cli.snapshot import service_requests
from rlmm.cli.snapshot.service_requests import REPORTS_MAX, SnapshotReports, ask
from rlmm.engine.service import SnapshotOutcome
from rlmm.errors import ConfigError, NotReady
from rlmm.log.replay_progress import ReplayHistory
from rlmm.snapshot.snapshot_writer import FlushResult
from tests.support.engine.snapshots import (
    IDENTITY,
    file_of,
    files_below,
    frozen_of,
    segments,
    shard_of,
    store_in,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from click.testing import Result


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "snapshots"

    async def fill() -> None:
        store = store_in(root)
        for partition, count in ((3, 1), (3, 2), (4, 5)):
            shard = shard_of(segments(count), partition)
            await store.write(frozen_of(shard, ReplayHistory(records=2 * count, undecodable=1)))

    asyncio.run(fill())
    return root


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main.cli, ["snapshot", *map(str, arguments)])


def newest_of(root: Path) -> Path:
    return max(root.rglob("3/*.snapshot"))


def test_list_shows_every_snapshot_and_ends_with_0(root: Path) -> None:
    """The command prints one line for each snapshot, the newest of a metadata partition first."""
    result = run("list", root)
    assert result.exit_code == 0, result.output
    assert f"cluster {IDENTITY.cluster_id}, topic {IDENTITY.topic_id}, 50 partitions" in (
        result.stdout
    )
    rows = [line.split()[:2] for line in result.stdout.splitlines() if "complete" in line]
    assert rows == [["3", "4"], ["3", "2"], ["4", "10"]]
    assert result.stdout.endswith("3 snapshots, 0 not usable\n")


def test_list_as_json_has_every_field(root: Path) -> None:
    """A program finds identity, position, history and path of each."""
    found = json.loads(run("list", root, "--output", "json").stdout)["snapshots"]
    assert [(one["partition"], one["position"]) for one in found] == [(3, 4), (3, 2), (4, 10)]
    assert found[0] == {
        "path": str(newest_of(root)),
        "bytes": newest_of(root).stat().st_size,
        "cluster_id": IDENTITY.cluster_id,
        "topic_id": str(IDENTITY.topic_id),
        "partition_count": 50,
        "partition": 3,
        "position": 4,
        "user_partitions": 1,
        "written_ms": 1_700_000_000_000,
        "history": {
            "is_complete": True,
            "first_offset": 0,
            "records": 4,
            "undecodable": 1,
            "counted_apart": 0,
            "without_base": 0,
            "trimmed_before": 0,
        },
    }


def test_list_when_a_header_is_damaged_then_ends_with_1(root: Path) -> None:
    """The command names each unusable snapshot with its code and lists the others."""
    newest_of(root).write_bytes(b"\x1b[2Jno snapshot" + bytes(500))
    result = run("list", root)
    assert result.exit_code == 1
    assert f"NOT USABLE snapshot-corrupt: {newest_of(root)}" in result.stdout
    assert "\x1b" not in result.stdout
    assert "2 snapshots, 1 not usable" in result.stdout


def test_verify_when_all_are_sound_then_ends_with_0(root: Path) -> None:
    """The command takes any number of folders and files."""
    result = run("verify", root, newest_of(root))
    assert result.exit_code == 0
    assert "4 snapshots, 0 not usable" in result.stdout


def test_verify_when_one_bit_differs_then_ends_with_1(root: Path) -> None:
    """Damage that a header does not show is found."""
    content = bytearray(newest_of(root).read_bytes())
    content[-50] ^= 1
    newest_of(root).write_bytes(content)
    assert run("list", root).exit_code == 0
    result = run("verify", root)
    assert result.exit_code == 1
    assert f"NOT USABLE snapshot-corrupt: {newest_of(root)}" in result.stdout
    found = json.loads(run("verify", root, "--output", "json").stdout)["snapshots"]
    assert ["error" in one for one in found] == [True, False, False]


def test_export_then_import_gives_the_same_snapshots(root: Path, tmp_path: Path) -> None:
    """Each command prints the number of snapshots, and a second import changes nothing."""
    exported = run("export", root, tmp_path / "backup.tar")
    assert exported.exit_code == 0
    assert exported.stdout.endswith("2 exported, 0 unchanged, 0 refused, 0 in_the_way\n")
    imported = run("import", tmp_path / "backup.tar", tmp_path / "new")
    assert imported.exit_code == 0
    assert imported.stdout.endswith("2 installed, 0 unchanged, 0 refused, 0 in_the_way\n")
    assert files_below(tmp_path / "new") == [f"3/{4:020d}.snapshot", f"4/{10:020d}.snapshot"]
    again = run("import", tmp_path / "backup.tar", tmp_path / "new", "--output", "json")
    assert again.exit_code == 0
    document = json.loads(again.stdout)
    assert document.pop("folder") == str(tmp_path / "new" / "snapshots")
    assert [len(group) for group in document.values()] == [0, 2, 0, 0]


def test_import_when_something_is_in_the_way_then_ends_with_1(root: Path, tmp_path: Path) -> None:
    """Another file at the same place is a finding, and it stays."""
    other = tmp_path / "other.snapshot"
    other.write_bytes(file_of(shard_of(segments(2)), written_ms=1))
    before = newest_of(root).read_bytes()
    result = run("import", other, root)
    assert result.exit_code == 1
    assert f"NOT INSTALLED {other}" in result.stdout
    assert newest_of(root).read_bytes() == before


def test_f19_import_when_one_is_refused_then_ends_with_1(root: Path, tmp_path: Path) -> None:
    """The import refuses a damaged backup and names it."""
    assert run("export", root, tmp_path / "backup").exit_code == 0
    newest_of(tmp_path / "backup").write_bytes(b"x")
    result = run("import", tmp_path / "backup", tmp_path / "new")
    assert result.exit_code == 1
    assert "REFUSED snapshot-corrupt" in result.stdout
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["list", "nowhere"],
        ["verify", "nowhere"],
        ["verify"],
        ["export", "nowhere", "target"],
        ["export", "{root}", "{root}"],
        ["export", "{root}", "target", "--cluster-id", "unknown"],
        ["export", "{root}", "target", "--topic-id", "no id"],
        ["import", "nowhere", "{root}"],
        ["import", "{root}/..", "{root}/new", "--topic-id", "?"],
    ],
    ids=" ".join,
)
def test_wrong_usage_ends_with_2(root: Path, arguments: list[str]) -> None:
    """A missing folder, an existing target and an unknown log end the command with exit code 2."""
    before = files_below(root)
    result = run(*(argument.format(root=root) for argument in arguments))
    assert result.exit_code == 2, result.output
    assert files_below(root) == before


def test_export_when_the_target_cannot_be_written_then_is_one_line(
    root: Path, tmp_path: Path
) -> None:
    """An error of the disk leaves as a line that names the place."""
    (tmp_path / "file").touch()
    result = run("export", root, tmp_path / "file" / "backup.tar")
    assert result.exit_code == 1
    assert result.stderr.startswith("rlmm: snapshot: ")
    assert str(tmp_path / "file") in result.stderr


WAIT_S = 20.0
HOUR_NS = 3_600 * 10**9


def done(*written: int) -> dict[str, SnapshotOutcome]:
    return {"files": SnapshotOutcome(FlushResult(written), ())}


@pytest.fixture
def asked() -> Iterator[list[Callable[[], None]]]:
    calls: list[Callable[[], None]] = []
    before = signal.signal(signal.SIGUSR1, lambda *_: calls.pop(0)())
    yield calls
    signal.signal(signal.SIGUSR1, before)


def answer_with(data_dir: Path, *answers: tuple[int, int]) -> Callable[[], None]:
    def say_all() -> None:
        async def all_of_them() -> None:
            reports = SnapshotReports(data_dir)
            for written, ago_ns in answers:
                await reports.add(done(written), time.monotonic_ns() - ago_ns)

        thread = threading.Thread(target=lambda: asyncio.run(all_of_them()))
        thread.start()
        thread.join()

    return say_all


@pytest.mark.parametrize(
    ("content", "answers", "taken"),
    [
        pytest.param(None, ((1, HOUR_NS), (2, 0), (3, 0)), 2, id="begun-before-the-request"),
        pytest.param(None, ((7, 0), (8, 0)), 7, id="two-callers"),
        *(
            pytest.param(text, ((5, 0),), 5, id=text or "empty")
            for text in ("", "{", "[]", '{"files": {}}', '{"reports": 3}')
        ),
    ],
)
def test_ask_when_reports_come_then_takes_the_first_that_began_after_the_request(
    tmp_path: Path, asked: list[Callable[[], None]], content: str | None,
    answers: tuple[tuple[int, int], ...], taken: int,
) -> None:  # fmt: skip
    """The caller ignores older reports and a file that is no report or of another version."""
    if content is not None:
        (tmp_path / service_requests.REPORT).write_text(content)
    asked.append(answer_with(tmp_path, *answers))
    with folder_lock(tmp_path):
        assert ask(tmp_path, os.getpid(), WAIT_S)["files"]["written"] == [taken]


@pytest.mark.parametrize(
    ("ago_ns", "is_there_before"), [(HOUR_NS, False), (-HOUR_NS, True)], ids=["comes", "is-there"]
)
def test_ask_when_there_is_only_an_older_report_then_waits_to_the_end(
    tmp_path: Path, asked: list[Callable[[], None]], ago_ns: int, is_there_before: bool
) -> None:
    """The caller ignores an older report even if its clock ran ahead, until its timeout."""
    report = answer_with(tmp_path, (1, ago_ns))
    asked.append((lambda: None) if is_there_before else report)
    if is_there_before:
        report()
    with folder_lock(tmp_path), pytest.raises(NotReady, match="has written no snapshots"):
        ask(tmp_path, os.getpid(), 0.2)


def test_ask_when_the_process_does_not_hold_the_folder_then_is_refused(
    tmp_path: Path, asked: list[Callable[[], None]]
) -> None:
    """The command sends no signal to a process that has the file open without its lock."""
    (tmp_path / "rlmm.lock").touch()
    with (
        (tmp_path / "rlmm.lock").open(),
        pytest.raises(ConfigError, match="the process of this number here is another one"),
    ):
        ask(tmp_path, os.getpid(), WAIT_S)
    assert not asked


async def test_reports_then_are_the_latest_ones(tmp_path: Path) -> None:
    """The folder keeps a bounded number of the latest reports."""
    reports = SnapshotReports(tmp_path)
    for number in range(REPORTS_MAX + 3):
        await reports.add(done(number), number)
    found = [report["begun_ns"] for report in service_requests._reports(tmp_path)]
    assert found == list(range(3, REPORTS_MAX + 3))
