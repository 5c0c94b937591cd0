"""Recheck of missing objects and unknown sets with the newest metadata. I/O."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from rlmm.errors import LogError, RlmmError, UnknownPartition
from rlmm.findings import tier_findings as kinds
from rlmm.findings.finding import of_partition
from rlmm.metadata.decoding import decode
from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.fast_decoding import cut
from rlmm.metadata.ids import TopicIdPartition, Uuid
from rlmm.metadata.open_record_set import INFLATED_BYTES_MAX
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.metadata.segment import SegmentState
from rlmm.records.batch import Batch, walk
from spark_tiering.layout.object_names import ObjectKind
from spark_tiering.maintenance.audit.object_set_verdict import OrphanProof, SetVerdict, why_orphan
from spark_tiering.maintenance.audit.segment_facts import SegmentFact
from spark_tiering.maintenance.audit.shard_join import MissingObjects, OrphanAmount, segment_finding
from spark_tiering.maintenance.audit.unknown_sets import format_loose, parse_loose

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from pathlib import Path
    from typing import TextIO

    from rlmm.findings.finding import Finding
    from rlmm.metadata.ids import SegmentId
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.metadata.shard import Shard
    from spark_tiering.maintenance.audit.metadata_shards import AuditMetadata
    from spark_tiering.maintenance.audit.topic_sums import TopicSummaries
    from spark_tiering.maintenance.audit.unknown_sets import UnknownObjectSet
    from spark_tiering.maintenance.tier import Tier, TierMoment
    from spark_tiering.reporting.report import FindingSample

AT_ONCE_MAX: Final = 200_000
"""The audit looks for so many segments; those beyond stay unproven."""
_FINISHED = SegmentState.DELETE_SEGMENT_FINISHED
_Known = tuple[bytes, bytes]


def find_deleted(
    tier: Tier, wanted: Collection[SegmentId], why_stop: Callable[[], str] = lambda: ""
) -> set[SegmentId]:
    """Return those of *wanted* whose deletion was finished, by the log of the metadata."""
    if not wanted:
        return set()
    log = tier.log
    count = log.identity().partition_count
    by_place: dict[int, dict[_Known, SegmentId]] = {}
    for one in list(wanted)[:AT_ONCE_MAX]:
        partition = one.partition
        place = metadata_partition_for(partition.topic_id, partition.partition, count)
        by_place.setdefault(place, {})[partition.key, bytes(one.uuid)] = one
    found: set[SegmentId] = set()
    for place, bounds in log.bounds(sorted(by_place)).items():
        if isinstance(bounds, LogError):
            raise bounds
        position = bounds.log_start_offset
        while position < bounds.high_watermark and not why_stop():
            record_set = log.read(place, position)
            if record_set is None:
                break
            found |= _deleted_in(record_set.data, by_place[place])
            following = record_set.next_offset
            if following is None or following <= position:
                break
            position = following
    return found


def _deleted_in(data: bytes, wanted: dict[_Known, SegmentId]) -> set[SegmentId]:
    found = set()
    for batch in walk(data):
        if not isinstance(batch, Batch) or batch.is_control:
            continue
        for _, value in batch.values(inflated_bytes_max=INFLATED_BYTES_MAX):
            known = None if value is None else _deleted_by(value)
            if known in wanted:
                found.add(wanted[known])
    return found


def _deleted_by(value: bytes) -> _Known | None:
    parts = cut(value)
    if parts is not None:
        is_end = len(parts) == 5 and parts[2] == _FINISHED
        return (bytes(parts[0]), bytes(parts[1])) if is_end else None
    event = decode(value)
    if isinstance(event, SegmentUpdate) and event.state is _FINISHED:
        return event.id.partition.key, bytes(event.id.uuid)
    return None


AT_ONCE: Final = 10_000


class SegmentStates:
    """Looks segments up in the metadata of one moment, and loads one partition at a time."""

    def __init__(self, moment: TierMoment) -> None:
        self._moment = moment
        self._states: dict[TopicIdPartition, Shard | None] = {}

    def shard(self, partition: TopicIdPartition) -> Shard | None:
        """Return the state of a partition; None where nothing was ever stored of it."""
        if partition not in self._states:
            # What is asked about comes by partition: the ones before are not asked for again.
            if len(self._states) >= 8:
                self._states.clear()
            try:
                self._states[partition] = self._moment.state(partition)
            except UnknownPartition:
                self._states[partition] = None
        return self._states[partition]

    def segment(self, segment_id: SegmentId) -> SegmentMetadata | None:
        shard = self.shard(segment_id.partition)
        return None if shard is None else shard.segment(segment_id)


def format_missing(one: MissingObjects) -> str:
    fact = one.fact
    partition = fact.partition
    fields = [
        partition.topic, str(partition.topic_id), partition.partition, fact.uuid.hex(),
        fact.start_offset, fact.last_offset, fact.event_ms, fact.size_bytes, list(one.kinds),
    ]  # fmt: skip
    return json.dumps(fields) + "\n"


def _parse_missing(line: str) -> MissingObjects:
    said: list[Any] = json.loads(line)
    topic, topic_id, number, uuid, start, last, event_ms, size, lacking = said
    partition = TopicIdPartition(Uuid.parse(topic_id), topic, number)
    finished = SegmentState.COPY_SEGMENT_FINISHED
    fact = SegmentFact(partition, bytes.fromhex(uuid), start, last, finished, event_ms, size, -1)
    return MissingObjects(fact, tuple(ObjectKind(kind) for kind in lacking))


def settle_missing(tier: Tier, file: Path, findings: FindingSample) -> int:
    """Report the finished segments that lack objects; return how many are gone meanwhile."""
    gone = 0
    with file.open() as lines:
        for batch in _batches(lines):
            states = SegmentStates(tier.moment())
            for line in sorted(batch):
                one = _parse_missing(line)
                now = states.segment(one.fact.id)
                if now is None or now.state is not SegmentState.COPY_SEGMENT_FINISHED:
                    gone += 1
                    continue
                lacking = ", ".join(one.kinds)
                findings.add(
                    segment_finding(
                        kinds.OBJECT_MISSING, one.fact, f"without {lacking}", objects=lacking
                    )
                )
    return gone


def _batches(lines: Iterable[str]) -> Iterator[list[str]]:
    said = iter(lines)
    while batch := list(islice(said, AT_ONCE)):
        yield batch


class AuditRecheck:
    def __init__(
        self, tier: Tier, known: AuditMetadata, file: Path, why_stop: Callable[[], str]
    ) -> None:
        self._tier = tier
        self._known = known
        self._file = file
        self._why_stop = why_stop
        self.notes: list[str] = []

    def settle(self, topics: TopicSummaries, findings: FindingSample, orphans: TextIO) -> int:
        """Judge and count each unknown set, and write the orphans; return their number."""
        deleted = self._deleted()
        count = 0
        with self._file.open() as lines:
            for line in lines:
                one = parse_loose(line)
                if one.verdict is SetVerdict.UNPROVEN and one.id in deleted:
                    proof = OrphanProof.SEGMENT_DELETED
                    why = why_orphan(proof, self._known.facts(one.partition))
                    one = one._replace(verdict=SetVerdict.ORPHAN, proof=proof, why=why)
                amount = OrphanAmount(1, len(one.kinds), one.size_bytes)
                topic = topics[one.partition.topic, str(one.partition.topic_id)]
                topic.add_amount(one.verdict, amount)
                findings.add(_finding(one))
                if one.verdict is SetVerdict.ORPHAN:
                    count += 1
                    orphans.write(format_loose(one))
        return count

    def _deleted(self) -> set[SegmentId]:
        with self._file.open() as lines:
            parsed = (parse_loose(line) for line in lines)
            ids = (one.id for one in parsed if one.verdict is SetVerdict.UNPROVEN)
            wanted = set(islice(ids, AT_ONCE_MAX))
            if next(ids, None) is not None:
                self.notes.append(
                    f"of more than {AT_ONCE_MAX} segments that no metadata knows the first ones "
                    "were looked for in the log of the metadata"
                )
        try:
            return find_deleted(self._tier, wanted, self._why_stop)
        except RlmmError as error:
            self.notes.append(f"the log of the metadata could not be looked through: {error}")
            return set()


def _finding(one: UnknownObjectSet) -> Finding:
    lacks_manifest = ObjectKind.MANIFEST not in one.kinds
    kind = kinds.UNREFERENCED
    if one.verdict is SetVerdict.ORPHAN:
        kind = kinds.ORPHAN
    elif lacks_manifest:
        kind = kinds.INCOMPLETE_SET
    objects = ", ".join(one.kinds)
    return of_partition(
        kind,
        one.partition,
        f"segment {one.uuid} at offset {one.start_offset}: {objects}, {one.size_bytes} bytes: "
        f"{one.why}",
        id=str(one.uuid),
        start=one.start_offset,
        prefix=one.prefix,
        objects=objects,
        bytes=one.size_bytes,
        modified_ms=one.modified_ms,
        proof=None if one.proof is None else one.proof.value,
    )
