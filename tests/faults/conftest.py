"""A bucket that fails as a test tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.object_places import Bucket, known_as, stub_bucket
from tests.support.object_stub import ObjectStub

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from spark_tiering.stores.s3 import S3Store

SILENCE_MS = 1_500
"""How long `hasty` waits for an answer that never comes: all others have to come within it."""


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known_as("somebody", "something", tmp_path, monkeypatch)


@pytest.fixture
def stub(credentials: None) -> Iterator[ObjectStub]:
    with ObjectStub() as stub:
        yield stub


@pytest.fixture
def bucket(stub: ObjectStub) -> Bucket:
    return stub_bucket(stub)


@pytest.fixture
def store(bucket: Bucket) -> Iterator[S3Store]:
    with bucket.opened() as store:
        yield store


@pytest.fixture
def hasty(bucket: Bucket) -> Iterator[S3Store]:
    with bucket.opened(read_timeout_ms=SILENCE_MS) as store:
        yield store
