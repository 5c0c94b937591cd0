"""Messages to systemd's notify socket, none of which can harm the service."""

from __future__ import annotations

import asyncio
import os
import socket
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from rlmm.engine.statistics import EngineStatus
from rlmm.gate.state import GateState
from rlmm.gate.statistics import ShardGateStatistics
from rlmm.log.protocol import LogIdentity
from rlmm.log.replay_progress import NotReadyReason, ReplayProgress
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.ids import Uuid
from rlmm.process.systemd import EXTENSION_S, LOOK_S, SupervisorNotices, status_of, watchdog_s
from rlmm.views.readiness import ProcessStatus
from tests.support.engine.snapshots import in_virtual_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

pytestmark = pytest.mark.slow

WATCHDOG_S = 10.0
HEARTBEAT_S_MAX = 60.0
OPEN = ShardGateStatistics(GateState.OPEN, None, "", 1)
CLOSED = ShardGateStatistics(GateState.REPLAYING, NotReadyReason.REPLAYING, "", 0)
STANDING = EngineStatus(
    LogIdentity("cluster", Uuid.of(0, 1), 3),
    Assignment.everything(),
    "",
    0.0,
    {0: OPEN, 1: OPEN, 2: CLOSED},
    {2: ReplayProgress(2, 40, 100, 0, 100, 0.0)},
    {},
)
NOT_REACHED = replace(STANDING, identity=None, last_trouble="no broker\nanswers")


@dataclass
class FixedEngine:
    stands: EngineStatus = STANDING

    def standing(self) -> EngineStatus:
        return self.stands


@dataclass
class FixedProcess:
    engines: Mapping[str, FixedEngine] = field(default_factory=lambda: {"files": FixedEngine()})
    expected: tuple[str, ...] = ("files",)
    missing: Mapping[str, str] = field(default_factory=dict)
    failure: str = ""
    end: str = ""


class Hearing:
    def __init__(self, address: str) -> None:
        self.address = address
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + address[1:] if address.startswith("@") else address)
        self.socket.setblocking(False)

    def heard(self) -> list[list[str]]:
        found = []
        while True:
            try:
                found.append(self.socket.recv(65_536).decode().split("\n"))
            except BlockingIOError:
                return found

    async def count(self, line: str, time_s: float) -> int:
        found = 0
        for _ in range(int(time_s)):
            await asyncio.sleep(1)
            found += sum(line in lines for lines in self.heard())
        return found


@pytest.fixture(params=["path", "abstract"])
def hearing(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Hearing]:
    name = f"@rlmm-test-{os.getpid()}-{request.node.name}"[:90]
    listening = Hearing(str(tmp_path / "notify") if request.param == "path" else name)
    yield listening
    listening.socket.close()


def notices(
    address: str, process: FixedProcess | None = None, *, is_open: bool = True, **more: str
) -> SupervisorNotices:
    made = SupervisorNotices({"NOTIFY_SOCKET": address, **more}, lambda: is_open, HEARTBEAT_S_MAX)
    made.begin(FixedProcess() if process is None else process)
    return made


@in_virtual_time
async def test_ready_when_requests_are_taken_then_is_said_once_with_the_status(
    hearing: Hearing,
) -> None:
    """READY is sent once, with the progress of reading as its status."""
    with notices(hearing.address).telling():
        status = "STATUS=not-ready: 2 of 3 metadata partitions are answered from"
        assert hearing.heard() == [[f"{status}, 60 records are left to read", "READY=1"]]
        await asyncio.sleep(10 * LOOK_S)
        assert hearing.heard() == []


@in_virtual_time
async def test_start_when_it_takes_long_then_more_time_is_asked_for_until_requests_are_taken(
    hearing: Hearing,
) -> None:
    """While nothing listens yet time is extended well before it is over, and READY is not said."""
    opened: list[bool] = []
    made = SupervisorNotices(
        {"NOTIFY_SOCKET": hearing.address}, lambda: bool(opened), HEARTBEAT_S_MAX
    )
    process = FixedProcess(engines={})
    made.begin(process)
    with made.telling():
        extension = f"EXTEND_TIMEOUT_USEC={int(EXTENSION_S * 1_000_000)}"
        assert hearing.heard() == [["STATUS=starting: logs are being opened: files", extension]]
        assert 20 <= await hearing.count(extension, 4 * EXTENSION_S) <= 24
        opened.append(True)
        await asyncio.sleep(LOOK_S)
        assert hearing.heard() == [["READY=1"]]
        await asyncio.sleep(EXTENSION_S)
        assert hearing.heard() == []


@in_virtual_time
async def test_status_when_it_changes_then_is_told(hearing: Hearing) -> None:
    """The supervisor gets each new status."""
    process = FixedProcess()
    with notices(hearing.address, process).telling():
        hearing.heard()
        process.engines["files"].stands = replace(STANDING, gates=dict.fromkeys(range(3), OPEN))
        await asyncio.sleep(2 * LOOK_S)
        told = "STATUS=ready: 3 of 3 metadata partitions are answered from"
        assert hearing.heard() == [[told]]


