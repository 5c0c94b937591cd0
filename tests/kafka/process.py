"""Child processes, of Java or ours, that end with this process, and their output."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from typing import IO, TYPE_CHECKING, NamedTuple

from rlmm.base.closing import ClosedByWith

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.kafka.jars import Jars

LEASH = "rlmm.kafka.Leash"
TAIL_LINES = 40
GRACE_S = 60.0
"""How long a process that was asked to end may take before it is killed."""

KILL_DEADLINE_S = 20.0
TOOL_DEADLINE_S = 60.0


class ProcessFailed(Exception):
    """A Java process ended or missed its deadline; the message carries its last lines."""


class ProcessLog:
    """The lines of a process over restarts: kept, written to a file, waited for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: list[str] = []
        self._changed = threading.Condition()
        self._streams = 0

    def follow(self, stream: IO[str]) -> threading.Thread:
        with self._changed:
            self._streams += 1
        reader = threading.Thread(target=self._read, args=(stream,), name=f"read {self.path}")
        reader.start()
        return reader

    def _read(self, stream: IO[str]) -> None:
        with stream, self.path.open("a", encoding="utf-8") as file:
            for line in stream:
                file.write(line)
                file.flush()
                with self._changed:
                    self._lines.append(line.rstrip("\n"))
                    self._changed.notify_all()
        with self._changed:
            self._streams -= 1
            self._changed.notify_all()

    @property
    def position(self) -> int:
        """Return the number of lines so far, to search from later."""
        with self._changed:
            return len(self._lines)

    def since(self, position: int) -> list[str]:
        with self._changed:
            return self._lines[position:]

    def errors(self, position: int = 0) -> list[str]:
        return [line for line in self.since(position) if " ERROR " in line or " FATAL " in line]

    def tail(self, position: int = 0) -> str:
        """Return the last lines from *position* on; after a failed start, all from its cause."""
        lines = self.since(position)
        fatal = next((at for at, line in enumerate(lines) if "Fatal error" in line), len(lines))
        return "\n".join(lines[min(fatal, max(0, len(lines) - TAIL_LINES)) :][: 2 * TAIL_LINES])

    def wait_for(self, text: str, *, position: int = 0, deadline_s: float) -> str:
        """Return the first line from *position* on with *text*; else raise `ProcessFailed`."""

        def said() -> str | None:
            return next((line for line in self._lines[position:] if text in line), None)

        with self._changed:
            self._changed.wait_for(lambda: said() is not None or not self._streams, deadline_s)
            line = said()
            ended = not self._streams
        if line is None:
            why = "it ended" if ended else f"{deadline_s:g} s passed"
            raise ProcessFailed(
                f"{why} before it said {text!r}; its last lines, all in {self.path}:\n"
                f"{self.tail(position)}"
            )
        return line


class ChildProcess:
    def __init__(
        self,
        command: list[str],
        folder: Path,
        log: ProcessLog,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        held, self._leash = os.pipe()
        try:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env=environ,
                stdin=held,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,  # an interrupt at the keyboard is for the tests
            )
        except BaseException:
            os.close(self._leash)
            raise
        finally:
            os.close(held)
        assert self._process.stdout is not None
        self._reader = log.follow(self._process.stdout)
        self._status: int | None = None

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def end(self, how: signal.Signals, grace_s: float = GRACE_S) -> int:
        if self._status is None:
            self._process.send_signal(how)
            try:
                self._status = self._process.wait(grace_s)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._status = self._process.wait(KILL_DEADLINE_S)
            os.close(self._leash)
            self._reader.join(KILL_DEADLINE_S)
        return self._status


class KeptProcess(ClosedByWith):
    """A process that is started and ended several times, with one log of all its lives."""

    def __init__(self, log: ProcessLog) -> None:
        self.log = log
        self._process: ChildProcess | None = None

    @property
    def logs(self) -> list[ProcessLog]:
        return [self.log]

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.is_running

    @property
    def pid(self) -> int:
        assert self._process is not None, "never started"
        return self._process.pid

    def end(self, how: signal.Signals, grace_s: float = GRACE_S) -> int | None:
        """End the process with a signal and return its status; None when it was never started."""
        return None if self._process is None else self._process.end(how, grace_s)

    def stop(self, grace_s: float = GRACE_S) -> int | None:
        """Ask the process to stop, kill it after the grace time, and return its status."""
        return self.end(signal.SIGTERM, grace_s)

    def kill(self) -> None:
        self.end(signal.SIGKILL)


class ProcessOutput(NamedTuple):
    out: str
    err: str


def run_java(
    jars: Jars, main_class: str, *arguments: str, deadline_s: float = TOOL_DEADLINE_S
) -> ProcessOutput:
    held, leash = os.pipe()
    command = jars.command(
        LEASH, main_class, *arguments, log4j="tool-log4j2.properties", flags=jars.archived
    )
    try:
        done = subprocess.run(
            command,
            stdin=held,
            capture_output=True,
            text=True,
            check=False,
            timeout=deadline_s,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired as error:
        raise ProcessFailed(f"{main_class} took more than {deadline_s:g} s: {arguments}") from error
    finally:
        os.close(held)
        os.close(leash)
    if done.returncode != 0:
        raise ProcessFailed(
            f"{main_class} {' '.join(arguments)} ended with status {done.returncode}:\n"
            f"{done.stdout[-4000:]}{done.stderr[-4000:]}"
        )
    return ProcessOutput(done.stdout, done.stderr)
