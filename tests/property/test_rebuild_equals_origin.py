"""
Rebuilt metadata of a random tier equals its origin, but for the named rules.

Broker and time of a segment are those of its start; unfinished copies come back where their objects
are whole; overlapping copies have the order of their starts; highest offsets of what is gone are
gone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from rlmm.metadata.segment import SegmentMetadata, SegmentState
from spark_tiering.layout.findings import LayoutFinding
from spark_tiering.layout.manifest import describe
from spark_tiering.layout.manifest_document import format_manifest, parse_manifest
from spark_tiering.layout.metadata_recovery import CustomFields, recover_from
from spark_tiering.layout.object_names import ObjectKind, ObjectName
from spark_tiering.maintenance.json_lines import parse_line, spaced_line
from spark_tiering.maintenance.rebuild.apply_steps import groups, steps_for
from spark_tiering.maintenance.rebuild.decision import RebuildFate, decide
from spark_tiering.maintenance.rebuild.document import entry_fields, entry_of, parse_entry
from spark_tiering.maintenance.rebuild.manifests import ReadSet
from tests.support.builders import delete_finished, delete_started, finished, tp
from tests.support.engine.chosen import ChosenShard
from tests.support.stores.segment_objects import manifest_of, whole_segment

if TYPE_CHECKING:
    from rlmm.metadata.events import SegmentUpdate
    from rlmm.metadata.ids import SegmentId

OFFSETS = 60
STAGES = ("open", "whole", "finished", "deleting", "deleted")


@st.composite
def tiers(draw: st.DrawFn) -> list[tuple[SegmentMetadata, str]]:
    found = []
    for number in range(draw(st.integers(0, 9))):
        start = draw(st.integers(0, OFFSETS - 1))
        last = draw(st.integers(start, OFFSETS - 1))
        first = draw(st.integers(0, 3))
        epochs = {first: start}
        if last > start and draw(st.booleans()):
            epochs[first + draw(st.integers(1, 2))] = draw(st.integers(start + 1, last))
        segment = whole_segment(
            number,
            start,
            last,
            epochs=epochs,
            broker_id=draw(st.integers(1, 3)),
            event_timestamp_ms=1_000 + number,
            max_timestamp_ms=draw(st.integers(-1, 5)),
            txn_index_empty=draw(st.booleans()),
            size_bytes=draw(st.integers(1, 90)),
        )
        found.append((segment, draw(st.sampled_from(STAGES))))
    return found


def origin(tier: list[tuple[SegmentMetadata, str]]) -> ChosenShard:
    shard = ChosenShard(0)
    for segment, _ in tier:
        shard.apply_event(entry_of(segment).start)
    for segment, stage in tier:
        if stage in ("finished", "deleting", "deleted"):
            entry = entry_of(segment)
            shard.apply_event(finished(segment.id, broker_id=entry.start.broker_id))
    for segment, stage in tier:
        if stage in ("deleting", "deleted"):
            shard.apply_event(delete_started(segment.id))
        if stage == "deleted":
            shard.apply_event(delete_finished(segment.id))
    return shard


def recovered(segment: SegmentMetadata) -> SegmentMetadata:
    content = format_manifest(replace(manifest_of(segment), described=describe(segment)))
    manifest = parse_manifest(content)
    assert not isinstance(manifest, LayoutFinding)
    name = ObjectName(segment.id, segment.start_offset, ObjectKind.MANIFEST)
    found = recover_from(name, manifest, len(content), fields=CustomFields.NONE)
    assert isinstance(found, SegmentMetadata), found
    return found


def rebuilt(
    tier: list[tuple[SegmentMetadata, str]],
    past: dict[SegmentId, SegmentState],
    shard: ChosenShard,
    stop_after: int | None = None,
) -> list[RebuildFate]:
    sets = [
        ReadSet(segment.id, segment.start_offset, 0, recovered(segment))
        for segment, stage in tier
        if stage != "open"
    ]
    difference = decide(tp(), sets, {}, past)
    lines = [entry_fields(entry_of(one), "tier/") for one in difference.missing]
    entries = [
        parse_entry(parse_line(spaced_line(first)), parse_line(spaced_line(second)), "tier/")
        for first, second in lines
    ]
    present = {one.id: one for one in shard.segments(tp())} if shard.knows(tp()) else {}
    told = steps_for(entries, present)
    assert not told.refused
    events: list[SegmentMetadata | SegmentUpdate] = []
    for group in groups(told.steps, 3):
        events += [one.entry.start for one in group if one.needs_start]
        events += [one.entry.finish for one in group]
    for event in events[:stop_after]:
        shard.apply_event(event)
    return [one.fate for one in difference.decided]


def answers(shard: ChosenShard) -> list[object]:
    if not shard.knows(tp()):
        return []
    found: list[object] = []
    for epoch in range(6):
        for offset in range(OFFSETS + 1):
            for ask in (shard.segment_for, shard.next_segment_with_txn_index):
                segment = ask(tp(), epoch, offset)
                found.append(None if segment is None else segment.id)
    return found


def expected(tier: list[tuple[SegmentMetadata, str]]) -> ChosenShard:
    kept = [(one, "finished") for one, stage in tier if stage in ("whole", "finished")]
    return origin(kept)


@given(tiers())
def test_rebuild_when_deletions_are_known_is_equal(tier: list[tuple[SegmentMetadata, str]]) -> None:
    """A rebuild with known deletions equals the original in every look-up, segment and field."""
    past = {
        segment.id: SegmentState.DELETE_SEGMENT_STARTED
        if stage == "deleting"
        else SegmentState.DELETE_SEGMENT_FINISHED
        for segment, stage in tier
        if stage in ("deleting", "deleted")
    }
    shard = ChosenShard(0)
    fates = rebuilt(tier, past, shard)
    assert fates.count(RebuildFate.DELETED) == len(past)
    wanted = expected(tier)
    assert answers(shard) == answers(wanted)
    if not shard.knows(tp()):
        return
    by_id = {segment.id: segment for segment, _ in tier}
    assert [replace(one, event_timestamp_ms=0) for one in shard.segments(tp())] == [
        replace(one, event_timestamp_ms=0) for one in wanted.segments(tp())
    ]
    assert all(one == by_id[one.id] for one in shard.segments(tp()))
    for epoch in range(6):
        assert shard.highest_offset(tp(), epoch) == wanted.highest_offset(tp(), epoch)


@given(tiers().filter(lambda tier: all(stage != "whole" for _, stage in tier)))
def test_rebuild_when_nothing_was_deleted_is_equal(tier: list[tuple[SegmentMetadata, str]]) -> None:
    """A rebuild without deletions answers as the lost metadata did."""
    tier = [(one, "finished" if stage != "open" else stage) for one, stage in tier]
    shard = ChosenShard(0)
    rebuilt(tier, {}, shard)
    before = origin(tier)
    assert answers(shard) == (answers(before) if shard.knows(tp()) else [])


@given(tiers(), st.integers(0, 18))
def test_rebuild_when_its_application_is_broken_off_then_a_second_one_completes_it(
    tier: list[tuple[SegmentMetadata, str]], stop_after: int
) -> None:
    """The second run publishes the events that the first run did not, and no event twice."""
    shard, whole = ChosenShard(0), ChosenShard(0)
    rebuilt(tier, {}, shard, stop_after)
    rebuilt(tier, {}, shard)
    rebuilt(tier, {}, whole)
    assert answers(shard) == answers(whole)
    assert shard.position == whole.position
