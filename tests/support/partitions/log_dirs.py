"""Log folders of brokers as tests make them: folders of partitions with the files beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.metadata.ids import Uuid
from rlmm.partition_log.checkpoints import format_offsets, format_partition_metadata
from rlmm.partition_log.names import PARTITION_METADATA, TopicPartition
from tests.support.partitions.segments import example_partition

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAA"
TOPIC_ID = Uuid(bytes(range(16)))


def make_log_dir(
    folder: Path,
    *,
    node_id: int = 1,
    cluster_id: str = CLUSTER_ID,
    high_watermarks: Mapping[TopicPartition, int] | None = None,
) -> Path:
    folder.mkdir()
    lines = ("#", "version=1", f"cluster.id={cluster_id}", f"node.id={node_id}", "")
    (folder / "meta.properties").write_text("\n".join(lines))
    if high_watermarks is not None:
        checkpoint = format_offsets(high_watermarks)
        (folder / "replication-offset-checkpoint").write_bytes(checkpoint)
    return folder


def add_partition(
    log_dir: Path,
    name: str = "orders-3",
    topic_id: Uuid | None = TOPIC_ID,
    others: Mapping[str, bytes] | None = None,
) -> Path:
    """Add a partition's folder with the three example segments and *others* beside them."""
    folder = log_dir / name
    folder.mkdir()
    contents = {**example_partition().contents, **(others or {})}
    if topic_id is not None:
        contents[PARTITION_METADATA] = format_partition_metadata(topic_id)
    for file, content in contents.items():
        (folder / file).write_bytes(content)
    return folder
