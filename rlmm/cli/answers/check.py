"""What `rlmm check` asks, and how it is answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.cli.answers.finding import finding_answer
from rlmm.cli.answers.stuck import stuck_findings
from rlmm.inspection.watchdog import judge

if TYPE_CHECKING:
    from rlmm.cli.answers.answer import Answer
    from rlmm.cli.asking import Looking
    from rlmm.inspection.watchdog import Thresholds


async def check_answer(
    looking: Looking, *, thresholds: Thresholds, copy_open_ms: int, delete_open_ms: int
) -> Answer:
    """What is beyond *thresholds*; what is stuck is looked for where all is answered from."""
    standing = await looking.source.standing()
    findings, notes = judge(standing, thresholds), list(standing.notes)
    if standing.is_caught_up:
        places = standing.places
        asked = [place.metadata_partition for place in standing.assigned]
        moment = await looking.moment(None if len(asked) == len(places) else asked)
        found, more = await stuck_findings(
            looking, topic=None, copy_open_ms=copy_open_ms, delete_open_ms=delete_open_ms,
            reads_history=False, moment=moment,
        )  # fmt: skip
        findings, notes = findings + found, notes + more
    head: dict[str, object] = {"source": str(standing.kind), "where": standing.where}
    if notes:
        head["notes"] = notes
    return finding_answer("check", findings, head)
