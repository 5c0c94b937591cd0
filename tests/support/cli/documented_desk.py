"""A folder in which the commands of a page are typed, beside a service and a bucket."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.error import URLError
from urllib.request import urlopen

import boto3
from botocore.config import Config

from broker_adapter.address import UnixAddress
from broker_adapter.blocking import BlockingRemoteLogMetadataClient
from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid
from tests.support.builders import TOPIC_ID, finished, segment_id, started
from tests.support.repository import tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DEADLINE_S = 240.0
"""Never reached, unless something is broken."""
PREFIX = "kafka/"
KEYS = {"AWS_ACCESS_KEY_ID": "owner", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}
JOBS = ("AUDIT", "EXPIRE", "PLAN", "REBUILD", "RUN", "VERIFY")
"""Commands of `rlmm tier` that run on Spark where nothing else is said."""


@dataclass(frozen=True)
class Prepared:
    """A tier that was copied once: its log folder, its metadata, its objects."""

    folder: Path
    endpoint: str

    def client(self) -> Any:
        session = boto3.Session("owner", "secret", region_name="us-east-1")
        config = Config(s3={"addressing_style": "path"})
        return session.client("s3", endpoint_url=self.endpoint, config=config)

    def empty_bucket(self) -> None:
        client = self.client()
        for page in client.get_paginator("list_objects_v2").paginate(Bucket="bucket"):
            for one in page.get("Contents", []):
                client.delete_object(Bucket="bucket", Key=one["Key"])

    def fill_bucket(self) -> None:
        """Put exactly the objects of the tier into the bucket, below the prefix of the pages."""
        self.empty_bucket()
        client, store = self.client(), self.folder / "store"
        for file in store.rglob("*"):
            if file.is_file() and "rlmm-jobs" not in file.parts:
                key = f"{PREFIX}{file.relative_to(store)}"
                client.put_object(Bucket="bucket", Key=key, Body=file.read_bytes())


@dataclass(frozen=True)
class Desk:
    """A folder in which a page is typed, beside a running `rlmm serve`."""

    folder: Path
    http_port: int
    endpoint: str

    @property
    def environ(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("LANG", "TMPDIR") if name in os.environ}
        return {
            **kept, **KEYS, "HOME": str(self.folder), "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_EC2_METADATA_DISABLED": "true", "RLMM_OUTPUT": "table",
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(tree.ROOT),
            **{f"RLMM_TIER_{name}_NO_SPARK": "1" for name in JOBS},
        }  # fmt: skip

    def placed(self, text: str) -> str:
        """Put this machine's places where the page has those of its reader."""
        for said, here in (
            ("localhost:7405", f"127.0.0.1:{self.http_port}"),
            ("--sidecar rlmm:7404", "--sidecar rlmm-data/rlmm.sock"),
            ("/var/lib/kafka", "logs"),
            ("/mnt/archive", "store"),
            ("/etc/rlmm/", f"{self.folder}/etc/"),
            ("/var/lib/rlmm", f"{self.folder}/service"),
            ("rlmm.zip rlmm spark_tiering broker_adapter", "rlmm.zip logs"),
        ):
            text = text.replace(said, here)
        return text

    def script(self, lines: list[str]) -> list[tuple[int, str]]:
        """Run *lines* in one shell; return the exit code and the output of each."""
        marked = "".join(f"{line}\nprintf '\\n@@%s@@\\n' \"$?\"\n" for line in lines)
        done = subprocess.run(
            ["bash", "-c", f"exec 2>&1\n{marked}"], cwd=self.folder, env=self.environ,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            timeout=DEADLINE_S,
        )  # fmt: skip
        parts = re.split(r"\n@@(\d+)@@\n", done.stdout)
        return [(int(code), said) for said, code in zip(parts[::2], parts[1::2], strict=False)]


@contextmanager
def serving(desk: Desk) -> Iterator[None]:
    """Start the service by the command of docs/start.md, on ports of this test."""
    log = (desk.folder / "serve.log").open("wb")
    process = subprocess.Popen(
        [desk.folder / "bin/rlmm", "serve"], cwd=desk.folder, stdout=log, stderr=log,
        env={**desk.environ, "RLMM_HTTP_LISTEN": f"127.0.0.1:{desk.http_port}"},
        start_new_session=True,
    )  # fmt: skip
    try:
        deadline_s = time.monotonic() + DEADLINE_S
        while not is_ready(desk.http_port):
            assert process.poll() is None, (desk.folder / "serve.log").read_text()
            assert time.monotonic() < deadline_s, (desk.folder / "serve.log").read_text()
            time.sleep(0.05)
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        log.close()


def is_ready(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/readyz") as answer:
            return bool(answer.status == HTTPStatus.OK)
    except (URLError, ConnectionError):
        return False


def add_what_readme_explains(socket: Path) -> None:
    """Tier orders-0 up to offset 4899 in leader epoch 4, and begin a copy of what follows."""
    orders = TopicIdPartition(TOPIC_ID, "orders", 0)
    open_copy = SegmentId(orders, Uuid.parse("Uwsv0ninUDELp0zJZTvlRg"))
    now_ms = time.time_ns() // 1_000_000
    with BlockingRemoteLogMetadataClient(UnixAddress(socket)) as client:
        client.add_segment(
            started(segment_id("a", orders), 0, 4899, {4: 0}, event_timestamp_ms=now_ms)
        )
        client.update_segment(finished(segment_id("a", orders), event_timestamp_ms=now_ms))
        client.add_segment(started(open_copy, 4900, 4999, {4: 4900}, event_timestamp_ms=now_ms))
