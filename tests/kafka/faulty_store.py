"""A bucket behind a proxy that refuses, cuts or holds up requests by their first line."""

from __future__ import annotations

import contextlib
import re
import select
import socket
import socketserver
import threading
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

import boto3

from tests.support.stores.s3_servers import BUCKET, moto_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_BYTES = 256 * 1024
_LOOK_S = 0.05
_ANSWER = (
    b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>AccessDenied</Code>'
    b"<Message>Access Denied</Message></Error>"
)
DENIAL = (
    b"HTTP/1.1 403 Forbidden\r\nContent-Type: application/xml\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(_ANSWER), _ANSWER)
)


class Fault(Enum):
    DENIED = "answered with 403"
    CUT = "the connection ends"
    HELD = "no answer comes"


@dataclass(slots=True)
class FaultyStore:
    """A proxy that applies a fault to requests whose first line matches its pattern."""

    upstream: tuple[str, int]
    endpoint: str = ""
    faults: dict[str, Fault] = field(default_factory=dict)
    met: list[str] = field(default_factory=list)
    is_closed: threading.Event = field(default_factory=threading.Event)

    def fault_of(self, line: str) -> Fault | None:
        for pattern, fault in list(self.faults.items()):
            if re.search(pattern, line):
                self.met.append(line)
                return fault
        return None

    def objects(self) -> list[str]:
        host, port = self.upstream
        session = boto3.Session("any", "any", region_name="us-east-1")
        client = session.client("s3", endpoint_url=f"http://{host}:{port}")
        found = client.list_objects_v2(Bucket=BUCKET)
        assert not found["IsTruncated"]
        return [one["Key"] for one in found.get("Contents", [])]


class _Connection(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        store: FaultyStore = self.server.store  # type: ignore[attr-defined]
        with contextlib.suppress(OSError), socket.create_connection(store.upstream) as behind:
            while not store.is_closed.is_set():
                ready, _, _ = select.select([self.request, behind], [], [], _LOOK_S)
                if behind in ready and not self._pass_on(behind, self.request):
                    return
                if self.request in ready and not self._take(store, behind):
                    return

    @staticmethod
    def _pass_on(source: socket.socket, target: socket.socket) -> bool:
        data = source.recv(_BYTES)
        target.sendall(data)
        return bool(data)

    def _take(self, store: FaultyStore, behind: socket.socket) -> bool:
        data = self.request.recv(_BYTES)
        line = data.partition(b"\r\n")[0]
        fault = None
        if re.match(rb"[A-Z]+ \S+ HTTP/1\.1$", line):
            fault = store.fault_of(line.decode())
        if fault is None:
            behind.sendall(data)
            return bool(data)
        if fault is Fault.DENIED:
            self.request.sendall(DENIAL)
        if fault is not Fault.CUT:
            self._until_gone(store)
        return False

    def _until_gone(self, store: FaultyStore) -> None:
        while not store.is_closed.is_set():
            ready, _, _ = select.select([self.request], [], [], _LOOK_S)
            if ready and not self.request.recv(_BYTES):
                return


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = True
    request_queue_size = 64


@contextlib.contextmanager
def faulty_store(folder: Path) -> Iterator[FaultyStore]:
    with moto_server(folder) as moto:
        host, _, port = moto.endpoint.removeprefix("http://").rpartition(":")
        store = FaultyStore((host, int(port)))
        with _Server(("127.0.0.1", 0), _Connection) as server:
            server.store = store  # type: ignore[attr-defined]
            store.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
            serving = threading.Thread(target=server.serve_forever, args=(_LOOK_S,))
            serving.start()
            try:
                yield store
            finally:
                store.is_closed.set()
                server.shutdown()
                serving.join()
