"""Screen 4: the local copies are gone, and all records are read."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rlmm_demo.report.numbers import bytes_text
from rlmm_demo.report.story import Figure
from rlmm_demo.screens.maps import tier_map
from rlmm_demo.world.records import checksum_of

if TYPE_CHECKING:
    from rlmm_demo.screens import DemoFigures
    from rlmm_demo.screens.stage import DemoStage
    from rlmm_demo.world.world import DemoWorld


def show(stage: DemoStage, world: DemoWorld, told: DemoFigures) -> None:
    """By a stock consumer where there is a broker, from offset 0."""
    claim = f"The local data is gone; {world.reader} reads everything from offset 0, unchanged."
    with stage.screen("read cold", claim) as screen:
        before = world.local_bytes()
        screen.command(world.forget_local())
        after = world.local_bytes()
        stage.tier_maps.append(tier_map("local data gone", world, told))
        screen.tell(f"local: {bytes_text(before)} before, {bytes_text(after)} after")
        begun_s = time.monotonic()
        expected = told.expected(world)
        command, rows = world.read_all(expected.records)
        screen.command(command)
        seconds = time.monotonic() - begun_s
        screen.figure(Figure("records a second, start of the reader included", len(rows) / seconds))
        screen.check("less than half of the bytes are local still", holds=2 * after < before)
        found = checksum_of(rows)
        screen.check(
            f"{found.records:,} of {expected.records:,} records, checksum {found.text} is equal",
            holds=found.text == expected.text,
        )
