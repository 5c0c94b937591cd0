"""What is looked at when brokers copy again, and how it is said. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from rlmm.metadata.ids import Uuid
    from spark_tiering.adopt.safety import AdoptedPartition
    from spark_tiering.copy_job.receipts import EndReceipt

SHOWN_MAX: Final = 5


def moved_starts(seen: Iterable[AdoptedPartition], log_starts: Mapping[int, int]) -> list[str]:
    """Return the partitions whose log start offset has moved: nothing expires in a window."""
    return [
        f"{one.partition}: its log began at {before}, it begins at {one.log_start}"
        for one in seen
        if (before := log_starts.get(one.partition.partition)) is not None
        and one.log_start is not None
        and one.log_start > before
    ]


def copied_twice(
    before: Iterable[AdoptedPartition], seen: Iterable[AdoptedPartition], ours: Collection[Uuid]
) -> list[str]:
    """Return copies, begun since *before*, of records that are copied already."""
    known = {segment.id for one in before if one.image for segment in one.image.segments}
    found: list[str] = []
    for partition_seen in seen:
        segments = () if partition_seen.image is None else partition_seen.image.segments
        copied = [segment for segment in segments if segment.id.uuid in ours]
        for segment in segments:
            if segment.id in known or segment.id.uuid in ours:
                continue
            start, last = segment.start_offset, segment.last_offset
            if any(one.start_offset <= last and start <= one.last_offset for one in copied):
                where = f"{partition_seen.partition}: {start}-{last}"
                found.append(f"{where} is copied once more: {segment.id.uuid}")
    return found


def end_text(one: EndReceipt) -> str:
    where = f"{one.partition} {one.start_offset}-{one.last_offset}"
    return f"{where}: {one.fate}: {one.detail or one.why}: {one.uuid}"


def few(texts: Sequence[str]) -> str:
    """Join the first texts, and say how many more there are."""
    more = len(texts) - SHOWN_MAX
    text = "; ".join(texts[:SHOWN_MAX])
    return f"{text}; and {more} more" if more > 0 else text
