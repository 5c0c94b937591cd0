"""The planner of reads: from the state of partitions to the plan. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

from rlmm.errors import InvalidArgument
from spark_tiering.read_plan.document import digest_of
from spark_tiering.read_plan.partition_plan import plan_partition, without
from spark_tiering.read_plan.plan import FrozenPlan, partition_order
from spark_tiering.read_plan.question_document import asked_content
from spark_tiering.read_plan.tokens import DIGEST_BYTES, QUESTION_BYTES_MAX, PlanPosition, PlanToken

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rlmm.metadata.ids import TopicIdPartition
    from spark_tiering.read_plan.inputs import PartitionInput, StateOrigin
    from spark_tiering.read_plan.plan import FrozenPartition
    from spark_tiering.read_plan.question import Question, QuestionFacts


def make_plan(
    question: Question,
    inputs: Iterable[PartitionInput],
    origin: StateOrigin,
    facts: QuestionFacts,
    since: PlanToken | None = None,
) -> FrozenPlan:
    """Plan *question*, or, *since* a token, its newer segments; raises `InvalidArgument`."""
    if since is not None:
        _require_same_metadata(since, origin)
    before: Mapping[TopicIdPartition, PlanPosition] = {} if since is None else since.reached
    wanted = sorted(
        (one for one in inputs if question.wants(one.partition.topic, one.partition.partition)),
        key=lambda one: partition_order(one.partition),
    )
    each = (plan_partition(one, question, facts, before.get(one.partition)) for one in wanted)
    made = [one for one in each if one is not None]
    partitions = tuple(one for one, _ in made)
    places = {one.metadata_partition for one in partitions}
    known = {} if origin.positions is None else origin.positions
    plan = FrozenPlan(
        "",
        origin.kind,
        origin.cluster_id,
        origin.metadata_topic_id,
        origin.partition_count,
        {place: at for place, at in sorted(known.items()) if place in places},
        question,
        facts,
        partitions,
        (*origin.warnings, *_warnings(question, partitions, before)),
        "" if since is None else str(since),
    )
    reached = {one.partition: reach for one, reach in made}
    return replace(plan, token=str(_token_of(plan, reached)))


def _require_same_metadata(since: PlanToken, origin: StateOrigin) -> None:
    for what, told, found in (
        ("cluster", since.cluster_id, origin.cluster_id),
        ("metadata topic", since.metadata_topic_id, origin.metadata_topic_id),
    ):
        if told and found and told != found:
            msg = f"the token is of {what} {told}, and this is {found}"
            raise InvalidArgument(msg)


def _token_of(plan: FrozenPlan, reached: Mapping[TopicIdPartition, PlanPosition]) -> PlanToken:
    asked = asked_content(plan.question, plan.facts, plan.since)
    return PlanToken(
        plan.kind,
        plan.cluster_id,
        plan.metadata_topic_id,
        plan.partition_count,
        plan.positions,
        hashlib.sha256(asked).digest()[:DIGEST_BYTES],
        asked if len(asked) <= QUESTION_BYTES_MAX else None,
        digest_of(plan)[:DIGEST_BYTES],
        reached,
    )


# ------------------------------------------------------------------------------------ warnings


def _warnings(
    question: Question,
    partitions: Sequence[FrozenPartition],
    before: Mapping[TopicIdPartition, PlanPosition],
) -> Iterator[str]:
    ids: dict[tuple[str, int], list[str]] = {}
    for one in partitions:
        name = (one.partition.topic, one.partition.partition)
        ids.setdefault(name, []).append(str(one.partition.topic_id))
    for (topic, number), several in ids.items():
        if len(several) > 1:
            named = ", ".join(several)
            yield f"{topic}-{number}: {len(several)} topics had this name: {named}"
    known = {one.partition for one in partitions}
    heard_of = {*ids, *((one.topic, one.partition) for one in before)}
    yield from (
        f"{name}: asked for, and nothing is known of it" for name in question.unmet(heard_of)
    )
    for partition in sorted(before, key=partition_order):
        name = (partition.topic, partition.partition)
        if partition not in known and question.wants(*name):
            gone = f"{_label(partition)}: topic id {partition.topic_id} is not there any more"
            others = ids.get(name)
            yield gone + (f"; the topic was made anew: {', '.join(others)}" if others else "")
    for one in partitions:
        reached = before.get(one.partition)
        if reached is not None and reached.next_offset is not None:
            yield from _warnings_since(one, reached, reached.next_offset)


def _warnings_since(one: FrozenPartition, reached: PlanPosition, begun: int) -> Iterator[str]:
    label = _label(one.partition)
    if one.tier_first is None:
        yield f"{label}: the tier has nothing of it any more; it was planned up to {begun - 1}"
    still = sum(
        behind - first for gap in reached.gaps for first, behind in without(*gap, one.asked)
    )
    if still:
        yield f"{label}: {still} offsets that the plan before lacked are still not there"


def _label(partition: TopicIdPartition) -> str:
    return f"{partition.topic}-{partition.partition}"
