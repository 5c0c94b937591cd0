"""The place of records, by the segments of a disk and of a tier."""

from __future__ import annotations

import pytest

from rlmm_demo.report.placing import place
from rlmm_demo.report.story import MapRange, PartitionMap, RangeKind


def placed(*ranges: tuple[int, int, RangeKind]) -> PartitionMap:
    return PartitionMap("orders-0", tuple(MapRange(*one) for one in ranges))


@pytest.mark.parametrize(
    ("local", "tiered", "active", "first", "found"),
    [
        pytest.param(
            [(0, 9), (10, 19)],
            [],
            (20, 24),
            None,
            placed((0, 9, RangeKind.LOCAL), (10, 19, RangeKind.LOCAL), (20, 24, RangeKind.ACTIVE)),
            id="nothing is tiered",
        ),
        pytest.param(
            [(10, 19)],
            [(10, 19), (0, 9)],
            (20, 24),
            0,
            placed((0, 9, RangeKind.TIERED), (10, 19, RangeKind.BOTH), (20, 24, RangeKind.ACTIVE)),
            id="some are in both places",
        ),
        pytest.param(
            [],
            [(0, 9), (20, 29)],
            (40, 41),
            None,
            placed(
                (0, 9, RangeKind.TIERED),
                (10, 19, RangeKind.GAP),
                (20, 29, RangeKind.TIERED),
                (30, 39, RangeKind.GAP),
                (40, 41, RangeKind.ACTIVE),
            ),
            id="what is nowhere is a gap",
        ),
        pytest.param(
            [(10, 19)],
            [],
            None,
            4,
            placed((4, 9, RangeKind.GAP), (10, 19, RangeKind.LOCAL)),
            id="a gap is at the beginning",
        ),
        pytest.param(
            [(0, 9)],
            [(0, 19)],
            None,
            4,
            placed((4, 9, RangeKind.BOTH), (10, 19, RangeKind.TIERED)),
            id="it begins within a segment",
        ),
        pytest.param(
            [],
            [(0, 29), (5, 9), (20, 39)],
            None,
            None,
            placed(
                (0, 4, RangeKind.TIERED),
                (5, 9, RangeKind.TIERED),
                (10, 19, RangeKind.TIERED),
                (20, 29, RangeKind.TIERED),
                (30, 39, RangeKind.TIERED),
            ),
            id="segments lie over each other",
        ),
        pytest.param([(5, 4)], [], (0, -1), 0, placed(), id="nothing holds anything"),
    ],
)
def test_place_when_segments_are_known_then_every_offset_has_one_place(
    local: list[tuple[int, int]],
    tiered: list[tuple[int, int]],
    active: tuple[int, int] | None,
    first: int | None,
    found: PartitionMap,
) -> None:
    """Every offset from the first to the last is in one range, and a hole is a gap."""
    assert place("orders-0", local, tiered, active, first) == found
