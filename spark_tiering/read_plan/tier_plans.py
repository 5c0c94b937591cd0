"""Plans of a tier that is open, of the past or of its manifests: the shell around `planner`."""

from __future__ import annotations

import hashlib
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Protocol

from rlmm.errors import DataLost, InvalidArgument, LogError
from rlmm.inspection.moment import ReplayEnd
from rlmm.retention.retention import number
from spark_tiering.read_plan.inputs import PartitionInput, StateOrigin, inputs_of_segments
from spark_tiering.read_plan.moments import moment_at, state_of
from spark_tiering.read_plan.plan import PlanSourceKind
from spark_tiering.read_plan.plan_check import PlannedSegmentFate, fate_in_metadata
from spark_tiering.read_plan.planner import make_plan
from spark_tiering.read_plan.question import QuestionFacts
from spark_tiering.read_plan.question_document import asked_content, asked_of_content
from spark_tiering.read_plan.tokens import DIGEST_BYTES
from spark_tiering.reporting.progress import Meter
from spark_tiering.store_listing.manifests import partition_manifests

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from rlmm.inspection.cluster_facts import PartitionOffsets, TopicFacts
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.shard import Shard
    from spark_tiering.read_plan.manifest_units import ManifestContents
    from spark_tiering.read_plan.moments import PlanLog, PlanMoment
    from spark_tiering.read_plan.plan import FrozenPlan, FrozenSegment
    from spark_tiering.read_plan.question import Question
    from spark_tiering.read_plan.tokens import PlanToken
    from spark_tiering.stores.protocol import ObjectStore

UNREAD_SHOWN_MAX = 100


class PlanCluster(Protocol):
    """The cluster: `spark_tiering.maintenance.tier.TierTopics` is one."""

    def topics(self, names: Collection[str] | None = None) -> Mapping[str, TopicFacts]: ...

    def offsets(
        self, partitions: Collection[TopicIdPartition]
    ) -> Mapping[TopicIdPartition, PartitionOffsets]: ...


# ------------------------------------------------------------------------------ of the metadata


def plan_of_moment(
    moment: PlanMoment,
    question: Question,
    facts: QuestionFacts | None = None,
    since: PlanToken | None = None,
    meter: Meter | None = None,
) -> FrozenPlan:
    """Plan from *moment*, counted by *meter*. Raise `InvalidArgument` for a foreign token."""
    known = moment.partitions()
    total = sum(question.wants(one.partition.topic, one.partition.partition) for one in known)
    done = count(1)
    meter = meter or Meter()

    def state(partition: TopicIdPartition) -> Shard | None:
        found = state_of(moment, partition)
        meter.reach("partitions planned", next(done), total)
        return found

    inputs = [
        PartitionInput(one.partition, partial(state, one.partition), one.metadata_partition)
        for one in known
    ]
    origin = StateOrigin(
        PlanSourceKind.METADATA,
        moment.identity.cluster_id,
        moment.identity.topic_id,
        moment.identity.partition_count,
        moment.positions,
    )
    return make_plan(question, inputs, origin, facts or QuestionFacts(), since)


def facts_of_cluster(cluster: PlanCluster, partitions: Iterable[TopicIdPartition]) -> QuestionFacts:
    """Ask the cluster for facts of *partitions*; a recreated topic answers for itself alone."""
    wanted = list(partitions)
    topics = cluster.topics(sorted({one.topic for one in wanted}))
    there = [
        one for one in wanted if one.topic in topics and topics[one.topic].topic_id == one.topic_id
    ]
    retention_ms = {}
    for name, topic in sorted(topics.items()):
        limit_ms = number(topic.setting("retention.ms"))
        if limit_ms is not None and limit_ms >= 0 and _is_expired(topic):
            retention_ms[name] = limit_ms
    log_starts = {
        partition: offsets.earliest
        for partition, offsets in cluster.offsets(there).items()
        if offsets.earliest is not None and offsets.earliest > 0
    }
    return QuestionFacts(retention_ms, log_starts)


def _is_expired(topic: TopicFacts) -> bool:
    policy = topic.setting("cleanup.policy")
    return policy is None or "delete" in policy


# -------------------------------------------------------------------------------- of the past


def remade(
    log: PlanLog,
    token: PlanToken,
    asked: tuple[Question, QuestionFacts] | None = None,
    since: PlanToken | None = None,
) -> FrozenPlan:
    """
    Make the plan of *token*, *since* another, again from the log's history. *asked* replaces a
    question that the token lacks. Raises `InvalidArgument` for another question, and `DataLost` for
    a changed log.
    """
    if token.kind is PlanSourceKind.MANIFESTS:
        msg = "a plan of manifests cannot be made again: a bucket has no history. Keep its file"
        raise InvalidArgument(msg)
    question, facts = asked or question_of_token(token)
    _require_asked(token, question, facts, since)
    _require_reached(log, token)
    bound = ReplayEnd({place: position - 1 for place, position in token.positions.items()})
    moment = moment_at(log, bound, lambda _: True, sorted(token.positions))
    plan = plan_of_moment(moment, question, facts, since)
    if plan.token != str(token):
        raise _differs(log, token, plan)
    return plan


