"""Service of the demonstration: a process of `rlmm serve`, with a client and HTTP."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any, NoReturn, Self

from broker_adapter.address import UnixAddress
from broker_adapter.blocking import BlockingRemoteLogMetadataClient
from rlmm.errors import EngineFailed
from rlmm.http.settings import FILE_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

_HTTP = re.compile(r"http://[^\"\s]+")
_DEADLINE_S = 30.0


def holds_within(deadline_s: float, fact: Callable[[], object]) -> bool:
    """Whether *fact* becomes true within *deadline_s*; it is asked about every 20 ms."""
    end_s = time.monotonic() + deadline_s
    while not fact():
        if time.monotonic() > end_s:
            return False
        time.sleep(0.02)
    return True


class DemoService:
    """`rlmm serve` in *folder*, listening at *socket*, with *flags*; killed at the end."""

    def __init__(self, folder: Path, socket: Path, flags: Sequence[str] = ()) -> None:
        self._process = subprocess.Popen(  # noqa: S603  # our own program, with a folder of ours
            [
                sys.executable, "-m", "rlmm", "serve", "--data-dir", str(folder),
                "--sidecar-unix-path", str(socket), "--http-listen", "127.0.0.1:0",
                "--logging-format", "json", *flags,
            ],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._lines: list[str] = []
        self._url = ""
        self._has_url = threading.Event()
        self._is_listening = threading.Event()
        self.socket = socket
        self._reader = threading.Thread(target=self._read, name="lines", daemon=True)
        self._reader.start()
        self._token_file = folder / FILE_NAME
        self._client: BlockingRemoteLogMetadataClient | None = None

    @property
    def pid(self) -> int:
        return self._process.pid

    def status(self) -> dict[str, Any]:
        """Return the status of its one engine; empty before it takes requests."""
        if not self._is_listening.is_set() or not self._url:
            return {}
        code, document = self.get("/v1/status")
        found: dict[str, Any] = document["clusters"][0] if code == 200 else {}
        return found

    @property
    def client(self) -> BlockingRemoteLogMetadataClient:
        if self._client is None:
            self._client = BlockingRemoteLogMetadataClient(
                UnixAddress(self.socket), client="rlmm demo"
            )
        return self._client

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._lines.append(line)
            found = _HTTP.search(line)
            if found is not None and not self._url:
                self._url = found.group()
                self._has_url.set()
            if f"listening at {self.socket}" in line:
                self._is_listening.set()
        self._has_url.set()
        self._is_listening.set()

    def wait_listening(self) -> None:
        self._has_url.wait(_DEADLINE_S)
        self._is_listening.wait(_DEADLINE_S)

    def wait_ready(self) -> None:
        self._has_url.wait(_DEADLINE_S)
        if not holds_within(_DEADLINE_S, lambda: self.get("/readyz")[0] == 200):
            self._fail(f"the demonstration's service is not ready: {self.get('/readyz')[1]}")

    def get(self, path: str) -> tuple[int, dict[str, Any]]:
        request = urllib.request.Request(self._url + path)  # noqa: S310
        try:
            # It stands in the data folder before HTTP is there at all.
            token = self._token_file.read_text(encoding="ascii").strip()
            request.add_header("Authorization", f"Bearer {token}")
            with urllib.request.urlopen(request, timeout=_DEADLINE_S) as answer:  # noqa: S310
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)
        except (OSError, ValueError) as error:
            self._fail(f"the demonstration's service does not answer by HTTP: {error}")

    def _fail(self, message: str) -> NoReturn:
        last = "".join(self._lines[-3:])
        raise EngineFailed(f"{message}; status {self._process.poll()}; its last lines:\n{last}")

    def kill(self) -> int:
        self._hang_up()
        self._process.send_signal(signal.SIGKILL)
        return self._process.wait()

    def stop(self) -> int:
        self._hang_up()
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(_DEADLINE_S)

    def _hang_up(self) -> None:
        if self._client is not None:
            self._client.close()

    def snapshot(self, folder: Path) -> None:
        subprocess.run(  # noqa: S603
            [sys.executable, "-m", "rlmm", "snapshot", "write", "--data-dir", str(folder)],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._hang_up()
        self._process.kill()
        self._process.wait()
        self._reader.join(_DEADLINE_S)
        assert self._process.stderr is not None
        self._process.stderr.close()
