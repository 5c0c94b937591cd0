"""The answer of `rlmm check`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from rlmm.cli.common.answer_header import Notes, SourceHead
from rlmm.cli.queries.finding_answer import finding_answer
from rlmm.cli.queries.stuck_answer import stuck_findings
from rlmm.inspection.check_thresholds import judge

if TYPE_CHECKING:
    from rlmm.cli.common.query_run import QueryContext
    from rlmm.cli.printing.answer import CommandAnswer
    from rlmm.inspection.check_thresholds import Thresholds


class CheckHead(SourceHead):
    notes: Notes = UNSET


async def check_answer(
    looking: QueryContext, *, thresholds: Thresholds, copy_open_ms: int, delete_open_ms: int
) -> CommandAnswer:
    """Judge *thresholds*; stuck copies are looked for once the source is caught up."""
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
    head = CheckHead(standing.kind, standing.where, notes or UNSET)
    return finding_answer("check", findings, head)
