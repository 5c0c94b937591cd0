"""
The join of one shard, as a unit: a suspicious set is looked up again in the store; the driver
decides what needs newer metadata.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from rlmm.errors import RlmmError
from rlmm.findings import tier_findings as kinds
from rlmm.findings.finding import Finding, FindingKind, of_partition
from rlmm.metadata.ids import Uuid
from rlmm.metadata.segment import SegmentState
from spark_tiering.executor.object_check import read_manifest
from spark_tiering.layout.manifest import Manifest, SegmentDescription
from spark_tiering.layout.object_names import ObjectKind, object_key
from spark_tiering.maintenance.audit.object_set_verdict import (
    JudgedSet,
    ObjectSetVerdict,
    OrphanProof,
    SetVerdict,
    ends_below,
    judge,
)
from spark_tiering.maintenance.audit.segment_facts import (
    AuditPartitionFacts,
    SegmentFact,
    read_facts,
)
from spark_tiering.maintenance.audit.unknown_sets import UnknownObjectSet
from spark_tiering.reporting.report import FindingSample
from spark_tiering.store_listing.key_names import KINDS
from spark_tiering.store_listing.rows import RowBlob, gather
from spark_tiering.stores.opening import process_store
from spark_tiering.stores.results import ObjectAbsent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlmm.metadata.ids import TopicIdPartition
    from spark_tiering.maintenance.audit.object_set_verdict import AuditRules
    from spark_tiering.store_listing.rows import ObjectSet
    from spark_tiering.stores.opening import StoreSettings
    from spark_tiering.stores.protocol import ObjectStore

EXAMPLES_MAX: Final = 100
"""Findings of one kind that are listed; more are counted."""
NOBODY: Final = AuditPartitionFacts()
_LOOSE = (SetVerdict.ORPHAN, SetVerdict.UNPROVEN)


@dataclass(frozen=True, slots=True)
class JoinTask:
    """Joins one shard; *store* is None where the audit has an inventory alone."""

    objects: tuple[bytes, ...]
    segments: tuple[bytes, ...]
    partitions: dict[TopicIdPartition, AuditPartitionFacts]
    rules: AuditRules
    prefixes: tuple[str, ...]
    store: StoreSettings | None


class OrphanAmount(NamedTuple):
    sets: int = 0
    objects: int = 0
    size_bytes: int = 0

    @classmethod
    def total(cls, amounts: Iterable[OrphanAmount]) -> OrphanAmount:
        return cls(*map(sum, zip(cls(), *amounts, strict=True)))


Topic = tuple[str, str]


class MissingObjects(NamedTuple):
    fact: SegmentFact
    kinds: tuple[ObjectKind, ...]


def finding_sample() -> FindingSample:
    return FindingSample(EXAMPLES_MAX)


@dataclass(slots=True)
class JoinResult:
    """*fault* is the code of the error that stopped the unit."""

    amounts: dict[tuple[Topic, SetVerdict], OrphanAmount] = field(default_factory=dict)
    missing: list[MissingObjects] = field(default_factory=list)
    loose: list[UnknownObjectSet] = field(default_factory=list)
    findings: FindingSample = field(default_factory=finding_sample)
    under_old_prefix: int = 0
    gone_meanwhile: int = 0
    fault: tuple[str, str] | None = None


def join(task: JoinTask) -> JoinResult:
    """Run one unit; an error of the store is a value."""
    try:
        return _Joining(task).run()
    except RlmmError as error:
        return JoinResult(fault=(error.code, str(error)))


class _Joining:
    def __init__(self, task: JoinTask) -> None:
        self._task = task
        self._store: ObjectStore | None = None
        if task.store is not None:
            self._store = process_store(task.store)
        self._found = JoinResult()

    def run(self) -> JoinResult:
        sets = gather(row for blob in self._task.objects for row in RowBlob(blob).objects())
        for blob in self._task.segments:
            for fact in read_facts(blob):
                own = [one for one in sets.get(fact.uuid, ()) if one.partition == fact.partition]
                if own:
                    rest = [one for one in sets.pop(fact.uuid) if one.partition != fact.partition]
                    if rest:
                        sets[fact.uuid] = rest
                self._segment(fact, own)
        for others in sets.values():
            for one in others:
                facts = self._facts(one.partition)
                for judged in judge(None, [one], facts, self._task.rules).sets:
                    self._set(judged)
        return self._found

    def _facts(self, partition: TopicIdPartition) -> AuditPartitionFacts:
        return self._task.partitions.get(partition, NOBODY)

    def _segment(self, fact: SegmentFact, sets: list[ObjectSet]) -> None:
        judged = judge(fact, sets, self._facts(fact.partition), self._task.rules)
        for one in judged.sets:
            self._set(one)
        self._found.under_old_prefix += judged.is_under_old_prefix
        if judged.is_elsewhere:
            self._tell(
                kinds.START_OFFSET, fact, f"its objects are named by offset {sets[0].start_offset}"
            )
        elif judged.missing:
            lacking = self._still_missing(fact, judged.missing)
            if lacking:
                self._found.missing.append(MissingObjects(fact, lacking))
        if judged.length:
            self._tell(kinds.OBJECT_LENGTH, fact, judged.length)
        if judged.archived:
            self._tell(kinds.OBJECT_ARCHIVED, fact, f"in {', '.join(judged.archived)}")
        if judged.is_overdue:
            self._overdue(fact, judged)

    def _overdue(self, fact: SegmentFact, judged: ObjectSetVerdict) -> None:
        there = sum(len(one.objects.objects) for one in judged.sets)
        if fact.state is SegmentState.DELETE_SEGMENT_STARTED:
            self._tell(kinds.DELETE_UNFINISHED, fact, f"{there} objects are left")
        elif not there:
            self._tell(kinds.COPY_UNFINISHED, fact, "the store has nothing of it")
        else:
            first = judged.sets[0].objects
            lacking = ", ".join(first.lacking)
            detail = f"without {lacking}" if lacking else "all three objects are there"
            self._tell(kinds.INCOMPLETE_SET, fact, f"{judged.sets[0].why}; {detail}")

    def _still_missing(
        self, fact: SegmentFact, lacking: tuple[ObjectKind, ...]
    ) -> tuple[ObjectKind, ...]:
        """Return those that the store, asked once more, has under no prefix."""
        if self._store is None:
            return lacking
        found = set()
        for prefix in self._task.prefixes:
            for kind in lacking:
                key = object_key(fact.id, fact.start_offset, kind, prefix)
                if not isinstance(self._store.head(key, is_sum_wanted=False), ObjectAbsent):
                    found.add(kind)
        return tuple(kind for kind in lacking if kind not in found)

    def _tell(self, kind: FindingKind, fact: SegmentFact, detail: str) -> None:
        self._found.findings.add(segment_finding(kind, fact, detail))

    def _set(self, judged: JudgedSet) -> None:
        if judged.verdict in _LOOSE:
            loose = self._looked_at(judged)
            if loose is None:
                self._found.gone_meanwhile += 1
            else:
                self._found.loose.append(loose)
            return
        objects = judged.objects
        if judged.verdict is SetVerdict.DUPLICATE:
            self._found.findings.add(_duplicate(judged, self._task.prefixes[objects.prefix]))
        partition = objects.partition
        topic = (partition.topic, str(partition.topic_id))
        amount = OrphanAmount(1, len(objects.objects), objects.size_bytes)
        before = self._found.amounts.get((topic, judged.verdict), OrphanAmount())
        self._found.amounts[topic, judged.verdict] = OrphanAmount.total((before, amount))

    def _looked_at(self, judged: JudgedSet) -> UnknownObjectSet | None:
        """Return the set with the fields of its manifest; None where it was deleted meanwhile."""
        one = judged.objects
        loose = UnknownObjectSet(
            one.partition,
            Uuid(one.uuid),
            one.start_offset,
            self._task.prefixes[one.prefix],
            tuple(KINDS[number] for number in sorted(one.objects)),
            one.size_bytes,
            one.modified_ms,
            None,
            judged.verdict,
            judged.proof,
            judged.why,
        )
        if self._store is not None:
            return look_again(self._store, loose, self._facts(one.partition))
        if judged.proof is OrphanProof.BELOW_LOG_START and one.has_manifest:
            return unproven(loose, "where it ends is not known without --store")
        return loose


def look_again(
    store: ObjectStore, loose: UnknownObjectSet, facts: AuditPartitionFacts
) -> UnknownObjectSet | None:
    """Return the set as it is now, by its manifest where it matters; None where it was deleted."""
    *_, key = loose.keys
    if loose.proof is not OrphanProof.BELOW_LOG_START or ObjectKind.MANIFEST not in loose.kinds:
        is_gone = isinstance(store.head(key, is_sum_wanted=False), ObjectAbsent)
        return None if is_gone else loose
    manifest = read_manifest(store, key)
    if isinstance(manifest, ObjectAbsent):
        return None
    described = manifest.described if isinstance(manifest, Manifest) else None
    if not isinstance(described, SegmentDescription):
        return unproven(loose, "where it ends is not known: its manifest does not say it")
    if described.segment_id != loose.id or described.start_offset != loose.start_offset:
        return unproven(loose, "its manifest is of another segment")
    loose = loose._replace(last_offset=described.last_offset)
    if not ends_below(described.last_offset, facts):
        return unproven(
            loose, f"it reaches to {described.last_offset}, the log begins at {facts.log_start}"
        )
    return loose


def unproven(loose: UnknownObjectSet, why: str) -> UnknownObjectSet:
    return loose._replace(verdict=SetVerdict.UNPROVEN, proof=None, why=why)


def segment_finding(kind: FindingKind, fact: SegmentFact, detail: str, **more: object) -> Finding:
    where = f"segment {fact.id.uuid}, offsets {fact.start_offset}-{fact.last_offset}: {detail}"
    return of_partition(
        kind,
        fact.partition,
        where,
        id=str(fact.id.uuid),
        start=fact.start_offset,
        last=fact.last_offset,
        bytes=fact.size_bytes,
        **more,
    )


def _duplicate(judged: JudgedSet, prefix: str) -> Finding:
    one = judged.objects
    return of_partition(
        kinds.DUPLICATE_SET,
        one.partition,
        f"segment {one.segment_id.uuid} at offset {one.start_offset} under {prefix!r}, "
        f"{one.size_bytes} bytes: {judged.why}",
        id=str(one.segment_id.uuid),
        start=one.start_offset,
        prefix=prefix,
        bytes=one.size_bytes,
    )
