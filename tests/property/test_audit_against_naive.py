"""Audits of random histories equal a naive comparison, also while copies and deletions go on."""

from __future__ import annotations

from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from rlmm.metadata.events import PartitionDelete
from rlmm.metadata.ids import SegmentId, Uuid
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from spark_tiering.layout.object_names import ObjectKind
from spark_tiering.maintenance.audit.object_set_verdict import DAY_MS, AuditVerdict, OrphanProof
from tests.support.builders import tp, update
from tests.support.tier.audited_tiers import (
    CF,
    CS,
    DF,
    DS,
    NOW_MS,
    ORDERS,
    AuditedTier,
    codes,
    segment_of,
    told_cluster,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata

PARTITIONS = (tp("orders", 0), tp("orders", 1), tp("gone", 0, Uuid.of(7, 7)))
SEGMENTS = 5
OLD_MS, YOUNG_MS = NOW_MS - 3 * DAY_MS, NOW_MS - 1_000

_WHICH = st.tuples(st.sampled_from(PARTITIONS), st.integers(0, SEGMENTS - 1))
_KINDS = st.sampled_from(ObjectKind)
_STEP = st.one_of(
    st.tuples(st.just("event"), _WHICH),
    st.tuples(st.just("event"), _WHICH),
    st.tuples(st.just("write all"), _WHICH),
    st.tuples(st.just("write"), _WHICH, _KINDS),
    st.tuples(st.just("remove"), _WHICH, _KINDS),
    st.tuples(st.just("copy"), _WHICH),
    st.tuples(st.just("end partition"), st.sampled_from(PARTITIONS)),
)
"""A crash means that no further step follows: each step of a segment may be its last."""


@dataclass
class Model:
    states: dict[SegmentId, SegmentState] = field(default_factory=dict)
    touched: dict[SegmentId, int] = field(default_factory=dict)
    deleted: set[SegmentId] = field(default_factory=set)
    objects: dict[SegmentId, dict[ObjectKind, int]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    ended: dict[TopicIdPartition, PartitionDeleteState] = field(default_factory=dict)
    ended_ms: dict[TopicIdPartition, int] = field(default_factory=dict)


def play(tier: AuditedTier, steps: list[tuple[tuple[Any, ...], bool]]) -> Model:
    model = Model()
    for (what, *about), is_old in steps:
        at_ms = OLD_MS if is_old else YOUNG_MS
        if what == "end partition":
            (partition,) = about
            before = model.ended.get(partition)
            reached = PartitionDeleteState(0 if before is None else min(2, before + 1))
            tier.say(PartitionDelete(partition, 1, at_ms, reached))
            model.ended[partition] = reached
            if reached is PartitionDeleteState.DELETE_PARTITION_FINISHED:
                # What was known of it is given up; its objects are not.
                for one in [one for one in model.states if one.partition == partition]:
                    del model.states[one]
            model.ended_ms[partition] = at_ms
            continue
        partition, number = about[0]
        segment = segment_of(
            10 * PARTITIONS.index(partition) + number + 1, 100 * number, 100 * number + 99,
            partition, event_timestamp_ms=at_ms,
        )  # fmt: skip
        one = segment.id
        if what in ("write", "write all", "copy"):
            kinds = (about[1],) if what == "write" else tuple(ObjectKind)
            tier.put(segment, kinds, modified_ms=at_ms)
            model.objects[one].update(dict.fromkeys(kinds, at_ms))
        elif what == "remove" and about[1] in model.objects[one]:
            tier.remove(segment, about[1])
            del model.objects[one][about[1]]
        moves = {"event": 1, "copy": 2 if one not in model.states else 0}.get(what, 0)
        for _ in range(moves):
            state = model.states.get(one)
            following = CS if state is None else SegmentState(min(state + 1, DF))
            if state is None and one in model.deleted:
                break
            event = segment if following is CS else update(one, following, event_timestamp_ms=at_ms)
            tier.say(event)
            model.states[one], model.touched[one] = following, at_ms
            if following is DF:
                del model.states[one]
                model.deleted.add(one)
    return model


def naive(model: Model, log_start: int) -> tuple[dict[str, set[SegmentId]], dict[str, int]]:
    verdicts: dict[str, set[SegmentId]] = defaultdict(set)
    found: dict[str, int] = defaultdict(int)
    for one in {*model.states, *model.objects}:
        objects = model.objects.get(one, {})
        newest = max([*objects.values(), model.touched[one] if one in model.states else 0])
        is_old = newest == OLD_MS
        is_ending = one.partition in model.ended or one.partition.topic == "gone"
        verdict, code = naive_one(model, one, log_start, is_ending=is_ending, is_old=is_old)
        if code:
            found[code] += 1
        if objects:
            verdicts[verdict].add(one)
    for partition in PARTITIONS[:2]:
        if partition not in model.ended:
            found["TIER-EXTENT-GAP"] += naive_gaps(model, partition, log_start)
    return dict(verdicts), {code: count for code, count in found.items() if count}


def naive_one(
    model: Model, one: SegmentId, log_start: int, *, is_ending: bool, is_old: bool
) -> tuple[str, str]:
    objects, state = model.objects.get(one, {}), model.states.get(one)
    incomplete = "TIER-INCOMPLETE-SET"
    if state is not None and is_ending:
        return "awaiting-delete", ""
    if state is CF:
        return "referenced", "TIER-OBJECT-MISSING" if len(objects) < 3 else ""
    if state is DS:
        return "awaiting-delete", "TIER-DELETE-UNFINISHED" if is_old else ""
    if not is_old or (state is None and not objects):
        return "in-flight", ""
    if state is CS:
        return "leftover", incomplete if objects else "TIER-COPY-UNFINISHED"
    verdict = naive_unknown(model, one, objects, log_start)
    if verdict == "orphan":
        return verdict, "TIER-ORPHAN"
    return verdict, "TIER-UNREFERENCED" if ObjectKind.MANIFEST in objects else incomplete


def naive_ended(model: Model) -> int:
    count = 0
    for topic in ("orders", "gone"):
        events = [at for one, at in model.touched.items()
                  if one in model.states and one.partition.topic == topic]  # fmt: skip
        ended = [at for one, at in model.ended_ms.items() if one.topic == topic]
        objects = any(found for one, found in model.objects.items() if one.partition.topic == topic)
        is_left = bool(events) or (objects and topic == "gone")
        is_over = bool(ended) or topic == "gone"
        newest = max([*events, *ended, 0])
        count += is_left and is_over and newest in (0, OLD_MS)
    return count


def naive_unknown(
    model: Model, one: SegmentId, objects: dict[ObjectKind, int], log_start: int
) -> str:
    start = 100 * ((one.uuid[-1] - 1) % 10)
    has_end = ObjectKind.MANIFEST in objects
    is_below = start + 99 < log_start if has_end else start < log_start
    is_proved = (
        one.partition in model.ended
        or one.partition.topic == "gone"
        or is_below
        or one in model.deleted
    )
    return "orphan" if is_proved else "unproven"


def naive_gaps(model: Model, partition: TopicIdPartition, log_start: int) -> int:
    of = {one: state for one, state in model.states.items() if one.partition == partition}
    starts = {100 * ((one.uuid[-1] - 1) % 10): state for one, state in of.items()}
    finished = [start for start, state in starts.items() if state is CF]
    if not finished:
        return 0
    holes = [
        any(start + at >= log_start for at in (0, 99)) and start not in starts
        for start in range(min(finished), max(finished), 100)
    ]
    return sum(one and not before for before, one in zip([False, *holes], holes, strict=False))


@given(
    steps=st.lists(st.tuples(_STEP, st.booleans()), max_size=40),
    log_start=st.sampled_from([0, 50, 100, 250, 400]),
)
def test_f114_f116_f119_f121_audit_of_any_history_equals_a_naive_comparison(
    steps: list[tuple[tuple[Any, ...], bool]], log_start: int
) -> None:
    """The audit gives every set of objects, and the whole, the verdict of a naive comparison."""
    tier = AuditedTier(cluster=told_cluster(*PARTITIONS[:1], log_start=log_start))
    assert tier.cluster is not None
    tier.cluster.ends = {
        one: told_cluster(one, log_start=log_start).ends[one] for one in PARTITIONS[:2]
    }
    with closing(tier):
        model = play(tier, steps)
        report = tier.audit()
        expected, found = naive(model, log_start)
        told = {
            verdict.value: report.amount(verdict).sets
            for topic in report.topics
            for verdict in topic.amounts
        }
        assert told == {verdict: len(ones) for verdict, ones in expected.items()}
        assert {one.id for one in tier.orphans} == expected.get("orphan", set())
        said = codes(report)
        ended = said.pop("TIER-TOPIC-UNKNOWN", 0)
        assert ended == naive_ended(model)
        assert said == found
        corrupt = {"TIER-OBJECT-MISSING", "TIER-EXTENT-GAP"}
        overall = AuditVerdict.CLEAN if not found and not ended else AuditVerdict.DIRTY
        assert report.overall is (AuditVerdict.CORRUPT if corrupt & set(found) else overall)
        objects = sum(len(one) for one in model.objects.values())
        assert report.all.objects == objects


@given(steps=st.lists(st.tuples(_STEP, st.booleans()), max_size=30))
def test_f119_orphans_deleted_leave_the_rest(steps: list[tuple[tuple[Any, ...], bool]]) -> None:
    """Deleting orphans removes exactly the orphans, and a second audit finds none."""
    with closing(AuditedTier(cluster=told_cluster(PARTITIONS[0], log_start=250))) as tier:
        play(tier, steps)
        tier.audit()
        orphans = {key for one in tier.orphans for key in one.keys}
        unknown = [one for one in tier.orphans if one.proof is OrphanProof.TOPIC_UNKNOWN]
        before = set(tier.store.objects)
        assert tier.delete().is_fine is not bool(unknown)
        kept = {key for one in unknown for key in one.keys}
        assert set(tier.store.objects) == before - orphans | kept
        assert tier.delete(proofs=tuple(OrphanProof)).is_fine
        assert set(tier.store.objects) == before - orphans
        tier.audit()
        assert not tier.orphans


OTHER = tp("payments", 1, Uuid.of(3, 3))
LOG, INDEXES, MANIFEST = ObjectKind


def a_copy(tier: AuditedTier, segment: SegmentMetadata) -> Iterator[None]:
    tier.say(segment)
    yield
    for kind in ObjectKind:
        tier.put(segment, (kind,), modified_ms=NOW_MS)
        yield
    tier.say(update(segment.id, CF, event_timestamp_ms=NOW_MS))
    yield


def a_deletion(tier: AuditedTier, segment: SegmentMetadata) -> Iterator[None]:
    tier.say(update(segment.id, DS, event_timestamp_ms=NOW_MS))
    yield
    for kind in (MANIFEST, INDEXES, LOG):
        tier.remove(segment, kind)
        yield
    tier.say(update(segment.id, DF, event_timestamp_ms=NOW_MS))
    yield


def filled() -> tuple[AuditedTier, list[SegmentMetadata], list[SegmentMetadata]]:
    tier = AuditedTier(cluster=told_cluster(ORDERS, OTHER, log_start=1_000))
    kept, orphans = [], []
    for number in range(6):
        partition = (ORDERS, OTHER)[number % 2]
        start = 1_000 + number // 2 * 100
        one = segment_of(number + 1, start, start + 99, partition, event_timestamp_ms=OLD_MS)
        tier.bring(one, CF, modified_ms=OLD_MS)
        kept.append(one)
    for number in range(4):
        partition = (ORDERS, OTHER)[number % 2]
        one = segment_of(50 + number, 0, 99, partition, event_timestamp_ms=OLD_MS)
        if number < 2:
            tier.bring(one, DF, modified_ms=OLD_MS, kinds=tuple(ObjectKind)[: number + 1])
        else:
            tier.put(one, modified_ms=OLD_MS)
        orphans.append(one)
    return tier, kept, orphans


@given(
    order=st.lists(st.integers(0, 7), min_size=10, max_size=80),
    pauses=st.lists(st.integers(0, 12), min_size=1, max_size=30),
)
def test_f119_orphans_when_others_copy_are_the_orphans(order: list[int], pauses: list[int]) -> None:
    """The audit names exactly the orphans, however jobs copy and delete between its calls."""
    tier, kept, orphans = filled()
    with closing(tier):
        new = [
            segment_of(20 + number, 1_300 + number // 2 * 100, 1_399 + number // 2 * 100,
                       (ORDERS, OTHER)[number % 2], event_timestamp_ms=NOW_MS)
            for number in range(4)
        ]  # fmt: skip
        running = [
            *(a_copy(tier, one) for one in new),
            *(a_deletion(tier, one) for one in kept[:4]),
        ]
        waiting = iter(order)
        pause = iter(pauses)

        def before(name: str, key: str) -> None:
            for _ in range(next(pause, 1)):
                chosen = next(waiting, None)
                if chosen is not None:
                    next(running[chosen], None)

        tier.store.before = before
        report = tier.audit()
        tier.store.before = lambda name, key: None
        assert {one.id for one in tier.orphans} == {one.id for one in orphans}
        said = codes(report)
        said.pop("TIER-EXTENT-GAP", None)  # deletions here begin anywhere, and not at the start
        assert said == {"TIER-ORPHAN": len(orphans)}
        if "TIER-EXTENT-GAP" not in codes(report):
            assert report.overall is AuditVerdict.DIRTY


@given(order=st.lists(st.integers(0, 3), min_size=5, max_size=60))
def test_f119_orphans_when_deleted_while_others_copy_take_nothing_along(order: list[int]) -> None:
    """Deleting orphans removes no object of a segment that the metadata knows at any time."""
    tier, kept, orphans = filled()
    with closing(tier):
        tier.audit()
        new = [segment_of(30 + number, 5_000 + 100 * number, 5_099 + 100 * number,
                          event_timestamp_ms=NOW_MS) for number in range(2)]  # fmt: skip
        # One of the orphans is announced anew meanwhile: its id is somebody's again.
        again = orphans[2]
        running = [*(a_copy(tier, one) for one in new), a_deletion(tier, kept[0])]
        if 3 in order:
            tier.say(again)
        known = [*kept[1:], *new, *([again] if 3 in order else [])]
        waiting = iter(order)
        deleted: list[str] = []

        def before(name: str, key: str) -> None:
            if name == "delete":
                deleted.append(key)
            chosen = next(waiting, None)
            if chosen is not None and chosen < len(running):
                next(running[chosen], None)

        tier.store.before = before
        tier.delete()
        ids = {str(one.id.uuid) for one in known}
        assert not [key for key in deleted if any(one in key for one in ids)]
        gone = {str(one.id.uuid) for one in orphans} - ids
        assert {one for one in gone if any(one in key for key in tier.store.objects)} == set()
