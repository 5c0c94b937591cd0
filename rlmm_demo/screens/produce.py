"""Screen 2: records are produced."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rlmm.base.clock import SYSTEM_CLOCK
from rlmm_demo.report.numbers import bytes_text
from rlmm_demo.report.story import Figure
from rlmm_demo.screens.maps import local_ranges, tier_map
from rlmm_demo.world.records import CODECS, PARTITIONS, checksum_of, committed_rows, portions

if TYPE_CHECKING:
    from rlmm_demo.screens import DemoFigures
    from rlmm_demo.screens.stage import DemoStage
    from rlmm_demo.world.world import DemoWorld


def show(stage: DemoStage, world: DemoWorld, told: DemoFigures) -> None:
    """200,000 of them, in three codecs, one transaction of which is aborted."""
    sent = portions()
    total = sum(len(one.values) for one in sent)
    claim = f"{total:,} records in {', '.join(CODECS)}, one transaction of them aborted; logs roll."
    with stage.screen("produce", claim) as screen:
        (screen.command if world.has_broker else screen.tell)(world.producer)
        told.began_ms = SYSTEM_CLOCK.now_ms()
        begun_s = time.monotonic()
        offsets = world.produce(sent)
        seconds = time.monotonic() - begun_s
        told.rows = list(committed_rows(sent, offsets))
        for portion, placed in zip(sent, offsets, strict=True):
            # A marker stands behind a transaction.
            behind = placed[-1] + 1 + portion.is_aborted
            told.ends[portion.partition] = max(told.ends.get(portion.partition, 0), behind)
        screen.figure(Figure("records a second", total / seconds, ""))
        segments = sum(map(len, local_ranges(world, told.ends).values()))
        screen.tell(
            f"{segments} segments in {PARTITIONS} partitions, {bytes_text(world.local_bytes())}"
        )
        made = checksum_of(told.rows)
        screen.tell(f"checksum of the {made.records:,} committed records: {made.text}")
        stage.tier_maps.append(tier_map("before", world, told))
        screen.check(
            f"each partition has rolled, {segments - PARTITIONS} segments are closed",
            holds=segments >= 2 * PARTITIONS,
        )
