"""Buckets: rights, credentials and the memory of a write."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import CredentialsAbsent, StoreNotPermitted
from spark_tiering.stores.abandoned_uploads import left_behind
from spark_tiering.stores.content import ContentStream, sum_of
from spark_tiering.stores.results import ObjectWritten
from spark_tiering.stores.s3_settings import GIB, MIB
from tests.support.stores.s3_servers import READER, SECRET
from tests.support.stores.stores_under_test import PART_BYTES, content

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.stores.stores_under_test import Bucket


class Pattern:
    """A large content that is never held in memory."""

    def __init__(self, size_bytes: int) -> None:
        self._piece = bytes(range(256)) * (MIB // 256)
        self._count = size_bytes // MIB
        self.sum = sum_of(self.pieces())

    def pieces(self) -> Iterator[bytes]:
        return (self._piece for _ in range(self._count))


@pytest.mark.parametrize("way", ["request", "parts", "stream"])
def test_f123_large_put_takes_a_part_alone(seaweedfs_bucket: Bucket, prefix: str, way: str) -> None:
    """A put holds one part of a large object in memory, never the object."""
    given = Pattern(48 * MIB)
    with seaweedfs_bucket.opened(single_put_bytes=GIB if way == "request" else MIB) as store:
        store.head(f"{prefix}warm")
        tracemalloc.start()
        try:
            if way == "stream":
                stream = ContentStream(given.pieces(), lambda: given.sum)
                outcome = store.put_stream(f"{prefix}one", stream)
            else:
                outcome = store.put(f"{prefix}one", given)
            _, peak_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert outcome == ObjectWritten(*given.sum)
    assert peak_bytes < (2 * MIB if way == "request" else PART_BYTES + 2 * MIB)


def test_store_when_it_may_only_read_says_so_and_leaves_nothing(
    seaweedfs_bucket: Bucket, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Insufficient rights are an error of their own, also in parts, and no part is left."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", READER)
    with seaweedfs_bucket.opened() as store:
        for size_bytes in (10, 11 * MIB):
            with pytest.raises(StoreNotPermitted, match="AccessDenied"):
                store.put(f"{prefix}one", content(size_bytes))
        assert list(left_behind(store, prefix, 2**62)) == []


@pytest.mark.parametrize(
    ("name", "secret"), [("nobody", SECRET), (READER, "not-the-secret")], ids=["name", "secret"]
)
def test_store_when_credentials_are_wrong_says_so_without_them(
    seaweedfs_bucket: Bucket, name: str, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unknown or wrong credentials are refused in a message that does not repeat them."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", name)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    with seaweedfs_bucket.opened() as store:
        with pytest.raises(StoreNotPermitted) as caught:
            list(store.list("a/"))
        assert secret not in str(caught.value) + repr(store)


def test_f127_store_names_credential_chain(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store without credentials sends no request and lists the searched credential chain."""
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with bucket.opened() as store:
        for ask in (
            lambda: store.put("a/b", content(1)),
            lambda: store.get("a/b", 0, 1),
            lambda: list(store.list("")),
        ):
            with pytest.raises(CredentialsAbsent, match=r"env, assume-role, .*, iam-role"):
                ask()
