"""S3 requests: conditions, checksums, signatures, encryption, storage classes, requester pays."""

from __future__ import annotations

import logging
import pickle
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import CredentialsAbsent, StoreUnsuitable
from spark_tiering.stores.content import ContentStream
from spark_tiering.stores.s3_settings import MIB, BodySigning, BucketEncryption
from tests.support.stores.s3_stub_requests import Kept, Trouble
from tests.support.stores.stores_under_test import Bucket, content, known_as, stub_bucket

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.stores.s3_stub import ObjectStub

KEY = "topic-id/0/segment.log"
SECRET = "nobody-may-ever-read-this"
MAKING = ("PutObject", "CreateMultipartUpload")
SENDING = ("PutObject", "UploadPart")


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known_as("somebody", SECRET, tmp_path, monkeypatch)


@pytest.fixture
def bucket(stub: ObjectStub) -> Bucket:
    return stub_bucket(stub)


def do_everything(bucket: Bucket, **settings: Any) -> None:
    with bucket.opened(**settings) as store:
        store.put("one", content(10))
        given = content(11 * MIB)
        store.put_stream("large", ContentStream(given.pieces(), lambda: given.sum))
        store.put_stream("broken", ContentStream(given.pieces(), lambda: None))
        store.get("one", 0, 5)
        list(store.list())
        list(store.open_uploads())
        store.delete("one")


def said(stub: ObjectStub, header: str, *operations: str) -> set[str | None]:
    """Return the values of a header in the requests of *operations*, or of all requests."""
    found = {
        asked.headers.get(header)
        for asked in stub.asked
        if asked.operation in operations or (not operations and asked.operation != "HeadBucket")
    }
    assert found
    return found


def test_writing_requests_carry_condition_and_sum(stub: ObjectStub, bucket: Bucket) -> None:
    """Each write carries the condition against overwriting and its checksum."""
    do_everything(bucket)
    assert said(stub, "if-none-match", "PutObject", "CompleteMultipartUpload") == {"*"}
    assert None not in said(stub, "x-amz-checksum-crc64nvme", *SENDING, "CompleteMultipartUpload")
    assert said(stub, "x-amz-checksum-type", "CreateMultipartUpload") == {"FULL_OBJECT"}
    assert said(stub, "x-amz-mp-object-size", "CompleteMultipartUpload") == {str(11 * MIB)}
    assert said(stub, "x-amz-server-side-encryption") == {None}
    assert said(stub, "x-amz-storage-class") == {None}
    assert said(stub, "x-amz-request-payer") == {None}


@pytest.mark.parametrize(
    ("signing", "is_signed"), [(BodySigning.AUTO, False), (BodySigning.ALWAYS, True)]
)
def test_bodies_when_sent_within_the_machine_are_signed_only_if_asked(
    stub: ObjectStub, bucket: Bucket, signing: BodySigning, is_signed: bool
) -> None:
    """A body is read a second time for its signature only where settings ask for it."""
    do_everything(bucket, signing=signing)
    signatures = said(stub, "x-amz-content-sha256", *SENDING)
    assert (signatures == {"UNSIGNED-PAYLOAD"}) is not is_signed
    if is_signed:
        assert {len(signature or "") for signature in signatures} == {64}


@pytest.mark.parametrize(
    ("settings", "headers"),
    [
        ({"encryption": BucketEncryption.S3}, {"x-amz-server-side-encryption": "AES256"}),
        (
            {"encryption": BucketEncryption.KMS, "kms_key_id": "alias/tier"},
            {
                "x-amz-server-side-encryption": "aws:kms",
                "x-amz-server-side-encryption-aws-kms-key-id": "alias/tier",
            },
        ),
        ({"storage_class": "STANDARD_IA"}, {"x-amz-storage-class": "STANDARD_IA"}),
    ],
    ids=["sse-s3", "sse-kms", "class"],
)
def test_making_requests_when_settings_ask_for_it_say_how_objects_are_kept(
    stub: ObjectStub, bucket: Bucket, settings: dict[str, Any], headers: dict[str, str]
) -> None:
    """Each request that creates an object carries the configured encryption and class."""
    do_everything(bucket, **settings)
    for name, value in headers.items():
        assert said(stub, name, *MAKING) == {value}


def test_requests_when_the_requester_pays_all_say_so(stub: ObjectStub, bucket: Bucket) -> None:
    """Every request carries the requester-pays header, without which such a bucket refuses it."""
    do_everything(bucket, is_requester_pays=True)
    assert said(stub, "x-amz-request-payer") == {"requester"}


def test_endpoint_that_takes_no_ranges_when_asked_is_unsuitable(
    stub: ObjectStub, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An endpoint that answers a range with the whole object is refused unread."""
    stub.objects[KEY] = Kept(b"x" * 1_000)
    monkeypatch.setattr(stub, "takes_ranges", False)
    with bucket.opened() as store:
        assert store.get(KEY, 0, 999) == b"x" * 1_000
        for first_byte, last_byte in ((0, 9), (10, 1_500)):
            with pytest.raises(StoreUnsuitable, match="got ''"):
                store.get(KEY, first_byte, last_byte)


def test_secret_when_everything_is_logged_is_nowhere(
    stub: ObjectStub, bucket: Bucket, caplog: pytest.LogCaptureFixture
) -> None:
    """Log lines, settings and the store's own text contain no secret."""
    stub.befall("PutObject", Trouble.THROTTLED, Trouble.ANSWER_LOST)
    with caplog.at_level(logging.DEBUG, logger="spark_tiering"), bucket.opened() as store:
        store.put(KEY, content(10))
        text = repr(store) + repr(vars(store)) + repr(bucket.settings)
    assert "is repeated" in caplog.text
    assert SECRET not in caplog.text + text
    assert SECRET.encode() not in pickle.dumps(bucket.settings)


def test_profile_that_nobody_has_when_opened_is_absent_credentials(bucket: Bucket) -> None:
    """A profile in no file means absent credentials, and the message lists the places."""
    with pytest.raises(CredentialsAbsent, match="no-such-profile"):
        bucket.opened(profile="no-such-profile")
