"""Lineage and coverage: partly tiered segments, and the offsets that brokers find."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlmm.metadata.segment import SegmentState
from spark_tiering.copy_plan.lineage import CopiedTier, Coverage, EpochSpan, spans_of
from spark_tiering.copy_plan.reasons import CopyMode
from tests.support.builders import started
from tests.support.tier.copy_plans import (
    FINISHED,
    copied,
    cut,
    image,
    planned,
    ranges,
    reasons,
    rules,
)

if TYPE_CHECKING:
    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.segments.leader_epochs import Epochs

ADOPT = rules(CopyMode.ADOPT)
ONE: Epochs = ((0, 0),)


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        pytest.param([(0, 95)], "copy", id="begins in one, at the top"),
        pytest.param([(0, 90), (95, 130)], "copy", id="around one, at the top"),
        pytest.param([(95, 200)], "copy", id="ends in one"),
        pytest.param([(0, 95), (110, 200)], "copy", id="fills a hole"),
        pytest.param([(90, 95)], "copy", id="begins with one, at the top"),
        pytest.param([(90, 95), (140, 200)], "copy", id="takes the place of one that is shorter"),
        pytest.param([(0, 200)], "covered", id="inside one"),
        pytest.param([(0, 95), (95, 200)], "covered", id="inside two"),
        pytest.param([(95, 110), (140, 200)], "overlap-would-hide", id="around one, below others"),
        pytest.param(
            [(0, 95), (100, 110), (190, 200)], "overlap-would-hide", id="around, in a row"
        ),
    ],
)
def test_f103_segment_partly_tiered_is_whole(known: list[tuple[int, int]], expected: str) -> None:
    """A partly tiered segment is copied whole where brokers then find all offsets, else refused."""
    finished = [copied(f"{start}", start, stop, FINISHED) for start, stop in known]
    plan = planned(cut(90, 140), *finished)
    if expected == "copy":
        assert ranges(plan) == [("copy", 90, 140)]
    else:
        assert reasons(plan) == [(expected, 90, 140)]


def test_f103_segment_when_another_lineage_has_the_rest_then_is_no_hindrance() -> None:
    """A deposed leader's copy beyond the change of leaders does not prevent a copy."""
    history = ((0, 0), (1, 120))
    deposed = copied("a", 0, 200, FINISHED)
    plan = planned(cut(90, 140, history=history), deposed, history=history)
    assert ranges(plan) == [("copy", 90, 140)]
    later = ((0, 0), (1, 300))
    assert CopiedTier(image(deposed), later).why_hides(((0, 90), (1, 120)), 90, 140) is not None


def test_watermark_when_it_lies_above_then_displaces_nothing() -> None:
    """A watermark above a copy displaces nothing: brokers count deleted copies too."""
    inner = copied("a", 95, 110, FINISHED)
    assert ranges(planned(cut(90, 140), inner)) == [("copy", 90, 140)]
    assert reasons(planned(cut(90, 140), inner, watermarks=[(0, 140)])) == [
        ("overlap-would-hide", 90, 140)
    ]


@pytest.mark.parametrize(
    ("known", "history", "watermarks", "log_start", "expected"),
    [
        pytest.param([], ONE, [], 30, 30, id="empty"),
        pytest.param([(0, 50)], ONE, [], 0, 50, id="behind the highest"),
        pytest.param([(0, 50)], ONE, [(0, 79)], 0, 80, id="watermark"),
        pytest.param([(0, 50)], ONE, [], 60, 60, id="log starts above"),
        pytest.param([(0, 50)], ((0, 0), (1, 40)), [], 0, 40, id="cut by the next leader"),
        pytest.param([(0, 50)], ((1, 0),), [], 0, 0, id="of no leader that counts"),
    ],
)
def test_next_offset_when_brokers_look_then_is_behind_the_highest_of_the_lineage(
    known: list[tuple[int, int]],
    history: Epochs,
    watermarks: list[tuple[int, int]],
    log_start: int,
    expected: int,
) -> None:
    """Brokers continue behind the highest offset of the lineage."""
    finished = [copied(f"{start}", start, stop, FINISHED) for start, stop in known]
    tier = CopiedTier(image(*finished, watermarks=watermarks), history)
    assert tier.next_offset(log_start) == expected


