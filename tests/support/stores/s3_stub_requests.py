"""One connection to it."""

from __future__ import annotations

import base64
import hashlib
import sys
import time
import uuid
from dataclasses import dataclass, field
from email.utils import formatdate
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree as Xml
from xml.sax.saxutils import escape

from spark_tiering.layout.digests import crc64nvme_text, digest_of

if TYPE_CHECKING:
    from tests.support.stores.s3_stub import ObjectStub

BUCKET = "stub"
PAGE_KEYS = 3
"""Few, so that every listing has several pages."""
SUM = "x-amz-checksum-crc64nvme"


class Trouble(StrEnum):
    NOTHING = "nothing"
    THROTTLED = "throttled"
    BROKEN = "broken"
    """A fault of the store's own, and nothing was done."""
    ANSWER_LOST = "answer-lost"
    """Done, and the connection ends before the answer."""
    ANSWER_LATE = "answer-late"
    """Done, and the answer does not come until the client is gone."""
    NOT_DONE_LATE = "not-done-late"
    """Not done, and no answer comes either."""
    CUT = "cut"
    """The connection ends in the middle of what is sent, by either side."""
    SHORT = "short"
    """Less than was told, and then the end."""
    DAMAGED = "damaged"
    """One bit of the body changes on its way."""
    DENIED = "denied"


class Asked(NamedTuple):
    operation: str
    key: str
    headers: dict[str, str]


@dataclass
class Kept:
    content: bytes
    storage_class: str = ""
    restore: str = ""
    modified_s: float = field(default_factory=time.time)

    @property
    def etag(self) -> str:
        return f'"{hashlib.md5(self.content).hexdigest()}"'


@dataclass
class Begun:
    key: str
    began_s: float
    parts: dict[int, bytes] = field(default_factory=dict)


class StubServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Refused(Exception):
    def __init__(self, status: int, code: str) -> None:
        super().__init__(code)
        self.status = status
        self.code = code


class Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    """Head and body are sent apart: else each answer waits 40 ms for an acknowledgement."""
    server: ThreadingHTTPServer

    @property
    def stub(self) -> ObjectStub:
        stub: ObjectStub = self.server.stub  # type: ignore[attr-defined]
        return stub

    def log_message(self, *_: object) -> None: ...

    def answer(self) -> None:
        parts = urlsplit(self.path)
        bucket, _, self.key = unquote(parts.path).removeprefix("/").partition("/")
        query = parse_qs(parts.query, keep_blank_values=True)
        self.query = {name: values[0] for name, values in query.items()}
        operation = self._operation()
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.stub.asked.append(Asked(operation, self.key, headers))
        trouble = self.stub.trouble_of(operation)
        length = int(self.headers.get("Content-Length") or 0)
        if trouble is Trouble.CUT and length:
            self.rfile.read(length // 2)
            self.close_connection = True
            return
        self.body = bytearray(self.rfile.read(length))
        if len(self.body) < length:
            self.close_connection = True
            return
        if trouble is Trouble.DAMAGED and self.body:
            self.body[len(self.body) // 2] ^= 1
        if trouble is Trouble.NOT_DONE_LATE:
            self._hang()
            return
        try:
            status, told, content = self._done(operation, bucket, trouble)
        except _Refused as refused:
            text = f"<Error><Code>{refused.code}</Code><Message>as told</Message></Error>"
            status, told, content = refused.status, {}, text.encode()
        if trouble is Trouble.ANSWER_LATE:
            self._hang()
        elif trouble is Trouble.ANSWER_LOST:
            self.close_connection = True
        else:
            self._send(status, told, content, is_short=trouble in (Trouble.SHORT, Trouble.CUT))

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer

    def _done(self, operation: str, bucket: str, trouble: Trouble | None) -> _Answer:
        if trouble in _REFUSING:
            raise _Refused(*_REFUSING[trouble])
        if bucket != BUCKET:
            raise _Refused(404, "NoSuchBucket")
        with self.stub.lock:
            answer: _Answer = getattr(self, f"on_{operation}")()
        return answer

    def _hang(self) -> None:
        self.close_connection = True
        self.connection.settimeout(0.02)
        while not self.stub.is_closing.is_set():
            try:
                if not self.connection.recv(1):
                    return
            except TimeoutError:
                continue
            except OSError:
                return

    def _send(self, status: int, told: dict[str, str], content: bytes, *, is_short: bool) -> None:
        self.send_response(status)
        told.setdefault("Content-Length", str(len(content)))
        for name, value in told.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content[: len(content) // 2] if is_short else content)
        self.close_connection |= is_short

    def _operation(self) -> str:
        names = {
            ("PUT", "partNumber"): "UploadPart",
            ("POST", "uploads"): "CreateMultipartUpload",
            ("POST", "uploadId"): "CompleteMultipartUpload",
            ("DELETE", "uploadId"): "AbortMultipartUpload",
            ("GET", "list-type"): "ListObjectsV2",
            ("GET", "uploads"): "ListMultipartUploads",
        }
        for (method, name), operation in names.items():
            if self.command == method and name in self.query:
                return operation
        whole = {"PUT": "PutObject", "GET": "GetObject", "DELETE": "DeleteObject"}
        return whole.get(self.command) or ("HeadObject" if self.key else "HeadBucket")

    def _check_condition(self) -> None:
        is_asked = self.headers.get("If-None-Match") == "*"
        if is_asked and self.key in self.stub.objects and not self.stub.ignores_conditions:
            raise _Refused(412, "PreconditionFailed")

    def _check_sum(self, content: bytes) -> None:
        told = self.headers.get(SUM)
        is_right = told in (None, crc64nvme_text(digest_of(content).crc64nvme))
        if not is_right and not self.stub.ignores_sums:
            raise _Refused(400, "BadDigest")

    def _keep(self, content: bytes) -> Kept:
        kept = Kept(content, self.headers.get("x-amz-storage-class", ""))
        self.stub.objects[self.key] = kept
        return kept

    def _begun(self) -> Begun:
        begun = self.stub.uploads.get(self.query["uploadId"])
        if begun is None or begun.key != self.key:
            raise _Refused(404, "NoSuchUpload")
        return begun

    def _kept(self) -> Kept:
        kept = self.stub.objects.get(self.key)
        if kept is None:
            raise _Refused(404, "NoSuchKey")
        return kept

    def on_PutObject(self) -> _Answer:
        self._check_condition()
        self._check_sum(bytes(self.body))
        return 200, {"ETag": self._keep(bytes(self.body)).etag}, b""

    def on_CreateMultipartUpload(self) -> _Answer:
        upload_id = uuid.uuid4().hex
        self.stub.uploads[upload_id] = Begun(self.key, time.time())
        return _xml("InitiateMultipartUploadResult", f"<UploadId>{upload_id}</UploadId>")

    def on_UploadPart(self) -> _Answer:
        begun = self._begun()
        self._check_sum(bytes(self.body))
        begun.parts[int(self.query["partNumber"])] = bytes(self.body)
        return 200, {"ETag": Kept(bytes(self.body)).etag}, b""

    def on_CompleteMultipartUpload(self) -> _Answer:
        begun = self._begun()
        named = Xml.fromstring(bytes(self.body)).iterfind("{*}Part/{*}PartNumber")
        content = b"".join(begun.parts[int(part.text or 0)] for part in named)
        self._check_condition()
        self._check_sum(content)
        del self.stub.uploads[self.query["uploadId"]]
        return _xml("CompleteMultipartUploadResult", f"<ETag>{self._keep(content).etag}</ETag>")

    def on_AbortMultipartUpload(self) -> _Answer:
        self._begun()
        del self.stub.uploads[self.query["uploadId"]]
        return 204, {}, b""

    def on_HeadBucket(self) -> _Answer:
        return 200, {}, b""

    def on_HeadObject(self) -> _Answer:
        kept = self._kept()
        told = {"Content-Length": str(len(kept.content)), **self._facts(kept)}
        if self.headers.get("x-amz-checksum-mode") and self.stub.tells_sums:
            told[SUM] = crc64nvme_text(digest_of(kept.content).crc64nvme)
        return 200, told, b""

    def on_GetObject(self) -> _Answer:
        kept = self._kept()
        if kept.storage_class == "GLACIER" and not kept.restore:
            raise _Refused(403, "InvalidObjectState")
        first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
        size = len(kept.content)
        if not self.stub.takes_ranges:
            return 200, self._facts(kept), kept.content
        if first >= size:
            raise _Refused(416, "InvalidRange")
        content = kept.content[first : last + 1]
        span = f"bytes {first}-{first + len(content) - 1}/{size}"
        return 206, {"Content-Range": span, **self._facts(kept)}, content

    def on_DeleteObject(self) -> _Answer:
        self.stub.objects.pop(self.key, None)
        return 204, {}, b""

    def on_ListObjectsV2(self) -> _Answer:
        after = base64.b64decode(self.query.get("continuation-token", "")).decode()
        keys = self._level(self._keys(self.stub.objects, ""), after)
        text = "".join(map(self._listed, keys[:PAGE_KEYS]))
        if len(keys) > PAGE_KEYS:
            token = base64.b64encode(keys[PAGE_KEYS - 1].encode()).decode()
            text += f"<NextContinuationToken>{token}</NextContinuationToken>"
        more = str(len(keys) > PAGE_KEYS).lower()
        return _xml("ListBucketResult", f"<IsTruncated>{more}</IsTruncated>{text}")

    def on_ListMultipartUploads(self) -> _Answer:
        marker = self.query.get("key-marker", ""), self.query.get("upload-id-marker", "")
        prefix = self.query.get("prefix", "")
        found = sorted(
            (begun.key, upload_id)
            for upload_id, begun in self.stub.uploads.items()
            if begun.key.startswith(prefix) and (begun.key, upload_id) > marker
        )
        page = found[:PAGE_KEYS]
        text = "".join(
            f"<Upload><Key>{escape(key)}</Key><UploadId>{upload_id}</UploadId>"
            f"<Initiated>{_moment(self.stub.uploads[upload_id].began_s)}</Initiated></Upload>"
            for key, upload_id in page
        )
        if len(found) > PAGE_KEYS:
            key, upload_id = page[-1]
            text += f"<NextKeyMarker>{escape(key)}</NextKeyMarker>"
            text += f"<NextUploadIdMarker>{upload_id}</NextUploadIdMarker>"
        more = str(len(found) > PAGE_KEYS).lower()
        return _xml("ListMultipartUploadsResult", f"<IsTruncated>{more}</IsTruncated>{text}")

    def _level(self, keys: list[str], after: str) -> list[str]:
        """Return keys, with those below a delimiter as one common prefix."""
        delimiter, prefix = self.query.get("delimiter", ""), self.query.get("prefix", "")
        if delimiter:
            cut = [(key, key.removeprefix(prefix).partition(delimiter)) for key in keys]
            shared = (f"{prefix}{name}{mark}" if mark else key for key, (name, mark, _) in cut)
            keys = list(dict.fromkeys(shared))
        return [key for key in keys if key.encode() > after.encode()]

    def _listed(self, key: str) -> str:
        kept = self.stub.objects.get(key)
        if kept is None or (self.query.get("delimiter") and key.endswith("/")):
            return f"<CommonPrefixes><Prefix>{escape(key)}</Prefix></CommonPrefixes>"
        return (
            f"<Contents><Key>{escape(key)}</Key><Size>{len(kept.content)}</Size>"
            f"<LastModified>{_moment(kept.modified_s)}</LastModified>"
            f"<StorageClass>{kept.storage_class or 'STANDARD'}</StorageClass></Contents>"
        )

    def _keys(self, kept: dict[str, Kept], after: str) -> list[str]:
        prefix = self.query.get("prefix", "")
        found = (key for key in kept if key.startswith(prefix) and key > after)
        return sorted(found, key=str.encode)

    def _facts(self, kept: Kept) -> dict[str, str]:
        told = {"ETag": kept.etag, "Last-Modified": formatdate(kept.modified_s, usegmt=True)}
        if kept.storage_class:
            told["x-amz-storage-class"] = kept.storage_class
        if kept.restore:
            told["x-amz-restore"] = kept.restore
        return told


_Answer = tuple[int, dict[str, str], bytes]
_REFUSING: dict[Trouble | None, tuple[int, str]] = {
    Trouble.THROTTLED: (503, "SlowDown"),
    Trouble.BROKEN: (500, "InternalError"),
    Trouble.DENIED: (403, "AccessDenied"),
}


def _xml(name: str, content: str) -> _Answer:
    return 200, {"Content-Type": "application/xml"}, f"<{name}>{content}</{name}>".encode()


def _moment(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(seconds))
