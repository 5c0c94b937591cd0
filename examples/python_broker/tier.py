"""The tier of sealed segments: objects by name, in memory; no two copies share a name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from examples.python_broker.log import Record
    from rlmm.metadata.segment import SegmentMetadata


class TierUnavailable(Exception):
    """The store cannot be reached for now: the same copy may succeed later."""


class TierRefused(Exception):
    """The store will never take, give or delete this."""


def name_of(segment: SegmentMetadata) -> str:
    partition = segment.id.partition
    return (
        f"{partition.topic_id}/{partition.partition}/"
        f"{segment.start_offset:020}-{segment.id.uuid}.log"
    )


class Tier:
    def __init__(self) -> None:
        self.objects: dict[str, list[Record]] = {}

    async def put(self, segment: SegmentMetadata, records: Sequence[Record]) -> bytes | None:
        """Store a segment; the caller keeps the result with its metadata."""
        self.objects[name_of(segment)] = list(records)
        return f"v1:{len(records)}".encode()

    async def get(self, segment: SegmentMetadata) -> list[Record]:
        found = self.objects.get(name_of(segment))
        if found is None:
            msg = f"{name_of(segment)} is not there"
            raise TierRefused(msg)
        return found

    async def delete(self, segment: SegmentMetadata) -> None:
        """Remove a segment; one that is gone already is as good."""
        self.objects.pop(name_of(segment), None)
