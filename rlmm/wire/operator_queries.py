"""
Operator queries on the wire: summaries of user partitions, state images in pieces, the log.

Invariant: only this module makes the key that a page begins behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from rlmm.errors import LogError, ProtocolError
from rlmm.metadata.ids import NAME_BYTES_MAX
from rlmm.wire.errors import error_value, read_error
from rlmm.wire.value_checks import array, array_up_to, flag, int64, refuse, uint31, uint63, uuid
from rlmm.wire.values import deletion_value, partition_value, read_deletion, read_partition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlmm.metadata.events import PartitionDelete
    from rlmm.metadata.ids import TopicIdPartition, Uuid

PIECE_BYTES_MAX: Final = 1024 * 1024
"""Most bytes of an image, or of the log, in one answer: others wait while it is copied."""
KEY_BYTES_MAX: Final = NAME_BYTES_MAX + 32
"""Most bytes of the key of a user partition: id, name, number and their lengths."""
_SUMMARY_BYTES: Final = 96
"""Most bytes of a summary beside the name of its topic."""


class PartitionCounts(NamedTuple):
    partition: TopicIdPartition
    started: int
    """Segments in state COPY_SEGMENT_STARTED, and so on."""
    finished: int
    being_deleted: int
    size_bytes: int
    delete: PartitionDelete | None

    @property
    def wire_bytes(self) -> int:
        """Return an upper bound of its size on the wire."""
        return _SUMMARY_BYTES + len(self.partition.topic.encode())


class SummaryPage(NamedTuple):
    position: int
    is_whole: bool
    """Whether the page leaves out nothing that the client may not see."""
    summaries: list[PartitionCounts]
    after: bytes | None


class LogEnds(NamedTuple):
    """Holds the bounds of one metadata partition: [log_start, next_offset)."""

    log_start: int
    next_offset: int


class LogPiece(NamedTuple):
    """Record sets of a metadata partition, or a piece of one batch that no frame could hold."""

    data: bytes
    next_offset: int
    left_bytes: int
    """Bytes behind *data* that are still to be read."""


class ImageHead(NamedTuple):
    position: int
    size_bytes: int
    first: bytes


# ------------------------------------------------------------------------------ user partitions


def summary_page_value(page: SummaryPage) -> list[object]:
    return [page.position, page.is_whole, [_summary(one) for one in page.summaries], page.after]


def _summary(one: PartitionCounts) -> list[object]:
    return [
        partition_value(one.partition), one.started, one.finished, one.being_deleted,
        one.size_bytes, None if one.delete is None else deletion_value(one.delete),
    ]  # fmt: skip


def read_summary_page(value: object) -> SummaryPage:
    position, is_whole, summaries, after = array(value, "a page of user partitions", 4)
    return SummaryPage(
        uint63(position, "the position of a page"),
        flag(is_whole, "whether a page is whole"),
        [_read_summary(one) for one in array(summaries, "the user partitions of a page")],
        read_summary_key(after),
    )


def _read_summary(value: object) -> PartitionCounts:
    partition, started, finished, being_deleted, size, delete = array(value, "a user partition", 6)
    found = read_partition(partition)
    return PartitionCounts(
        found,
        uint63(started, "a number of segments"),
        uint63(finished, "a number of segments"),
        uint63(being_deleted, "a number of segments"),
        int64(size, "a size"),
        None if delete is None else read_deletion(found, delete),
    )


def read_summary_key(value: object) -> bytes | None:
    """Return the key that a page of user partitions begins behind; `None`: it is the first."""
    if value is None:
        return None
    if type(value) is not bytes or len(value) > KEY_BYTES_MAX:
        refuse("what a page goes on behind", "nil, or bytes as they were answered", value)
    return value


# --------------------------------------------------------------------------------------- images


def image_head_value(head: ImageHead) -> list[object]:
    return list(head)


def read_image_head(value: object) -> ImageHead:
    position, size, first = array(value, "an image", 3)
    return ImageHead(
        uint63(position, "the position of an image"),
        uint63(size, "the size of an image"),
        read_bytes(first, "an image"),
    )


def read_bytes(value: object, what: str) -> bytes:
    if type(value) is not bytes:
        refuse(what, "bytes", value)
    return value


# -------------------------------------------------------------------------------------- the log


def read_places(value: object, count_max: int) -> list[int]:
    places = array_up_to(value, "the metadata partitions", count_max)
    return [uint31(one, "a metadata partition") for one in places]


def log_ends_value(topic_id: Uuid, ends: Sequence[LogEnds | LogError]) -> list[object]:
    """Return the bounds of metadata partitions, in the order of the request, and their topic."""
    return [
        topic_id,
        [
            [error_value(one), 0, 0] if isinstance(one, LogError) else [None, *one]
            for one in ends
        ],
    ]  # fmt: skip


def read_log_ends(value: object, count: int) -> tuple[Uuid, list[LogEnds | LogError]]:
    topic_id, ends = array(value, "the bounds of a log", 2)
    found: list[LogEnds | LogError] = []
    for one in array(ends, "the bounds of a log", count):
        error, log_start, next_offset = array(one, "the bounds of a metadata partition", 3)
        if error is None:
            found.append(
                LogEnds(uint63(log_start, "a log start"), uint63(next_offset, "a log end"))
            )
            continue
        said = read_error(error)
        if not isinstance(said, LogError):
            msg = f"of a log {said.code!r} is said, which is said of none"
            raise ProtocolError(msg)
        found.append(said)
    return uuid(topic_id, "the topic id of a log"), found


def log_piece_value(piece: LogPiece | None) -> list[object] | None:
    """`None`: no records came in time."""
    return None if piece is None else list(piece)


def read_log_piece(value: object) -> LogPiece | None:
    """`None`: no records came in time."""
    if value is None:
        return None
    data, next_offset, left = array(value, "a piece of a log", 3)
    return LogPiece(
        read_bytes(data, "a piece of a log"),
        uint63(next_offset, "where a log goes on"),
        uint63(left, "the rest of a batch"),
    )
