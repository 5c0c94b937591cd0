"""Maps of the topic for the report: the place of each of its records."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from rlmm.errors import UnknownPartition
from rlmm.metadata.segment import SegmentState
from rlmm_demo.report.placing import place
from rlmm_demo.report.story import TierMap
from rlmm_demo.world.records import PARTITIONS, TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlmm.metadata.segment import SegmentMetadata
    from rlmm_demo.screens import DemoFigures
    from rlmm_demo.world.world import DemoWorld


def local_ranges(world: DemoWorld, ends: dict[int, int]) -> dict[int, list[tuple[int, int]]]:
    """Return first and last offset of each local segment by partition, the active one last."""
    found: dict[int, list[tuple[int, int]]] = {}
    for partition in range(PARTITIONS):
        firsts = sorted(
            int(path.stem) for path in world.log_folder().glob(f"{TOPIC}-{partition}/*.log")
        )
        behind = [*firsts[1:], ends[partition]]
        found[partition] = [(first, after - 1) for first, after in zip(firsts, behind, strict=True)]
    return found


def tier_map(label: str, world: DemoWorld, facts: DemoFigures) -> TierMap:
    local = local_ranges(world, facts.ends)
    tiered: dict[int, list[tuple[int, int]]] = {number: [] for number in range(PARTITIONS)}
    for segment in _finished(world):
        tiered[segment.id.partition.partition].append((segment.start_offset, segment.last_offset))
    partitions = tuple(
        place(f"{TOPIC}-{number}", local[number][:-1], tiered[number], local[number][-1], 0)
        for number in range(PARTITIONS)
    )
    sizes = world.store.sizes().items()
    tier_bytes = sum(size for key, size in sizes if "rlmm-jobs/" not in key)
    return TierMap(label, partitions, world.local_bytes(), tier_bytes)


def _finished(world: DemoWorld) -> Iterator[SegmentMetadata]:
    """Return the finished segments; a partition that the service does not know has none."""
    for partition in world.partitions():
        with suppress(UnknownPartition):
            for segment in world.service.client.list_segments(partition):
                if segment.state is SegmentState.COPY_SEGMENT_FINISHED:
                    yield segment
