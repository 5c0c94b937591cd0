"""An observer with a planted fault: its log never grows. The comparison with the owner finds it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.library.remote_log_metadata import open_metadata
from rlmm.log.files.files_log import FilesLog
from rlmm.log.protocol import LogBounds
from tests.integration.engine.conftest import PARTITION_COUNT, QUICK
from tests.support.builders import delete_started, finished, segment_id, started, tp

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from rlmm.errors import LogError
    from rlmm.log.protocol import MetadataLog
    from rlmm.records.record_set import RecordSet

WAIT_S = 30.0
SEGMENT = segment_id("a", tp("t", 0))


class FrozenObserver(FilesLog):
    """Goes on telling the bounds that it told first, and reads nothing beyond them."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._first: dict[int, LogBounds | LogError] = {}

    async def bounds(
        self, partitions: Collection[int], *, timeout_s: float
    ) -> dict[int, LogBounds | LogError]:
        found = await super().bounds(partitions, timeout_s=timeout_s)
        return {place: self._first.setdefault(place, bounds) for place, bounds in found.items()}

    async def read(
        self, partition: int, position: int, *, timeout_s: float, bytes_max: int = 1 << 20
    ) -> RecordSet | None:
        first = self._first.get(partition)
        if isinstance(first, LogBounds) and position >= first.high_watermark:
            await asyncio.Event().wait()
        return await super().read(partition, position, timeout_s=timeout_s, bytes_max=bytes_max)


async def disagrees(owner: MetadataLog, observer: MetadataLog) -> bool:
    """Return whether a linearizable answer of *observer* lacks what the owner acknowledged."""
    async with open_metadata(owner, settings=QUICK) as ours:
        await ours.add_segment(started(SEGMENT))
        await ours.update_segment(finished(SEGMENT))
        async with open_metadata(observer, settings=QUICK) as theirs:
            await theirs.wait_all_ready(timeout_s=WAIT_S)
            await ours.update_segment(delete_started(SEGMENT))
            answer = await theirs.segment(SEGMENT, linearizable=True)
            return answer != await ours.segment(SEGMENT)


@pytest.mark.parametrize("is_frozen", [True, False], ids=["planted", "the-owner-itself"])
async def test_observer_when_its_log_never_grows_then_is_found(
    tmp_path: Path, *, is_frozen: bool
) -> None:
    """An observer that is frozen at its first look answers otherwise than the owner."""
    owner = await FilesLog.open(tmp_path, partition_count=PARTITION_COUNT)
    observer = await FrozenObserver.open(tmp_path, is_observer=True) if is_frozen else owner
    try:
        assert await disagrees(owner, observer) is is_frozen
    finally:
        await observer.close()
        await owner.close()
