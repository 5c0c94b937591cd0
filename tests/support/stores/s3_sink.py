"""A store that speaks S3 and keeps of each object only its length and checksum."""

from __future__ import annotations

import threading
import uuid
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from awscrt.checksums import combine_crc64nvme

from spark_tiering.layout.digests import continued_crc64nvme, crc64nvme_text

if TYPE_CHECKING:
    from collections.abc import Iterator

BUCKET = "sink"
PIECE_BYTES = 1024 * 1024


class Sink(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.objects: dict[str, tuple[int, int]] = {}
        self.uploads: dict[str, dict[int, tuple[int, int]]] = {}

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Sink

    def log_message(self, *_: object) -> None: ...

    def do_PUT(self) -> None:
        size_bytes = int(self.headers["Content-Length"])
        left, crc64nvme = size_bytes, 0
        while left:
            piece = self.rfile.read(min(left, PIECE_BYTES))
            crc64nvme = continued_crc64nvme(crc64nvme, piece)
            left -= len(piece)
        key, query = self._asked()
        if "partNumber" in query:
            self.server.uploads[query["uploadId"]][int(query["partNumber"])] = (
                size_bytes,
                crc64nvme,
            )
        elif key in self.server.objects:
            self._answer(412)
            return
        else:
            self.server.objects[key] = (size_bytes, crc64nvme)
        self._answer(200, {"ETag": '"sink"'})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        key, query = self._asked()
        if "uploads" in query:
            upload_id = uuid.uuid4().hex
            self.server.uploads[upload_id] = {}
            text = f"<R><UploadId>{upload_id}</UploadId></R>"
        else:
            parts = [part for _, part in sorted(self.server.uploads.pop(query["uploadId"]).items())]
            whole = 0
            for size, crc64nvme in parts:
                whole = combine_crc64nvme(whole, crc64nvme, size)
            self.server.objects[key] = (sum(size for size, _ in parts), whole)
            text = '<R><ETag>"sink"</ETag></R>'
        self._answer(200, content=text.encode())

    def do_HEAD(self) -> None:
        key, _ = self._asked()
        if not key:
            self._answer(200)
            return
        found = self.server.objects.get(key)
        if found is None:
            self._answer(404)
            return
        told = {
            "Content-Length": str(found[0]),
            "x-amz-checksum-crc64nvme": crc64nvme_text(found[1]),
            "Last-Modified": formatdate(0, usegmt=True),
        }
        self._answer(200, told)

    def _asked(self) -> tuple[str, dict[str, str]]:
        parts = urlsplit(self.path)
        query = parse_qs(parts.query, keep_blank_values=True)
        key = parts.path.removeprefix(f"/{BUCKET}").removeprefix("/")
        return key, {name: values[0] for name, values in query.items()}

    def _answer(
        self, status: int, told: dict[str, str] | None = None, content: bytes = b""
    ) -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(content))} | (told or {})).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def open_sink() -> Iterator[Sink]:
    sink = Sink()
    thread = threading.Thread(target=sink.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield sink
    finally:
        sink.shutdown()
        sink.server_close()
        thread.join()
