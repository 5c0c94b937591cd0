"""
Frame servers as processes of their own, with an echo server in C among them, and the load of one
generator in C. The operating system counts the cost of each.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from tests.support.repository.tree import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCES = Path(__file__).parent / "c"
COMPILERS = ("cc", "gcc", "clang")
DEADLINE_S = 300.0
CPU_LEAST_S = 0.001


@dataclass(frozen=True, slots=True)
class Programs:
    echo: Path
    load: Path


def compiled(folder: Path) -> Programs:
    compiler = next((found for name in COMPILERS if (found := shutil.which(name))), None)
    if compiler is None:
        msg = (
            f"no C compiler is on the path ({', '.join(COMPILERS)}): the echo server that this is "
            "measured beside and the generator of load are compiled for each run"
        )
        raise click.ClickException(msg)
    made = []
    for name in ("echo", "load"):
        program = folder / name
        command = [compiler, "-O2", "-o", str(program), str(SOURCES / f"{name}.c")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            msg = f"{name}.c cannot be compiled: {done.stderr.strip()}"
            raise click.ClickException(msg)
        made.append(program)
    return Programs(*made)


# --------------------------------------------------------------------------------- processes


class Process:
    def __init__(self, socket: Path, process: subprocess.Popen[bytes]) -> None:
        self.socket = socket
        self._process = process

    @property
    def cpu_s(self) -> float:
        stat = Path(f"/proc/{self._process.pid}/stat").read_text()
        fields = stat.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def resident_bytes(self) -> int:
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def require_running(self) -> None:
        if self._process.poll() is not None:
            msg = f"{self._process.args!r} has ended with {self._process.returncode}"
            raise RuntimeError(msg)


@contextmanager
def started(
    command: list[str], socket: Path, *, folder: Path, log: Path | None = None
) -> Iterator[Process]:
    environ = {name: text for name, text in os.environ.items() if not name.startswith("RLMM_")}
    with (log or Path(os.devnull)).open("wb") as written:
        process = subprocess.Popen(  # noqa: S603 - our own programs
            command, cwd=folder, env={**environ, "PYTHONPATH": str(ROOT)}, stderr=written
        )
        try:
            found = Process(socket, process)
            deadline_s = time.monotonic() + DEADLINE_S
            while not socket.exists():
                found.require_running()
                if time.monotonic() > deadline_s:
                    msg = f"{command[0]} does not listen"
                    raise TimeoutError(msg)
                time.sleep(0.01)
            yield found
        finally:
            process.kill()
            process.wait()
            socket.unlink(missing_ok=True)


@contextmanager
def echo_server(programs: Programs, folder: Path, answer: bytes) -> Iterator[Process]:
    with tempfile.TemporaryDirectory(prefix="rlmm-") as short:
        canned, socket = folder / "answer", Path(short) / "echo.sock"
        canned.write_bytes(answer)
        command = [str(programs.echo), str(socket), str(canned)]
        with started(command, socket, folder=folder) as process:
            yield process


# --------------------------------------------------------------------------------------- load


@dataclass(frozen=True, slots=True)
class Asked:
    hello: bytes
    requests: list[bytes]
    answer: bytes


@dataclass(frozen=True, slots=True)
class Noted:
    answers: int
    elapsed_s: float
    p50_us: float
    p99_us: float
    max_us: float
    cpu_us: float


class Load:
    def __init__(self, process: subprocess.Popen[str], server: Process) -> None:
        self._process = process
        self._server = server

    def run(self, duration_ms: int) -> Noted:
        before_s = self._server.cpu_s
        line = self._tell(f"{duration_ms}\n")
        cpu_s = self._server.cpu_s - before_s
        answers, refusals, elapsed, p50, p99, most = map(int, line.split())
        if refusals:
            msg = f"{refusals} of {answers} requests were refused"
            raise RuntimeError(msg)
        # The system counts in steps: a short pass may have taken less than one.
        cpu_us = max(cpu_s, CPU_LEAST_S) / answers * 1e6
        return Noted(answers, elapsed / 1e9, p50 / 1e3, p99 / 1e3, most / 1e3, cpu_us)

    def _tell(self, line: str) -> str:
        given, said = _ends(self._process)
        given.write(line)
        given.flush()
        return _next_line(said)


@contextmanager
def load(
    programs: Programs,
    server: Process,
    folder: Path,
    asked: Asked,
    *,
    clients: int,
    depth: int = 1,
    idle: int = 0,
) -> Iterator[Load]:
    hello, requests = folder / "hello", folder / "requests"
    hello.write_bytes(asked.hello)
    requests.write_bytes(b"".join(asked.requests))
    sizes = [str(number) for number in (clients, depth)]
    process = subprocess.Popen(  # noqa: S603 - our own program
        [str(programs.load), str(server.socket), *sizes, str(hello), str(requests), str(idle)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    given, said = _ends(process)
    try:
        _next_line(said)
        yield Load(process, server)
    finally:
        process.kill()
        process.wait()
        given.close()
        said.close()


def _ends(process: subprocess.Popen[str]) -> tuple[IO[str], IO[str]]:
    assert process.stdin is not None
    assert process.stdout is not None
    return process.stdin, process.stdout


def _next_line(said: IO[str]) -> str:
    line = said.readline()
    if not line:
        msg = "the generator of load has ended"
        raise RuntimeError(msg)
    return line
