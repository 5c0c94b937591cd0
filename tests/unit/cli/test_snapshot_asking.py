"""Asking a running service for snapshots: whose answer is taken."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from typing import TYPE_CHECKING

import pytest

from rlmm.base.folder_lock import folder_lock
from rlmm.cli.snapshot import service_requests as snapshot_asking
from rlmm.cli.snapshot.service_requests import REPORTS_MAX, SnapshotReports, ask
from rlmm.engine.service import SnapshotOutcome
from rlmm.errors import ConfigError, NotReady
from rlmm.snapshot.writer import FlushResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

WAIT_S = 20.0


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


def test_ask_when_a_report_is_of_what_was_begun_before_then_is_not_taken(
    tmp_path: Path, asked: list[Callable[[], None]]
) -> None:
    """The caller ignores a report whose write began before the request, and takes the next one."""
    hour_ns = 3_600 * 10**9
    asked.append(answer_with(tmp_path, (1, hour_ns), (2, 0), (3, 0)))
    with folder_lock(tmp_path):
        assert ask(tmp_path, os.getpid(), WAIT_S)["files"]["written"] == [2]


def test_ask_when_only_an_older_report_comes_then_waits_to_the_end(
    tmp_path: Path, asked: list[Callable[[], None]]
) -> None:
    """A caller that finds only an older report waits until its timeout."""
    asked.append(answer_with(tmp_path, (1, 3_600 * 10**9)))
    with folder_lock(tmp_path), pytest.raises(NotReady, match="has written no snapshots"):
        ask(tmp_path, os.getpid(), 0.2)


def test_ask_when_a_report_is_there_already_then_is_not_taken(
    tmp_path: Path, asked: list[Callable[[], None]]
) -> None:
    """The caller ignores an older report even if its clock ran ahead."""
    answer_with(tmp_path, (1, -3_600 * 10**9))()
    asked.append(lambda: None)
    with folder_lock(tmp_path), pytest.raises(NotReady, match="has written no snapshots"):
        ask(tmp_path, os.getpid(), 0.2)


def test_ask_when_two_ask_at_once_then_each_is_told_of_the_first_one_that_is_for_him(
    tmp_path: Path, asked: list[Callable[[], None]]
) -> None:
    """Each of two callers gets the first report that is newer than its own request."""
    asked.append(answer_with(tmp_path, (7, 0), (8, 0)))
    with folder_lock(tmp_path):
        assert ask(tmp_path, os.getpid(), WAIT_S)["files"]["written"] == [7]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"files": {}}', '{"reports": 3}'])
def test_ask_when_what_is_there_is_no_report_then_waits(
    tmp_path: Path, asked: list[Callable[[], None]], content: str
) -> None:
    """The caller waits on when the file is no report, or a report of another version."""
    (tmp_path / snapshot_asking.REPORT).write_text(content)
    asked.append(answer_with(tmp_path, (5, 0)))
    with folder_lock(tmp_path):
        assert ask(tmp_path, os.getpid(), WAIT_S)["files"]["written"] == [5]


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
    found = [report["begun_ns"] for report in snapshot_asking._reports(tmp_path)]
    assert found == list(range(3, REPORTS_MAX + 3))