def question_of_token(token: PlanToken) -> tuple[Question, QuestionFacts]:
    """Return question and facts of *token*. Raise `InvalidArgument` where it has none."""
    if token.asked is None:
        msg = (
            "the token has only a digest of what was asked, which was too long for it: name the "
            "file of the plan in its place"
        )
        raise InvalidArgument(msg)
    question, facts, _ = asked_of_content(token.asked)
    return question, facts


def _require_asked(
    token: PlanToken, question: Question, facts: QuestionFacts, since: PlanToken | None
) -> None:
    content = asked_content(question, facts, "" if since is None else str(since))
    if hashlib.sha256(content).digest()[:DIGEST_BYTES] != token.asked_digest:
        if since is None:
            msg = "it is what was new since another plan: name that one as well, with --since"
        else:
            msg = "it is not what was new since the plan that is named"
        raise InvalidArgument(msg)


def _require_reached(log: PlanLog, token: PlanToken) -> None:
    identity = log.identity()
    for what, told, is_here in (
        ("cluster", token.cluster_id, identity.cluster_id),
        ("metadata topic", token.metadata_topic_id, identity.topic_id),
        ("number of metadata partitions", token.partition_count, identity.partition_count),
    ):
        if told != is_here:
            msg = f"the plan was made of {what} {told}, and this is {is_here}"
            raise InvalidArgument(msg)
    for place, found in log.bounds(sorted(token.positions)).items():
        if isinstance(found, LogError):
            raise found
        if found.high_watermark < token.positions[place]:
            msg = (
                f"metadata partition {place} was read up to {token.positions[place]}, and ends at "
                f"{found.high_watermark}: it was cut, or is another one"
            )
            raise DataLost(msg)


def _differs(log: PlanLog, token: PlanToken, plan: FrozenPlan) -> DataLost:
    begun = {
        place: found.log_start_offset
        for place, found in log.bounds(sorted(token.positions)).items()
        if not isinstance(found, LogError) and found.log_start_offset > 0
    }
    if begun:
        named = ", ".join(f"partition {place} at {start}" for place, start in sorted(begun.items()))
        why = f"the metadata topic has lost its beginning: it begins in {named}"
    elif len(plan.partitions) != len(token.reached):
        why = f"{len(plan.partitions)} user partitions are there, and it had {len(token.reached)}"
    else:
        why = "the same positions give another plan: another version made it, or another log"
    return DataLost(f"the plan cannot be made again: {why}")


# ------------------------------------------------------------------------------- of manifests


def plan_of_manifests(
    told: ManifestContents,
    question: Question,
    facts: QuestionFacts | None = None,
    since: PlanToken | None = None,
) -> FrozenPlan:
    """Return the plan of the manifests' segments; unreadable ones are named in its warnings."""
    warnings = [f"{one.key}: {one.why}" for one in told.unread[:UNREAD_SHOWN_MAX]]
    if len(told.unread) > UNREAD_SHOWN_MAX:
        warnings.append(f"{len(told.unread) - UNREAD_SHOWN_MAX} more manifests tell of no segment")
    origin = StateOrigin(PlanSourceKind.MANIFESTS, warnings=tuple(warnings))
    return make_plan(
        question, inputs_of_segments(told.segments), origin, facts or QuestionFacts(), since
    )


# -------------------------------------------------------------------------------- looked at again


def fates_in_moment(
    moment: PlanMoment, plan: FrozenPlan
) -> Callable[[FrozenSegment], PlannedSegmentFate]:
    """Return the fate of a range of *plan*; raises `InvalidArgument` for foreign metadata."""
    identity = moment.identity
    for what, told, found in (
        ("cluster", plan.cluster_id, identity.cluster_id),
        ("metadata topic", plan.metadata_topic_id, identity.topic_id),
    ):
        if plan.kind is PlanSourceKind.METADATA and told != found:
            msg = f"the plan was made of {what} {told}, and this is {found}"
            raise InvalidArgument(msg)
    held: dict[TopicIdPartition, Shard | None] = {}

    def fate_of(planned: FrozenSegment) -> PlannedSegmentFate:
        partition = planned.partition
        if partition not in held:
            held.clear()  # ranges come by partition: one at a time is enough
            held[partition] = state_of(moment, partition)
        shard = held[partition]
        return fate_in_metadata(planned, None if shard is None else shard.segment(planned.id))

    return fate_of


def fates_in_store(
    store: ObjectStore, prefix: str
) -> Callable[[FrozenSegment], PlannedSegmentFate]:
    """Return whether there is the manifest of a range now; nothing else tells without metadata."""
    held: dict[TopicIdPartition, frozenset[str]] = {}

    def fate_of(planned: FrozenSegment) -> PlannedSegmentFate:
        partition = planned.partition
        if partition not in held:
            held.clear()
            listed = partition_manifests(store, partition, prefix)
            held[partition] = frozenset(one.key for one in listed)
        return (
            PlannedSegmentFate.THERE
            if planned.manifest_key in held[partition]
            else PlannedSegmentFate.GONE
        )

    return fate_of
