"""`rlmm verify`: whether what the tier is said to hold makes sense."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click
from msgspec import UNSET

from rlmm.cli.common.answer_header import MomentHead, Notes, moment_fields
from rlmm.cli.common.query_options import STRICT, TOPIC
from rlmm.cli.common.query_run import answer
from rlmm.cli.common.source_choice import past_query
from rlmm.cli.queries.finding_answer import finding_answer
from rlmm.cli.queries.stuck import is_chosen
from rlmm.errors import LogError, NotPermitted, UnknownPartition
from rlmm.inspection.late_finishes import CopyTimes
from rlmm.inspection.verify import (
    NOWHERE,
    OVERLAP,
    PartitionStart,
    broken_rules,
    verify_heads,
    verify_partition,
    verify_places,
)
from rlmm.metadata.assignment import place_of
from rlmm.metadata.verdicts import RejectReason
from rlmm.retention.segment_lineage import finished_of, overlaps_in

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from rlmm.cli.common.query_run import QueryContext
    from rlmm.cli.common.source_choice import SourceChoice
    from rlmm.cli.printing.answer import CommandAnswer
    from rlmm.findings.finding import Finding
    from rlmm.inspection.cluster_facts import PartitionOffsets
    from rlmm.inspection.event_record import Wanted
    from rlmm.inspection.late_finishes import Pair
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.shard import Shard

_SOUGHT_MAX = 100


class VerifyHead(MomentHead):
    user_partitions: int
    segments: int
    is_compared_with_cluster: bool
    notes: Notes = UNSET


async def verify_answer(
    looking: QueryContext, *, topic: str | None, is_strict: bool, reads_history: bool = True
) -> CommandAnswer:
    findings, head = await verify_findings(looking, topic=topic, reads_history=reads_history)
    return finding_answer("verify", findings, head, is_strict=is_strict)


async def verify_findings(
    looking: QueryContext, *, topic: str | None, reads_history: bool = True
) -> tuple[list[Finding], VerifyHead]:
    """Return findings and head. *reads_history* reads the log of places with overlapping copies."""
    notes: list[str] = []
    moment = await looking.moment()
    summaries = [
        one for one in await moment.user_partitions() if is_chosen(one.partition.topic, topic)
    ]
    count = moment.identity.partition_count
    places = {one.partition: place_of(one.partition, count) for one in summaries}
    findings = verify_places(summaries, places)
    if topic is None:
        findings += verify_heads(await _heads(looking))
    offsets = await _offsets(looking, list(places), notes)
    pairs: dict[int, list[Pair]] = defaultdict(list)
    found: dict[TopicIdPartition, list[Finding]] = {}
    judged: Shard | None = None
    for summary in sorted(summaries, key=lambda one: one.metadata_partition):
        partition, place = summary.partition, summary.metadata_partition
        if places[partition] != place:
            continue  # that is the finding: no look-up reaches these events
        shard = await moment.state(partition)
        found[partition] = verify_partition(shard, partition, offsets.get(partition))
        if any(one.kind is OVERLAP for one in found[partition]):
            pairs[place] += overlaps_in(finished_of(shard.segments(partition)))
        if shard is not judged:  # one shard may hold thousands of user partitions
            findings += broken_rules(shard)
            judged = shard
    await _look_again(looking, found, offsets, notes)
    for place, those in pairs.items() if reads_history else ():
        findings += await _late(looking, place, those, notes)
    findings += [one for partition in places for one in found.get(partition, ())]
    head = VerifyHead(
        **moment_fields(looking, moment),
        user_partitions=len(summaries),
        segments=sum(one.segments for one in summaries),
        is_compared_with_cluster=bool(offsets),
        notes=notes or UNSET,
    )
    return findings, head


async def _look_again(
    looking: QueryContext,
    found: dict[TopicIdPartition, list[Finding]],
    offsets: Mapping[TopicIdPartition, PartitionOffsets],
    notes: list[str],
) -> None:
    """
    Judge again the partitions whose offsets seem to be nowhere, because the log moves meanwhile. A
    segment that left local disks before the first look is copied in a second one of the metadata,
    and an offset that has expired is below the log start in a second one of the log.
    """
    doubtful = [one for one, those in found.items() if any(each.kind is NOWHERE for each in those)]
    if not doubtful:
        return
    moment = await looking.moment({await looking.place_of(one) for one in doubtful})
    ends = await _offsets(looking, doubtful, notes)
    for one in doubtful:
        if one not in ends:
            continue
        both = replace(ends[one], earliest_local=offsets[one].earliest_local)
        try:
            found[one] = verify_partition(await moment.state(one), one, both)
        except UnknownPartition:
            found[one] = []  # deleted meanwhile


async def _late(
    looking: QueryContext, place: int, pairs: Sequence[Pair], notes: list[str]
) -> list[Finding]:
    """Report which of *pairs* a former leader finished late, as far as the log may be read."""
    from rlmm.inspection.replay import PartitionReplay  # noqa: PLC0415  # not for --help

    copies = CopyTimes({segment.id for one, other, _ in pairs for segment in (one, other)})
    wanted = _mentions({one.partition for one in copies.ids})
    replay = PartitionReplay(
        looking.source.log, place, looking.bound_of([place]), timeout_s=looking.timeout_s
    )
    try:
        async for chunk in replay.chunks():
            for happened in chunk.happened(wanted):
                copies.tell(happened)
    except (LogError, NotPermitted) as error:
        notes.append(f"late finishes are not known, the log was not read: {error}")
    return copies.late(pairs)


def _mentions(partitions: Collection[TopicIdPartition]) -> Wanted | None:
    """Return a test whether a record is about one of *partitions*; None, for all, if too many."""
    if len(partitions) > _SOUGHT_MAX:
        return None
    parts = [bytes(one.topic_id) + one.partition.to_bytes(4) for one in partitions]
    pattern = re.compile(b"|".join(map(re.escape, parts)), re.DOTALL)
    return lambda value: pattern.search(value) is not None


async def _heads(looking: QueryContext) -> list[PartitionStart]:
    standing = await looking.source.standing()
    return [
        PartitionStart(
            place.metadata_partition,
            place.log_start,
            place.rejected.get(RejectReason.UNKNOWN_SEGMENT, 0)
            if place.without_base is None
            else place.without_base,
        )
        for place in standing.places
        if place.log_start is not None
    ]


async def _offsets(
    looking: QueryContext, partitions: list[TopicIdPartition], notes: list[str]
) -> Mapping[TopicIdPartition, PartitionOffsets]:
    if looking.source.cluster is None or not looking.is_now:
        return {}
    try:
        return await looking.source.cluster.offsets(partitions)
    except LogError as error:
        notes.append(f"the ends of the logs are not known: {error}")
        return {}


@click.command("verify")
@past_query
@TOPIC
@STRICT
@click.option(
    "--no-history", is_flag=True,
    help="Do not read the log where copies overlap: quicker, and late finishes are not reported.",
)  # fmt: skip
def verify(asked: SourceChoice, *, no_history: bool, **flags: Any) -> None:
    """
    Look for holes, overlaps and segments that no look-up finds.

    Goes by the metadata alone: each leader epoch must be covered without a gap from the first
    segment to the last. With --bootstrap-server beside the source, what is tiered is also held
    against the ends of each log: what is neither tiered nor local is named. Objects are looked at
    by `rlmm tier verify`. Nothing is changed. Exit code 1 when something was found that is more
    than a note; every code is explained in docs/findings.md.

    \b
    Examples:
      rlmm verify
      rlmm verify --topic 'orders.*' --bootstrap-server kafka:9092
      rlmm verify --log-dirs /copies/broker-1 --log-dirs /copies/broker-2
      rlmm verify --at 2026-01-31T14:05:00Z --output json
    """
    answer(asked, verify_answer, reads_history=not no_history, **flags)
