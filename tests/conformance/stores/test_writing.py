"""Writing to every store: once, whole, or not at all."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import LogUnavailable
from spark_tiering.stores.content import BytesContent, ContentStream
from spark_tiering.stores.object_reading import read_whole
from spark_tiering.stores.results import (
    ContentSum,
    ObjectAbsent,
    ObjectConflict,
    ObjectFacts,
    ObjectIdentical,
    ObjectWritten,
    PutRefusal,
    PutRefused,
)
from spark_tiering.stores.s3_settings import MIB
from tests.support.stores.stores_under_test import PART_BYTES, bytes_of, content, cut_off

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spark_tiering.stores.protocol import ObjectStore
    from spark_tiering.stores.results import PutOutcome
    from tests.support.stores.stores_under_test import Place

SIZES = (0, 1, 100_000, 2 * MIB, 11 * MIB)
"""Nothing, in one piece, in one request with a body of its own, and in three parts."""
SIZE_NAMES = ("empty", "byte", "piece", "request", "parts")


class Lying:
    def __init__(self, given: BytesContent, told: ContentSum) -> None:
        self._given = given
        self.sum = told

    def pieces(self) -> Iterator[bytes | bytearray | memoryview]:
        return self._given.pieces()


class Failing:
    def __init__(self, given: BytesContent, error: Exception, *, is_begun: bool = True) -> None:
        self._given = given
        self._is_begun = is_begun
        self._error = error
        self.sum = given.sum

    def pieces(self) -> Iterator[bytes]:
        """Yield half of the content and then fail; with an empty content fail at once."""
        if not self._is_begun:
            raise self._error
        return cut_off(self._given, self.sum.size_bytes // 2, self._error)


def read(store: ObjectStore, key: str) -> bytes:
    facts = store.head(key)
    assert isinstance(facts, ObjectFacts)
    return b"".join(read_whole(store, key, facts.size_bytes))


def assert_nothing_is_left(store: ObjectStore, prefix: str) -> None:
    assert list(store.list(prefix)) == []
    assert list(store.open_uploads(prefix)) == []


@pytest.mark.parametrize("size_bytes", SIZES, ids=SIZE_NAMES)
def test_f107_f128_repeated_put_is_once(store: ObjectStore, prefix: str, size_bytes: int) -> None:
    """A second put finds the object by length and checksum; other content conflicts."""
    key, given, other = f"{prefix}one.log", content(size_bytes), content(size_bytes or 1, 1)
    assert store.put(key, given) == ObjectWritten(*given.sum)
    facts = store.head(key)
    assert isinstance(facts, ObjectFacts)
    assert (facts.size_bytes, facts.crc64nvme) == given.sum
    again = store.put(key, given)
    assert isinstance(again, ObjectIdentical)
    assert again.facts.size_bytes == size_bytes
    assert isinstance(store.put(key, other), ObjectConflict)
    assert isinstance(store.put(key, content(size_bytes + 1)), ObjectConflict)
    assert read(store, key) == bytes_of(given)
    assert list(store.open_uploads(prefix)) == []


@pytest.mark.parametrize(
    "size_bytes",
    [0, 100_000, PART_BYTES, 2 * PART_BYTES, 11 * MIB],
    ids=["empty", "piece", "one-part", "two-parts", "odd-parts"],
)
def test_stream_is_what_passed_by(store: ObjectStore, prefix: str, size_bytes: int) -> None:
    """A stream becomes the same object as bytes, and is compared with an existing object."""
    key, given, other = f"{prefix}one.log", content(size_bytes), content(size_bytes or 1, 1)
    whole = bytes_of(given)
    pieces = (whole[start : start + 70_000] for start in range(0, size_bytes, 70_000))
    assert store.put_stream(key, ContentStream(pieces, lambda: given.sum)) == ObjectWritten(
        *given.sum
    )
    assert read(store, key) == whole
    again = store.put_stream(key, ContentStream(given.pieces(), lambda: given.sum))
    assert isinstance(again, ObjectIdentical)
    conflict = store.put_stream(key, ContentStream(other.pieces(), lambda: other.sum))
    assert isinstance(conflict, ObjectConflict)
    assert list(store.open_uploads(prefix)) == []


@pytest.mark.parametrize("size_bytes", [2 * MIB, 11 * MIB], ids=SIZE_NAMES[3:])
@pytest.mark.parametrize("told", ["other", "longer", "shorter", "not-whole"])
def test_put_when_the_source_is_other_than_told_writes_nothing(
    store: ObjectStore, prefix: str, size_bytes: int, told: str
) -> None:
    """A put whose source differs from the announced size or checksum writes no object."""
    given = content(size_bytes)
    wrong: dict[str, ContentSum | None] = {
        "other": ContentSum(size_bytes, given.sum.crc64nvme ^ 1),
        "longer": ContentSum(size_bytes + 1, given.sum.crc64nvme),
        "shorter": ContentSum(size_bytes - 1, given.sum.crc64nvme),
        "not-whole": None,
    }
    outcomes: list[PutOutcome] = [
        store.put_stream(f"{prefix}a", ContentStream(given.pieces(), lambda: wrong[told]))
    ]
    expected = wrong[told]
    if expected is not None and expected.size_bytes:
        outcomes.append(store.put(f"{prefix}b", Lying(given, expected)))
    for outcome in outcomes:
        assert isinstance(outcome, PutRefused)
        assert outcome.reason is PutRefusal.SOURCE
    assert_nothing_is_left(store, prefix)


@pytest.mark.parametrize("size_bytes", [2 * MIB, 13 * MIB], ids=["request", "parts"])
def test_f108_f122_unread_put_leaves_none(store: ObjectStore, prefix: str, size_bytes: int) -> None:
    """A read error in the middle refuses the put and leaves neither object nor open upload."""
    given, error = content(size_bytes), OSError(5, "Input/output error")
    failing = Failing(given, error)
    for outcome in (
        store.put(f"{prefix}a", failing),
        store.put_stream(f"{prefix}b", ContentStream(failing.pieces(), lambda: given.sum)),
    ):
        assert isinstance(outcome, PutRefused)
        assert outcome.reason is PutRefusal.SOURCE
        assert "Input/output error" in outcome.detail
    at_once = store.put(f"{prefix}c", Failing(given, error, is_begun=False))
    assert isinstance(at_once, PutRefused)
    assert at_once.reason is PutRefusal.SOURCE
    assert_nothing_is_left(store, prefix)


@pytest.mark.parametrize("size_bytes", [2 * MIB, 13 * MIB], ids=["request", "parts"])
def test_put_leaves_nothing_on_own_error(store: ObjectStore, prefix: str, size_bytes: int) -> None:
    """A source's own error reaches its owner unchanged and leaves no object."""
    given = content(size_bytes)
    failing = Failing(given, LogUnavailable("the source is away"))
    with pytest.raises(LogUnavailable, match="the source is away"):
        store.put(f"{prefix}a", failing)
    with pytest.raises(LogUnavailable, match="the source is away"):
        store.put_stream(f"{prefix}b", ContentStream(failing.pieces(), lambda: given.sum))
    assert_nothing_is_left(store, prefix)


