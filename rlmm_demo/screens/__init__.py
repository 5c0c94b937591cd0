"""
The nine screens of the demonstration, a module each: `show(stage, world, told)` tells one. What one
found out and another needs is in `told`.

Nothing imports it.

- `cold_read`: Screen 4.
- `copies`: Screen 3.
- `disaster`: Screen 8.
- `explain`: Screen 7.
- `kill`: Screen 6.
- `maps`: Where the records of the topic lie, for the maps of the report.
- `produce`: Screen 2.
- `refusal`: Screen 5.
- `scoreboard`: Screen 9.
- `stage`: How the demonstration is told, screen by screen, and what of it goes into the report.
- `start`: Screen 1.
- `watching`: How the start of a service goes, looked at from outside.

Nothing imports it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rlmm_demo.world.records import Checksum, checksum_of

if TYPE_CHECKING:
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm_demo.screens.watching import DemoStart
    from rlmm_demo.world.world import DemoWorld


@dataclass(slots=True)
class DemoFigures:
    """What the screens so far have found out."""

    versions: dict[str, str] = field(default_factory=dict)
    rows: list[tuple[int, int, bytes]] = field(default_factory=list)
    """Every committed record: partition, offset, value."""
    began_ms: int = 0
    """When there were no copies yet."""
    ends: dict[int, int] = field(default_factory=dict)
    """Partition -> the offset behind its last record."""
    archive: TopicIdPartition | None = None
    """Another topic's partition, whose long history is beside that of the first one."""
    full: DemoStart | None = None
    """The start that read everything."""
    answers: dict[str, Any] = field(default_factory=dict)

    def expected(self, world: DemoWorld) -> Checksum:
        """Of what the reader of that world has to be given from offset 0 on."""
        if world.has_broker:
            return checksum_of(self.rows)
        # Who reads the tier alone is not given the active segments.
        client = world.service.client
        lasts = [client.highest_offset(one, 0) for one in world.partitions()]
        ends = [-1 if last is None else last for last in lasts]
        return checksum_of(row for row in self.rows if row[1] <= ends[row[0]])
