"""Objects whose requests are refused, lost, cut and damaged on their way."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import StoreNotPermitted, StoreUnavailable
from spark_tiering.stores.content import ContentStream
from spark_tiering.stores.results import (
    ListedObject,
    ObjectArchived,
    ObjectConflict,
    ObjectFacts,
    ObjectIdentical,
    ObjectWritten,
    PutRefusal,
    PutRefused,
    PutUnknown,
)
from spark_tiering.stores.s3_faults import S3FaultKind
from spark_tiering.stores.s3_policies import POLICIES
from spark_tiering.stores.s3_settings import MIB
from tests.support.stores.s3_servers import free_ports
from tests.support.stores.s3_stub_requests import Kept, Trouble
from tests.support.stores.stores_under_test import (
    Bucket,
    bucket_at,
    bytes_of,
    content,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spark_tiering.stores.s3 import S3Store
    from tests.support.stores.s3_stub import ObjectStub

pytestmark = pytest.mark.usefixtures("credentials")
KEY = "topic-id/0/segment.log"
PIECE, REQUEST, PARTS = 100_000, 2 * MIB, 11 * MIB


def count(stub: ObjectStub, operation: str) -> int:
    return stub.operations().count(operation)


@pytest.mark.parametrize(
    "trouble",
    [Trouble.THROTTLED, Trouble.BROKEN, Trouble.CUT, Trouble.DAMAGED],
)
@pytest.mark.parametrize("size_bytes", [PIECE, REQUEST], ids=["piece", "request"])
def test_put_when_a_request_fails_is_repeated_until_it_is_written(
    stub: ObjectStub, store: S3Store, bucket: Bucket, trouble: Trouble, size_bytes: int
) -> None:
    """A refused, cut or damaged request costs a repeat and a pause; the object is as sent."""
    stub.befall("PutObject", trouble, trouble)
    given = content(size_bytes)
    assert store.put(KEY, given) == ObjectWritten(*given.sum)
    assert stub.objects[KEY].content == bytes_of(given)
    assert count(stub, "PutObject") == 3
    assert len(bucket.pauses) == 2


@pytest.mark.parametrize("trouble", [Trouble.ANSWER_LOST, Trouble.ANSWER_LATE])
def test_f126_lost_put_is_looked_for(stub: ObjectStub, hasty: S3Store, trouble: Trouble) -> None:
    """A write that the store accepted and did not confirm is found by length and checksum."""
    stub.befall("PutObject", trouble)
    given = content(REQUEST)
    assert isinstance(hasty.put(KEY, given), ObjectIdentical)
    assert stub.objects[KEY].content == bytes_of(given)
    assert stub.operations()[-2:] == ["PutObject", "HeadObject"]


def test_f126_put_when_another_object_is_found_conflicts(stub: ObjectStub, hasty: S3Store) -> None:
    """The store compares the object that it finds, and reports a conflict."""
    stub.befall("PutObject", Trouble.NOT_DONE_LATE)
    hasty.head(KEY)
    stub.objects[KEY] = Kept(bytes_of(content(PIECE, 1)))
    assert isinstance(hasty.put(KEY, content(PIECE)), ObjectConflict)
    assert stub.objects[KEY].content == bytes_of(content(PIECE, 1))


def test_f126_put_when_nobody_ever_answers_is_unknown(stub: ObjectStub, hasty: S3Store) -> None:
    """A put whose last attempt had no answer is unknown, because it may still arrive."""
    attempts = POLICIES[S3FaultKind.TIMED_OUT].attempts_max
    stub.befall("PutObject", *[Trouble.NOT_DONE_LATE] * attempts)
    outcome = hasty.put(KEY, content(PIECE))
    assert isinstance(outcome, PutUnknown)
    assert "PutObject" in outcome.detail
    assert count(stub, "PutObject") == attempts


def test_f126_put_when_looking_fails_settles_by_condition(stub: ObjectStub, store: S3Store) -> None:
    """A repeated put meets the object of its first attempt and recognises it as its own."""
    store.head(KEY)
    stub.befall("PutObject", Trouble.ANSWER_LOST)
    stub.befall("HeadObject", Trouble.DENIED)
    assert isinstance(store.put(KEY, content(PIECE)), ObjectIdentical)
    assert count(stub, "PutObject") == 2


def test_put_gives_up_on_slow_store(stub: ObjectStub, store: S3Store, bucket: Bucket) -> None:
    """A put that the store keeps delaying gives up after bounded, growing pauses."""
    policy = POLICIES[S3FaultKind.THROTTLED]
    stub.befall("PutObject", *[Trouble.THROTTLED] * 100)
    with pytest.raises(StoreUnavailable, match="SlowDown"):
        store.put(KEY, content(PIECE))
    assert count(stub, "PutObject") == policy.attempts_max
    assert len(bucket.pauses) == policy.attempts_max - 1
    for attempt, pause_s in enumerate(bucket.pauses, 1):
        assert policy.pause_s(attempt) / 2 <= pause_s <= policy.pause_s(attempt) <= policy.last_s
    assert not stub.objects


def test_put_when_bytes_stay_damaged_is_refused(stub: ObjectStub, store: S3Store) -> None:
    """The store never keeps bytes that do not match their checksum."""
    stub.befall("PutObject", *[Trouble.DAMAGED] * 9)
    outcome = store.put(KEY, content(PIECE))
    assert isinstance(outcome, PutRefused)
    assert outcome.reason is PutRefusal.CHECKSUM
    assert not stub.objects


def test_short_answer_of_range_is_asked(stub: ObjectStub, hasty: S3Store, bucket: Bucket) -> None:
    """A short answer to a range is requested again and never taken for the whole."""
    hasty.put(KEY, content(PIECE))
    troubles = (Trouble.SHORT, Trouble.ANSWER_LOST, Trouble.ANSWER_LATE, Trouble.THROTTLED)
    stub.befall("GetObject", *troubles)
    assert hasty.get(KEY, 10, PIECE) == bytes_of(content(PIECE))[10:]
    assert len(bucket.pauses) == len(troubles)


def test_range_when_the_answer_stays_short_is_an_error(stub: ObjectStub, store: S3Store) -> None:
    """A range whose every answer is short is an error."""
    store.put(KEY, content(PIECE))
    stub.befall("GetObject", *[Trouble.SHORT] * 100)
    with pytest.raises(StoreUnavailable):
        store.get(KEY, 0, PIECE)


def test_listing_when_a_page_is_short_is_asked_for_again(stub: ObjectStub, store: S3Store) -> None:
    """A listing page that ends early is requested again and is not the end of the listing."""
    keys = [f"a/{number}" for number in range(7)]
    stub.objects = {key: Kept(b"x") for key in keys}
    stub.befall("ListObjectsV2", Trouble.SHORT, Trouble.BROKEN, Trouble.ANSWER_LOST)
    found: list[ListedObject] = list(store.list("a/"))
    assert [listed.key for listed in found] == keys


@pytest.mark.parametrize(
    "trouble",
    [Trouble.THROTTLED, Trouble.BROKEN, Trouble.CUT, Trouble.DAMAGED, Trouble.ANSWER_LOST],
)
def test_failed_part_is_sent_again(stub: ObjectStub, store: S3Store, trouble: Trouble) -> None:
    """A failed part is sent again alone, from memory, and the object is whole."""
    stub.befall("UploadPart", trouble, trouble)
    given = content(PARTS)
    assert store.put_stream(KEY, ContentStream(given.pieces(), lambda: given.sum)) == ObjectWritten(
        *given.sum
    )
    assert stub.objects[KEY].content == bytes_of(given)
    assert count(stub, "UploadPart") == 3 + 2
    assert not stub.uploads


@pytest.mark.parametrize("trouble", [Trouble.ANSWER_LOST, Trouble.ANSWER_LATE])
def test_f126_lost_completion_is_found(stub: ObjectStub, hasty: S3Store, trouble: Trouble) -> None:
    """A completed upload whose answer was lost is found as an object."""
    stub.befall("CompleteMultipartUpload", trouble)
    given = content(PARTS)
    assert isinstance(hasty.put(KEY, given), ObjectIdentical)
    assert stub.objects[KEY].content == bytes_of(given)
    assert count(stub, "CompleteMultipartUpload") == 1
    assert not stub.uploads


@pytest.mark.parametrize(
    ("operation", "trouble", "error"),
    [
        ("CompleteMultipartUpload", Trouble.THROTTLED, StoreUnavailable),
        ("CompleteMultipartUpload", Trouble.NOT_DONE_LATE, StoreUnavailable),
        ("CompleteMultipartUpload", Trouble.DENIED, StoreNotPermitted),
        ("UploadPart", Trouble.BROKEN, StoreUnavailable),
        ("UploadPart", Trouble.DENIED, StoreNotPermitted),
    ],
)
def test_f122_upload_when_it_cannot_go_on_is_ended(
    stub: ObjectStub, hasty: S3Store, operation: str, trouble: Trouble, error: type[Exception]
) -> None:
    """An upload that cannot go on is ended, and leaves neither object nor open upload."""
    stub.befall(operation, *[trouble] * 100)
    with pytest.raises(error):
        hasty.put(KEY, content(PARTS))
    assert not stub.uploads
    assert not stub.objects


def test_completion_when_nothing_answers_is_unknown(stub: ObjectStub, hasty: S3Store) -> None:
    """The outcome is unknown where the store answered neither the completion nor the abort."""
    stub.befall("CompleteMultipartUpload", *[Trouble.NOT_DONE_LATE] * 4)
    stub.befall("AbortMultipartUpload", *[Trouble.DENIED] * 2)
    assert isinstance(hasty.put(KEY, content(PARTS)), PutUnknown)


def test_upload_when_it_cannot_be_ended_is_named_and_left_to_the_sweep(
    stub: ObjectStub, store: S3Store, caplog: pytest.LogCaptureFixture
) -> None:
    """The log names an upload that stays open, so that the sweep finds it."""
    stub.befall("UploadPart", *[Trouble.DAMAGED] * 3)
    stub.befall("AbortMultipartUpload", Trouble.DENIED)
    with caplog.at_level(logging.WARNING):
        outcome = store.put(KEY, content(PARTS))
    assert isinstance(outcome, PutRefused)
    (upload,) = store.open_uploads("topic")
    assert upload.upload_id in caplog.text
    assert KEY in caplog.text


def test_upload_when_somebody_sweeps_it_is_refused(stub: ObjectStub, store: S3Store) -> None:
    """A writer whose upload another process ended writes no object and reports that."""
    given = content(PARTS)

    def pieces() -> Iterator[bytes]:
        yield bytes_of(given)[: 6 * MIB]
        stub.uploads.clear()
        yield bytes_of(given)[6 * MIB :]

    outcome = store.put_stream(KEY, ContentStream(pieces(), lambda: given.sum))
    assert isinstance(outcome, PutRefused)
    assert outcome.reason is PutRefusal.SWEPT
    assert not stub.objects


def test_upload_of_more_parts_than_can_be_when_written_is_refused(
    stub: ObjectStub, store: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write with more parts than S3 allows is refused beforehand and leaves nothing."""
    monkeypatch.setattr("spark_tiering.stores.s3_parts.PARTS_MAX", 2)
    outcome = store.put(KEY, content(PARTS))
    assert isinstance(outcome, PutRefused)
    assert outcome.reason is PutRefusal.TOO_LARGE
    assert not stub.uploads