@pytest.mark.parametrize("size_bytes", [100_000, 11 * MIB], ids=["piece", "parts"])
def test_put_by_many_lets_one_win(
    place: Place, prefix: str, size_bytes: int, request: pytest.FixtureRequest
) -> None:
    """Of several writers with different contents one writes, and the object is whole."""
    # These look first and then write: at the same moment several do. SeaweedFS does so with parts.
    is_in_parts = size_bytes > MIB and request.node.callspec.params["place"] == "seaweedfs"
    is_atomic = place.is_atomic and not is_in_parts
    key = f"{prefix}one.log"
    count = 6 if size_bytes < MIB else 2
    contents = [content(size_bytes, seed) for seed in range(count)]

    def write(given: BytesContent) -> PutOutcome:
        with place.open() as store:
            return store.put(key, given)

    with ThreadPoolExecutor(count) as threads:
        outcomes = list(threads.map(write, contents))
    winners = [
        given
        for given, outcome in zip(contents, outcomes, strict=True)
        if isinstance(outcome, ObjectWritten)
    ]
    assert len(winners) == 1 or (winners and not is_atomic)
    refused = sum(isinstance(outcome, ObjectConflict) for outcome in outcomes)
    assert refused == count - len(winners)
    with place.open() as store:
        assert read(store, key) in [bytes_of(one) for one in winners]
        assert list(store.open_uploads(prefix)) == []


def test_f118_delete_when_nothing_is_there_is_no_failure(store: ObjectStore, prefix: str) -> None:
    """A second delete of an object succeeds and changes nothing."""
    key = f"{prefix}one.log"
    store.put(key, content(10))
    store.delete(key)
    assert store.head(key) == ObjectAbsent(key)
    store.delete(key)
    store.delete(f"{prefix}never/was.log")
    assert isinstance(store.put(key, content(10, 1)), ObjectWritten)


def test_f121_f122_unfinished_write_is_swept(place: Place, store: ObjectStore, prefix: str) -> None:
    """A killed writer's upload is no object and is ended without touching its neighbours."""
    keys = [f"{prefix}{name}" for name in ("a/1.log", "a/2.log", "a/2.log.more", "a/3", "b/1.log")]
    for key in keys:
        place.leave_open(key)
    assert list(store.list(prefix)) == []
    assert store.head(keys[0]) == ObjectAbsent(keys[0])
    assert sorted(upload.key for upload in store.open_uploads(prefix)) == keys
    found = list(store.open_uploads(f"{prefix}a/"))
    assert sorted(upload.key for upload in found) == keys[:4]
    for upload in found:
        store.abort_upload(upload)
        store.abort_upload(upload)
    assert [upload.key for upload in store.open_uploads(prefix)] == keys[4:]
    assert isinstance(store.put(keys[4], content(10)), ObjectWritten)