@pytest.mark.parametrize(
    ("offsets", "known", "log_start", "expected"),
    [
        pytest.param((0, 10, 20), [], 0, None, id="empty tier, from the log start"),
        pytest.param((0, 10, 20, 30), [(0, 10)], 0, None, id="goes on"),
        pytest.param((10, 20), [(0, 10)], 0, None, id="local part begins there"),
        pytest.param((10, 20), [], 0, "not-at-next-offset", id="begins above the log start"),
        pytest.param((15, 20), [(0, 10)], 0, "not-at-next-offset", id="begins above"),
        pytest.param((5, 20), [(0, 10)], 0, "not-at-next-offset", id="begins below"),
        pytest.param((20, 30), [(0, 10), (15, 20)], 0, "tier-has-hole", id="hole in the tier"),
        pytest.param((20, 30), [(15, 20)], 10, "tier-has-hole", id="hole at the log start"),
        pytest.param((20, 30), [(10, 20)], 10, None, id="tier begins with the log"),
    ],
)
def test_adopted_copies_when_they_begin_then_do_so_exactly_where_the_tier_ends(
    offsets: tuple[int, ...], known: list[tuple[int, int]], log_start: int, expected: str | None
) -> None:
    """Adopted copies begin exactly at the end of the tier, without gap and overlap."""
    finished = [copied(f"{start}", start, stop, FINISHED) for start, stop in known]
    plan = planned(cut(*offsets), *finished, rule=ADOPT, log_start=log_start)
    if expected is None:
        first = max((stop for _, stop in known), default=offsets[0])
        left = offsets[offsets.index(first) :]
        assert ranges(plan) == [("copy", *pair) for pair in pairwise(left)]
    else:
        assert not plan.copies
        assert reasons(plan)[0][0] == expected
    assert not plan.gaps


@pytest.mark.parametrize(
    ("known", "of_source", "expected"),
    [
        ([], {"is_tiered": False}, "not-tiered"),
        ([], {"log_start": None}, "log-start-unknown"),
        ([copied("a", 0, 10, FINISHED)], {"history": ((0, 5),)}, "tier-has-hole"),
    ],
)
def test_adoption_when_the_topic_or_its_start_is_not_known_then_is_refused(
    known: list[SegmentMetadata], of_source: dict[str, Any], expected: str
) -> None:
    """An adoption needs a topic that brokers tier, its log start offset and a tier without hole."""
    assert reasons(planned(cut(10, 20), *known, rule=ADOPT, **of_source)) == [(expected, 10, 20)]


CS, CF, DS, DF = SegmentState


def held_copy(
    start: int, next_offset: int, epochs: dict[int, int] | None = None, *, state: SegmentState = CF
) -> SegmentMetadata:
    """Return the metadata of a copy of [start, next_offset), finished by default."""
    name = f"{start}-{next_offset}-{epochs}"
    return started(name, start, next_offset - 1, epochs, state=state)


def test_spans_when_epochs_change_within_then_each_ends_where_the_next_begins() -> None:
    """A span ends at the next one's start; offsets before the first epoch belong to none."""
    assert spans_of(((4, 0), (6, 200)), 120, 251) == (
        EpochSpan(4, 120, 200),
        EpochSpan(6, 200, 251),
    )
    assert spans_of(((4, 130),), 120, 251) == (EpochSpan(4, 130, 251),)
    assert spans_of(((4, 0), (5, 120), (6, 251)), 120, 251) == (EpochSpan(5, 120, 251),)
    assert spans_of((), 120, 251) == ()


@pytest.mark.parametrize("state", [CS, DS, DF])
def test_f102_copy_when_it_is_not_finished_then_covers_nothing(state: SegmentState) -> None:
    """A copy that is not finished covers nothing, and its range is copied under another id."""
    epochs = ((0, 0),)
    assert Coverage([held_copy(0, 100, state=state)]).lacks(epochs, 0, 100) == (
        EpochSpan(0, 0, 100),
    )
    both = Coverage([held_copy(0, 100, state=state), held_copy(0, 100)])
    assert both.lacks(epochs, 0, 100) == ()


RANGES = st.tuples(st.integers(0, 12), st.integers(1, 5), st.integers(0, 1)).map(
    lambda drawn: (drawn[0], drawn[0] + drawn[1], drawn[2])
)


@given(st.lists(RANGES, max_size=8), RANGES)
def test_f103_coverage_of_any_copies_when_asked_then_lacks_what_none_of_them_has(
    copies: list[tuple[int, int, int]], asked: tuple[int, int, int]
) -> None:
    """Coverage lacks exactly the offsets that no finished copy of the epoch holds."""
    coverage = Coverage([held_copy(start, stop, {epoch: start}) for start, stop, epoch in copies])
    first, behind, epoch = asked
    lacking = coverage.lacks(((epoch, first),), first, behind)
    assert all(one.next_offset < other.first_offset for one, other in pairwise(lacking))
    offsets = [n for span in lacking for n in range(span.first_offset, span.next_offset)]
    assert offsets == [
        n
        for n in range(first, behind)
        if not any(start <= n < stop and epoch == other for start, stop, other in copies)
    ]
