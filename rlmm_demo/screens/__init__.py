"""
The nine screens: `show_...(stage, world, facts)`; `facts` holds values for later screens.

Nothing imports it.

- `disaster`: Screen 8, the metadata topic is lost and rebuilt.
- `maps`: The place of each offset of the topic, for the report.
- `records`: Screens 2 to 4, records are produced, copied and read cold.
- `scoreboard`: Screen 9, the figures of the run.
- `service_answers`: Screens 1 and 5 to 7, a start, a refusal, a kill and explanations.
- `stage`: The stage that shows each screen, and keeps its results for the report.
- `watching`: The start of a service, seen from outside.
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
    """The values that one screen passes to a later one."""

    rows: list[tuple[int, int, bytes]] = field(default_factory=list)
    """Partition, offset and value of every committed record."""
    began_ms: int = 0
    ends: dict[int, int] = field(default_factory=dict)
    """Partition -> the offset behind its last record."""
    archive: TopicIdPartition | None = None
    """A partition of another topic whose long history lies in the first one's metadata."""
    full: DemoStart | None = None
    answers: dict[str, Any] = field(default_factory=dict)

    def expected(self, world: DemoWorld) -> Checksum:
        """Return the checksum of the records that the world's reader gets from offset 0."""
        if world.has_broker:
            return checksum_of(self.rows)
        # Who reads the tier alone is not given the active segments.
        client = world.service.client
        lasts = [client.highest_offset(one, 0) for one in world.partitions()]
        ends = [-1 if last is None else last for last in lasts]
        return checksum_of(row for row in self.rows if row[1] <= ends[row[0]])
