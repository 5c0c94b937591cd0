"""The history in a standing, independent of later reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.state_sources.folders_source import FoldersSource
from tests.support.cli.shared_history import SharedHistory, write_folder

if TYPE_CHECKING:
    from pathlib import Path


async def test_standing_when_all_was_read_then_counts_of_the_history_are_those_by_reason(
    tmp_path: Path,
) -> None:
    """Tombstones are counted apart from undecodable records."""
    await write_folder(tmp_path, SharedHistory())
    source = await FoldersSource.open([tmp_path], timeout_s=5.0)
    try:
        standing = await source.standing()
    finally:
        await source.close()
    for place in standing.places:
        apart = place.undecodable.get("tombstone", 0)
        assert place.lost_records == sum(place.undecodable.values()) - apart
        assert place.without_base == place.rejected.get("unknown-segment", 0)
    assert [place.lost_records for place in standing.places] == [4, 0, 0]
    assert [place.without_base for place in standing.places] == [2, 2, 0]
