"""`rlmm status`: how far the state is, and whether it is answered from."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import click

from rlmm.base.time_text import duration_text
from rlmm.cli.common.answer_header import note_lines
from rlmm.cli.common.option_kinds import switch, time_option
from rlmm.cli.common.query_run import answer
from rlmm.cli.common.source_choice import query
from rlmm.cli.printing.answer import Column, CommandAnswer, ValueFormat
from rlmm.cli.printing.cells import size_text, states_text
from rlmm.errors import NotReady
from rlmm.inspection.source_status import NOT_ASSIGNED
from rlmm.views.source_status import (
    PlaceStatusView,
    StatusTotals,
    place_standing_view,
    standing_totals,
    standing_view,
)
from rlmm.views.values import ViewObject, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlmm.cli.common.query_run import QueryContext
    from rlmm.cli.common.source_choice import SourceChoice
    from rlmm.inspection.source_status import SourceStatus
    from rlmm.views.values import View

OPEN: Final = "open"
_SHOWN_MAX: Final = 10
LOOK_S: Final = 0.25


class StatusFoot(ViewObject):
    totals: StatusTotals


COLUMNS = (
    Column("metadata_partition", "PART", ValueFormat.NUMBER),
    Column("state", "STATE"),
    Column("position", "POSITION", ValueFormat.NUMBER),
    Column("target", "TARGET", ValueFormat.NUMBER),
    Column("lag_records", "LAG", ValueFormat.NUMBER),
    Column("lag_s", "BEHIND", ValueFormat.DURATION),
    Column("rejected_total", "REJECTED", ValueFormat.NUMBER),
    Column("undecodable_total", "POISON", ValueFormat.NUMBER),
    Column("snapshot_age_s", "SAVED", ValueFormat.DURATION),
    Column("why", "WHY", is_extra=True),
    Column("log_start", "LOG START", ValueFormat.NUMBER, is_extra=True),
    Column("log_end", "LOG END", ValueFormat.NUMBER, is_extra=True),
    Column("user_partitions", "USER PARTITIONS", ValueFormat.NUMBER, is_extra=True),
    Column("segments.COPY_SEGMENT_STARTED", "STARTED", ValueFormat.NUMBER, is_extra=True),
    Column("segments.COPY_SEGMENT_FINISHED", "FINISHED", ValueFormat.NUMBER, is_extra=True),
    Column("segments.DELETE_SEGMENT_STARTED", "DELETING", ValueFormat.NUMBER, is_extra=True),
    Column("size_bytes", "SIZE", ValueFormat.SIZE, is_extra=True),
    Column("is_history_complete", "WHOLE HISTORY", is_extra=True),
    Column("detail", "DETAIL", is_extra=True),
)


async def status_answer(looking: QueryContext, *, is_waiting: bool = False) -> CommandAnswer:
    """Show the status; with *is_waiting* when caught up, or after the time of `--wait`."""
    standing = await (_caught_up(looking) if is_waiting else looking.source.standing())
    items = [place_standing_view(place) for place in standing.places]
    return CommandAnswer(
        "status",
        COLUMNS,
        items,
        standing_view(standing),
        foot=lambda: StatusFoot(standing_totals(standing.places)),
        summary=lambda document: _summary({**document, "items": plain(items)}),
        exit_code=0 if standing.is_caught_up else NotReady.exit_code,
    )


class WatchedStatus:
    """Answers the status repeatedly, with how fast each metadata partition is read meanwhile."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[int, int]] = {}

    async def __call__(self, looking: QueryContext) -> CommandAnswer:
        answer = await status_answer(looking)
        assert isinstance(answer.items, list), "a list of places"
        for item in answer.items:
            self._add_rate(item, looking.now_ms)
        columns = (
            *COLUMNS[:6],
            Column("records_per_s", "RECORDS/S", ValueFormat.NUMBER),
            *COLUMNS[6:],
        )
        return replace(answer, columns=columns)

    def _add_rate(self, item: PlaceStatusView, now_ms: int) -> None:
        place, position = item.metadata_partition, item.position
        last, item.records_per_s = self._last.get(place), None
        if position is not None:
            if last is not None and now_ms > last[0]:
                rate = (position - last[1]) * 1_000 / (now_ms - last[0])
                item.records_per_s = max(0, round(rate))
            self._last[place] = now_ms, position


