"""The probe of an endpoint: conditions and checksums, by requests that must be refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spark_tiering.layout.digests import crc64nvme_text
from spark_tiering.stores.conditional_put_probe import FIRST, SECOND, probe_key
from spark_tiering.stores.results import StoreTraits
from spark_tiering.stores.s3_faults import S3Fault, S3FaultKind
from spark_tiering.stores.s3_parts import end_upload
from spark_tiering.stores.s3_single_put import summed

if TYPE_CHECKING:
    from collections.abc import Callable

    from boto3 import S3Client

    from spark_tiering.stores.content import BytesContent
    from spark_tiering.stores.s3_calls import S3Calls

CONDITION = {"IfNoneMatch": "*"}
REFUSED = {
    S3FaultKind.EXISTS,
    S3FaultKind.RACING,
    S3FaultKind.DAMAGED,
    S3FaultKind.WRONG_SETTING,
}
"""Faults by which an endpoint says that it saw what is wrong; some know no better code."""


def probe_bucket(calls: S3Calls, prefix: str, tells_sum: Callable[[str], bool]) -> StoreTraits:
    """Test the endpoint's behaviour; *tells_sum* says whether it tells the sum of an object."""
    key, wrong_key = probe_key(prefix), probe_key(prefix)
    try:
        first = _put(calls, key, FIRST, FIRST)
        # A first answer that was lost and repeated finds its own object.
        if isinstance(first, S3Fault) and first.kind is not S3FaultKind.EXISTS:
            calls.give_up(first)
        return StoreTraits(
            refuses_second_put=_is_refused(calls, _put(calls, key, SECOND, SECOND)),
            refuses_second_upload=_refuses_second_upload(calls, key),
            checks_sums=_is_refused(calls, _put(calls, wrong_key, FIRST, SECOND)),
            tells_sums=tells_sum(key),
        )
    finally:
        for made in (key, wrong_key):
            _delete(calls, made)


def _delete(calls: S3Calls, key: str) -> None:
    calls.ask("DeleteObject", lambda client: client.delete_object(**calls.at(key)))


def _is_refused(calls: S3Calls, answer: dict[str, Any] | S3Fault) -> bool:
    if isinstance(answer, S3Fault) and answer.kind not in REFUSED:
        if answer.kind is S3FaultKind.UNSUITABLE:
            return False
        calls.give_up(answer)
    return isinstance(answer, S3Fault)


def _put(
    calls: S3Calls, key: str, content: BytesContent, told: BytesContent
) -> dict[str, Any] | S3Fault:
    """Put *content* with the checksum of *told*."""

    def put(client: S3Client) -> dict[str, Any]:
        return client.put_object(
            **calls.making(key),
            **CONDITION,
            Body=b"".join(content.pieces()),
            **summed(told.sum),
        )

    return calls.ask("PutObject", put)


def _refuses_second_upload(calls: S3Calls, key: str) -> bool:
    begun = calls.ask(
        "CreateMultipartUpload",
        lambda client: client.create_multipart_upload(
            **calls.making(key), ChecksumAlgorithm="CRC64NVME", ChecksumType="FULL_OBJECT"
        ),
    )
    if isinstance(begun, S3Fault):
        return _is_refused(calls, begun)
    upload_id = str(begun["UploadId"])
    crc64nvme = crc64nvme_text(SECOND.sum.crc64nvme)
    try:
        sent = calls.ask(
            "UploadPart",
            lambda client: client.upload_part(
                **calls.at(key),
                UploadId=upload_id,
                PartNumber=1,
                Body=b"".join(SECOND.pieces()),
                ChecksumCRC64NVME=crc64nvme,
            ),
        )
        if isinstance(sent, S3Fault):
            return _is_refused(calls, sent)
        part = {"PartNumber": 1, "ETag": sent["ETag"], "ChecksumCRC64NVME": crc64nvme}
        completed = calls.ask(
            "CompleteMultipartUpload",
            lambda client: client.complete_multipart_upload(
                **calls.at(key),
                **CONDITION,
                UploadId=upload_id,
                MultipartUpload={"Parts": [part]},
                ChecksumCRC64NVME=crc64nvme,
                ChecksumType="FULL_OBJECT",
            ),
        )
        return _is_refused(calls, completed)
    finally:
        end_upload(calls, key, upload_id)
