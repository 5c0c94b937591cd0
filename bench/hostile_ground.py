"""The service under attack: `rlmm serve` in its own process, and a friendly client that watches."""

from __future__ import annotations

import http.client
import socket
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.hostile_attackers import Target, unverified
from bench.hostile_shapes import hello
from bench.sidecar_ground import started
from rlmm.wire.framing import HEAD_BYTES
from rlmm.wire.messages import read_answer, request_frame
from tests.support.server.access_files import Pki, write_tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.sidecar_ground import Process

TOKENS: Final = {
    name: f"{name}-token-0123456789" for name in ("reader", "broker", "admin", "watcher")
}
BROKER_ID: Final = 7
_TOKEN_LINES: Final = "\n".join(
    f"{name} {role} {TOKENS[name]}"
    for name, role in (
        ("reader", "reader"),
        ("broker", f"broker:{BROKER_ID}"),
        ("admin", "admin"),
        ("watcher", "reader"),
    )
)
_PING_EVERY_S: Final = 0.005
_LIVEZ_EVERY_S: Final = 0.05
_RESIDENT_EVERY_S: Final = 0.02
_DEADLINE_S: Final = 60.0


@dataclass(slots=True)
class Watched:
    pings_ms: list[float] = field(default_factory=list)
    livez_ms: list[float] = field(default_factory=list)
    resident_bytes: list[int] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@contextmanager
def served(place: Path, *, has_tls: bool) -> Iterator[tuple[Process, Target]]:
    port, http_port = _free_port(), _free_port()
    tokens = write_tokens(place / "tokens", f"{_TOKEN_LINES}\n")
    with tempfile.TemporaryDirectory(prefix="rlmm-") as short:
        config, path = place / "rlmm.toml", Path(short) / "rlmm.sock"
        lines = [
            f'data_dir = "{place / "data"}"',
            f'sidecar.unix_path = "{path}"',
            f'sidecar.listen = "127.0.0.1:{port}"',
            f'http.listen = "127.0.0.1:{http_port}"',
            f'access.tokens_file = "{tokens}"',
            "log.kind = 'files'",
        ]
        if has_tls:
            pki = Pki(place)
            lines += [
                f'tls.certificate_file = "{pki.certificate_file}"',
                f'tls.key_file = "{pki.key_file}"',
                "http.tls = false",
            ]
        config.write_text("\n".join(lines) + "\n")
        command = [sys.executable, "-m", "rlmm", "serve", "--config", str(config)]
        with started(command, path, folder=place, log=place / "serve.log") as process:
            _wait_for(port, process)
            _wait_for(http_port, process)
            yield process, Target("127.0.0.1", port, http_port, has_tls, TOKENS, BROKER_ID)


def _wait_for(port: int, process: Process) -> None:
    deadline_s = time.monotonic() + _DEADLINE_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), _DEADLINE_S).close()
        except OSError:
            process.require_running()
            if time.monotonic() > deadline_s:
                raise
            time.sleep(0.02)
        else:
            return


class Watcher:
    """A friendly client in threads: pings over TCP, asks for `/livez`, and notes the memory."""

    def __init__(self, process: Process, target: Target) -> None:
        self._process = process
        self._target = target
        self._stop = threading.Event()
        self.watched = Watched()

    @contextmanager
    def watching(self) -> Iterator[Watched]:
        self.watched = Watched()
        self._stop.clear()
        threads = [
            threading.Thread(target=self._guarded, args=(work,))
            for work in (self._ping, self._livez, self._measure)
        ]
        for thread in threads:
            thread.start()
        try:
            yield self.watched
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()

    def wait_for_both(self) -> None:
        """Wait until a ping and a `/livez` were answered while this watches."""
        deadline_s = time.monotonic() + _DEADLINE_S
        while not (self.watched.pings_ms and self.watched.livez_ms):
            if self.watched.failures or time.monotonic() > deadline_s:
                msg = f"a friendly client is not answered: {self.watched.failures}"
                raise TimeoutError(msg)
            time.sleep(_PING_EVERY_S)

    def _guarded(self, work: object) -> None:
        assert callable(work)
        try:
            work()
        except (OSError, AssertionError, http.client.HTTPException) as error:
            self.watched.failures.append(f"{type(error).__name__}: {error}")

    def _ping(self) -> None:
        target = self._target
        with socket.create_connection((target.host, target.port), _DEADLINE_S) as plain:
            found = plain
            if target.has_tls:
                found = unverified().wrap_socket(plain)
            with found:
                self._call(found, hello(target.tokens["watcher"]))
                while not self._stop.wait(_PING_EVERY_S):
                    begun_s = time.perf_counter()
                    self._call(found, request_frame(1, "ping", []))
                    self.watched.pings_ms.append((time.perf_counter() - begun_s) * 1_000)

    def _call(self, found: socket.socket, frame: bytes) -> None:
        found.sendall(frame)
        size = int.from_bytes(_exactly(found, HEAD_BYTES))
        answer = read_answer(_exactly(found, size))
        assert answer.error is None, answer.error

    def _livez(self) -> None:
        target = self._target
        while not self._stop.wait(_LIVEZ_EVERY_S):
            begun_s = time.perf_counter()
            asked = http.client.HTTPConnection(target.host, target.http_port, timeout=_DEADLINE_S)
            asked.request("GET", "/livez")
            status = asked.getresponse().status
            asked.close()
            assert status == http.HTTPStatus.OK, status
            self.watched.livez_ms.append((time.perf_counter() - begun_s) * 1_000)

    def _measure(self) -> None:
        while not self._stop.wait(_RESIDENT_EVERY_S):
            self.watched.resident_bytes.append(self._process.resident_bytes)


def _exactly(found: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = found.recv(size - len(data))
        if not more:
            msg = "the service has hung up on a friendly client"
            raise ConnectionError(msg)
        data += more
    return data
