"""Stores that speak S3, as processes: moto, which starts soon, and SeaweedFS, which is strict."""

from __future__ import annotations

import contextlib
import ctypes
import json
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

if TYPE_CHECKING:
    from collections.abc import Iterator

BUCKET = "objects"
ACCESS, SECRET = "the-writer", "the-writers-own-secret"
READER = "the-reader"
OWNER = "the-owner"
START_S = 90
_PR_SET_PDEATHSIG = 1
_CHANCE = random.SystemRandom()
"""The seeded generator draws the same ports in each process of one run."""


@dataclass(frozen=True)
class Server:
    endpoint: str
    pid: int


def free_ports(count: int) -> list[int]:
    """Return ports that no outgoing connection takes before their server listens on them."""
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports: set[int] = set()
    while len(ports) < count:
        port = _CHANCE.randrange(10_000, max(first, 20_000))
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            ports.add(port)
    return [*ports]


@contextmanager
def moto_server(folder: Path) -> Iterator[Server]:
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with _running(command, folder / "moto.log", port) as server:
        yield server


@contextmanager
def seaweedfs_server(folder: Path) -> Iterator[Server]:
    parts = ("master", "volume", "filer", "s3")
    names = [f"{part}.{port}" for part in parts for port in ("port", "port.grpc")]
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    identities = folder / "identities.json"
    identities.write_text(json.dumps({"identities": list(_identities())}))
    (folder / "kept").mkdir()
    command = [
        str(Path(sys.executable).parent / "weed"),
        "server",
        f"-dir={folder / 'kept'}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        "-master.telemetry=false",
        "-master.volumeSizeLimitMB=64",
        "-volume.max=100",
        "-filer",
        "-s3",
        f"-s3.config={identities}",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        *(f"-{name}={port}" for name, port in ports.items()),
    ]
    try:
        with _running(command, folder / "seaweedfs.log", ports["s3.port"]) as server:
            yield server
    finally:
        # Where it listens beside its ports is not ours to choose, and it leaves that behind.
        for port in ports.values():
            for left in Path(tempfile.gettempdir()).glob(f"seaweedfs-*-{port}.sock"):
                left.unlink(missing_ok=True)


def _identities() -> Iterator[dict[str, object]]:
    rights = {
        ACCESS: ["Read", "List", "Tagging", "Write"],
        READER: ["Read", "List"],
        OWNER: ["Admin"],
    }
    for name, actions in rights.items():
        credentials = [{"accessKey": name, "secretKey": SECRET}]
        yield {"name": name, "credentials": credentials, "actions": actions}


@contextmanager
def _running(command: list[str], log: Path, port: int) -> Iterator[Server]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=_end_with_parent,  # noqa: PLW1509 - a system call and nothing else
        )
    try:
        endpoint = f"http://127.0.0.1:{port}"
        _make_bucket(endpoint, process, log)
        yield Server(endpoint, process.pid)
    finally:
        process.kill()
        process.wait()


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _make_bucket(endpoint: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Make the bucket, retrying until the store is up."""
    session = boto3.Session(OWNER, SECRET, region_name="us-east-1")
    config = Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1})
    client = session.client("s3", endpoint_url=endpoint, config=config)
    deadline = time.monotonic() + START_S
    try:
        while True:
            try:
                client.create_bucket(Bucket=BUCKET)
                client.put_object(Bucket=BUCKET, Key="first", Body=b"x")
                client.delete_object(Bucket=BUCKET, Key="first")
            except (BotoCoreError, ClientError) as error:
                if "BucketAlready" in str(error):
                    return
                if process.poll() is not None or time.monotonic() > deadline:
                    msg = f"{error}\n{log.read_text(errors='replace')[-2_000:]}"
                    raise RuntimeError(msg) from error
                time.sleep(0.1)
            else:
                return
    finally:
        client.close()
