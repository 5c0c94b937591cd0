"""`rlmm snapshot write`: without a service, and by one that runs."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from rlmm.cli.main import cli
from rlmm.folder_lock import folder_lock, owner_pid

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

START_S = 30.0


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """The data folder that the demonstration leaves, without its snapshots."""
    folder = tmp_path / "data"
    assert CliRunner().invoke(cli, ["demo", "--folder", str(folder)]).exit_code == 0
    shutil.rmtree(folder / "snapshots")
    return folder


def write(data_dir: Path, *options: str) -> tuple[int, dict[str, dict[str, list[int]]]]:
    """Exit code and document of the command."""
    result = CliRunner().invoke(cli, ["snapshot", "write", "--data-dir", str(data_dir), *options])
    return result.exit_code, json.loads(result.stdout) if result.stdout else {}


def test_write_when_no_service_runs_then_reads_the_log_and_writes(data_dir: Path) -> None:
    """Every partition with events gets its snapshot; a second time nothing has changed."""
    code, document = write(data_dir)
    assert (code, len(document["files"]["written"])) == (0, 5)
    code, document = write(data_dir)
    assert (code, document["files"]["written"]) == (0, [])
    listed = CliRunner().invoke(cli, ["snapshot", "verify", str(data_dir / "snapshots")])
    assert (listed.exit_code, listed.stdout.splitlines()[-1]) == (0, "5 snapshots, 0 not usable")


@pytest.fixture
def service(data_dir: Path) -> Iterator[subprocess.Popen[str]]:
    """A service on the folder, up and running; killed at the end, if it is still there."""
    with subprocess.Popen(
        [sys.executable, "-m", "rlmm", "serve", "--data-dir", str(data_dir)],
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            for line in process.stderr:
                if "50 of 50" in line:
                    break
            yield process
        finally:
            process.kill()


def test_write_when_a_service_runs_then_it_writes_and_tells(
    data_dir: Path, service: subprocess.Popen[str]
) -> None:
    """The process that holds the folder is the only one that writes in it."""
    assert owner_pid(data_dir) == service.pid
    code, document = write(data_dir)
    assert (code, len(document["files"]["written"])) == (0, 5)
    code, document = write(data_dir)
    assert (code, len(document["files"]["unchanged"])) == (0, 5)
    assert service.poll() is None


def test_write_when_the_owner_does_not_answer_then_says_whom_to_look_at(data_dir: Path) -> None:
    """A process that holds the folder and takes no signal is named, in time."""
    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        with folder_lock(data_dir):
            result = CliRunner().invoke(
                cli, ["snapshot", "write", "--data-dir", str(data_dir), "--wait", "0.2"]
            )
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert result.exit_code == 4
    assert "has written no snapshots in 0.2 s" in result.stderr


def test_write_when_the_log_cannot_be_reached_then_is_not_ready(tmp_path: Path) -> None:
    """Without an answer from any broker nothing is written, and the code says so."""
    code, document = write(tmp_path, "--bootstrap-server", "127.0.0.1:1", "--wait", "0.3")
    assert (code, document) == (4, {})
    assert not (tmp_path / "snapshots").exists()


def test_write_when_nothing_is_kept_then_is_refused(tmp_path: Path) -> None:
    """A log in memory has no snapshots."""
    code, _ = write(tmp_path, "--log-kind", "memory")
    assert code == 2


def test_write_when_asked_for_snapshots_before_it_can_take_the_signal_then_goes_on(
    tmp_path: Path,
) -> None:
    """Whoever holds the folder can be found and asked; it must not die of that."""
    command = [sys.executable, "-m", "rlmm", "snapshot", "write", "--data-dir", str(tmp_path)]
    with subprocess.Popen(
        [*command, "--bootstrap-server", "127.0.0.1:1", "--wait", "2"], stderr=subprocess.PIPE
    ) as process:
        deadline_s = time.monotonic() + START_S
        while owner_pid(tmp_path) != process.pid:
            assert time.monotonic() < deadline_s
        process.send_signal(signal.SIGUSR1)
        process.communicate()
    assert process.returncode == 4
