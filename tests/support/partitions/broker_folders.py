"""Log folders of a broker, and a server that serves them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from rlmm.broker_files.sealed_segments import BrokerLog
from rlmm.errors import LogError
from rlmm.http.settings import BrokerLogSettings
from rlmm.kafka_client.offsets.log_ends import LastStableOffsets
from rlmm.metadata.ids import TopicIdPartition, Uuid
from rlmm.metrics.served_state import ServedState
from rlmm.partition_log.checkpoints import format_offsets, format_partition_metadata
from rlmm.partition_log.names import PARTITION_METADATA, TopicPartition
from tests.support.partitions.segments import example_partition
from tests.support.server.http_servers import VERSION, process_of, showing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from tests.support.server.http_servers import HttpClient

TOPIC = "orders"
TOPIC_ID = Uuid(bytes(range(1, 17)))
PARTITION = TopicIdPartition(TOPIC_ID, TOPIC, 3)
CLUSTER = "Clu-ster_0123456789abc"
NODE = 7
ALL_STABLE = 10_000
"""Above every offset of the example."""
FIRST, SECOND, ACTIVE = (f"{base:020d}" for base in (0, 120, 251))
"""The segments of the example, as their files begin."""


class StableOffsets(LastStableOffsets):
    def __init__(self, told: int | LogError = ALL_STABLE) -> None:
        self.told = told
        self.asked: list[TopicIdPartition] = []
        self.answers = asyncio.Event()
        self.answers.set()

    async def last_stable_offset(self, partition: TopicIdPartition) -> int:
        self.asked.append(partition)
        await self.answers.wait()
        if isinstance(self.told, LogError):
            raise self.told
        return self.told

    async def run(self) -> None:
        await asyncio.Event().wait()


def write_partition(
    root: Path, contents: Mapping[str, bytes] | None = None, partition: TopicIdPartition = PARTITION
) -> Path:
    folder = root / f"{partition.topic}-{partition.partition}"
    folder.mkdir(parents=True)
    for name, content in (contents or example_partition().contents).items():
        (folder / name).write_bytes(content)
    metadata = format_partition_metadata(bytes(partition.topic_id))
    (folder / PARTITION_METADATA).write_bytes(metadata)
    return folder


def write_broker(root: Path, node_id: int = NODE, cluster_id: str = CLUSTER) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    text = f"#\nversion=1\nnode.id={node_id}\ncluster.id={cluster_id}\ndirectory.id=abc\n"
    (root / "meta.properties").write_text(text)
    noted = format_offsets({TopicPartition(PARTITION.topic, PARTITION.partition): 257})
    (root / "replication-offset-checkpoint").write_bytes(noted)
    return root


def write_example(root: Path) -> Path:
    write_partition(write_broker(root))
    return root


def asked(
    folder: Path | str, name: str | None = None, partition: TopicIdPartition = PARTITION
) -> dict[str, str]:
    said = {
        "folder": str(folder),
        "topic_id": str(partition.topic_id),
        "topic": partition.topic,
        "partition": str(partition.partition),
    }
    return said if name is None else {**said, "name": name}


class Broker:
    def __init__(self, client: HttpClient, served: BrokerLog, teller: StableOffsets) -> None:
        self.client = client
        self.served = served
        self.teller = teller

    @property
    def url(self) -> str:
        return self.client.url

    async def file(
        self, folder: Path | str, name: str, said: str | None = None, method: str = "GET"
    ) -> tuple[int, Mapping[str, str], bytes]:
        headers = {} if said is None else {"Range": said}
        async with self.client.session.request(
            method, f"{self.url}/v1/broker-log/file", params=asked(folder, name), headers=headers
        ) as response:
            return response.status, response.headers, await response.read()


@asynccontextmanager
async def serving_folders(
    *folders: Path | str, teller: StableOffsets | None = None, of_http: Any = None, **settings: Any
) -> AsyncIterator[Broker]:
    teller = teller or StableOffsets()
    chosen = BrokerLogSettings(tuple(str(folder) for folder in folders), **settings)
    served = BrokerLog(chosen, teller)
    sources = ServedState(VERSION, broker_log=served)
    sources.begin(process_of())
    async with showing(sources=sources, **(of_http or {})) as client:
        yield Broker(client, served, teller)
