"""The place of records, by the segments of a disk and of a tier."""

from __future__ import annotations

import pytest

from rlmm_demo.report.story import MapRange, PartitionMap, RangeKind
from rlmm_demo.screens.maps import place

LOCAL, TIERED, BOTH, GAP, ACTIVE = RangeKind

CASES = {
    "nothing is tiered": (
        [(0, 9), (10, 19)], [], (20, 24), None,
        [(0, 9, LOCAL), (10, 19, LOCAL), (20, 24, ACTIVE)],
    ),
    "some are in both places": (
        [(10, 19)], [(10, 19), (0, 9)], (20, 24), 0,
        [(0, 9, TIERED), (10, 19, BOTH), (20, 24, ACTIVE)],
    ),
    "what is nowhere is a gap": (
        [], [(0, 9), (20, 29)], (40, 41), None,
        [(0, 9, TIERED), (10, 19, GAP), (20, 29, TIERED), (30, 39, GAP), (40, 41, ACTIVE)],
    ),
    "a gap is at the beginning": ([(10, 19)], [], None, 4, [(4, 9, GAP), (10, 19, LOCAL)]),
    "it begins within a segment": ([(0, 9)], [(0, 19)], None, 4, [(4, 9, BOTH), (10, 19, TIERED)]),
    "segments lie over each other": (
        [], [(0, 29), (5, 9), (20, 39)], None, None,
        [(first, last, TIERED) for first, last in ((0, 4), (5, 9), (10, 19), (20, 29), (30, 39))],
    ),
    "the active one is tiered": ([], [(0, 9)], (0, 9), None, [(0, 9, BOTH)]),
    "nothing holds anything": ([(5, 4)], [], (0, -1), 0, []),
}  # fmt: skip
"""Local, tiered and active segments, the first offset, and the ranges."""


@pytest.mark.parametrize(
    ("local", "tiered", "active", "first", "found"), CASES.values(), ids=list(CASES)
)
def test_place_when_segments_are_known_then_every_offset_has_one_place(
    local: list[tuple[int, int]],
    tiered: list[tuple[int, int]],
    active: tuple[int, int] | None,
    first: int | None,
    found: list[tuple[int, int, RangeKind]],
) -> None:
    """Every offset from the first to the last is in one range, and a hole is a gap."""
    expected = PartitionMap("orders-0", tuple(MapRange(*one) for one in found))
    assert place("orders-0", local, tiered, active, first) == expected