def test_endpoint_that_ignores_conditions_is_named(stub: ObjectStub, store: S3Store) -> None:
    """One probe detects an endpoint that overwrites objects or accepts damaged ones."""
    stub.ignores_conditions = stub.ignores_sums = True
    stub.tells_sums = False
    traits = store.probe("a/")
    assert traits == (False, False, False, False)
    assert [finding.split(":")[0] for finding in traits.findings] == [
        "conditional puts are ignored",
        "conditional completion of uploads is ignored",
        "wrong checksums are accepted",
        "checksums are not told",
    ]
    assert not stub.objects
    assert not stub.uploads


@pytest.mark.parametrize("size_bytes", [PIECE, PARTS], ids=["piece", "parts"])
def test_put_without_conditions_looks(stub: ObjectStub, bucket: Bucket, size_bytes: int) -> None:
    """Without conditions a put finds an existing object before it sends anything."""
    stub.ignores_conditions = True
    given = content(size_bytes)
    with bucket.opened(has_conditional_puts=False) as store:
        assert store.put(KEY, given) == ObjectWritten(*given.sum)
        assert isinstance(store.put(KEY, given), ObjectIdentical)
        assert isinstance(store.put(KEY, content(size_bytes, 1)), ObjectConflict)
    assert not [asked for asked in stub.asked if "if-none-match" in asked.headers]
    assert stub.objects[KEY].content == bytes_of(given)


