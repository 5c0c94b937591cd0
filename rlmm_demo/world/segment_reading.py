"""Segment reading: a program that prints partition, offset and value of committed records."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broker_adapter.address import UnixAddress
from broker_adapter.blocking import BlockingRemoteLogMetadataClient
from rlmm.metadata.ids import TopicIdPartition, Uuid
from rlmm.records.batch import Batch, walk
from rlmm.records.records import Record
from rlmm_demo.world.records import PARTITIONS, TOPIC
from spark_tiering.execution.session import open_session
from spark_tiering.execution.settings import ExecutionSettings
from spark_tiering.storage import open_storage
from spark_tiering.stores.s3_settings import S3Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

Row = tuple[int, int, bytes]


def rows_by_spark(request: dict[str, Any]) -> Iterator[Row]:
    settings = ExecutionSettings(
        "local[2]", conf={"spark.local.dir": request["folder"]}, cache_folder=request["folder"]
    )
    with closing(open_session(settings)) as opened:
        read = opened.spark.read.format("rlmm").options(**request["store"])
        read = read.option("isolationLevel", "read_committed")
        found = read.load().select("partition", "offset", "value").collect()
    for row in sorted(found, key=lambda one: (one["partition"], one["offset"])):
        yield row["partition"], row["offset"], bytes(row["value"])


def rows_by_hand(request: dict[str, Any]) -> Iterator[Row]:
    """Give the rows segment by segment; the demo's only transaction was aborted."""
    topic_id = Uuid.parse(request["topicId"])
    with (
        BlockingRemoteLogMetadataClient(UnixAddress(Path(request["socket"]))) as client,
        open_storage(request["store"]["store"], _bucket(request["store"])) as storage,
    ):
        for number in range(PARTITIONS):
            partition = TopicIdPartition(topic_id, TOPIC, number)
            for segment in client.list_segments(partition):
                pieces = storage.fetch(segment)
                log = b"".join(bytes(piece) for piece in pieces)  # type: ignore[union-attr, arg-type] # what cannot be read ends this program
                yield from ((number, *one) for one in _committed(log))


def _bucket(options: dict[str, str]) -> S3Settings | None:
    if "endpoint" not in options:
        return None
    return S3Settings(
        "of-the-address", endpoint=options["endpoint"], region=options["region"], is_path_style=True
    )


def _committed(log: bytes) -> Iterator[tuple[int, bytes]]:
    for batch in walk(log):
        assert isinstance(batch, Batch), batch
        if not batch.is_transactional:
            for record in batch.records():
                assert isinstance(record, Record), record
                yield record.offset, record.value or b""


def main() -> None:
    request = json.loads(sys.argv[1])
    rows = rows_by_spark(request) if request["hasSpark"] else rows_by_hand(request)
    for partition, offset, value in rows:
        sys.stdout.write(f"{partition}\t{offset}\t{value.decode()}\n")


if __name__ == "__main__":
    main()
