"""Calls to a running service that brokers do not use. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_adapter.calls import Call, page, partition_delete, status
from rlmm.wire import operator_queries as looking
from rlmm.wire.options import wait_options_value
from rlmm.wire.value_checks import refuse
from rlmm.wire.values import partition_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlmm.errors import LogError
    from rlmm.metadata.ids import TopicIdPartition, Uuid

__all__ = [
    "close_image", "list_partitions", "log_bounds", "open_image", "page", "partition_delete",
    "read_image", "read_log", "status",
]  # fmt: skip


def list_partitions(place: int, after: bytes | None, limit: int) -> Call[looking.SummaryPage]:
    return Call("list_partitions", [place, after, limit], looking.read_summary_page)


def open_image(partition: TopicIdPartition, size: int) -> Call[looking.ImageHead]:
    """Open the state image of *partition*, and return its first bytes."""
    args = [partition_value(partition), size]
    return Call("open_image", args, looking.read_image_head, (partition,))


def read_image(offset: int, size: int) -> Call[bytes]:
    def read(value: object) -> bytes:
        found = looking.read_bytes(value, "a piece of an image")
        if not found:
            refuse("a piece of an image", "of one byte at least", value)
        return found

    return Call("read_image", [offset, size], read)


def close_image() -> Call[None]:
    return Call("close_image", [], lambda _: None)


def log_bounds(
    places: Sequence[int],
) -> Call[tuple[Uuid, list[looking.LogEnds | LogError]]]:
    """Return the identity of the log, and the bounds of the metadata partitions *places*."""
    count = len(places)
    return Call("log_bounds", [list(places)], lambda value: looking.read_log_ends(value, count))


def read_log(
    topic_id: Uuid, place: int, position: int, skip: int, size: int, timeout_ms: int
) -> Call[looking.LogPiece | None]:
    """Return record batches of metadata partition *place* from *position* on."""
    args: list[object] = [topic_id, place, position, skip, size, wait_options_value(timeout_ms)]
    return Call("read_log", args, looking.read_log_piece)
