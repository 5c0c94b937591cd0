"""
The nine screens of the demonstration, a module each: `show(stage, world, told)` tells one. What one
found out and another needs is in `told`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rlmm.cli.demo.records import Checksum, checksum_of

if TYPE_CHECKING:
    from rlmm.cli.demo.watching import Start
    from rlmm.cli.demo.world import World
    from rlmm.metadata.ids import TopicIdPartition


@dataclass(slots=True)
class Told:
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
    full: Start | None = None
    """The start that read everything."""
    answers: dict[str, Any] = field(default_factory=dict)

    def expected(self, world: World) -> Checksum:
        """Of what the reader of that world has to be given from offset 0 on."""
        if world.has_broker:
            return checksum_of(self.rows)
        # Who reads the tier alone is not given the active segments.
        client = world.service.client
        lasts = [client.highest_offset(one, 0) for one in world.partitions()]
        ends = [-1 if last is None else last for last in lasts]
        return checksum_of(row for row in self.rows if row[1] <= ends[row[0]])
