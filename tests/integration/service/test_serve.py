"""`rlmm serve` as a process: start, signals, refusals and end."""

from __future__ import annotations

import os
import shutil
import signal
from typing import TYPE_CHECKING

import pytest

from rlmm.base.folder_lock import LOCK
from rlmm.cli.snapshot.service_requests import REPORT
from rlmm.process.wiring import SNAPSHOT_FOLDER
from tests.support.server.serve_process import DEADLINE_S, FOLDER, PLACES, READY, fill, serving

if TYPE_CHECKING:
    from pathlib import Path

RESTORED = "restored at position"
REPLAYS = "reading from offset"


def snapshots_below(folder: Path) -> list[Path]:
    return sorted((folder / FOLDER / SNAPSHOT_FOLDER).rglob("*.snapshot"))


def everything_below(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in folder.rglob("*")
    }


async def test_serve_when_nothing_is_configured_then_serves_a_folder(tmp_path: Path) -> None:
    """In an empty folder the service makes a log of 50 partitions and answers from all."""
    async with serving(tmp_path) as served:
        await served.until_open(50)
        assert (tmp_path / FOLDER / LOCK).read_text() == f"{served.pid}\n"
        assert await served.end(signal.SIGTERM) == 0
    assert (served.messages[-1], served.said) == ("stopped", [])
    assert {line["level"] for line in served.lines} == {"info", "warning"}
    assert {name.split("/")[0] for name in everything_below(tmp_path)} == {FOLDER}
    assert (tmp_path / FOLDER / LOCK).read_text() == ""


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT], ids=lambda how: str(how.name))
async def test_f18_serve_when_asked_to_stop_then_a_restart_replays_nothing(
    tmp_path: Path, how: signal.Signals
) -> None:
    """Failure scenario F18: each signal stops the service in order with snapshots of everything."""
    await fill(tmp_path)
    async with serving(tmp_path) as served:
        await served.until_open(PLACES)
        assert sum(REPLAYS in message for message in served.messages) == PLACES
        assert snapshots_below(tmp_path) == []
        assert await served.end(how) == 0
        assert f"stopping: asked to by {how.name}" in served.messages
    assert len(snapshots_below(tmp_path)) == PLACES
    async with serving(tmp_path) as served:
        await served.until_open(PLACES)
        assert sum(RESTORED in message for message in served.messages) == PLACES
        assert not [message for message in served.messages if REPLAYS in message]
        assert await served.end(how) == 0
    assert len(snapshots_below(tmp_path)) == PLACES


async def test_serve_when_told_to_write_snapshots_then_goes_on(tmp_path: Path) -> None:
    """SIGUSR1 writes the snapshots of changed partitions only."""
    await fill(tmp_path)
    async with serving(tmp_path) as served:
        await served.until_open(PLACES)
        served.send(signal.SIGUSR1)
        await served.until(f"{PLACES} snapshots written, 0 unchanged, 0 failed")
        assert len(snapshots_below(tmp_path)) == PLACES
        served.send(signal.SIGUSR1)
        await served.until(f"0 snapshots written, {PLACES} unchanged, 0 failed")
        assert await served.end(signal.SIGTERM) == 0


async def test_f17_serve_when_the_report_is_not_written_then_goes_on(tmp_path: Path) -> None:
    """Failure scenario F17: the service logs a report that cannot be written and goes on."""
    await fill(tmp_path)
    (tmp_path / FOLDER / REPORT).mkdir()
    async with serving(tmp_path) as served:
        await served.until_open(PLACES)
        for text in (f"{PLACES} snapshots written", f"0 snapshots written, {PLACES} unchanged"):
            served.send(signal.SIGUSR1)
            await served.until(text)
            await served.until(f"{REPORT} not written")
        assert await served.end(signal.SIGTERM) == 0


