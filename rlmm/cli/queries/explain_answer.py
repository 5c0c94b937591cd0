"""The answer of `rlmm explain`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, structs

from rlmm.cli.common.answer_header import SourceHead, source_fields
from rlmm.cli.common.exit_codes import EXIT_FOUND
from rlmm.cli.common.log_range import require_places
from rlmm.cli.common.object_places import ObjectCheckView, ObjectKeys, object_places
from rlmm.cli.printing.answer import CommandAnswer
from rlmm.cli.queries.explain_text import explain_text
from rlmm.cli.queries.finding_answer import COLUMNS
from rlmm.errors import (
    LogError,
    LogNotPermitted,
    NotAssigned,
    NotPermitted,
    NotReady,
    StoreError,
    UnknownPartition,
)
from rlmm.findings.finding import Finding, Severity
from rlmm.inspection.explain import explain
from rlmm.inspection.explain_facts import ExplainFacts, finding, of_topic, of_unknown
from rlmm.inspection.explain_findings import PARTITION_NOT_READ
from rlmm.inspection.history import EventHistory, HistorySubject
from rlmm.inspection.offset_history import OffsetHistory
from rlmm.inspection.replay import PartitionReplay
from rlmm.inspection.source_status import StateSourceKind
from rlmm.metadata.ids import TopicIdPartition
from rlmm.views.explanation import (
    ExplanationView,
    LogEndsView,
    OffsetHistoryView,
    explanation_view,
    offsets_view,
    story_view,
)
from rlmm.views.values import Count, UuidText, ViewObject

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlmm.cli.common.query_run import QueryContext
    from rlmm.cli.tier_common.object_store import StoreChoice
    from rlmm.inspection.explain import Explanation
    from rlmm.inspection.moment import PartitionSummary
    from rlmm.inspection.selectors import PartitionLabel
    from rlmm.metadata.shard import Shard


class WholeExplanationView(ExplanationView):
    """The explanation with the facts of store, cluster and log; null where they were not asked."""

    objects: ObjectKeys | None
    checked: ObjectCheckView | None
    cluster: LogEndsView | None
    history: OffsetHistoryView | None


class ExplainedOffset(ViewObject):
    topic: str | None
    partition: int
    topic_id: UuidText | None
    offset: Count
    epoch: int | None


class ExplainHead(SourceHead):
    asked: ExplainedOffset
    explained: Annotated[
        WholeExplanationView | None,
        Meta(description="Null where nothing is known of the user partition."),
    ]
    notes: list[str]


@dataclass(frozen=True, slots=True)
class ExplainQuestion:
    label: PartitionLabel
    offset: int
    epoch: int | None = None
    prefix: str = ""
    reads_history: bool = True
    store: StoreChoice | None = None
    is_sure: bool = False
    """Whether they are read where the store does not tell their checksums."""


@dataclass(slots=True)
class _Known:
    facts: ExplainFacts
    notes: list[str] = field(default_factory=list)


async def explain_answer(looking: QueryContext, *, asking: ExplainQuestion) -> CommandAnswer:
    known = _Known(ExplainFacts(_now_ms(looking)))
    if looking.bound.offsets:
        identity = await looking.source.log.identity(timeout_s=looking.timeout_s)
        require_places(looking.bound.offsets, identity.partition_count)
    await _ask_cluster(looking, asking.label, known)
    partition = await _partition(looking, asking, known)
    if partition is None:
        label = str(asking.label)
        found = list(of_unknown(label, asking.offset, known.facts))
        return _answer(looking, asking, None, found, known, None)
    place = await looking.place_of(partition)
    await _ask_offsets(looking, partition, known)
    not_read = await _not_read(looking, partition, place, asking, known)
    try:
        shard = await _state(looking, partition, place, asking, known)
    except (NotReady, NotAssigned, LogError):
        if not not_read:
            raise
        return _answer(looking, asking, partition, not_read, known, None)
    if shard is None or not shard.knows(partition):
        await _look_for_others(looking, asking.label, partition, known)
        unknown = of_unknown(_short(partition), asking.offset, known.facts)
        others = of_topic(partition, known.facts)
        return _answer(looking, asking, partition, [*not_read, *unknown, *others], known, None)
    explained = explain(shard, partition, asking.offset, asking.epoch, known.facts)
    findings = [*not_read, *explained.findings]
    objects, checked = await _objects(explained, asking, findings, known)
    view = WholeExplanationView(
        **structs.asdict(explanation_view(explained, place)),
        objects=objects,
        checked=checked,
        cluster=offsets_view(known.facts.offsets),
        history=story_view(known.facts.story),
    )
    return _answer(looking, asking, partition, findings, known, view)


def _now_ms(looking: QueryContext) -> int:
    return looking.now_ms if looking.bound.time_ms is None else looking.bound.time_ms


def _answer(
    looking: QueryContext, asking: ExplainQuestion, partition: TopicIdPartition | None,
    findings: Sequence[Finding], known: _Known,
    explained: WholeExplanationView | None,
) -> CommandAnswer:  # fmt: skip
    label = asking.label
    topic_id = label.topic_id if partition is None else partition.topic_id
    return CommandAnswer(
        "explanation",
        COLUMNS,
        [one.view() for one in findings],
        head=ExplainHead(
            **source_fields(looking),
            asked=ExplainedOffset(
                topic=label.topic if partition is None else partition.topic,
                partition=label.partition,
                topic_id=None if topic_id is None else str(topic_id),
                offset=asking.offset,
                epoch=asking.epoch,
            ),
            explained=explained,
            notes=known.notes,
        ),
        text=explain_text,
        exit_code=EXIT_FOUND if any(one.kind.severity > Severity.NOTE for one in findings) else 0,
    )


# ------------------------------------------------------------------------------- what is meant


async def _partition(
    looking: QueryContext, asking: ExplainQuestion, known: _Known
) -> TopicIdPartition | None:
    """
    Return the user partition of the label, None where none is known. Of several topics with the
    name it is that of the cluster, else one that is not deleted, with the newest event.
    """
    label = asking.label
    if label.whole is not None:
        return label.whole
    told = known.facts.topic
    of_cluster = None
    if told is not None and label.topic is not None:
        of_cluster = TopicIdPartition(told.topic_id, label.topic, label.partition)
    if of_cluster is not None and looking.source.kind is StateSourceKind.KAFKA:
        return of_cluster  # one metadata partition is enough, and is read much sooner than all
    summaries = await _of_name(looking, label, known, is_needed=of_cluster is None)
    partitions = [one.partition for one in summaries]
    if of_cluster is not None:
        chosen = of_cluster
    elif summaries:
        chosen = max(summaries, key=_liveliness).partition
    else:
        return None
    others = tuple(one for one in partitions if one != chosen)
    known.facts = replace(known.facts, same_name=others)
    return chosen


async def _look_for_others(
    looking: QueryContext, label: PartitionLabel, partition: TopicIdPartition, known: _Known
) -> None:
    if label.topic_id is None and not known.facts.same_name:
        summaries = await _of_name(looking, label, known, is_needed=False)
        others = tuple(one.partition for one in summaries if one.partition != partition)
        known.facts = replace(known.facts, same_name=others)


async def _of_name(
    looking: QueryContext, label: PartitionLabel, known: _Known, *, is_needed: bool
) -> list[PartitionSummary]:
    """
    Return every user partition of that name. Where none is known and some places are not ready,
    raise `NotReady` if one *is needed*, else note it.
    """
    try:
        return [one for one in await looking.known(label) if label.names(one.partition)]
    except NotReady as error:
        if is_needed:
            raise
        note = f"other topics of the same name were not looked for: {error}"
        known.notes += [] if note in known.notes else [note]
        return []


def _short(partition: TopicIdPartition) -> str:
    return f"{partition.topic}-{partition.partition}"


def _liveliness(summary: PartitionSummary) -> tuple[bool, bool, int]:
    delete = summary.delete
    return delete is None, summary.segments > 0, summary.segments


async def _not_read(
    looking: QueryContext,
    partition: TopicIdPartition,
    place: int,
    asking: ExplainQuestion,
    known: _Known,
) -> list[Finding]:
    standing = await looking.source.standing()
    found = next((one for one in standing.places if one.metadata_partition == place), None)
    if not standing.places or found is None or found.is_caught_up:
        is_there = found is not None or not standing.places
        said = "" if is_there else "it is not one of those that are read"
    else:
        said = found.detail or found.why or found.state
    if not said:
        return []
    if found is not None and found.is_assigned and found.state != "absent":
        known.notes.append(
            f"{looking.source.where} does not answer for metadata partition {place} now: {said}"
        )
        return []
    return [
        finding(
            PARTITION_NOT_READ, partition, asking.offset,
            f"metadata partition {place}: {said}", metadata_partition=place,
        )
    ]  # fmt: skip


# ------------------------------------------------------------------------------- what is known


async def _state(
    looking: QueryContext,
    partition: TopicIdPartition,
    place: int,
    asking: ExplainQuestion,
    known: _Known,
) -> Shard | None:
    if asking.reads_history:
        try:
            return await _read_log(looking, partition, place, asking, known)
        except (NotPermitted, LogNotPermitted) as error:
            known.notes.append(f"what happened is not known, the log was not read: {error}")
    try:
        moment = await looking.moment([place])
        return await moment.state(partition)
    except UnknownPartition:
        return None


async def _read_log(
    looking: QueryContext,
    partition: TopicIdPartition,
    place: int,
    asking: ExplainQuestion,
    known: _Known,
) -> Shard:
    replay = PartitionReplay(
        looking.source.log, place, looking.bound_of([place]), timeout_s=looking.timeout_s
    )
    chronicle, story = EventHistory(HistorySubject.of(partition)), OffsetHistory(asking.offset)
    async for chunk in replay.chunks():
        if looking.progress is not None:
            looking.progress(place, replay.shard.position, replay.end)
        for happened in chunk.happened(chronicle.wanted):
            line = chronicle.tell(happened)
            if line is not None:
                story.hear(line)
    known.facts = replace(known.facts, story=story, log_start=replay.log_start)
    return replay.shard


async def _ask_cluster(looking: QueryContext, label: PartitionLabel, known: _Known) -> None:
    """Ask the cluster about the topic; it knows nothing of a past moment."""
    cluster = looking.source.cluster
    if cluster is None or not looking.is_now or label.topic is None:
        if cluster is not None and not looking.is_now:
            known.notes.append("of a past moment the cluster's settings and offsets are not known")
        return
    try:
        topics = await cluster.topics([label.topic])
    except LogError as error:
        known.notes.append(f"the cluster was not asked: {error}")
        return
    topic = topics.get(label.topic)
    known.facts = replace(known.facts, topic=topic, is_cluster_known=True)


async def _ask_offsets(looking: QueryContext, partition: TopicIdPartition, known: _Known) -> None:
    """Ask for the ends of the log; a deleted topic has none."""
    cluster, topic = looking.source.cluster, known.facts.topic
    if cluster is None or topic is None or topic.topic_id != partition.topic_id:
        return
    try:
        offsets = await cluster.offsets([partition])
    except LogError as error:
        known.notes.append(f"the ends of the log are not known: {error}")
        return
    known.facts = replace(known.facts, offsets=offsets.get(partition))


async def _objects(
    explained: Explanation, asking: ExplainQuestion, findings: list[Finding], known: _Known
) -> tuple[ObjectKeys | None, ObjectCheckView | None]:
    """Return the keys of the objects that were found, and their state where it was asked for."""
    segment = explained.found
    if segment is None:
        return None, None
    if asking.store is None:
        return object_places(segment, asking.prefix), None
    from rlmm.cli.tier_common.object_check import check_objects  # noqa: PLC0415  # needs its extras

    prefix = asking.store.prefix
    places = object_places(segment, prefix)
    try:
        checked = await check_objects(asking.store, segment, is_sure=asking.is_sure)
    except StoreError as error:
        known.notes.append(f"the objects were not looked at: {error}")
        return places, None
    if checked.kind is not None:
        found = finding(
            checked.kind, explained.partition, explained.offset, checked.detail,
            segment_id=str(segment.id.uuid),
        )  # fmt: skip
        findings.insert(0, found)
    return places, checked.view
