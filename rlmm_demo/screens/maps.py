"""Maps of the topic for the report: the place of each of its records."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING

from rlmm.errors import UnknownPartition
from rlmm.metadata.segment import SegmentState
from rlmm_demo.report.story import MapRange, PartitionMap, RangeKind, TierMap
from rlmm_demo.world.records import PARTITIONS, TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rlmm.metadata.segment import SegmentMetadata
    from rlmm_demo.screens import DemoFigures
    from rlmm_demo.world.world import DemoWorld

    Offsets = tuple[int, int]
    """First and last offset of a segment, both inclusive."""


def local_ranges(world: DemoWorld, ends: dict[int, int]) -> dict[int, list[Offsets]]:
    """Return first and last offset of each local segment by partition, the active one last."""
    found: dict[int, list[Offsets]] = {}
    for partition in range(PARTITIONS):
        firsts = sorted(
            int(path.stem) for path in world.log_folder().glob(f"{TOPIC}-{partition}/*.log")
        )
        behind = [*firsts[1:], ends[partition]]
        found[partition] = [(first, after - 1) for first, after in zip(firsts, behind, strict=True)]
    return found


def tier_map(label: str, world: DemoWorld, facts: DemoFigures) -> TierMap:
    local = local_ranges(world, facts.ends)
    tiered: dict[int, list[Offsets]] = {number: [] for number in range(PARTITIONS)}
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


def place(
    name: str,
    local: Iterable[Offsets],
    tiered: Iterable[Offsets],
    active: Offsets | None = None,
    first_offset: int | None = None,
) -> PartitionMap:
    """
    Return a partition from *first_offset*, default its first segment, to its last offset.

    *local* are the rolled segments on disk; an offset that no place holds lies in a gap.
    """
    places = [
        [(first, last) for first, last in segments if last >= first]
        for segments in (local, tiered, [active] if active else [])
    ]
    cuts = {at for held in places for first, last in held for at in (first, last + 1)}
    if not cuts:
        return PartitionMap(name, ())
    low = min(cuts) if first_offset is None else first_offset
    edges = sorted({low, *(cut for cut in cuts if cut > low)})
    ranges = [
        MapRange(at, after - 1, _kind(*(any(a <= at <= b for a, b in held) for held in places)))
        for at, after in pairwise(edges)
    ]
    return PartitionMap(name, tuple(ranges))


def _kind(is_on_disk: bool, is_in_tier: bool, is_active: bool) -> RangeKind:
    if is_in_tier:
        return RangeKind.BOTH if is_on_disk or is_active else RangeKind.TIERED
    if is_active:
        return RangeKind.ACTIVE
    return RangeKind.LOCAL if is_on_disk else RangeKind.GAP
