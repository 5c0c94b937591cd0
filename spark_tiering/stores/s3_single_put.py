"""
The writing of an object in one conditional request, and its outcome where the answer is lost. After
an uncertain fault the key is looked at before anything is sent again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.errors import StoreError
from spark_tiering.layout.digests import crc64nvme_text
from spark_tiering.stores.results import (
    ContentSum,
    ObjectAbsent,
    ObjectWritten,
    PutRefusal,
    PutRefused,
    PutUnknown,
)
from spark_tiering.stores.s3_body import IN_MEMORY_BYTES, RequestBody
from spark_tiering.stores.s3_faults import S3Fault, S3FaultKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from spark_tiering.stores.content import ObjectContent
    from spark_tiering.stores.results import Found, PutOutcome
    from spark_tiering.stores.s3_calls import S3Calls

    Look = Callable[[str, ContentSum], Found]

REFUSALS = {
    S3FaultKind.DAMAGED: PutRefusal.CHECKSUM,
    S3FaultKind.TOO_LARGE: PutRefusal.TOO_LARGE,
    S3FaultKind.NO_UPLOAD: PutRefusal.SWEPT,
}
"""Faults that concern one object alone."""


def summed(expected: ContentSum) -> dict[str, str]:
    # Some stores keep a sum only where its algorithm is named as well.
    return {
        "ChecksumAlgorithm": "CRC64NVME",
        "ChecksumCRC64NVME": crc64nvme_text(expected.crc64nvme),
    }


class SinglePut:
    def __init__(self, calls: S3Calls, look: Look, key: str, content: ObjectContent) -> None:
        self._calls = calls
        self._look = look
        self._key = key
        self._content = content
        self._uncertain: S3Fault | None = None

    def run(self) -> PutOutcome:
        """Raise faults that concern the whole store, and those of the source."""
        outcome: PutOutcome | S3Fault = self._calls.repeats.run(self._attempt)
        if not isinstance(outcome, S3Fault):
            return outcome
        return outcome_of(self._calls, outcome, self._uncertain, self._found)

    def _attempt(self) -> PutOutcome | S3Fault:
        body = RequestBody(self._content)
        expected = self._content.sum
        is_small = expected.size_bytes <= IN_MEMORY_BYTES
        answer = self._calls.once(
            "PutObject",
            lambda client: client.put_object(
                **self._calls.making(self._key),
                **self._calls.if_absent(),
                Body=body.read() if is_small else body,
                ContentLength=expected.size_bytes,
                **summed(expected),
            ),
        )
        if body.error is not None:
            raise body.error
        if body.refused is not None:
            return body.refused
        if not isinstance(answer, S3Fault):
            return ObjectWritten(*expected)
        if answer.is_uncertain:
            self._uncertain = answer
            try:
                found = self._found()
            except StoreError:
                return answer
            return answer if isinstance(found, ObjectAbsent) else found
        return answer

    def _found(self) -> Found:
        return self._look(self._key, self._content.sum)


def outcome_of(
    calls: S3Calls,
    fault: S3Fault,
    uncertain: S3Fault | None,
    look: Callable[[], Found],
) -> PutOutcome:
    """Return the outcome after *fault*, or *uncertain* before it; raises for the whole store."""
    if fault.kind in (S3FaultKind.EXISTS, S3FaultKind.RACING):
        found = look()
        if not isinstance(found, ObjectAbsent):
            return found
        if fault.kind is S3FaultKind.EXISTS:
            return PutUnknown(f"{fault.detail}: something was there, and was taken away meanwhile")
    if uncertain is not None:
        return PutUnknown(str(uncertain))
    return refused_or_raise(calls, fault)


def refused_or_raise(calls: S3Calls, fault: S3Fault) -> PutRefused:
    reason = REFUSALS.get(fault.kind)
    if reason is None:
        calls.give_up(fault)
    return PutRefused(reason, fault.detail)
