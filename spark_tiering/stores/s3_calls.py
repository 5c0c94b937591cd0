"""
Calls of S3: one request and its retries. The only module that makes a client of boto3. The
library's own retries, checksums and parsing are off: this module knows the purpose of a request. A
client belongs to the process that made it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import boto3
from botocore.config import Config

from rlmm.base.version import __version__
from spark_tiering.stores.s3_faults import SORTED, S3Fault, S3FaultKind, raise_fault, sort_fault
from spark_tiering.stores.s3_policies import S3Retries
from spark_tiering.stores.s3_settings import BucketEncryption

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from boto3 import S3Client

    from spark_tiering.stores.s3_settings import S3Settings

T = TypeVar("T")


class S3Calls:
    def __init__(self, settings: S3Settings, repeats: S3Retries | None = None) -> None:
        self.settings = settings
        self.repeats = repeats or S3Retries()
        self._client = _open_client(settings)

    def once(self, operation: str, call: Callable[[S3Client], T | S3Fault]) -> T | S3Fault:
        try:
            return call(self._client)
        except SORTED as error:
            return sort_fault(operation, error)

    def ask(self, operation: str, call: Callable[[S3Client], T | S3Fault]) -> T | S3Fault:
        return self.repeats.run(lambda: self.once(operation, call))

    def give_up(self, fault: S3Fault) -> NoReturn:
        raise_fault(fault, self.settings.address)

    def check_bucket(self) -> None:
        """Raise `StoreAbsent` where there surely is no such bucket."""
        answer = self.ask("HeadBucket", lambda client: client.head_bucket(**self.place))
        if isinstance(answer, S3Fault):
            if answer.kind is S3FaultKind.NO_KEY:
                self.give_up(S3Fault(S3FaultKind.NO_BUCKET, answer.detail, answer.cause))
            # Who may not ask for the bucket may still use it.
            if answer.kind is not S3FaultKind.NO_RIGHTS:
                self.give_up(answer)

    def close(self) -> None:
        self._client.close()

    @property
    def place(self) -> dict[str, Any]:
        return {"Bucket": self.settings.bucket}

    def at(self, key: str) -> dict[str, Any]:
        payer = {"RequestPayer": "requester"} if self.settings.is_requester_pays else {}
        return {**self.place, "Key": key, **payer}

    def making(self, key: str) -> dict[str, Any]:
        settings = self.settings
        said = self.at(key)
        if settings.encryption is not BucketEncryption.OF_BUCKET:
            said["ServerSideEncryption"] = settings.encryption.value
        if settings.kms_key_id:
            said["SSEKMSKeyId"] = settings.kms_key_id
        if settings.storage_class:
            said["StorageClass"] = settings.storage_class
        return said

    def if_absent(self) -> dict[str, Any]:
        return {"IfNoneMatch": "*"} if self.settings.has_conditional_puts else {}


def _open_client(settings: S3Settings) -> S3Client:
    try:
        session = boto3.Session(
            region_name=settings.region or None, profile_name=settings.profile or None
        )
        client = _client(session, settings, is_body_signed=False)
        if settings.is_body_signed(client.meta.endpoint_url):
            client.close()
            client = _client(session, settings, is_body_signed=True)
    except SORTED as error:
        raise_fault(sort_fault("open", error), settings.address)
    return client


def _client(session: boto3.Session, settings: S3Settings, *, is_body_signed: bool) -> S3Client:
    return session.client(
        "s3",
        endpoint_url=settings.endpoint or None,
        verify=settings.ca_file or None,
        config=Config(
            connect_timeout=settings.connect_timeout_ms / 1_000,
            read_timeout=settings.read_timeout_ms / 1_000,
            tcp_keepalive=True,
            retries={"total_max_attempts": 1},
            s3={
                "addressing_style": "path" if settings.is_path_style else "auto",
                "payload_signing_enabled": is_body_signed,
            },
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            user_agent_extra=f"rlmm/{__version__}",
        ),
    )
