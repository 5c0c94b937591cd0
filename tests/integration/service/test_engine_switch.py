"""One data folder, served by the native core and by Python in turns, and asked by HTTP."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from rlmm.base.version import __version__
from rlmm.library.remote_log_metadata import open_metadata
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.metadata.segment import PartitionDeleteState
from rlmm.process.wiring import LOG_FOLDER
from tests.integration.http.test_process import get, url_of
from tests.integration.service.test_hanging_start import until_ready
from tests.support.builders import (
    delete_finished,
    delete_started,
    finished,
    partition_delete,
    segment_id,
    started,
    tp,
)
from tests.support.engine.chosen import needs_native
from tests.support.server.http_servers import ANYWHERE
from tests.support.server.serve_process import FOLDER, PLACES, serving

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rlmm.metadata.ids import TopicIdPartition

PARTITIONS = [tp("orders", number) for number in range(6)]
COUNT = 12
"""Segments of each user partition in each part of the history."""
OFFSETS = range(0, 2_600, 130)
EPOCHS = range(4)
WITH_EVENTS = len(
    {metadata_partition_for(one.topic_id, one.partition, PLACES) for one in PARTITIONS}
)
"""Metadata partitions that have snapshots."""

pytestmark = needs_native


def label(partition: TopicIdPartition, number: int) -> str:
    return f"{partition.partition}-{number}"


async def write(folder: Path, numbers: Iterable[int]) -> None:
    """Store segments with these numbers: some overlap, are deleted, or stay open."""
    log = folder / FOLDER / LOG_FOLDER
    async with open_metadata(log, partition_count=PLACES, engine="python") as metadata:
        for partition in PARTITIONS:
            for number in numbers:
                one, first = segment_id(label(partition, number), partition), number * 100
                await metadata.add_segment(
                    started(
                        one, first, first + 99 + number % 3 * 30,
                        {number // 8: first, number // 8 + 1: first + 50},
                        size_bytes=1_000 + number, txn_index_empty=number % 4 != 0,
                        custom_metadata=b"kept" if number % 2 else None,
                    )
                )  # fmt: skip
                if number % 7:
                    await metadata.update_segment(finished(one, custom_metadata=b"\x00\xff"))
                if number % 5 == 1:
                    await metadata.update_segment(delete_started(one))
                if number % 10 == 1:
                    await metadata.update_segment(delete_finished(one))
        leaving = tp("leaving", PARTITIONS[min(numbers) % 2].partition)
        for state in list(PartitionDeleteState)[: 1 + min(numbers) % 2]:
            await metadata.put_partition_delete(partition_delete(state, leaving))


async def answers(url: str, token: str) -> dict[str, tuple[int, Any]]:
    """Return status and text of every question about every segment."""
    found: dict[str, tuple[int, Any]] = {}

    async def ask(question: str, partition: TopicIdPartition, **about: object) -> None:
        named = {
            "topic_id": str(partition.topic_id), "topic": partition.topic,
            "partition": partition.partition, **about,
        }  # fmt: skip
        path = f"/v1/{question}?{urlencode(named)}"
        found[path] = await get(f"{url}{path}", token)

    for partition in (*PARTITIONS, tp("leaving", 0), tp("leaving", 1)):
        for question in ("segments", "size", "partition-delete"):
            await ask(question, partition)
        for number in range(0, 2 * COUNT, 3):
            one = segment_id(label(partition, number), partition)
            await ask("segment", partition, segment_id=str(one.uuid))
    for partition in PARTITIONS[:2]:
        for epoch in EPOCHS:
            await ask("highest-offset", partition, epoch=epoch)
            await ask("segments", partition, epoch=epoch)
            for offset in OFFSETS:
                await ask("segment-for", partition, epoch=epoch, offset=offset)
                await ask("next-segment-with-txn-index", partition, epoch=epoch, offset=offset)
    return found


async def served_by(engine: str, folder: Path) -> dict[str, tuple[int, Any]]:
    """Serve the folder by *engine* until all is asked; check what it says that it is."""
    async with serving(folder, "--engine", engine, "--http-listen", ANYWHERE) as served:
        line = await served.until("serving from")
        assert f", engine {engine} {__version__}, pid" in line["message"]
        url = await url_of(served)
        await until_ready(url)
        token = (folder / FOLDER / "http.token").read_text().strip()
        found = await answers(url, token)
        _, shown = await get(f"{url}/v1/status", token)
        for said in (shown["process"], shown["clusters"][0]):
            assert (said["engine"], said["engine_version"]) == (engine, __version__)
        _, metrics = await get(f"{url}/metrics")
        assert f'rlmm_engine_info{{engine="{engine}",version="{__version__}"}} 1.0' in metrics
        assert await status(folder) == (engine, __version__)
        assert await served.end(signal.SIGTERM) == 0
    restored = sum("restored at position" in message for message in served.messages)
    found["restored"] = restored, None
    return found


async def status(folder: Path) -> tuple[str, str]:
    asking = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "rlmm", "status", "--output", "json",
        cwd=folder, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    document = json.loads((await asking.communicate())[0])
    return document["engine"], document["engine_version"]


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second"), [("native", "python"), ("python", "native")])
async def test_service_that_switches_its_engine_then_answers_the_same(
    tmp_path: Path, first: str, second: str
) -> None:
    """Each engine restores the other's snapshots, goes on from there, and answers to the letter."""
    await write(tmp_path, range(COUNT))
    before = await served_by(first, tmp_path)
    assert before.pop("restored")[0] == 0
    after = await served_by(second, tmp_path)
    assert after.pop("restored")[0] == WITH_EVENTS, "from the snapshots of the other engine"
    assert after == before
    await write(tmp_path, range(COUNT, 2 * COUNT))
    further = await served_by(second, tmp_path)
    assert further != after
    assert (await served_by(first, tmp_path)) == further
    assert further["restored"][0] == WITH_EVENTS
    assert {200, 404} <= {status for status, _ in further.values() if status >= 200}