async def _caught_up(looking: QueryContext) -> SourceStatus:
    import asyncio  # noqa: PLC0415  # not for --help

    loop = asyncio.get_running_loop()
    end_s = loop.time() + looking.wait_s
    standing = await looking.source.standing()
    while not standing.is_caught_up and (left_s := end_s - loop.time()) > 0:
        await asyncio.sleep(min(LOOK_S, left_s))
        standing = await looking.source.standing()
    return standing


def _summary(document: View) -> Iterator[str]:
    totals = document["totals"]
    yield f"{document['source']} {document['where']}: {_identity(document)}"
    if "engine" in document:
        yield f"engine {document['engine']} {document['engine_version']}"
    if not totals["metadata_partitions"]:
        return
    yield (
        f"{totals['open']} of {totals['metadata_partitions']} metadata partitions are answered "
        f"from{_lag(totals)}"
    )
    yield from _not_open(document)
    yield from _held(totals)
    for what in ("rejected", "undecodable"):
        counts = totals[what]
        if counts:
            said = ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items()))
            yield f"{what} records: {said}; see `rlmm events --verdict {what}`"
    yield from note_lines(document)


def _not_open(document: View) -> Iterator[str]:
    items = document["items"]
    those = [item for item in items if item["state"] not in {OPEN, NOT_ASSIGNED}]
    for item in those[:_SHOWN_MAX]:
        why = f" ({item['why']})" if item["why"] not in {None, item["state"]} else ""
        detail = f": {item['detail']}" if item["detail"] else ""
        yield f"  metadata partition {item['metadata_partition']} is {item['state']}{why}{detail}"
    if len(those) > _SHOWN_MAX:
        yield f"  and {len(those) - _SHOWN_MAX} more"


def _identity(document: View) -> str:
    if document["cluster_id"] is None:
        return "whose metadata it is, is not known yet"
    return (
        f"cluster {document['cluster_id']}, topic id {document['topic_id']}, "
        f"{document['partition_count']} partitions"
    )


def _lag(totals: View) -> str:
    lag, lag_s = totals["lag_records"], totals["lag_s"]
    if not isinstance(lag, int):
        return "; how far the log is ahead is not known"
    if not lag:
        return "; nothing is left to apply"
    age = f", {duration_text(lag_s)} behind" if isinstance(lag_s, (int, float)) else ""
    return f"; {lag:,} records are left to apply{age}"


def _held(totals: View) -> Iterator[str]:
    segments, size, partitions = (
        totals[key] for key in ("segments", "size_bytes", "user_partitions")
    )
    if not isinstance(segments, dict) or not isinstance(size, int):
        return
    states = states_text(segments)
    line = f"{sum(segments.values()):,} segments, {size_text(size)}"
    if isinstance(partitions, int):
        line += f", of {partitions:,} user partitions"
    yield f"{line}: {states}" if states else line


@click.command("status")
@query
@switch("--watch", "Again and again, until Ctrl-C.")
@time_option("--interval", "interval_ms", "2s", "Between two looks of --watch.", is_positive=True)
def status(asked: SourceChoice, *, watch: bool, interval_ms: int) -> None:
    """
    Show how each metadata partition stands, and sums.

    LAG counts the records that are not applied yet, BEHIND says how old the last applied one is
    where there are others behind it, SAVED how old the newest snapshot is. With --watch a terminal
    shows a view that is drawn anew; elsewhere each look is one line of JSON. Exit code 4 when not
    everything is answered from; --wait waits for it.

    \b
    Examples:
      rlmm status
      rlmm status --sidecar rlmm.example:7404 --token-file token --ca-file ca.pem
      rlmm status --bootstrap-server kafka:9092 --wait 30s --output json
      rlmm status --log-dirs copies/ --wide
      rlmm status --watch --interval 5s
    """
    if watch:
        from rlmm.cli.common.watch_mode import watch as keep_looking  # noqa: PLC0415

        keep_looking(asked, WatchedStatus(), interval_ms / 1_000)
    else:
        answer(asked, status_answer, is_waiting=True)
