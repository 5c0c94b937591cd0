"""Hostile files: an inspection names the damage, and never fails."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from spark_tiering.segments.findings import SegmentPart
from spark_tiering.segments.segment_inspection import InspectionRules, inspect_segment
from spark_tiering.segments.segment_listing import list_segments
from spark_tiering.segments.segment_parts import REQUIRED, RebuiltPart, SegmentReport, StoredPart
from spark_tiering.segments.state_before import last_stable_offset, state_before
from tests.support.memory import memory_below
from tests.support.partitions.segments import (
    MemoryFiles,
    example_partition,
    inspect_all,
    recorded_partition,
)
from tests.support.records.mutations import mutated, with_sound_crc

PARTITIONS = (example_partition(), recorded_partition())
RULES = (InspectionRules(), InspectionRules(index_interval_bytes=300))
BYTES_MAX = 60 * 2**20
"""Far below what any told length could make somebody take, and above what a piece takes."""

seeds = st.integers(0, 2**63)
which = st.sampled_from([0, 1])


def damaged(seed: int, chosen: int) -> MemoryFiles:
    rng, files = Random(seed), PARTITIONS[chosen]
    contents = dict(files.contents)
    others = list(contents.values())
    told: dict[str, int] = {}
    for name in rng.sample(sorted(contents), rng.randint(1, 3)):
        content = mutated(rng, contents[name], others)
        if name.endswith(".log") and rng.random() < 0.7:
            content = with_sound_crc(content)
        contents[name] = content
        if rng.random() < 0.2:
            told[name] = rng.choice([0, 1, len(content) + 1, len(content) - 1, 2**31 - 1, 2**62])
        if rng.random() < 0.1:
            del contents[name]
    return MemoryFiles(contents, told)


def assert_adds_up(report: SegmentReport) -> None:
    assert all(str(found) for found in report.findings)
    assert all(len(found.detail) < 1_000 for found in report.findings)
    assert len(report.findings) < 20
    for part in REQUIRED:
        found = [one for one in report.findings if one.part is part]
        blocked = SegmentPart.LOG in {one.part for one in report.blockers}
        assert part in report.parts or found or blocked
    if not report.blockers:
        assert set(report.parts) >= set(REQUIRED)
        assert report.epochs
        assert report.epochs[0][1] == report.segment.base_offset
        assert report.size_bytes >= 0
    for held, content in report.parts.items():
        named = {one.part for one in report.findings}
        # What was made although nothing was wrong is the cut of the epochs, and nothing else.
        if isinstance(content, RebuiltPart) and held is not SegmentPart.LEADER_EPOCHS:
            assert held in named
        if isinstance(content, StoredPart):
            assert held not in named


@given(seeds, which)
def test_segments_when_files_are_damaged_then_are_reported_on(seed: int, chosen: int) -> None:
    """A report always adds up, with or without the previous segment's state."""
    files = damaged(seed, chosen)
    for report in inspect_all(files, RULES[chosen]):
        assert_adds_up(report)
    segments = list_segments(files.facts())
    for segment in segments:
        if segment.is_rolled:
            before = state_before(files, segments, segment.base_offset, with_epochs=True)
            assert_adds_up(inspect_segment(files, segment, rules=RULES[chosen]))
            assert_adds_up(inspect_segment(files, segment, before, rules=RULES[chosen]))


@given(seeds, which)
def test_last_stable_offset_when_files_are_damaged_then_no_error(seed: int, chosen: int) -> None:
    """The function returns an offset or a reason."""
    found = last_stable_offset(damaged(seed, chosen))
    assert (found.offset is None) is bool(found.detail)


@given(seeds, which)
def test_companions_when_damaged_then_copied_parts_are_right(seed: int, chosen: int) -> None:
    """Companion files that a copy keeps or makes are right when they are read again."""
    rng, files = Random(seed), PARTITIONS[chosen]
    contents = dict(files.contents)
    beside = [name for name in sorted(contents) if not name.endswith(".log")]
    for name in rng.sample(beside, rng.randint(1, len(beside))):
        contents[name] = mutated(rng, contents[name], list(contents.values()))
    for report in inspect_all(MemoryFiles(contents), RULES[chosen]):
        assert report.blockers == ()
        copied = dict(files.contents)
        suffixes = {"offset": ".index", "timestamp": ".timeindex", "transaction": ".txnindex"}
        for part, suffix in suffixes.items():
            name = report.segment.file(suffix)
            copied.pop(name, None)
            content = report.parts.get(SegmentPart(part))
            if content is not None:
                kept = isinstance(content, StoredPart)
                copied[name] = contents[name] if kept else content.content  # type: ignore[union-attr]  # made
        # Judged with the true state before it, which the other files still tell.
        again = inspect_segment(MemoryFiles(copied), report.segment, rules=RULES[chosen])
        assert again.findings == ()


def test_memory_when_every_length_lies_then_stays_small() -> None:
    """No declared size, count or length makes a reader reserve memory."""
    files = example_partition()
    huge = 2**31 - 1
    files.told = {name: huge for name in files.contents if not name.startswith("0" * 20)}
    with memory_below(BYTES_MAX):
        for report in inspect_all(files):
            assert_adds_up(report)
        assert last_stable_offset(files).offset is None
        for seed in range(20):
            for report in inspect_all(damaged(seed, 0), InspectionRules(index_interval_bytes=0)):
                assert_adds_up(report)
