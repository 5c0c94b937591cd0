"""`rlmm check`: thresholds, judged once, for cron, Nagios and probes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec import UNSET

from rlmm.cli.common.answer_header import Notes, SourceHead
from rlmm.cli.common.option_kinds import count_option, switch, time_option
from rlmm.cli.common.query_run import answer
from rlmm.cli.common.source_choice import query
from rlmm.cli.queries.finding_answer import finding_answer
from rlmm.cli.queries.stuck import stuck_findings
from rlmm.inspection.check_thresholds import Thresholds, judge

if TYPE_CHECKING:
    from rlmm.cli.common.query_run import QueryContext
    from rlmm.cli.common.source_choice import SourceChoice
    from rlmm.cli.printing.answer import CommandAnswer


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


@click.command("check")
@query
@time_option(
    "--max-lag", "lag_ms", "5m", "How old the last applied event may be where there are later ones."
)
@count_option("--max-lag-records", "lag_records", None, "How many records may be unread.")
@time_option("--max-copy-age", "copy_open_ms", "6h", "How long a copy may be open.")
@time_option("--max-delete-age", "delete_open_ms", "24h", "How long a deletion may be open.")
@count_option(
    "--max-rejected", "rejected", None, "How many refused events of a metadata partition are fine."
)
@count_option("--max-undecodable", "undecodable", 0, "How many unreadable records of one are.")
@time_option("--max-snapshot-age", "snapshot_ms", None, "How old its last snapshot may be.")
@switch("--whole-history", "A metadata topic whose first records are gone is a finding.")
def check(
    asked: SourceChoice, lag_ms: int, lag_records: int | None, rejected: int | None,
    undecodable: int, snapshot_ms: int | None, whole_history: bool, **open_ms: int,
) -> None:  # fmt: skip
    """
    Judge thresholds once: exit code 0 when all is well, 1 when not.

    One line for each finding on a terminal, and no line at all but the last where all is well. What
    cannot be asked is exit code 3. Alerts for Prometheus that say the same are in deploy/.

    \b
    Examples:
      rlmm check
      rlmm check --max-lag 1m --max-copy-age 2h --output json
      rlmm check --sidecar rlmm.example:7404 --token-file token --max-snapshot-age 1d
    """
    snapshot_s = None if snapshot_ms is None else snapshot_ms / 1_000
    thresholds = Thresholds(
        lag_ms / 1_000, lag_records, rejected, undecodable, snapshot_s, whole_history
    )
    answer(asked, check_answer, thresholds=thresholds, **open_ms)
