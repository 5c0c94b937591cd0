"""
Requests to a running service for snapshots: by a signal, answered in a file of the service.
Invariant: the signal goes only to a process of this machine that holds the data folder and handles
it. The answer describes snapshots that were begun after the request.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import select
import signal
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from rlmm.base.folder_lock import LOCK
from rlmm.base.private_files import open_regular
from rlmm.errors import ConfigError, NotReady
from rlmm.process.run import SNAPSHOT_SIGNAL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.engine.service import SnapshotOutcome

    Document = dict[str, dict[str, Any]]

_log = logging.getLogger(__name__)

REPORT = "snapshot-report.json"
REPORTS_MAX = 16
_LOOK_S = 0.05
_PROCESSES = Path("/proc")


class SnapshotReports:
    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._latest: deque[dict[str, Any]] = deque(maxlen=REPORTS_MAX)

    async def add(self, done: Mapping[str, SnapshotOutcome], begun_ns: int) -> None:
        """Report to every requester from before *begun_ns*. A failed write is logged only."""
        engines = {name: plain(asked) for name, asked in done.items()}
        self._latest.append({"id": uuid4().hex, "begun_ns": begun_ns, "engines": engines})
        text = json.dumps({"reports": list(self._latest)})

        def write() -> None:
            temporary = self._data_dir / f".{REPORT}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            with os.fdopen(open_regular(temporary, flags), "w", encoding="utf-8") as file:
                file.write(text)
            temporary.replace(self._data_dir / REPORT)

        try:
            await asyncio.to_thread(write)
        except OSError as error:
            _log.warning("%s not written: %s", self._data_dir / REPORT, error)


def plain(asked: SnapshotOutcome) -> dict[str, Any]:
    flushed = asked.flushed
    found: dict[str, Any] = {
        "written": list(flushed.written),
        "unchanged": list(flushed.unchanged),
        "failed": {str(partition): str(error) for partition, error in flushed.failed.items()},
        "not_ready": list(asked.not_ready),
    }
    error = flushed.obstacle
    if error is not None:
        found["error"] = {"code": error.code, "message": str(error), "exit_code": error.exit_code}
    return found


def ask(data_dir: Path, pid: int, wait_s: float) -> Document:
    """
    Make process *pid* on *data_dir* write snapshots, and return its report. Raises `ConfigError` if
    *pid* is not known to hold the folder, `NotReady` after *wait_s*.
    """
    end_s = time.monotonic() + wait_s
    try:
        process = os.pidfd_open(pid)  # from here on no other process can be taken for it
    except (OSError, AttributeError) as error:
        raise _not_asked(data_dir, pid, f"it is not there: {error}") from error
    try:
        _require_holder(data_dir, pid)
        while not _takes_signal(pid):  # as long as it begins, for example
            _wait(process, pid, end_s, "takes no request for snapshots")
        known = {report["id"] for report in _reports(data_dir)}
        asked_ns = time.monotonic_ns()
        try:
            signal.pidfd_send_signal(process, SNAPSHOT_SIGNAL)
        except OSError as error:
            raise _not_asked(data_dir, pid, str(error.strerror)) from error
        while True:
            for report in _reports(data_dir):
                if report["id"] not in known and report["begun_ns"] >= asked_ns:
                    found: Document = report["engines"]
                    return found
            _wait(process, pid, end_s, "has written no snapshots")
    finally:
        os.close(process)


def _wait(process: int, pid: int, end_s: float, what: str) -> None:
    """Sleep for a moment; raise if the time is up or the process has gone."""
    left_s = end_s - time.monotonic()
    if left_s <= 0:
        msg = f"process {pid} {what} in the time given by --wait; look at its log"
        raise NotReady(msg)
    ended = select.poll()
    ended.register(process, select.POLLIN)
    if ended.poll(min(left_s, _LOOK_S) * 1_000):
        msg = f"process {pid} has ended meanwhile; look at its log"
        raise NotReady(msg)


def _require_holder(data_dir: Path, pid: int) -> None:
    """Refuse a process without the lock: the id in the file may be of another machine."""
    process = _PROCESSES / str(pid)
    try:
        lock = (data_dir / LOCK).stat()
        for entry in (process / "fd").iterdir():
            with suppress(OSError):  # closed in between
                found = entry.stat()
                if (found.st_dev, found.st_ino) == (lock.st_dev, lock.st_ino):
                    noted = (process / "fdinfo" / entry.name).read_text(encoding="ascii")
                    if any("FLOCK" in line for line in noted.splitlines() if "lock:" in line):
                        return
    except OSError as error:
        detail = f"whether it is the one cannot be seen here: {error.strerror}"
        raise _not_asked(data_dir, pid, detail) from error
    raise _not_asked(data_dir, pid, "the process of this number here is another one")


def _not_asked(data_dir: Path, pid: int, why: str) -> ConfigError:
    return ConfigError(
        f"{data_dir} is held by process {pid}, as its lock says, and cannot be asked: {why}. Run "
        "this where the service runs, as the same user"
    )


def _takes_signal(pid: int) -> bool:
    """Return whether the process handles the signal instead of dying from it."""
    try:
        status = (_PROCESSES / str(pid) / "status").read_text(encoding="utf-8")
    except OSError:
        return False
    masks = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return bool(int(masks.get("SigCgt", "0"), 16) >> (SNAPSHOT_SIGNAL - 1) & 1)


def _reports(data_dir: Path) -> list[dict[str, Any]]:
    """Return the latest reports, oldest first."""
    try:
        found = json.loads((data_dir / REPORT).read_text(encoding="utf-8"))
        reports: list[dict[str, Any]] = list(found["reports"])
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return reports
