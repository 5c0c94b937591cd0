"""A bucket of S3 as a store: implements `ObjectStore` in requests to S3."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

from spark_tiering.layout.digests import parse_crc64nvme
from spark_tiering.stores.content import stream_of, walk_through
from spark_tiering.stores.object_reading import compare
from spark_tiering.stores.protocol import OpenedStore, check_key, check_range
from spark_tiering.stores.results import (
    ListedFolder,
    ListedObject,
    ObjectAbsent,
    ObjectArchived,
    ObjectFacts,
    OpenUpload,
    PutRefused,
    PutUnknown,
    RangeBeyondObject,
)
from spark_tiering.stores.s3_calls import S3Calls
from spark_tiering.stores.s3_faults import S3Fault, S3FaultKind
from spark_tiering.stores.s3_parts import put_parts
from spark_tiering.stores.s3_probe import probe_bucket
from spark_tiering.stores.s3_settings import ARCHIVE_CLASSES
from spark_tiering.stores.s3_single_put import SinglePut

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boto3 import S3Client

    from spark_tiering.stores.content import ContentStream, ObjectContent
    from spark_tiering.stores.results import ContentSum, Found, GetOutcome, PutOutcome, StoreTraits
    from spark_tiering.stores.s3_policies import S3Retries
    from spark_tiering.stores.s3_settings import S3Settings

RESTORED = 'ongoing-request="false"'


class S3Store(OpenedStore):
    """The objects in one bucket. Opening it asks nothing of the store yet."""

    def __init__(self, settings: S3Settings, repeats: S3Retries | None = None) -> None:
        self._settings = settings
        self._calls = S3Calls(settings, repeats)
        self._is_bucket_seen = False

    def __repr__(self) -> str:
        return f"S3Store({self._settings.address!r})"

    def close(self) -> None:
        self._calls.close()

    def put(self, key: str, content: ObjectContent) -> PutOutcome:
        check_key(key)
        self._see_bucket()
        is_large = content.sum.size_bytes > self._settings.single_put_bytes
        if is_large or not self._settings.has_conditional_puts:
            there = compare(self, key, content.sum)
            if not isinstance(there, ObjectAbsent):
                return there
        if is_large:
            return put_parts(self._calls, self._look, key, stream_of(content))
        return SinglePut(self._calls, self._look, key, content).run()

    def put_stream(self, key: str, stream: ContentStream) -> PutOutcome:
        self._see_bucket()
        if isinstance(self.head(key, is_sum_wanted=False), ObjectAbsent):
            return put_parts(self._calls, self._look, key, stream)
        passed = walk_through(stream)
        if isinstance(passed, PutRefused):
            return passed
        found = compare(self, key, passed)
        if isinstance(found, ObjectAbsent):
            return PutUnknown(f"{key}: something was there, and was taken away meanwhile")
        return found

    def head(self, key: str, *, is_sum_wanted: bool = True) -> ObjectFacts | ObjectAbsent:
        check_key(key)
        mode = {"ChecksumMode": "ENABLED"} if is_sum_wanted else {}
        answer = self._calls.ask(
            "HeadObject", lambda client: client.head_object(**self._calls.at(key), **mode)
        )
        if isinstance(answer, S3Fault):
            if answer.kind is S3FaultKind.NO_KEY:
                return self._absent(key)
            self._calls.give_up(answer)
        return _facts(answer)

    def get(self, key: str, first_byte: int, last_byte: int) -> GetOutcome:
        check_key(key)
        check_range(first_byte, last_byte)
        answer = self._calls.ask(
            "GetObject",
            lambda client: _fetch(client, self._calls.at(key), first_byte, last_byte),
        )
        if not isinstance(answer, S3Fault):
            return answer
        if answer.kind is S3FaultKind.NO_KEY:
            return self._absent(key)
        if answer.kind is S3FaultKind.NO_RANGE:
            return RangeBeyondObject(key, first_byte)
        if answer.kind is not S3FaultKind.ARCHIVED:
            self._calls.give_up(answer)
        facts = self.head(key, is_sum_wanted=False)
        return (
            facts if isinstance(facts, ObjectAbsent) else ObjectArchived(key, facts.storage_class)
        )

    def list(self, prefix: str = "") -> Iterator[ListedObject]:
        for page in self._pages({**self._asking(), "Prefix": prefix}):
            yield from map(_listed, page.get("Contents", ()))

    def level(self, prefix: str = "") -> Iterator[ListedObject | ListedFolder]:
        request = {**self._asking(), "Prefix": prefix, "Delimiter": "/"}
        for page in self._pages(request):
            for found in page.get("CommonPrefixes", ()):
                yield ListedFolder(found["Prefix"])
            yield from map(_listed, page.get("Contents", ()))

    def delete(self, key: str) -> None:
        check_key(key)
        answer = self._calls.ask(
            "DeleteObject", lambda client: client.delete_object(**self._calls.at(key))
        )
        if isinstance(answer, S3Fault) and answer.kind is not S3FaultKind.NO_KEY:
            self._calls.give_up(answer)

    def open_uploads(self, prefix: str = "") -> Iterator[OpenUpload]:
        request = {**self._asking(), "Prefix": prefix}
        while True:
            page = self._page("ListMultipartUploads", request)
            for found in page.get("Uploads", ()):
                # Not every store reads the prefix as letters; nobody else's may be given here.
                if found["Key"].startswith(prefix):
                    began_ms = _milliseconds(found["Initiated"])
                    yield OpenUpload(found["Key"], found["UploadId"], began_ms)
            if not page.get("IsTruncated"):
                return
            request["KeyMarker"] = page["NextKeyMarker"]
            request["UploadIdMarker"] = page["NextUploadIdMarker"]

    def abort_upload(self, upload: OpenUpload) -> None:
        answer = self._calls.ask(
            "AbortMultipartUpload",
            lambda client: client.abort_multipart_upload(
                **self._calls.at(upload.key), UploadId=upload.upload_id
            ),
        )
        gone = (S3FaultKind.NO_UPLOAD, S3FaultKind.NO_KEY)
        if isinstance(answer, S3Fault) and answer.kind not in gone:
            self._calls.give_up(answer)

    def probe(self, prefix: str) -> StoreTraits:
        self._see_bucket()
        return probe_bucket(self._calls, prefix, self._tells_sum)

    def _tells_sum(self, key: str) -> bool:
        facts = self.head(key)
        return isinstance(facts, ObjectFacts) and facts.crc64nvme is not None

    def _look(self, key: str, expected: ContentSum) -> Found:
        return compare(self, key, expected)

    def _absent(self, key: str) -> ObjectAbsent:
        """An answer without words may mean the bucket instead of the object."""
        self._see_bucket()
        return ObjectAbsent(key)

    def _see_bucket(self) -> None:
        """Raise `StoreAbsent`, before a write makes some stores create the bucket."""
        if not self._is_bucket_seen:
            self._calls.check_bucket()
            self._is_bucket_seen = True

    def _asking(self) -> dict[str, Any]:
        payer = {"RequestPayer": "requester"} if self._settings.is_requester_pays else {}
        return {**self._calls.place, **payer}

    def _pages(self, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
        while True:
            page = self._page("ListObjectsV2", request)
            yield page
            if not page.get("IsTruncated"):
                return
            request["ContinuationToken"] = page["NextContinuationToken"]

    def _page(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        def ask(client: S3Client) -> dict[str, Any]:
            if operation == "ListObjectsV2":
                return client.list_objects_v2(**request)
            return client.list_multipart_uploads(**request)

        page = self._calls.ask(operation, ask)
        if isinstance(page, S3Fault):
            self._calls.give_up(page)
        return page


def _fetch(
    client: S3Client, place: dict[str, Any], first_byte: int, last_byte: int
) -> bytes | S3Fault:
    answer = client.get_object(**place, Range=f"bytes={first_byte}-{last_byte}")
    asked_bytes = last_byte - first_byte + 1
    with closing(answer["Body"]) as body:
        told = str(answer.get("ContentRange", ""))
        if told:
            span, _, _ = told.removeprefix("bytes ").partition("/")
            is_meant = span.startswith(f"{first_byte}-")
        else:
            # The whole object is the answer where a store takes no ranges.
            is_meant = first_byte == 0
        if not is_meant or answer["ContentLength"] > asked_bytes:
            detail = f"GetObject: asked for {asked_bytes} bytes from {first_byte}, got {told!r}"
            return S3Fault(S3FaultKind.UNSUITABLE, detail)
        return bytes(body.read())


def _facts(answer: dict[str, Any]) -> ObjectFacts:
    is_whole = answer.get("ChecksumType", "FULL_OBJECT") == "FULL_OBJECT"
    storage_class = str(answer.get("StorageClass", ""))
    is_stored_away = storage_class in ARCHIVE_CLASSES or "ArchiveStatus" in answer
    return ObjectFacts(
        size_bytes=answer["ContentLength"],
        crc64nvme=parse_crc64nvme(answer.get("ChecksumCRC64NVME", "")) if is_whole else None,
        modified_ms=_milliseconds(answer["LastModified"]),
        storage_class=storage_class,
        is_archived=is_stored_away and RESTORED not in str(answer.get("Restore", "")),
    )


def _listed(found: dict[str, Any]) -> ListedObject:
    modified_ms = _milliseconds(found["LastModified"])
    return ListedObject(found["Key"], found["Size"], modified_ms, found.get("StorageClass", ""))


def _milliseconds(moment: Any) -> int:
    return int(moment.timestamp() * 1_000)
