"""Audits while copies and deletions go on: they name exactly the orphans, nothing as missing."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from rlmm.metadata.ids import Uuid
from spark_tiering.layout.object_names import ObjectKind
from spark_tiering.maintenance.audit.object_set_verdict import DAY_MS, AuditVerdict
from tests.support.builders import tp, update
from tests.support.tier.audited_tiers import (
    CF,
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

    from rlmm.metadata.segment import SegmentMetadata

OLD_MS = NOW_MS - 3 * DAY_MS
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
