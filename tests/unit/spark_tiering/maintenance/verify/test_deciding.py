"""Deciding for verify: segments and units, lost offsets, and gaps between segments."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlmm.errors import ConfigError
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from spark_tiering.layout.custom_metadata import CustomMetadata, format_custom_metadata
from spark_tiering.maintenance.verify import segment_choice
from spark_tiering.maintenance.verify.fault_findings import (
    KINDS,
    extent_finding_of,
    finding_of,
    judge_extents,
    lost_of,
    ranges_text,
)
from spark_tiering.maintenance.verify.report import VerifyReport
from spark_tiering.maintenance.verify.segment_choice import (
    SegmentRank,
    behind,
    expected_of,
    in_groups,
    is_passed,
    parse_after,
    requests_of,
    sampled,
    token_of,
)
from spark_tiering.maintenance.verify.values import (
    SegmentFault,
    SegmentFaults,
    SegmentSample,
    UnitVerdict,
    VerifyOptions,
    VerifyWork,
    plain,
)
from spark_tiering.maintenance.verify.verification import CHECKED, count_unit
from spark_tiering.reporting.progress import Meter
from spark_tiering.reporting.report import LINES_MAX, FindingSample
from tests.support.builders import segment_id, tp

GIB = 1024**3


def segment(number: int, first: int, last: int, **changes: Any) -> SegmentMetadata:
    said = SegmentMetadata(
        segment_id(number), first, last, 1, 1, 1, ((0, first),), 100,
        state=SegmentState.COPY_SEGMENT_FINISHED,
    )  # fmt: skip
    return replace(said, **changes)


def test_place_when_written_is_read_back_and_orders_as_segments_are_listed() -> None:
    """A place reads back, and places order by topic, partition, topic id, offset and id."""
    one = segment(1, 10, 19)
    assert parse_after(token_of(one)) == SegmentRank.of(one.id, 10)
    assert parse_after("") is None
    places = [
        SegmentRank.of(segment_id(number, tp(topic, partition)), start)
        for topic in ("a", "b")
        for partition in (2, 10)
        for start in (5, 100)
        for number in (1, 2)
    ]
    assert places == sorted(places)
    for text in ("x", "../x", token_of(one) + ".log", "a" * 1000):
        with pytest.raises(ConfigError, match="no place to go on behind"):
            parse_after(text)


def test_segments_when_begun_behind_a_place_leave_out_what_was_looked_at() -> None:
    """A start behind a place leaves out every segment up to it, the place included."""
    segments = [segment(n, 10 * n, 10 * n + 9) for n in range(1, 5)]
    after = parse_after(token_of(segments[1]))
    assert list(behind(segments, after)) == segments[2:]
    assert list(behind(segments, None)) == segments
    assert is_passed(tp("orders", 6), after)
    assert not is_passed(tp("orders", 7), after)
    assert not is_passed(tp("payments", 0), after)
    assert not is_passed(tp("a", 0), None)


@given(count=st.integers(1, 60), total=st.integers(0, 50), seed=st.integers(0, 2**31 - 1))
def test_sample_by_number_has_so_many_in_order_again(count: int, total: int, seed: int) -> None:
    """A sample by number has that many segments in order, or all when there are fewer."""
    segments = [segment(n, n, n) for n in range(1, total + 1)]
    drawn = list(sampled(segments, SegmentSample(count, seed=seed)))
    assert len(drawn) == min(count, total) == expected_of(total, SegmentSample(count))
    assert drawn == [one for one in segments if one in drawn]
    assert drawn == list(sampled(segments, SegmentSample(count, seed=seed)))


def test_sample_by_share_is_about_so_many() -> None:
    """A sample by share has about that share, and another seed draws others."""
    segments = [segment(n, n, n) for n in range(1, 4001)]
    first = list(sampled(segments, SegmentSample(share=0.1, seed=1)))
    other = list(sampled(segments, SegmentSample(share=0.1, seed=2)))
    assert 300 < len(first) < 500
    assert first != other
    assert list(sampled(segments, SegmentSample(share=1.0))) == segments
    assert list(sampled(segments, None)) == segments
    assert expected_of(1000, SegmentSample(share=0.1)) == 100
    assert expected_of(7, None) == 7


@given(total=st.integers(0, 12), seed=st.integers(0, 2**31 - 1))
def test_sample_by_share_of_few_segments_when_drawn_then_has_one_at_least(
    total: int, seed: int
) -> None:
    """A small share of a few segments draws one of them: no check of nothing passes."""
    segments = [segment(n, n, n) for n in range(1, total + 1)]
    drawn = list(sampled(segments, SegmentSample(share=0.0001, seed=seed)))
    assert len(drawn) == min(1, total) == expected_of(total, SegmentSample(share=0.0001))


@pytest.mark.parametrize(
    "sample", [{}, {"count": 1, "share": 0.5}, {"count": 0}, {"count": 10**6}, {"share": 0.0}]
)
def test_sample_when_it_is_none_is_refused(sample: dict[str, Any]) -> None:
    """A sample by both number and share, or by zero, is refused."""
    with pytest.raises(ConfigError, match="sample"):
        SegmentSample(**sample)


def test_requests_when_reckoned_are_the_most_that_a_whole_segment_takes() -> None:
    """The calculated requests are the upper bound, by prefixes to search and bytes to read."""
    one = segment(1, 0, 9)
    looks = VerifyOptions()
    assert requests_of(one, looks) == 3
    assert requests_of(one, replace(looks, old_prefixes=("a/", "b/"))) == 5
    named = replace(one, custom_metadata=format_custom_metadata(CustomMetadata(1, "c/")))
    assert requests_of(named, looks) == 4
    sized = replace(one, custom_metadata=format_custom_metadata(CustomMetadata(1)))
    assert requests_of(sized, looks) == 3
    deep = replace(looks, is_deep=True)
    assert requests_of(replace(one, size_bytes=GIB), deep) >= 3 + 1 + GIB // (16 * 1024**2)


def test_units_when_made_are_of_some_seconds_of_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Units hold some seconds of work, by number and by bytes, and at least one segment."""
    monkeypatch.setattr(segment_choice, "SEGMENTS_MAX", 3)
    segments = [segment(n, n, n, size_bytes=GIB - 1) for n in range(1, 9)]
    assert [len(group) for group in in_groups(segments, VerifyOptions())] == [3, 3, 2]
    deep = VerifyOptions(is_deep=True)
    assert [len(group) for group in in_groups(segments, deep)] == [1] * 8
    small = [replace(one, size_bytes=GIB // 2) for one in segments]
    assert [len(group) for group in in_groups(small, deep)] == [2] * 4
    assert not list(in_groups([], deep))


def test_lost_offsets_of_part_of_a_segment_are_that_part() -> None:
    """Of a segment that is broken in parts, those parts are lost."""
    broken = segment(1, 0, 99)
    for parts in (((10, 19), (30, 39)), ()):
        assert lost_of([(broken, parts)], [broken]) == parts


@given(
    st.lists(
        st.tuples(st.integers(0, 40), st.integers(0, 15), st.booleans(), st.integers(0, 1)),
        min_size=1,
        max_size=8,
    )
)
def test_lost_offsets_are_those_nothing_whole_has(drawn: list[tuple[int, int, bool, int]]) -> None:
    """For any segments the lost offsets of each epoch are those that no whole segment holds."""
    segments = [
        segment(n, first, first + more, epochs=((epoch, first),))
        for n, (first, more, _, epoch) in enumerate(drawn, 1)
    ]
    broken = [
        (one, ((one.start_offset, one.last_offset),))
        for one, (_, _, is_broken, _) in zip(segments, drawn, strict=True)
        if is_broken
    ]
    bad = {one.id for one, _ in broken}

    def offsets(wanted: list[SegmentMetadata]) -> set[tuple[int, int]]:
        return {
            (one.epochs[0][0], offset)
            for one in wanted
            for offset in range(one.start_offset, one.last_offset + 1)
        }

    good = offsets([one for one in segments if one.id not in bad])
    expected = {offset for _, offset in offsets([one for one, _ in broken]) - good}
    lost = lost_of(broken, segments)
    assert {at for first, last in lost for at in range(first, last + 1)} == expected
    assert all(one[1] + 1 < other[0] for one, other in itertools.pairwise(lost))


def test_segments_when_they_follow_one_another_are_fine() -> None:
    """Segments that follow each other are fine, also over an unclean election."""
    chain = [
        segment(1, 0, 9),
        segment(2, 10, 29, epochs=((0, 10), (1, 20))),
        segment(3, 30, 39, epochs=((1, 30),)),
    ]
    assert not list(judge_extents(tp(), chain))
    replaced = segment(4, 15, 60, epochs=((0, 15),))
    assert not [
        one for one in judge_extents(tp(), [*chain, replaced]) if one.code == "TIER-EXTENT-GAP"
    ]
    assert not list(judge_extents(tp(), []))


def test_segments_when_offsets_are_in_none_or_in_two_are_told() -> None:
    """Offsets in no segment or in two segments are named, except below the log start offset."""
    gap = [segment(1, 0, 9), segment(2, 20, 29)]
    (found,) = judge_extents(tp(), gap)
    assert (found.code, found.lost) == ("TIER-EXTENT-GAP", ((10, 19),))
    (cut,) = judge_extents(tp(), gap, 15)
    assert cut.lost == ((15, 19),)
    assert not list(judge_extents(tp(), gap, 20))
    both = [segment(1, 0, 9), segment(2, 5, 19)]
    (found,) = judge_extents(tp(), both)
    assert (found.code, found.lost) == ("TIER-EXTENT-OVERLAP", ())
    assert found.segment_ids == (str(both[0].id.uuid), str(both[1].id.uuid))
    assert not list(judge_extents(tp(), both, 10))


def test_segment_when_its_epochs_do_not_fit_its_offsets_is_told() -> None:
    """A segment whose epochs do not fit its offsets is a finding, as in other commands."""
    wrong = segment(1, 0, 9, epochs=((0, 0), (1, 5), (2, 4)))
    (found,) = (one for one in judge_extents(tp(), [wrong]) if one.code == "TIER-EPOCH-ORDER")
    assert found.segment_ids == (str(wrong.id.uuid),)
    finding = extent_finding_of(tp(), found)
    assert finding.kind.code == "TIER-EPOCH-ORDER"
    assert finding.subject == "orders-7"


def report(**changes: Any) -> VerifyReport:
    said: dict[str, Any] = {
        "cluster_id": "c", "began_ms": 0, "ended_ms": 2_000, "is_deep": True, "partitions": 1,
        "segments_total": 3, "work": VerifyWork(3, 9, 12, 3_000_000), "found": FindingSample(),
        "lost": {},
    }  # fmt: skip
    return VerifyReport(**(said | changes))


def test_report_when_nothing_was_found_says_the_figures() -> None:
    """A report without findings has its figures; a stop or a warning makes it not fine."""
    fine = report()
    assert fine.is_fine
    lines = list(fine.lines())
    assert "9 objects, 12 requests in 2 s (4 objects/s)" in lines[0]
    assert "4000000 requests for a million segments" in lines[0]
    assert fine.document()["objectsPerS"] == 4.5
    assert report(ended_ms=0).document()["objectsPerS"] is None
    assert report(work=VerifyWork()).requests_per_million == 0
    assert not report(stopped="SIGINT").is_fine
    nothing = report(work=VerifyWork())
    assert (nothing.is_fine, list(nothing.lines())[-1]) == (False, "nothing was checked")
    archived = SegmentFault("TIER-OBJECT-ARCHIVED", "log", "key", "x", ((0, 9),))
    assert not report(found=FindingSample.of([finding_of(segment(1, 0, 9), archived)])).is_fine


def test_report_when_much_was_found_shows_the_first_ones_of_each_code() -> None:
    """A report with many findings shows the first of each code and counts the rest."""
    fault = SegmentFault(
        "TIER-OBJECT-MISSING", "log", "key", "log: there is no such object", ((0, 9),)
    )
    findings = (finding_of(segment(n, 0, 9), fault) for n in range(1, LINES_MAX + 6))
    found = report(
        found=FindingSample.of(findings),
        lost={tp("orders", n): ((0, 9),) for n in range(LINES_MAX + 3)},
        notes=("so it is",),
        stopped="SIGTERM",
        after="there",
    )
    assert not found.is_fine
    text = "\n".join(found.lines())
    assert "and 5 more, see --report" in text
    assert "... and 3 more partitions" in text
    assert "note: so it is" in text
    assert "to go on: --after there" in text
    assert len(found.document()["findings"]) == LINES_MAX + 5


def test_finding_when_part_of_a_segment_is_lost_says_which() -> None:
    """A finding about part of a segment names that part in words and fields."""
    fault = SegmentFault("TIER-BATCH-DAMAGED", "log", "key", "a CRC", ((5, 5), (7, 9)))
    found = finding_of(segment(1, 0, 9), fault)
    assert "(lost: 5, 7-9)" in found.detail
    assert found.fields["lost"] == [[5, 5], [7, 9]]
    assert ranges_text(tuple((n, n) for n in range(0, 40, 2))).endswith("and 12 more")
    assert plain("a\nb" * 1000).startswith("a?b")
    assert len(plain("x" * 10_000)) == 500
    assert set(KINDS) >= {"TIER-KEY-WRONG", "TIER-TIMESTAMP-WRONG"}


def test_progress_when_units_come_back_counts_segments() -> None:
    """Progress counts returned segments and their findings."""
    told: list[Any] = []
    now = iter([0.0, 2.0])
    meter = Meter(told.append, lambda: next(now))
    meter.expect(CHECKED, 10, failed_as="with findings")
    fault = SegmentFault("TIER-UNREADABLE", "", "", "x")
    work = VerifyWork(4, 12, 12, 5_000_000)
    count_unit(meter, UnitVerdict(0, (SegmentFaults(0, (fault,)),), work))
    (progress,) = told
    assert progress.line() == (
        "4 of 10 segments checked, 5.0 MB, 2.5 MB/s, 1 with findings, 3 s left"
    )
