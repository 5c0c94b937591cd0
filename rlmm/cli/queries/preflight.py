"""`rlmm preflight`: what depends on the tier, before a move or a deletion."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click
from msgspec import UNSET, UnsetType

from rlmm.cli.common.answer_header import (
    MomentHead,
    Notes,
    all_segments,
    moment_fields,
    partitions_in_place,
)
from rlmm.cli.common.query_run import answer
from rlmm.cli.common.source_choice import past_query, query
from rlmm.cli.queries.doctor import require_brokers, required_cluster
from rlmm.cli.queries.finding_answer import finding_answer
from rlmm.errors import InvalidArgument, LogError, NotReady
from rlmm.inspection.lookup_trace import look_up
from rlmm.inspection.preflight import (
    before_deletion,
    before_reassignment,
    targets_without_tier,
)
from rlmm.inspection.source_status import NOT_ASSIGNED
from rlmm.metadata.ids import TopicIdPartition

if TYPE_CHECKING:
    from collections.abc import Collection

    from rlmm.cli.common.query_run import QueryContext
    from rlmm.cli.common.source_choice import SourceChoice
    from rlmm.cli.printing.answer import CommandAnswer
    from rlmm.inspection.cluster_facts import ClusterFacts
    from rlmm.inspection.moment import Moment
    from rlmm.metadata.shard import Shard

_ENABLED = "remote.log.storage.system.enable"


class PreflightHead(MomentHead):
    topic: str
    partitions: list[int]
    to_brokers: list[int] | UnsetType = UNSET
    notes: Notes = UNSET


async def reassign_answer(
    looking: QueryContext, *, topic: str, partitions: str | None, to_brokers: str | None
) -> CommandAnswer:
    cluster = required_cluster(looking, "preflight reassign")
    facts = (await cluster.topics([topic])).get(topic)
    if facts is None:
        msg = f"the cluster has no topic {topic}"
        raise InvalidArgument(msg)
    numbers = _numbers("--partitions", partitions) or sorted(facts.partitions)
    absent = set(numbers) - set(facts.partitions)
    if absent:
        msg = f"{topic} has no partition {min(absent)}: it has {len(facts.partitions)}, from 0 on"
        raise InvalidArgument(msg)
    chosen = [TopicIdPartition(facts.topic_id, topic, number) for number in numbers]
    targets = _numbers("--to-brokers", to_brokers)
    findings = targets_without_tier(await _enabled(cluster, targets), targets)
    moment, ends = await _moment_with(looking, chosen), await cluster.offsets(chosen)
    notes: list[str] = []
    known = {one.partition for one in await partitions_in_place(moment, notes)}
    for one in chosen:
        epoch, end = facts.partitions[one.partition].leader_epoch, ends.get(one)
        if one not in known:
            findings += before_reassignment(one, [], end, epoch)
            continue
        shard = await moment.state(one)
        is_found = partial(_is_found_by_stock, shard, one)
        findings += before_reassignment(one, shard.segments(one), end, epoch, is_found)
    head = PreflightHead(
        **moment_fields(looking, moment),
        topic=topic,
        partitions=numbers,
        to_brokers=targets,
        notes=notes or UNSET,
    )
    return finding_answer("preflight", findings, head)


async def _moment_with(looking: QueryContext, chosen: Collection[TopicIdPartition]) -> Moment:
    """Return the state of all; of a service with an assignment that of the *chosen* partitions."""
    try:
        return await looking.whole()
    except NotReady as error:
        if error.reason != NOT_ASSIGNED:
            raise
    return await looking.whole({await looking.place_of(one) for one in chosen})


async def delete_answer(looking: QueryContext, *, topic: str) -> CommandAnswer:
    """Judge a deletion for every topic id that has the name."""
    notes: list[str] = []
    moment = await looking.whole()  # topics that had the name before may be anywhere
    those = [
        one.partition
        for one in await partitions_in_place(moment, notes)
        if one.partition.topic == topic
    ]
    ends = {}
    if looking.source.cluster is not None and looking.is_now:
        try:
            ends = dict(await looking.source.cluster.offsets(those))
        except LogError as error:
            notes.append(f"what brokers have as well is not known: {error}")
    parts = [(await all_segments(moment, one), ends.get(one)) for one in those]
    head = PreflightHead(
        **moment_fields(looking, moment),
        topic=topic,
        partitions=[one.partition for one in those],
        notes=notes or UNSET,
    )
    return finding_answer("preflight", before_deletion(topic, parts), head)


def _is_found_by_stock(shard: Shard, partition: TopicIdPartition, epoch: int, offset: int) -> bool:
    return look_up(shard, partition, epoch, offset).stock is not None


async def _enabled(cluster: ClusterFacts, brokers: Collection[int]) -> dict[int, bool | None]:
    """Return which of *brokers* tier; None where a broker does not tell."""
    found: dict[int, bool | None] = {}
    for broker in brokers:
        try:
            settings = await cluster.broker_settings(broker)
        except LogError:
            settings = None
        value = None if settings is None or _ENABLED not in settings else settings[_ENABLED].value
        found[broker] = None if value is None else value == "true"
    return found


def _numbers(flag: str, text: str | None) -> list[int]:
    try:
        return [] if text is None else sorted({int(one) for one in text.split(",")})
    except ValueError as error:
        msg = f"{flag} {text!r} is no list of numbers: 0,1,2 is one"
        raise InvalidArgument(msg) from error


@click.group("preflight")
def preflight() -> None:
    """Show what depends on the tier, before a move or a deletion."""


@preflight.command("reassign")
@query
@click.argument("topic")
@click.option("--partitions", metavar="0,1,2", help="These alone; else all of the topic.")
@click.option("--to-brokers", metavar="1,2,3", help="Brokers that are to get replicas.")
def reassign(asked: SourceChoice, **flags: Any) -> None:
    """
    Say whether new replicas of TOPIC will come up.

    A replica that begins empty needs, from the segment that ends right before the leader's local
    start, the epochs and producers of what it does not copy. Asks the cluster, so
    --bootstrap-server is needed. Exit code 1 when a replica would be stuck.

    \b
    Examples:
      rlmm preflight reassign orders --bootstrap-server kafka:9092
      rlmm preflight reassign orders --partitions 3 --to-brokers 4,5 --bootstrap-server kafka:9092
    """
    require_brokers(asked, "preflight reassign")
    answer(asked, reassign_answer, **flags)


@preflight.command("delete")
@past_query
@click.argument("topic")
def delete(asked: SourceChoice, topic: str) -> None:
    """
    Say what goes with TOPIC, and what a deletion would leave behind.

    With --bootstrap-server beside the source it is told apart what brokers have as well. Deletes
    nothing. Exit code 1 when there is something to think about.

    \b
    Examples:
      rlmm preflight delete orders
      rlmm preflight delete orders --bootstrap-server kafka:9092
    """
    answer(asked, delete_answer, topic=topic)