@in_virtual_time
async def test_watchdog_while_the_process_works_then_gets_two_signs(hearing: Hearing) -> None:
    """The watchdog gets two signs within its time from a process that works or stops."""
    loop = asyncio.get_running_loop()
    process = FixedProcess()
    engine = process.engines["files"]
    usec = str(int(WATCHDOG_S * 1_000_000))
    with notices(hearing.address, process, WATCHDOG_USEC=usec).telling():
        hearing.heard()
        for _ in range(10):
            engine.stands = replace(STANDING, judged_s=loop.time())
            assert await hearing.count("WATCHDOG=1", WATCHDOG_S) == 2
        # The reading stands still.
        within = await hearing.count("WATCHDOG=1", HEARTBEAT_S_MAX)
        assert within in {10, 11}
        assert await hearing.count("WATCHDOG=1", 10 * WATCHDOG_S) == 0
        engine.stands = NOT_REACHED
        assert await hearing.count("WATCHDOG=1", 10 * WATCHDOG_S) == 20
        engine.stands, process.end = STANDING, "stopping"
        assert await hearing.count("WATCHDOG=1", WATCHDOG_S) == 2


@in_virtual_time
async def test_stop_and_reload_then_are_told_at_once(hearing: Hearing) -> None:
    """The supervisor sees when a reload begins and ends, and the end with its reason."""
    process = FixedProcess()
    made = notices(hearing.address, process)
    with made.telling():
        hearing.heard()
        with made.reloading():
            (began,) = hearing.heard()
            assert began[0] == "RELOADING=1"
            name, _, value = began[1].partition("=")
            assert name == "MONOTONIC_USEC"
            assert int(value) > 0
        assert hearing.heard() == [["READY=1"]]
        process.end, process.failure = "stopping", "the disk\nis gone"
        made.stopping()
        assert hearing.heard() == [["STOPPING=1", "STATUS=the disk is gone"]]
        await asyncio.sleep(10 * LOOK_S)
        assert hearing.heard() == []
    made.stopping()
    assert hearing.heard() == []


@in_virtual_time
async def test_reload_before_requests_are_taken_then_does_not_say_that_they_are(
    hearing: Hearing,
) -> None:
    """A reload sends READY at its end only if the process was ready at its beginning."""
    made = notices(hearing.address, is_open=False)
    with made.telling():
        hearing.heard()
        with made.reloading():
            pass
        assert hearing.heard() == []


@in_virtual_time
async def test_ready_when_the_supervisor_was_away_then_is_said_when_it_is_back(
    tmp_path: Path,
) -> None:
    """The service repeats READY when the supervisor is back; failed messages raise nothing."""
    path = tmp_path / "notify"
    with notices(str(path)).telling():
        hearing = Hearing(str(path))
        assert await hearing.count("READY=1", 3 * LOOK_S) == 1
        hearing.socket.close()


@in_virtual_time
async def test_deaf_supervisor_delays_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A full socket loses messages, logs that once, and delays nothing."""
    hearing = Hearing(str(tmp_path / "notify"))
    with notices(hearing.address, WATCHDOG_USEC="2000").telling():
        await asyncio.sleep(WATCHDOG_S)
    hearing.socket.close()
    assert len(caplog.messages) == 1


@pytest.mark.parametrize(
    "address",
    ["/" + "x" * 200, "relative", "vsock:2:1", "@" + "x" * 200, "/nobody/is/here", "/a\0b"],
    ids=["too-long", "relative", "vsock", "abstract-too-long", "nobody", "null"],
)
@in_virtual_time
async def test_address_that_cannot_be_used_then_is_told_once_and_the_service_goes_on(
    address: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The service logs one warning and goes on."""
    made = notices(address)
    with made.telling():
        await asyncio.sleep(10 * LOOK_S)
        with made.reloading():
            made.stopping()
    warnings = [one for one in caplog.messages if one.startswith("the supervisor cannot be told")]
    assert len(warnings) == 1


@in_virtual_time
async def test_process_without_a_supervisor_then_has_no_timers() -> None:
    """Without a supervisor no timer runs."""
    made = SupervisorNotices({"WATCHDOG_USEC": "1000000"}, lambda: True, HEARTBEAT_S_MAX)
    with made.telling(), made.reloading():
        made.stopping()
        with pytest.raises(RuntimeError, match="nothing is left"):
            asyncio.get_running_loop()._run_once()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "30000000"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "-5"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_USEC": "²"}, None),
    ],
    ids=["unset", "set", "ours", "of-another", "zero", "negative", "text", "odd-digit"],
)
def test_watchdog_time_is_of_this_process(environ: dict[str, str], expected: float | None) -> None:
    """Only a valid watchdog time for this process counts."""
    assert watchdog_s(environ) == expected


@pytest.mark.parametrize(
    ("process", "expected"),
    [
        (ProcessStatus({}, is_begun=False), "starting: no cluster is followed yet"),
        (ProcessStatus({}), "not-ready: no cluster is followed yet"),
        (ProcessStatus({"a": STANDING}, failure="a: gone"), "failed: a: gone"),
        (
            ProcessStatus({"a": NOT_REACHED}),
            "not-ready: 0 of 0 metadata partitions are answered from; "
            "a waits for its log: no broker\nanswers",
        ),
        (
            ProcessStatus({"a": STANDING, "b": replace(STANDING, assignment=Assignment.awaited())}),
            "not-ready: 2 of 3 metadata partitions are answered from, 60 records are left to read; "
            "b waits to be told what is assigned",
        ),
    ],
    ids=["before-all", "nothing", "failed", "not-reached", "not-assigned"],
)
def test_status_then_says_what_is_waited_for(process: ProcessStatus, expected: str) -> None:
    """Each wait has its own status text."""
    assert status_of(process) == expected
