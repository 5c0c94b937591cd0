"""Two pictures that stand alone, for pages that hold nothing but images. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm_demo.report.replay_chart import replay_chart
from rlmm_demo.report.svg import Frame, standalone
from rlmm_demo.report.tier_map import tier_map

if TYPE_CHECKING:
    from rlmm_demo.report.story import ReplayCurve, TierMap


def tier_picture(maps: tuple[TierMap, ...]) -> str:
    """Where the records lay, as a file of its own."""
    frame = Frame("tier-map")
    return standalone(tier_map(maps, frame), frame)


def replay_picture(curves: tuple[ReplayCurve, ...]) -> str:
    """How fast it started again, as a file of its own."""
    frame = Frame("replay")
    return standalone(replay_chart(curves, frame), frame)