async def test_serve_when_another_has_the_folder_then_names_its_pid(tmp_path: Path) -> None:
    """The second service ends with one line and exit code 2, and a killed owner is no obstacle."""
    async with serving(tmp_path, "--log-num-partitions", "2") as first:
        await first.until_open(2)
        async with serving(tmp_path) as second:
            assert await second.end() == 2
        (line,) = second.lines
        assert line["message"] == (
            f"folder-in-use: {FOLDER} is in use by process {first.pid}; choose another"
        )
        assert (line["error"], line["exit_code"], second.said) == ("folder-in-use", 2, [])
        first.send(signal.SIGUSR1)
        await first.until("snapshots written")
        assert await first.end(signal.SIGKILL) == -signal.SIGKILL
    async with serving(tmp_path) as third:
        await third.until_open(2)
        assert await third.end(signal.SIGTERM) == 0


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--shutdown-timeout-ms", "0"),
        ("--snapshot-interval-ms", "-1"),
        ("--pump-undecodable-share-max", "inf"),
        ("--write-timeout-ms", "2147483648"),
        ("--gate-wait-timeout-ms", "0.5"),
        ("--log-kind", "paper"),
    ],
    ids=["zero", "negative", "infinite", "above-int32", "below-one-unit", "no-such-kind"],
)
async def test_f97_serve_when_a_value_cannot_work_then_is_refused_before_any_io(
    tmp_path: Path, flag: str, value: str
) -> None:
    """Failure scenario F97: one line names the key, with exit code 2, before any file is made."""
    async with serving(tmp_path, flag, value) as served:
        assert await served.end() == 2
    (line,) = served.lines
    assert line["message"].startswith("config: ")
    assert flag in line["message"]
    assert (line["level"], line["error"], line["exit_code"]) == ("critical", "config", 2)
    assert served.said == []
    assert everything_below(tmp_path) == {}


def without_rights_of_root() -> list[str]:
    """A prefix for commands, so that permissions of files hold for root, too."""
    if os.geteuid() != 0:
        return []
    program = shutil.which("setpriv")
    if program is None and "CI" not in os.environ:
        pytest.skip("run by root without setpriv: permissions of files cannot be shown")
    assert program is not None, "needs setpriv: apt-get install util-linux"
    return [program, "--bounding-set=-dac_override,-dac_read_search"]


async def test_serve_when_an_observer_of_a_read_only_folder_then_answers(tmp_path: Path) -> None:
    """An observer of a read-only folder answers, changes nothing, takes no lock, and stops."""
    await fill(tmp_path)
    before = everything_below(tmp_path / FOLDER)
    folders = [tmp_path / FOLDER, *(tmp_path / FOLDER).rglob("*")]
    modes = {path: path.stat().st_mode for path in folders}
    for path in folders:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        async with serving(
            tmp_path, "--mode", "observer", before=without_rights_of_root()
        ) as served:
            await served.until_open(PLACES)
            assert await served.end(signal.SIGTERM) == 0
    finally:
        for path, mode in modes.items():
            path.chmod(mode)
    assert everything_below(tmp_path / FOLDER) == before
    assert any(READY in message for message in served.messages)


HANGING = """
import asyncio
from rlmm.process import run as service
from rlmm.cli.main import main
from rlmm.log.files.files_log import FilesLog

async def read(self, partition, position, **_):
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass

FilesLog.read = read
service._PARTS_SHARE = 0.005  # enough to see that they hang: the rest is for who does not
main()
"""


async def test_f101_serve_when_a_part_does_not_end_then_leaves_and_names_it(tmp_path: Path) -> None:
    """Failure scenario F101: the process names the hanging part and ends with exit code 6."""
    async with serving(
        tmp_path,
        "--log-num-partitions",
        "2",
        "--shutdown-timeout-ms",
        "60000",  # never reached: what does end is waited for, and nothing of it for long
        program=("-c", HANGING),
    ) as served:
        await served.until_open(2)
        assert await served.end(signal.SIGTERM, 2 * DEADLINE_S) == 6
    last = served.lines[-1]
    assert last["message"].startswith("stop-timed-out: the parts had not ended after 60 s")
    assert "pump: metadata partition 0, pump: metadata partition 1" in last["message"]
    assert (last["error"], last["exit_code"], served.said) == ("stop-timed-out", 6, [])
