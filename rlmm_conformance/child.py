"""
Child process that answers requests in lines, each with a deadline.

One selector watches its three streams, so that a silent, deaf or flooding child cannot block us.
Every failure is an `EngineFailed` with the child's last words; `close` leaves no zombie.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from typing import IO, TYPE_CHECKING

from rlmm.errors import EngineFailed

if TYPE_CHECKING:
    from collections.abc import Sequence

REPLY_BYTES_MAX = 16 * 1024 * 1024
EXIT_GRACE_S = 2.0
"""The time that a child has to leave by itself after its input ended."""

_CHUNK_BYTES = 65_536
_LAST_WORDS_BYTES = 2_000
_LAST_WORDS_CHARACTERS = 300


class Child:
    def __init__(self, argv: Sequence[str]) -> None:
        try:
            self._process = subprocess.Popen(  # noqa: S603 - to start the user's command is the task
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            raise EngineFailed(f"cannot be started: {error.strerror}: {argv[0]}") from error
        except ValueError as error:
            raise EngineFailed(f"cannot be started: {error}") from error
        assert self._process.stdin
        assert self._process.stdout
        assert self._process.stderr
        self._stdin: IO[bytes] = self._process.stdin
        self._stdout: IO[bytes] = self._process.stdout
        self._stderr: IO[bytes] = self._process.stderr
        self._selector = selectors.DefaultSelector()
        for stream in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(stream.fileno(), False)
        self._selector.register(self._stdout, selectors.EVENT_READ)
        self._selector.register(self._stderr, selectors.EVENT_READ)
        self._received = bytearray()
        self._words = bytearray()
        self._is_usable = True

    def exchange(self, line: bytes, timeout_s: float) -> bytes:
        """Send *line* and return the line that answers it, both without their line end."""
        try:
            return self._exchange(line, timeout_s)
        except EngineFailed:
            self._is_usable = False
            raise

    def _exchange(self, line: bytes, timeout_s: float) -> bytes:
        if self._received:
            raise EngineFailed(f"answered without being asked: {_excerpt(bytes(self._received))}")
        deadline = time.monotonic() + timeout_s
        pending = line + b"\n"
        self._selector.register(self._stdin, selectors.EVENT_WRITE)
        try:
            while b"\n" not in self._received:
                remaining_s = deadline - time.monotonic()
                if remaining_s <= 0:
                    raise EngineFailed(f"no answer within {timeout_s:g} s{self._last_words()}")
                pending = self._move(pending, remaining_s)
        finally:
            with contextlib.suppress(KeyError):
                self._selector.unregister(self._stdin)
        reply, _, rest = bytes(self._received).partition(b"\n")
        self._received[:] = rest
        return reply

    def _move(self, pending: bytes, timeout_s: float) -> bytes:
        """Move bytes on the three streams; return the bytes that are still to be sent."""
        for key, _ in self._selector.select(timeout_s):
            if key.fileobj is self._stdin:
                pending = self._send(pending)
            elif key.fileobj is self._stderr:
                self._read_words()
            else:
                self._receive()
        return pending

    def _send(self, pending: bytes) -> bytes:
        try:
            pending = pending[os.write(self._stdin.fileno(), pending) :]
        except BrokenPipeError:
            pending = b""  # the child is leaving: its output, or the end of it, will tell
        if not pending:
            self._selector.unregister(self._stdin)
        return pending

    def _receive(self) -> None:
        chunk = os.read(self._stdout.fileno(), _CHUNK_BYTES)
        if not chunk:
            raise self._ended()
        self._received += chunk
        if len(self._received) > REPLY_BYTES_MAX:
            raise EngineFailed(f"an answer of more than {REPLY_BYTES_MAX} bytes")

    def _read_words(self) -> None:
        chunk = os.read(self._stderr.fileno(), _CHUNK_BYTES)
        if not chunk:
            self._selector.unregister(self._stderr)
            return
        self._words += chunk
        del self._words[:-_LAST_WORDS_BYTES]

    def _ended(self) -> EngineFailed:
        try:
            status = self._process.wait(EXIT_GRACE_S)
        except subprocess.TimeoutExpired:
            return EngineFailed(f"closed its output without an answer{self._last_words()}")
        how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
        return EngineFailed(f"{how} without an answer{self._last_words()}")

    def _last_words(self) -> str:
        with contextlib.suppress(OSError):
            while chunk := os.read(self._stderr.fileno(), _CHUNK_BYTES):
                self._words += chunk
                del self._words[:-_LAST_WORDS_BYTES]
        words = " ".join(self._words.decode(errors="replace").split())
        return f"; its last words: {words[-_LAST_WORDS_CHARACTERS:]}" if words else ""

    def close(self) -> None:
        """End the input and wait for the child to leave; a child that stays is killed."""
        self._selector.close()
        self._stdin.close()
        try:
            self._process.wait(EXIT_GRACE_S if self._is_usable else 0)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._stdout.close()
        self._stderr.close()


def _excerpt(line: bytes) -> str:
    text = " ".join(line.decode(errors="replace").split())
    return text if len(text) <= _LAST_WORDS_CHARACTERS else text[:_LAST_WORDS_CHARACTERS] + "..."
