"""Objects written in parts, one in memory; a write that fails ends its upload, if it can."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from rlmm.errors import StoreError
from spark_tiering.layout.digests import crc64nvme_text
from spark_tiering.stores.content import BytesContent, MeasuredPieces, cut
from spark_tiering.stores.results import (
    ContentSum,
    ObjectAbsent,
    ObjectWritten,
    PutRefusal,
    PutRefused,
    PutUnknown,
)
from spark_tiering.stores.s3_body import RequestBody
from spark_tiering.stores.s3_faults import S3Fault, S3FaultKind
from spark_tiering.stores.s3_settings import PARTS_MAX
from spark_tiering.stores.s3_single_put import SinglePut, outcome_of, refused_or_raise

if TYPE_CHECKING:
    from spark_tiering.stores.content import ContentStream
    from spark_tiering.stores.results import Found, PutOutcome
    from spark_tiering.stores.s3_calls import S3Calls
    from spark_tiering.stores.s3_single_put import Look

_log = logging.getLogger(__name__)


def put_parts(calls: S3Calls, look: Look, key: str, stream: ContentStream) -> PutOutcome:
    """Write a stream; one that fits in a part becomes one request."""
    measured = MeasuredPieces(stream.pieces)
    parts = cut(measured, calls.settings.part_bytes)
    first = next(parts, memoryview(b""))
    if len(first) < calls.settings.part_bytes:
        refused = measured.judge(stream.told())
        return refused or SinglePut(calls, look, key, BytesContent(first)).run()
    upload_id = _begin(calls, key)
    write = _PartsWrite(calls, look, key, upload_id)
    outcome: PutOutcome | None = None
    try:
        refused = write.send(first)
        while refused is None and (part := next(parts, None)) is not None:
            refused = write.send(part)
        refused = refused or measured.judge(stream.told())
        outcome = refused or write.complete(measured.sum)
        return outcome
    finally:
        if not isinstance(outcome, ObjectWritten):
            end_upload(calls, key, upload_id)


def end_upload(calls: S3Calls, key: str, upload_id: str) -> bool:
    """End an unfinished upload; whether it was this that ended it. Never raises for the store."""
    answer = calls.ask(
        "AbortMultipartUpload",
        lambda client: client.abort_multipart_upload(**calls.at(key), UploadId=upload_id),
    )
    if isinstance(answer, S3Fault) and answer.kind not in (
        S3FaultKind.NO_UPLOAD,
        S3FaultKind.NO_KEY,
    ):
        _log.warning("upload %s of %s stays open until it is swept: %s", upload_id, key, answer)
    return not isinstance(answer, S3Fault)


def _begin(calls: S3Calls, key: str) -> str:
    answer = calls.ask(
        "CreateMultipartUpload",
        lambda client: client.create_multipart_upload(
            **calls.making(key), ChecksumAlgorithm="CRC64NVME", ChecksumType="FULL_OBJECT"
        ),
    )
    if isinstance(answer, S3Fault):
        calls.give_up(answer)
    return str(answer["UploadId"])


class _PartsWrite:
    def __init__(self, calls: S3Calls, look: Look, key: str, upload_id: str) -> None:
        self._calls = calls
        self._look = look
        self._key = key
        self._upload_id = upload_id
        self._sent: list[dict[str, Any]] = []
        self._whole = ContentSum(0, 0)
        self._uncertain: S3Fault | None = None

    def send(self, part: memoryview) -> PutRefused | None:
        """Send the next part; why the write ends here, `None` where it goes on."""
        number = len(self._sent) + 1
        if number > PARTS_MAX:
            detail = f"more than {PARTS_MAX} parts of {self._calls.settings.part_bytes} bytes"
            return PutRefused(PutRefusal.TOO_LARGE, detail)
        content = BytesContent(part)
        crc64nvme = crc64nvme_text(content.sum.crc64nvme)
        answer = self._calls.ask(
            "UploadPart",
            lambda client: client.upload_part(
                **self._calls.at(self._key),
                UploadId=self._upload_id,
                PartNumber=number,
                Body=RequestBody(content),
                ContentLength=len(part),
                ChecksumCRC64NVME=crc64nvme,
            ),
        )
        if isinstance(answer, S3Fault):
            return refused_or_raise(self._calls, answer)
        self._sent.append(
            {"PartNumber": number, "ETag": answer["ETag"], "ChecksumCRC64NVME": crc64nvme}
        )
        return None

    def complete(self, whole: ContentSum) -> PutOutcome:
        self._whole = whole
        outcome: PutOutcome | S3Fault = self._calls.repeats.run(self._attempt)
        if not isinstance(outcome, S3Fault):
            return outcome
        if self._uncertain is not None:
            return self._end_uncertain(self._uncertain)
        return outcome_of(self._calls, outcome, None, self._found)

    def _attempt(self) -> PutOutcome | S3Fault:
        answer = self._calls.once(
            "CompleteMultipartUpload",
            lambda client: client.complete_multipart_upload(
                **self._calls.at(self._key),
                **self._calls.if_absent(),
                UploadId=self._upload_id,
                MultipartUpload={"Parts": self._sent},
                ChecksumCRC64NVME=crc64nvme_text(self._whole.crc64nvme),
                ChecksumType="FULL_OBJECT",
                MpuObjectSize=self._whole.size_bytes,
            ),
        )
        if not isinstance(answer, S3Fault):
            return ObjectWritten(*self._whole)
        if answer.is_uncertain:
            self._uncertain = answer
            try:
                found = self._found()
            except StoreError:
                return answer
            return answer if isinstance(found, ObjectAbsent) else found
        return answer

    def _end_uncertain(self, uncertain: S3Fault) -> PutOutcome:
        is_ended = end_upload(self._calls, self._key, self._upload_id)
        try:
            found = self._found()
        except StoreError as error:
            return PutUnknown(f"{uncertain}; then {error}")
        if not isinstance(found, ObjectAbsent):
            return found
        if is_ended:
            self._calls.give_up(uncertain)
        return PutUnknown(str(uncertain))

    def _found(self) -> Found:
        return self._look(self._key, self._whole)
