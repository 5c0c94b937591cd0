"""Store of the demonstration: a bucket of a server on this machine, or a folder."""

from __future__ import annotations

import importlib.util
import shutil
import socket
import subprocess
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from rlmm.errors import EngineFailed
from rlmm_demo.world.service import holds_within

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

_BUCKET: Final = "tier"
_START_S: Final = 30.0
CREDENTIALS: Final = {"AWS_ACCESS_KEY_ID": "demo", "AWS_SECRET_ACCESS_KEY": "demonstration"}


class FolderStore:
    """
    A folder of objects, or with `BucketStore` a bucket.

    `options` are those of Spark's data source, `properties` those of a broker's storage manager.
    `upload` copies files beside the tier as a plain program does, and deletes them again.
    """

    name = "a folder"
    yardstick = "plain file copies"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def flags(self) -> list[str]:
        return ["--store", str(self._folder)]

    def options(self) -> dict[str, str]:
        return {"store": str(self._folder)}

    def properties(self) -> dict[str, str]:
        return {"rsm.config.storage.root": str(self._folder)}

    def sizes(self) -> dict[str, int]:
        files = (path for path in self._folder.rglob("*") if path.is_file())
        return {path.relative_to(self._folder).as_posix(): path.stat().st_size for path in files}

    def upload(self, files: Iterable[Path]) -> None:
        beside = self._folder.with_name("yardstick")
        beside.mkdir()
        for number, file in enumerate(files):
            shutil.copyfile(file, beside / str(number))
        shutil.rmtree(beside)

    def copy(self, key: str, new: str) -> None:
        (self._folder / new).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(self._folder / key, self._folder / new)


class BucketStore:
    name = "an S3 bucket (moto)"
    yardstick = "plain boto3"

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._client = _client(endpoint)

    def flags(self) -> list[str]:
        return [
            "--store", f"s3://{_BUCKET}/", "--endpoint", self._endpoint, "--region", "us-east-1",
            "--path-style",
        ]  # fmt: skip

    def options(self) -> dict[str, str]:
        return {
            "store": f"s3://{_BUCKET}/", "endpoint": self._endpoint, "region": "us-east-1",
            "pathStyle": "true",
        }  # fmt: skip

    def properties(self) -> dict[str, str]:
        return {
            "rsm.config.storage.s3.bucket.name": _BUCKET,
            "rsm.config.storage.s3.endpoint.url": self._endpoint,
            "rsm.config.storage.s3.region": "us-east-1",
            "rsm.config.storage.s3.path.style.access.enabled": "true",
            "rsm.config.storage.aws.access.key.id": CREDENTIALS["AWS_ACCESS_KEY_ID"],
            "rsm.config.storage.aws.secret.access.key": CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
        }

    def sizes(self) -> dict[str, int]:
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=_BUCKET)
        return {one["Key"]: one["Size"] for page in pages for one in page.get("Contents", [])}

    def upload(self, files: Iterable[Path]) -> None:
        keys = []
        for number, file in enumerate(files):
            keys.append(f"yardstick/{number}")
            self._client.upload_file(str(file), _BUCKET, keys[-1])
        for key in keys:
            self._client.delete_object(Bucket=_BUCKET, Key=key)

    def copy(self, key: str, new: str) -> None:
        source = {"Bucket": _BUCKET, "Key": key}
        self._client.copy_object(Bucket=_BUCKET, Key=new, CopySource=source)


DemoStore = FolderStore | BucketStore


@contextmanager
def open_store(folder: Path, environ: Mapping[str, str]) -> Iterator[DemoStore]:
    if any(importlib.util.find_spec(name) is None for name in ("boto3", "moto", "flask")):
        yield FolderStore(folder)
        return
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(  # noqa: S603  # a program of ours
        command, env=dict(environ), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        endpoint = f"http://127.0.0.1:{port}"
        _wait(port, server)
        _client(endpoint).create_bucket(Bucket=_BUCKET)
        yield BucketStore(endpoint)
    finally:
        server.kill()
        server.wait()


def _wait(port: int, server: subprocess.Popen[bytes]) -> None:
    def is_answering_or_over() -> bool:
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port), _START_S).close()
            return True
        return server.poll() is not None

    if not holds_within(_START_S, is_answering_or_over) or server.poll() is not None:
        raise EngineFailed("the demonstration's store did not start")


def _client(endpoint: str) -> Any:
    # Large, and not needed where there is no bucket.
    import boto3  # noqa: PLC0415
    from botocore.config import Config  # noqa: PLC0415

    access, secret = CREDENTIALS.values()
    session = boto3.Session(access, secret, region_name="us-east-1")
    config = Config(s3={"addressing_style": "path"})
    return session.client("s3", endpoint_url=endpoint, config=config)
