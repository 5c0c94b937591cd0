"""
Orphan deletion, each after another check of its proof in the metadata as it is now. I/O. Invariant:
it deletes no object that the metadata, read after the request, knows, that is younger than the
minimum age, or whose proof no longer holds.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rlmm.errors import ConfigError, StoreError
from spark_tiering.executor.object_deletion import delete_objects
from spark_tiering.layout.object_names import object_keys
from spark_tiering.maintenance.audit.metadata_shards import ask_cluster, own_cluster
from spark_tiering.maintenance.audit.object_set_verdict import OrphanProof, SetVerdict, proof_of
from spark_tiering.maintenance.audit.recheck import AT_ONCE_MAX, SegmentStates, find_deleted
from spark_tiering.maintenance.audit.shard_join import look_again
from spark_tiering.reporting.progress import Meter
from spark_tiering.reporting.report import LINES_MAX, first_lines, partition_fields
from spark_tiering.stores.results import ObjectAbsent

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from rlmm.metadata.ids import SegmentId, TopicIdPartition
    from spark_tiering.maintenance.audit.metadata_shards import AuditClusterFacts
    from spark_tiering.maintenance.audit.object_set_verdict import AuditRules
    from spark_tiering.maintenance.audit.segment_facts import AuditPartitionFacts
    from spark_tiering.maintenance.audit.unknown_sets import UnknownObjectSet
    from spark_tiering.maintenance.tier import Tier, TierMoment

BATCH: Final = 50
"""Orphans that are deleted between two reads of the metadata."""
MOST: Final = 10_000


class OrphanFate(StrEnum):
    DELETED = "deleted"
    GONE = "gone"
    """Another process had deleted it already: success."""
    WOULD_GO = "would-go"
    KEPT = "kept"
    """Its proof no longer holds, or the operator did not name that proof."""
    FAILED = "failed"
    """The store refused; some of its objects may be gone. The operator repeats the command."""


class OrphanReceipt(NamedTuple):
    orphan: UnknownObjectSet
    fate: OrphanFate
    detail: str = ""

    def document(self) -> dict[str, Any]:
        one = self.orphan
        return {
            **partition_fields(one.partition),
            "id": str(one.uuid),
            "start": one.start_offset,
            "prefix": one.prefix,
            "objects": [kind.value for kind in one.kinds],
            "bytes": one.size_bytes,
            "proof": None if one.proof is None else one.proof.value,
            "fate": self.fate.value,
            "detail": self.detail,
        }

    def line(self) -> str:
        one = self.orphan
        said = f": {self.detail}" if self.detail else ""
        return f"  {self.fate.value}: {one.main}, {len(one.kinds)} objects{said}"


@dataclass(slots=True)
class OrphanDeletionResult:
    is_dry: bool
    receipts: list[OrphanReceipt] = field(default_factory=list)
    left: int = 0
    """Orphans beyond the limit of this run."""
    stopped: str = ""

    @property
    def counts(self) -> Counter[OrphanFate]:
        return Counter(one.fate for one in self.receipts)

    @property
    def is_fine(self) -> bool:
        fine = {OrphanFate.DELETED, OrphanFate.GONE}
        return not self.left and not self.stopped and set(self.counts) <= fine

    def document(self) -> dict[str, Any]:
        return {
            "isDryRun": self.is_dry,
            "fates": {fate.value: count for fate, count in sorted(self.counts.items())},
            "bytesDeleted": self._bytes(OrphanFate.DELETED),
            "left": self.left,
            "stopped": self.stopped,
            "orphans": [one.document() for one in self.receipts],
        }

    def lines(self) -> Iterator[str]:
        counts = ", ".join(f"{count} {fate.value}" for fate, count in sorted(self.counts.items()))
        yield f"orphans: {counts or 'none'}"
        for fate in OrphanFate:
            of_fate = [one for one in self.receipts if one.fate is fate]
            most = len(of_fate) if fate in (OrphanFate.DELETED, OrphanFate.FAILED) else LINES_MAX
            yield from first_lines([one.line() for one in of_fate], fate.value, most)
        if self.left:
            yield f"  {self.left} are left: --max-delete allows no more"
        if self.stopped:
            yield f"  stopped: {self.stopped}"

    def _bytes(self, fate: OrphanFate) -> int:
        return sum(one.orphan.size_bytes for one in self.receipts if one.fate is fate)


def require_deletable(tier: Tier) -> None:
    """Raise `ConfigError` where the source of the metadata may be out of date."""
    source = tier.request.source
    if tier.request.embedded is None and source is not None and source.log_dirs:
        msg = "copied folders are not the metadata as it is now: nothing is deleted by them; name "
        msg += "--sidecar, --bootstrap-server or --embedded"
        raise ConfigError(msg)


class OrphanDeletion:
    def __init__(
        self,
        tier: Tier,
        rules: AuditRules,
        *,
        proofs: Collection[OrphanProof],
        is_dry: bool,
        most: int = MOST,
        why_stop: Callable[[], str] = lambda: "",
        meter: Meter | None = None,
    ) -> None:
        self._meter = meter or Meter()
        self._meter.expect("orphans handled", None, failed_as="of them kept or refused")
        self._tier = tier
        self._rules = rules
        self._proofs = frozenset(proofs)
        self._most = most
        self._why_stop = why_stop
        self._deleted: set[SegmentId] = set()
        self._done = OrphanDeletionResult(is_dry)

    def run(self, orphans: Callable[[], Iterable[UnknownObjectSet]]) -> OrphanDeletionResult:
        """Delete orphans; each call of *orphans* yields them from the first one on."""
        wanted = (one.id for one in orphans() if one.proof is OrphanProof.SEGMENT_DELETED)
        self._deleted = find_deleted(self._tier, set(islice(wanted, AT_ONCE_MAX)))
        waiting = iter(orphans())
        taken = 0
        while batch := list(islice(waiting, min(BATCH, self._most - taken))):
            self._done.stopped = self._why_stop()
            if self._done.stopped:
                return self._done
            taken += len(batch)
            self._batch(batch)
        self._done.left = sum(1 for _ in waiting)
        return self._done

    def _batch(self, batch: Sequence[UnknownObjectSet]) -> None:
        moment = self._tier.moment()
        asked = own_cluster(self._tier, moment.identity)
        now = _Now(moment, ask_cluster(asked, {one.partition for one in batch}))
        for one in batch:
            try:
                fate, detail = self._one(one, now)
            except StoreError as error:
                fate, detail = OrphanFate.FAILED, str(error)
            self._done.receipts.append(OrphanReceipt(one, fate, detail))
            self._meter.add("orphans handled", failed=fate in (OrphanFate.KEPT, OrphanFate.FAILED))

    def _one(self, one: UnknownObjectSet, now: _Now) -> tuple[OrphanFate, str]:
        why = self._why_kept(one, now)
        if why:
            return OrphanFate.KEPT, why
        store = self._tier.store
        keys = object_keys(one.id, one.start_offset, one.prefix)
        found = {kind: store.head(key, is_sum_wanted=False) for kind, key in keys.items()}
        there = {
            kind: facts for kind, facts in found.items() if not isinstance(facts, ObjectAbsent)
        }
        if not there:
            return OrphanFate.GONE, ""
        if set(there) - set(one.kinds):
            return OrphanFate.KEPT, "objects were written since it was looked at"
        if not all(self._rules.is_old(facts.modified_ms) for facts in there.values()):
            return OrphanFate.KEPT, "an object was written too lately"
        seen = one._replace(kinds=tuple(kind for kind in keys if kind in there))
        looked = look_again(store, seen, now.facts(one.partition))
        if looked is None:
            return OrphanFate.GONE, ""
        if looked.verdict is not SetVerdict.ORPHAN:
            return OrphanFate.KEPT, looked.why
        if self._done.is_dry:
            return OrphanFate.WOULD_GO, one.why
        ended = delete_objects(store, one.id, one.start_offset, one.prefix)
        return (OrphanFate.DELETED if ended.is_done else OrphanFate.FAILED), ended.detail

    def _why_kept(self, one: UnknownObjectSet, now: _Now) -> str:
        """Return why metadata or cluster forbid the deletion now; empty where they allow it."""
        if one.proof is None or one.proof not in self._proofs:
            return f"its proof is {one.proof}, and that is not one of those named: --proof"
        if now.states.segment(one.id) is not None:
            return "the metadata knows it now"
        if one.proof is OrphanProof.SEGMENT_DELETED:
            return "" if one.id in self._deleted else "the end of its deletion is not found"
        found = proof_of(one.start_offset, now.facts(one.partition))
        return "" if found is one.proof else f"its proof was {one.proof}, and is now {found}"


class _Now:
    def __init__(self, moment: TierMoment, cluster: AuditClusterFacts) -> None:
        self.states = SegmentStates(moment)
        self._cluster = cluster
        known = moment.partitions()
        self._ids = {(one.partition.topic, one.partition.topic_id) for one in known}

    def facts(self, partition: TopicIdPartition) -> AuditPartitionFacts:
        shard = self.states.shard(partition)
        delete = None if shard is None else shard.partition_delete(partition)
        is_known = (partition.topic, partition.topic_id) in self._ids
        return self._cluster.facts(partition, delete, is_topic_known=is_known)
