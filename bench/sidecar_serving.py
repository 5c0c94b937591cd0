"""
`rlmm serve` under measurement: two clusters in one process, a small log that answers and a large
one that is read, and questions about the small one as frames.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.engine_ground import fill
from bench.history import RECORDS_PER_SET, history_partitions, user_partition_count
from bench.sidecar_ground import DEADLINE_S, Asked, started
from rlmm.errors import UnknownPartition
from rlmm.log.files.files_log import FilesLog
from rlmm.metadata.segment import SegmentState
from rlmm.process.wiring import CLUSTERS_FOLDER, LOG_FOLDER
from rlmm.wire.messages import answer_frame, request_frame
from rlmm.wire.values import partition_value
from tests.support.server.raw_frames import greeted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.sidecar_ground import Process
    from rlmm.metadata.ids import TopicIdPartition

SMALL, LARGE = "small", "large"
METADATA_PARTITIONS = 8
CONNECTIONS_MAX = 11_000
_PAGE = 1_000
_FIRST_ID = 70_000
"""Ids of five bytes, as a connection has that lives for some time."""
_SEVERAL_STARTS_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Logs:
    folder: Path
    known: dict[str, list[TopicIdPartition]]
    """User partitions of each, some of them without any event."""
    cluster_ids: dict[str, str]


async def fill_logs(folder: Path, small: int, large: int) -> Logs:
    known, cluster_ids = {}, {}
    for name, events in ((SMALL, small), (LARGE, large)):
        place = folder / CLUSTERS_FOLDER / name / LOG_FOLDER
        place.parent.mkdir(parents=True)
        await fill(place, events, METADATA_PARTITIONS, RECORDS_PER_SET)
        log = await FilesLog.open(place)
        cluster_ids[name] = (await log.identity(timeout_s=10.0)).cluster_id
        await log.close()
        made = history_partitions(
            user_partition_count(events), metadata_partitions=METADATA_PARTITIONS
        )
        known[name] = [one.id for one in made]
    return Logs(folder, known, cluster_ids)


@contextmanager
def serving(logs: Logs, place: Path) -> Iterator[Process]:
    # Paths of sockets are short, those of folders are not.
    with tempfile.TemporaryDirectory(prefix="rlmm-") as short:
        config, socket = place / "rlmm.toml", Path(short) / "rlmm.sock"
        config.write_text(
            f'data_dir = "{logs.folder}"\n'
            f'sidecar.unix_path = "{socket}"\n'
            f"sidecar.connections_max = {CONNECTIONS_MAX}\n"
            'http.listen = "none"\n'
            f"snapshot.interval_ms = {_SEVERAL_STARTS_MS}\n"
            f"[clusters.{SMALL}]\nlog.kind = 'files'\n"
            f"[clusters.{LARGE}]\nlog.kind = 'files'\n"
        )
        command = [sys.executable, "-m", "rlmm", "serve", "--config", str(config)]
        with started(command, socket, folder=place, log=place / "serve.log") as process:
            yield process


async def wait_open(server: Process, logs: Logs, name: str) -> None:
    deadline_s = time.monotonic() + DEADLINE_S
    while not await is_open(server, logs, name):
        server.require_running()
        if time.monotonic() > deadline_s:
            msg = f"the log {name} is not read to its end"
            raise TimeoutError(msg)
        await asyncio.sleep(0.02)


async def is_open(server: Process, logs: Logs, name: str) -> bool:
    async with greeted(server.socket, cluster_id=logs.cluster_ids[name]) as client:
        for partition in logs.known[name]:
            if not await client.call("is_ready", partition_value(partition)):
                return False
    return True


async def questions(server: Process, logs: Logs, count: int, in_one: int) -> tuple[Asked, Asked]:
    said = {"cluster_id": logs.cluster_ids[SMALL]}
    async with greeted(server.socket, **said) as client:
        lookups = await _lookups(client, logs.known[SMALL])
        chosen = random.Random(1).choices(lookups, k=count)
        many = [chosen[at : at + in_one] for at in range(0, count, in_one)]
        answers = await client.call("segments_for", chosen[:in_one])
        assert all(error is None and segment is not None for error, segment in answers)
    hello = request_frame(1, "hello", [{"versions": [1], "client": "bench", **said}])
    one = [request_frame(_FIRST_ID + at, "segment_for", asked) for at, asked in enumerate(chosen)]
    together = [
        request_frame(_FIRST_ID + at, "segments_for", [asked]) for at, asked in enumerate(many)
    ]
    return (
        Asked(hello, one, answer_frame(_FIRST_ID, answers[0][1])),
        Asked(hello, together, answer_frame(_FIRST_ID, answers)),
    )


async def _lookups(client: Any, known: list[TopicIdPartition]) -> list[Any]:
    lookups = []
    for partition in known:
        asked = partition_value(partition)
        try:
            segments, _ = await client.call("list_segments", asked, None, _PAGE)
        except UnknownPartition:
            continue
        for segment in segments:
            epoch, offset = segment[6][0]
            if segment[9] == SegmentState.COPY_SEGMENT_FINISHED and await client.call(
                "segment_for", asked, epoch, offset
            ):
                lookups.append([asked, epoch, offset])
    return lookups