def test_f128_object_without_a_checksum_is_read(stub: ObjectStub, store: S3Store) -> None:
    """The store compares bytes where it has no checksum."""
    stub.tells_sums = False
    store.put(KEY, content(PIECE))
    assert isinstance(store.put(KEY, content(PIECE)), ObjectIdentical)
    assert isinstance(store.put(KEY, content(PIECE, 1)), ObjectConflict)
    assert count(stub, "GetObject") == 2


def test_archived_object_when_read_is_its_own_finding(stub: ObjectStub, store: S3Store) -> None:
    """An object that must be restored is neither absent nor an error, until it is restored."""
    store.put(KEY, content(PIECE))
    kept = stub.objects[KEY]
    kept.storage_class = "GLACIER"
    assert store.get(KEY, 0, 9) == ObjectArchived(KEY, "GLACIER")
    facts = store.head(KEY)
    assert isinstance(facts, ObjectFacts)
    assert facts.is_archived
    assert isinstance(store.put(KEY, content(PIECE)), ObjectIdentical)
    stub.tells_sums = False
    asked = count(stub, "GetObject")
    assert isinstance(store.put(KEY, content(PIECE)), PutUnknown)
    assert count(stub, "GetObject") == asked
    kept.restore = 'ongoing-request="false", expiry-date="Fri, 21 Dec 2035 00:00:00 GMT"'
    assert store.get(KEY, 0, 9) == bytes_of(content(PIECE))[:10]
    restored = store.head(KEY)
    assert isinstance(restored, ObjectFacts)
    assert not restored.is_archived


@pytest.mark.usefixtures("credentials")
def test_store_when_nobody_listens_is_unavailable() -> None:
    """An address without a store is one error after a bounded number of attempts."""
    (port,) = free_ports(1)
    bucket = bucket_at(f"http://127.0.0.1:{port}", "any")
    with bucket.opened() as store, pytest.raises(StoreUnavailable, match=str(port)):
        store.put(KEY, content(PIECE))
    assert len(bucket.pauses) == POLICIES[S3FaultKind.UNREACHED].attempts_max - 1
