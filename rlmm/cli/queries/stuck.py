"""`rlmm stuck`: copies and deletes that were begun and never finished."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click
from msgspec import UNSET

from rlmm.cli.common.answer_header import (
    MomentHead,
    Notes,
    all_segments,
    moment_fields,
    partitions_in_place,
)
from rlmm.cli.common.option_kinds import switch, time_option
from rlmm.cli.common.query_options import TOPIC
from rlmm.cli.common.query_run import answer
from rlmm.cli.common.source_choice import past_query
from rlmm.cli.queries.finding_answer import finding_answer
from rlmm.errors import InvalidArgument, LogError, NotPermitted
from rlmm.inspection.stuck import StuckFacts, half_deleted, is_overdue, stuck_in
from rlmm.metadata.segment import SegmentState
from rlmm.metadata.verdicts import Rejected

if TYPE_CHECKING:
    from collections.abc import Collection

    from rlmm.cli.common.query_run import QueryContext
    from rlmm.cli.common.source_choice import SourceChoice
    from rlmm.cli.printing.answer import CommandAnswer
    from rlmm.findings.finding import Finding
    from rlmm.inspection.event_record import EventRecord
    from rlmm.inspection.moment import Moment
    from rlmm.metadata.ids import SegmentId, TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata


class StuckHead(MomentHead):
    notes: Notes = UNSET


async def stuck_answer(
    looking: QueryContext,
    *,
    topic: str | None,
    copy_open_ms: int,
    delete_open_ms: int,
    reads_history: bool,
) -> CommandAnswer:
    moment = await looking.moment()
    findings, notes = await stuck_findings(
        looking, topic=topic, copy_open_ms=copy_open_ms, delete_open_ms=delete_open_ms,
        reads_history=reads_history, moment=moment,
    )  # fmt: skip
    head = StuckHead(**moment_fields(looking, moment), notes=notes or UNSET)
    return finding_answer("stuck", findings, head)


async def stuck_findings(
    looking: QueryContext,
    *,
    topic: str | None,
    copy_open_ms: int,
    delete_open_ms: int,
    reads_history: bool,
    moment: Moment,
) -> tuple[list[Finding], list[str]]:
    """Return stuck copies and deletions at *moment*, and notes on what could not be asked."""
    notes: list[str] = []
    now_ms = looking.bound.time_ms or looking.now_ms
    known = StuckFacts(now_ms, copy_open_ms, delete_open_ms)
    summaries = [
        one
        for one in await partitions_in_place(moment, notes)
        if is_chosen(one.partition.topic, topic)
    ]
    if looking.is_now:
        topics = {one.partition.topic for one in summaries if one.segments}
        known = await _with_cluster(known, topics, looking, notes)
    findings: list[Finding] = []
    last_event_ms: dict[TopicIdPartition, int] = {}
    for summary in summaries:
        if not (summary.started or summary.being_deleted or summary.delete):
            continue
        segments = await all_segments(moment, summary.partition)
        times = [one.event_timestamp_ms for one in segments]
        last_event_ms[summary.partition] = max(times, default=-1)
        copies = [one for one in segments if _is_open_copy(one, known)]
        if copies and reads_history:
            refused = await _refused(looking, summary.metadata_partition, copies, notes)
            findings += stuck_in(segments, replace(known, refused=refused))
        else:
            findings += stuck_in(segments, known)
    findings += half_deleted(summaries, last_event_ms, known)
    return findings, list(dict.fromkeys(notes))


def is_chosen(topic: str, wanted: str | None) -> bool:
    """Return whether the regular expression *wanted* matches the whole name."""
    if wanted is None:
        return True
    try:
        return re.fullmatch(wanted, topic) is not None
    except re.error as error:
        msg = f"--topic {wanted!r} is no regular expression: {error}"
        raise InvalidArgument(msg) from error


def _is_open_copy(segment: SegmentMetadata, known: StuckFacts) -> bool:
    is_copy = segment.state is SegmentState.COPY_SEGMENT_STARTED
    return is_copy and is_overdue(segment, known)


async def _with_cluster(
    known: StuckFacts, tiered: Collection[str], looking: QueryContext, notes: list[str]
) -> StuckFacts:
    cluster = looking.source.cluster
    if cluster is None:
        return known
    try:
        topics, brokers = await cluster.topics(), await cluster.brokers()
        absent = set(tiered) - set(topics)
        rights = (await cluster.rights(sorted(absent))).on_topic if absent else {}
    except LogError as error:
        notes.append(f"the cluster was not asked: {error}")
        return known
    untold = frozenset(name for name in absent if rights.get(name) == frozenset())
    if untold:
        notes.append(
            f"whether {len(untold)} topics are still there is not known: these credentials lack "
            "the right to DESCRIBE them"
        )
    return replace(known, topics=topics, brokers=frozenset(brokers), untold=untold)


async def _refused(
    looking: QueryContext, place: int, copies: Collection[SegmentMetadata], notes: list[str]
) -> dict[SegmentId, list[EventRecord]]:
    """Return the events of *copies* that were refused, as far as the log may be read."""
    from rlmm.inspection.replay import PartitionReplay  # noqa: PLC0415  # not for --help

    ids = {one.id for one in copies}
    found: dict[SegmentId, list[EventRecord]] = defaultdict(list)
    replay = PartitionReplay(
        looking.source.log, place, looking.bound_of([place]), timeout_s=looking.timeout_s
    )
    try:
        async for chunk in replay.chunks():
            if any(isinstance(one.verdict, Rejected) for one in chunk.entries.values()):
                for happened in chunk.happened():
                    event = happened.event
                    about = getattr(event, "id", None)
                    if about in ids and isinstance(happened.verdict, Rejected):
                        found[about].append(happened)
    except (LogError, NotPermitted) as error:
        notes.append(f"refused events are not known, the log was not read: {error}")
    return found


@click.command("stuck")
@past_query
@TOPIC
@time_option("--copy-older-than", "copy_open_ms", "1h", "A copy that is open for longer is stuck.")
@time_option(
    "--delete-older-than",
    "delete_open_ms",
    "1h",
    "A deletion that is open for longer is stuck, of a segment or of a topic.",
)
@switch(
    "--no-history", "Do not read the log for refused events: quicker, with less about the cause."
)  # fmt: skip
def stuck(asked: SourceChoice, *, no_history: bool, **flags: Any) -> None:
    """
    Show copies and deletions that are open for too long.

    Each with its probable cause and the way out, and topics whose deletion stopped half-way. With
    --bootstrap-server beside the source it is also said whether the broker that is at it is there
    and leads. Nothing is changed. Exit code 1 when something is stuck.

    \b
    Examples:
      rlmm stuck
      rlmm stuck --copy-older-than 15m --topic 'orders.*'
      rlmm stuck --bootstrap-server kafka:9092 --command-config client.properties
      rlmm stuck --at -1d --output json
    """
    answer(asked, stuck_answer, reads_history=not no_history, **flags)
