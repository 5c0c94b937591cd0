"""An S3 stub and its clients, and drivers that are killed: the fixtures of several modules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from spark_tiering.stores.s3_policies import S3Retries
from tests.support.stores.s3_stub import ObjectStub
from tests.support.stores.stores_under_test import Bucket, known_as, stub_bucket
from tests.support.tier.driver_process import Drivers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from spark_tiering.stores.s3 import S3Store

SILENCE_MS = 1_500
"""How long a test waits for an answer that never comes; every other answer comes sooner."""


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known_as("somebody", "something", tmp_path, monkeypatch)


@pytest.fixture
def without_pauses(monkeypatch: pytest.MonkeyPatch, credentials: None) -> None:
    retries = "spark_tiering.stores.s3_calls.S3Retries"
    monkeypatch.setattr(retries, lambda: S3Retries(lambda _: None))


@pytest.fixture
def stub() -> Iterator[ObjectStub]:
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


@pytest.fixture(scope="module")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drivers]:
    with Drivers(tmp_path_factory.mktemp("drivers")) as drivers:
        yield drivers
