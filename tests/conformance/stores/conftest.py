"""Every kind of store, for the contract that all of them keep."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from spark_tiering.stores.results import StoreTraits
from tests.support.stores.s3_servers import ACCESS, SECRET, Server, moto_server, seaweedfs_server
from tests.support.stores.s3_stub import ObjectStub
from tests.support.stores.stores_under_test import (
    Bucket,
    Folder,
    Place,
    known_as,
    server_bucket,
    stub_bucket,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from spark_tiering.stores.protocol import ObjectStore

MOTO = {"has_ages": False, "is_atomic": False}
"""It looks and then writes, and every upload of it began in 2010."""
KINDS = ("folder", "stub", "moto", "seaweedfs")


@pytest.fixture(autouse=True)
def only_these_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known_as(ACCESS, SECRET, tmp_path, monkeypatch)


@pytest.fixture(scope="session")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with moto_server(tmp_path_factory.mktemp("moto")) as server:
        yield server


@pytest.fixture(scope="session")
def seaweedfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with seaweedfs_server(tmp_path_factory.mktemp("seaweedfs")) as server:
        yield server


@pytest.fixture
def stub() -> Iterator[ObjectStub]:
    with ObjectStub() as stub:
        yield stub


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "folder":
        return Folder(path=tmp_path / "objects")
    return bucket_of(request, request.param)


@pytest.fixture(params=KINDS[1:])
def bucket(request: pytest.FixtureRequest) -> Bucket:
    return bucket_of(request, request.param)


@pytest.fixture
def seaweedfs_bucket(seaweedfs: Server) -> Bucket:
    return server_bucket(seaweedfs)


def bucket_of(request: pytest.FixtureRequest, kind: str) -> Bucket:
    """Return the bucket of one kind; the first caller starts its server."""
    if kind == "stub":
        return stub_bucket(request.getfixturevalue("stub"))
    if kind == "moto":
        traits = StoreTraits(True, True, False, True)
        return server_bucket(request.getfixturevalue("moto"), traits=traits, **MOTO)
    return server_bucket(request.getfixturevalue("seaweedfs"))


@pytest.fixture
def store(place: Place) -> Iterator[ObjectStore]:
    with place.open() as store:
        yield store


@pytest.fixture
def prefix() -> str:
    return f"{uuid.uuid4().hex}/"
