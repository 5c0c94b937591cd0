"""Settings of snapshots. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from rlmm.base.whole_numbers import require_whole_numbers


@dataclass(frozen=True, slots=True)
class SnapshotSettings:
    interval_ms: int = 300_000
    """
    Longest time that a change of a metadata partition stays out of its snapshot. Five minutes of
    events are replayed faster than a large snapshot is loaded, so more often buys nothing.
    """
    generations: int = 2
    """Snapshots that are kept of each metadata partition: one more than the newest, in case that
    one is damaged. A third costs disk and covers only two damaged ones at once."""
    free_bytes_min: int = 256 * 1024 * 1024
    """
    Room that a snapshot must leave on the disk; the embedded log writes to the same one, and a
    missing snapshot costs a replay where a full disk costs writes.
    """
    niceness: int = 0
    """
    How far the background thread stands behind others for the processor, 0 to 19. The default is
    not at all: where state is Python objects, that thread holds the interpreter's lock half of its
    time, and all others wait for a thread that holds it and is not let run.
    """

    def __post_init__(self) -> None:
        require_whole_numbers(
            "", self, generations=(2, 1_000), free_bytes_min=(0, 2**63 - 1), niceness=(0, 19)
        )
