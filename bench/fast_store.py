"""
`python -m bench.fast_store`: an S3 server as fast as Python allows, so that a run measures its
clients. It keeps only length and checksum of an object longer than `KEPT_BYTES`, verifies nothing,
and refuses uploads in parts.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from tests.support.repository.tree import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

BUCKET = "bench"
KEPT_BYTES = 64 * 1024
"""Whatever a job reads again is shorter."""
BUFFER_BYTES = 1024 * 1024
SUM = "x-amz-checksum-crc64nvme"
EPOCH = "1970-01-01T00:00:00.000Z"


class _Kept(NamedTuple):
    size_bytes: int
    told_sum: str
    content: bytes


class FastStore(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.objects: dict[str, _Kept] = {}
        self.lock = threading.Lock()


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: FastStore

    def setup(self) -> None:
        super().setup()
        self.buffer = memoryview(bytearray(BUFFER_BYTES))

    def log_message(self, *_: object) -> None: ...

    def do_PUT(self) -> None:
        key, query = self._asked()
        size_bytes = int(self.headers["Content-Length"])
        content = self._received(size_bytes)
        if "partNumber" in query:
            self._answer(501)
            return
        made = _Kept(size_bytes, self.headers.get(SUM, ""), content)
        if self.headers.get("If-None-Match") == "*":
            with self.server.lock:
                is_new = self.server.objects.setdefault(key, made) is made
        else:
            self.server.objects[key] = made
            is_new = True
        self._answer(200 if is_new else 412, {"ETag": '"bench"'})

    def _received(self, size_bytes: int) -> bytes:
        if size_bytes <= KEPT_BYTES:
            return self.rfile.read(size_bytes)
        while size_bytes > 0:
            count = self.rfile.readinto(self.buffer[: min(size_bytes, BUFFER_BYTES)])
            if not count:
                self.close_connection = True
                break
            size_bytes -= count
        return b""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._answer(501)

    def do_HEAD(self) -> None:
        key, _ = self._asked()
        kept = self.server.objects.get(key)
        if kept is not None:
            self._answer(200, {**_facts(kept), "Content-Length": str(kept.size_bytes)})
        else:
            self._answer(404 if key else 200)

    def do_GET(self) -> None:
        key, query = self._asked()
        if not key:
            self._list(query.get("prefix", ""))
            return
        kept = self.server.objects.get(key)
        if kept is None:
            self._answer(404, content=b"<Error><Code>NoSuchKey</Code></Error>")
            return
        told = self.headers.get("Range", "bytes=0-").removeprefix("bytes=").split("-")
        first = int(told[0])
        content = kept.content[first : int(told[1]) + 1 if told[1] else None]
        if not content:
            self._answer(416, content=b"<Error><Code>InvalidRange</Code></Error>")
            return
        span = f"bytes {first}-{first + len(content) - 1}/{kept.size_bytes}"
        self._answer(206, {**_facts(kept), "Content-Range": span}, content)

    def _list(self, prefix: str) -> None:
        found = sorted(key for key in list(self.server.objects) if key.startswith(prefix))
        text = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{self.server.objects[key].size_bytes}</Size>"
            f"<LastModified>{EPOCH}</LastModified></Contents>"
            for key in found
        )
        whole = f"<ListBucketResult><IsTruncated>false</IsTruncated>{text}</ListBucketResult>"
        self._answer(200, content=whole.encode())

    def do_DELETE(self) -> None:
        self.server.objects.pop(self._asked()[0], None)
        self._answer(204)

    def _asked(self) -> tuple[str, dict[str, str]]:
        parts = urlsplit(self.path)
        query = parse_qs(parts.query, keep_blank_values=True)
        key = unquote(parts.path).removeprefix(f"/{BUCKET}").removeprefix("/")
        return key, {name: values[0] for name, values in query.items()}

    def _answer(
        self, status: int, told: dict[str, str] | None = None, content: bytes = b""
    ) -> None:
        self.send_response_only(status)
        for name, value in ({"Content-Length": str(len(content))} | (told or {})).items():
            self.send_header(name, value)
        self.end_headers()
        if content:
            self.wfile.write(content)


def _facts(kept: _Kept) -> dict[str, str]:
    facts = {"ETag": '"bench"', "Last-Modified": formatdate(0, usegmt=True)}
    return {**facts, SUM: kept.told_sum} if kept.told_sum else facts


@contextmanager
def fast_store() -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.fast_store"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def main() -> None:
    store = FastStore()
    sys.stdout.write(f"{store.server_port}\n")
    sys.stdout.flush()
    store.serve_forever()


if __name__ == "__main__":
    main()
