"""Places for objects, of every kind that there is: all are held to one contract."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.loaders import create_loader

from spark_tiering.stores.content import BytesContent
from spark_tiering.stores.local import WRITING, LocalStore
from spark_tiering.stores.local_settings import LocalSettings
from spark_tiering.stores.results import StoreTraits
from spark_tiering.stores.s3 import S3Store
from spark_tiering.stores.s3_policies import S3Retries
from spark_tiering.stores.s3_settings import MIB, S3Settings
from tests.support.stores import s3_servers, s3_stub_requests

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest
    from botocore.loaders import Loader

    from spark_tiering.stores.protocol import ObjectStore
    from tests.support.stores.s3_stub import ObjectStub

PART_BYTES = 5 * MIB
SINGLE_PUT_BYTES = 6 * MIB
FAITHFUL = StoreTraits(True, True, True, True)


def known_as(name: str, secret: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", name)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    # Each client reads the library's descriptions of services, a tenth of a second: once is enough.
    monkeypatch.setattr("botocore.session.create_loader", _descriptions)


@cache
def _descriptions(*_: object) -> Loader:
    return create_loader()


@dataclass
class Place(ABC):
    traits: StoreTraits = FAITHFUL
    is_atomic: bool = True
    """Of two that write at the very same moment one is refused."""
    has_ages: bool = True
    """Unfinished uploads tell when they began."""

    @abstractmethod
    def open(self) -> ObjectStore: ...

    @abstractmethod
    def leave_open(self, key: str) -> None:
        """Leave an unfinished write, as a killed writer does."""

    @abstractmethod
    def open_absent(self) -> ObjectStore: ...


@dataclass
class Folder(Place):
    path: Path = field(kw_only=True)

    def open(self) -> ObjectStore:
        return LocalStore(LocalSettings(self.path))

    def leave_open(self, key: str) -> None:
        left = self.path / WRITING / "left" / key
        left.parent.mkdir(parents=True, exist_ok=True)
        left.write_bytes(b"half of it")

    def open_absent(self) -> ObjectStore:
        path = self.path.parent / "unmounted"
        store = LocalStore(LocalSettings(path))
        path.rmdir()
        return store


@dataclass
class Bucket(Place):
    settings: S3Settings = field(kw_only=True)
    pauses: list[float] = field(default_factory=list)
    """Requested pauses; no test waits for them."""

    def open(self) -> ObjectStore:
        return self.opened()

    def opened(self, **changes: Any) -> S3Store:
        settings = {name: getattr(self.settings, name) for name in self.settings.__slots__}
        return S3Store(S3Settings(**(settings | changes)), S3Retries(self.pauses.append))

    def leave_open(self, key: str) -> None:
        config = Config(s3={"addressing_style": "path"})
        client = boto3.Session(region_name="us-east-1").client(
            "s3", endpoint_url=self.settings.endpoint, config=config
        )
        place = {"Bucket": self.settings.bucket, "Key": key}
        upload_id = client.create_multipart_upload(**place)["UploadId"]
        client.upload_part(**place, UploadId=upload_id, PartNumber=1, Body=b"half of it")
        client.close()

    def open_absent(self) -> ObjectStore:
        return self.opened(bucket="nobody-made-this")


def settings_of(place: Place) -> LocalSettings | S3Settings:
    if isinstance(place, Bucket):
        return place.settings
    assert isinstance(place, Folder)
    return LocalSettings(place.path)


def bucket_at(endpoint: str, name: str, **known: Any) -> Bucket:
    settings = S3Settings(
        name,
        endpoint=endpoint,
        region="us-east-1",
        is_path_style=True,
        single_put_bytes=SINGLE_PUT_BYTES,
        part_bytes=PART_BYTES,
    )
    return Bucket(settings=settings, **known)


def stub_bucket(stub: ObjectStub) -> Bucket:
    return bucket_at(stub.endpoint, s3_stub_requests.BUCKET)


def server_bucket(server: s3_servers.Server, **known: Any) -> Bucket:
    return bucket_at(server.endpoint, s3_servers.BUCKET, **known)


def content(size_bytes: int, seed: int = 0) -> BytesContent:
    pattern = bytes((seed + step * 7) % 251 for step in range(251))
    return BytesContent((pattern * (size_bytes // 251 + 1))[:size_bytes])


def bytes_of(given: BytesContent) -> bytes:
    return b"".join(given.pieces())


def cut_off(given: BytesContent, after_bytes: int, error: Exception) -> Iterator[bytes]:
    whole = bytes_of(given)[:after_bytes]
    for start in range(0, after_bytes, MIB):
        yield whole[start : start + MIB]
    raise error
