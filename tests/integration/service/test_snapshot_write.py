"""`rlmm snapshot write`: without a service, and by one that runs."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from rlmm.base.folder_lock import LOCK, folder_lock, owner_pid
from rlmm.cli.main import cli
from rlmm.log.files.files_log import FilesLog
from rlmm.metadata.encoding import encode
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.process.wiring import LOG_FOLDER
from tests.support.builders import finished, segment_id, started, tp

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from click.testing import Result

    from rlmm.metadata.ids import TopicIdPartition

COUNT = 50
START_S = 30.0
SERVE = (sys.executable, "-m", "rlmm", "serve", "--http-listen", "none")
"""Tests that run beside each other share the ports of the machine."""


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    asyncio.run(write_history(folder / LOG_FOLDER))
    return folder


async def write_history(folder: Path) -> None:
    places: dict[int, TopicIdPartition] = {}
    for number in range(COUNT):
        partition = tp(partition=number)
        places[metadata_partition_for(partition.topic_id, number, COUNT)] = partition
    log = await FilesLog.open(folder, partition_count=COUNT)
    try:
        for place, partition in list(places.items())[:5]:
            for event in (started(segment_id(1, partition)), finished(segment_id(1, partition))):
                await log.append(place, encode(event), timeout_s=START_S)
    finally:
        await log.close()


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(each) for each in arguments])


def write(data_dir: Path, *options: str) -> tuple[int, dict[str, dict[str, list[int]]]]:
    result = run("snapshot", "write", "--data-dir", data_dir, *options)
    return result.exit_code, json.loads(result.stdout) if result.stdout else {}


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_write_when_no_service_runs_then_reads_the_log_and_writes(data_dir: Path) -> None:
    """Each partition with events gets a snapshot once, and the log stays as it is to the byte."""
    before = contents(data_dir / "log")
    code, document = write(data_dir)
    assert contents(data_dir / "log") == before
    assert (code, len(document["files"]["written"])) == (0, 5)
    code, document = write(data_dir)
    assert (code, document["files"]["written"]) == (0, [])
    listed = run("snapshot", "verify", data_dir / "snapshots")
    assert (listed.exit_code, listed.stdout.splitlines()[-1]) == (0, "5 snapshots, 0 not usable")


@pytest.fixture
def service(data_dir: Path) -> Iterator[subprocess.Popen[str]]:
    with folder_held_by_a_service(data_dir) as process:
        yield process


@contextmanager
def folder_held_by_a_service(
    data_dir: Path, *options: str, until: str = "50 of 50"
) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [*SERVE, "--data-dir", str(data_dir), *options], stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            for line in process.stderr:
                if until in line:
                    break
            yield process
        finally:
            process.kill()


def test_write_when_a_service_runs_it_does(data_dir: Path, service: subprocess.Popen[str]) -> None:
    """The process that holds the folder is the only one that writes in it."""
    assert owner_pid(data_dir) == service.pid
    code, document = write(data_dir)
    assert (code, len(document["files"]["written"])) == (0, 5)
    code, document = write(data_dir)
    assert (code, len(document["files"]["unchanged"])) == (0, 5)
    assert service.poll() is None


def test_write_when_the_owner_does_not_answer_then_says_whom_to_look_at(data_dir: Path) -> None:
    """The command names, in time, a process that holds the folder and takes no signal."""
    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        with folder_lock(data_dir):
            result = run("snapshot", "write", "--data-dir", data_dir, "--wait", "0.2")
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert result.exit_code == 4
    assert f"process {os.getpid()} takes no request for snapshots" in result.stderr


def test_write_when_the_owner_would_die_of_the_signal_then_does_not_send_it(data_dir: Path) -> None:
    """The command sends no signal to a process that has not declared that it takes it."""
    hold = "import sys; from pathlib import Path; from rlmm.base.folder_lock import folder_lock\n"
    hold += "with folder_lock(Path(sys.argv[1])): print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", hold, str(data_dir)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        code, _ = write(data_dir, "--wait", "0.2")
        holder.communicate()
    assert (code, holder.returncode) == (4, 0)


def test_write_when_the_lock_names_a_stranger_then_is_refused_by_name(data_dir: Path) -> None:
    """A process id of another program here is refused, and the program gets no signal."""
    with folder_lock(data_dir), subprocess.Popen(["sleep", "60"]) as stranger:
        try:
            (data_dir / LOCK).write_text(f"{stranger.pid}\n")
            result = run("snapshot", "write", "--data-dir", data_dir)
            assert stranger.poll() is None
        finally:
            stranger.kill()
        assert stranger.wait() == -signal.SIGKILL
        assert result.exit_code == 2, result.output
        assert "the process of this number here is another one" in result.stderr
        (data_dir / LOCK).write_text(f"{stranger.pid}\n")
        result = run("snapshot", "write", "--data-dir", data_dir)
    assert result.exit_code == 2, result.output
    assert f"held by process {stranger.pid}, as its lock says, and cannot be asked" in result.stderr


def test_write_when_there_is_no_log_then_is_refused_and_begins_none(tmp_path: Path) -> None:
    """The command refuses a folder without a log and makes none."""
    code, document = write(tmp_path / "data")
    assert (code, document) == (2, {})
    assert not list(tmp_path.iterdir())


def test_write_when_one_cluster_fails_then_others_are_told(data_dir: Path, tmp_path: Path) -> None:
    """Each cluster has an entry: one without a log, one unreachable, one written."""
    several = tmp_path / "several"
    shutil.copytree(data_dir / "log", several / "clusters" / "east" / "log")
    config = tmp_path / "rlmm.toml"
    config.write_text(
        f'data_dir = "{several}"\n[clusters.east]\nlog.kind = "files"\n'
        '[clusters.gone]\nlog.kind = "files"\n'
        '[clusters.west]\nlog.kind = "kafka"\nkafka.bootstrap.servers = "127.0.0.1:1"\n'
    )
    begin_s = time.monotonic()
    result = run("snapshot", "write", "--config", config, "--wait", "8")
    assert result.stdout, result.output
    assert time.monotonic() - begin_s < START_S
    document = json.loads(result.stdout)
    assert len(document["east"]["written"]) == 5
    errors = {name: found["error"]["code"] for name, found in document.items() if "error" in found}
    assert errors == {"gone": "config", "west": "not-ready"}
    assert result.exit_code == 4
    assert not (several / "clusters" / "gone" / "log").exists()


@pytest.mark.parametrize("order", ["import first", "log first"])
def test_service_when_its_folder_was_seeded_by_an_import_then_starts_from_it(
    data_dir: Path, tmp_path: Path, order: str
) -> None:
    """A service on a copied log with an export replays no record."""
    backup, fresh = tmp_path / "backup.tar", tmp_path / "fresh"
    assert write(data_dir)[0] == 0
    assert run("snapshot", "export", data_dir, backup).exit_code == 0
    if order == "log first":
        shutil.copytree(data_dir / "log", fresh / "log")
    result = run("snapshot", "import", backup, fresh)
    assert result.exit_code == 0, result.output
    if order == "import first":
        shutil.copytree(data_dir / "log", fresh / "log")
    with subprocess.Popen(
        [*SERVE, "--data-dir", str(fresh)], stderr=subprocess.PIPE, text=True
    ) as process:
        restored = 0
        try:
            assert process.stderr is not None
            for line in process.stderr:
                restored += " restored at position " in line
                if "50 of 50" in line:
                    break
        finally:
            process.kill()
    assert restored == 5


@pytest.mark.parametrize("wait", ["0", "-1", "nan", "inf", "1e9", "soon"])
def test_write_when_the_wait_means_nothing_then_is_refused(tmp_path: Path, wait: str) -> None:
    """The command refuses a wait of zero or without end, and writes nothing."""
    folder = tmp_path / "data"
    result = run("snapshot", "write", "--data-dir", folder, "--wait", wait)
    assert result.exit_code == 2
    assert "--wait" in result.stderr
    assert not folder.exists()


def test_write_when_the_service_has_not_reached_kafka_then_is_not_ready(tmp_path: Path) -> None:
    """The command is not ready while the service has not reached Kafka."""
    at = "127.0.0.1:1"
    with folder_held_by_a_service(tmp_path, "--bootstrap-server", at, until=at):
        result = run("snapshot", "write", "--data-dir", tmp_path)
    assert result.exit_code == 4, result.output
    assert result.stderr == "rlmm: not-ready: kafka: the log has not been reached\n"
    (found,) = json.loads(result.stdout).values()
    assert (found["written"], found["error"]["code"]) == ([], "not-ready")


def test_write_when_the_service_keeps_none_then_is_refused(tmp_path: Path) -> None:
    """A service on a log in memory refuses, because it keeps no snapshots."""
    with folder_held_by_a_service(tmp_path, "--log-kind", "memory"):
        result = run("snapshot", "write", "--data-dir", tmp_path)
    assert result.exit_code == 2, result.output
    assert "no snapshot folder is configured" in result.stderr


@pytest.mark.parametrize("where", ["", "snapshots"], ids=["data folder", "its snapshots"])
def test_import_when_service_runs_then_refused(data_dir: Path, tmp_path: Path, where: str) -> None:
    """The import is refused while a service holds the folder, and works afterwards."""
    backup = tmp_path / "backup.tar"
    assert write(data_dir)[0] == 0
    assert run("snapshot", "export", data_dir, backup).exit_code == 0
    shutil.rmtree(data_dir / "snapshots")
    (data_dir / "snapshots").mkdir()
    arguments = ("snapshot", "import", backup, data_dir / where)
    with folder_held_by_a_service(data_dir) as process:
        result = run(*arguments)
        assert process.poll() is None
    assert result.exit_code == 2, result.output
    assert f"in use by process {process.pid}, which keeps snapshots there" in result.stderr
    assert not list(data_dir.rglob("*.snapshot"))
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    assert len(list((data_dir / "snapshots").rglob("*.snapshot"))) == 5


def test_write_when_the_log_cannot_be_reached_then_is_not_ready(tmp_path: Path) -> None:
    """Without an answer of a broker nothing is written, and the exit code is not ready."""
    code, document = write(tmp_path, "--bootstrap-server", "127.0.0.1:1", "--wait", "0.3")
    assert (code, document["kafka"]["written"]) == (4, [])
    assert not list(tmp_path.rglob("*.snapshot"))


def test_write_when_nothing_is_kept_then_is_refused(tmp_path: Path) -> None:
    """A log in memory has no snapshots."""
    code, _ = write(tmp_path, "--log-kind", "memory")
    assert code == 2


def test_write_when_asked_before_it_can_take_the_signal_then_goes_on(tmp_path: Path) -> None:
    """A signal that arrives before the service takes it does not end the process."""
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
