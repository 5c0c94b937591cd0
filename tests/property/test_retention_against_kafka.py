"""Retention deletes what Kafka's own rule deletes, for any history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from rlmm.metadata.segment import SegmentMetadata, SegmentState
from rlmm.retention.retention import RetentionFate, RetentionSettings, due_of, start_after
from rlmm.retention.segment_lineage import LogLeaderEpochs
from spark_tiering.maintenance.expire.decision import ExpireOptions, ExpireReason, decide
from spark_tiering.maintenance.expire.topic_ownership import TopicOwner
from tests.support.builders import segment_id, tp
from tests.support.records.kafka_retention_model import (
    Leader,
    expired,
    filtered,
    is_valid,
    truncated,
)

if TYPE_CHECKING:
    from rlmm.metadata.ids import SegmentId

CS, CF, DS, _ = SegmentState
NOW_MS = 10_000
END = 400


@st.composite
def histories(draw: st.DrawFn) -> tuple[dict[int, int], list[SegmentMetadata]]:
    """Draw a leader's epochs and overlapping segments in every state, some of other leaders."""
    numbers = sorted(draw(st.sets(st.integers(0, 7), min_size=1, max_size=5)))
    starts = sorted(draw(st.lists(st.integers(0, END - 1), min_size=len(numbers),
                                  max_size=len(numbers))))  # fmt: skip
    epochs = dict(zip(numbers, [0, *starts[1:]], strict=True))
    segments = []
    for label in range(draw(st.integers(0, 9))):
        first = draw(st.integers(0, END - 1))
        last = draw(st.integers(first, min(END + 20, first + 120)))
        if draw(st.integers(0, 3)):
            own = _epochs_of(filtered(epochs), first, last)
        else:
            own = draw(st.dictionaries(st.integers(0, 8), st.integers(first, last), min_size=1,
                                       max_size=3))  # fmt: skip
        segments.append(
            SegmentMetadata(
                segment_id(label), first, last, 1, draw(st.integers(-1, 9)) * 1_000, 0,
                tuple(sorted(own.items())), draw(st.sampled_from([0, 50, 100, 150])),
                state=draw(st.sampled_from([CF, CF, CF, CF, CS, DS])),
            )
        )  # fmt: skip
    return epochs, segments


def _epochs_of(epochs: dict[int, int], first: int, last: int) -> dict[int, int]:
    inside = {epoch: start for epoch, start in epochs.items() if first < start <= last}
    before = [epoch for epoch, start in epochs.items() if start <= first]
    return {before[-1]: first, **inside}


limits = st.fixed_dictionaries(
    {
        "retention_ms": st.sampled_from([-1, 0, 1_000, 3_000, 4_001, 7_000, 20_000]),
        "retention_bytes": st.sampled_from([-1, 0, 100, 150, 300, 450, 10_000]),
    }
)


@given(histories(), limits, st.integers(0, END), st.data())
def test_f117_retention_when_a_leader_tells_its_epochs_then_deletes_what_kafka_deletes(
    history: tuple[dict[int, int], list[SegmentMetadata]],
    given: dict[str, int],
    log_start: int,
    data: Any,
) -> None:
    """Retention deletes Kafka's segments in Kafka's order with Kafka's new start."""
    epochs, segments = history
    at_work = {one.id for one in segments if one.state is CS and data.draw(st.booleans())}
    leader = Leader(truncated(epochs, log_start), log_start, END, now_ms=NOW_MS, **given)
    expected = expired(segments, leader, at_work)
    dues = due_of(
        segments, RetentionSettings(**given, log_start=log_start), NOW_MS,
        epochs=LogLeaderEpochs(tuple(sorted(epochs.items())), END), being_copied=at_work,
    )  # fmt: skip
    goes = [one for one in dues if one.fate.is_deleted]
    assert start_after(dues) == expected.log_start
    # A deletion that was begun is finished wherever it is: Kafka stops before some of these.
    begun = {one.id for one in segments if one.state is DS}
    ours = [one.segment.id for one in goes]
    assert [one for one in ours if one not in begun] == [
        one for one in expected.deleted if one not in begun
    ]
    assert begun <= set(ours)


@given(histories(), limits, st.booleans())
def test_f115_f117_f120_expiry_when_segments_alone_tell_the_epochs_then_deletes_what_kafka_deletes(
    history: tuple[dict[int, int], list[SegmentMetadata]], given: dict[str, int], keeps: bool
) -> None:
    """An archive expires segments as the leader whose log they come from would."""
    epochs, segments = history
    real = [one for one in segments if is_valid(one, END, filtered(epochs)) and one.state is not CS]
    told = {epoch: start for one in real for epoch, start in one.epochs}
    known = LogLeaderEpochs.of_segments(real)
    at_work: set[SegmentId] = set()
    plan = decide(
        tp(),
        real,
        standing=TopicOwner.OURS,
        rules=RetentionSettings(**given),
        options=ExpireOptions(drops_old_epochs=keeps),
        now_ms=NOW_MS,
        at_work=at_work,
    )
    leader = Leader(dict(known.entries), 0, END, now_ms=NOW_MS, **given)
    expected = [one for one in expired(real, leader).deleted if one not in _begun(real)]
    ours = [one.segment.id for one in plan.doomed if one.reason is not ExpireReason.BEGUN]
    assert set(dict(known.entries)) <= set(told)
    replaced = {
        one.segment.id
        for one in due_of(real, RetentionSettings(), 0)
        if one.fate is RetentionFate.SUPERSEDED
    }
    assert ours == [one for one in expected if keeps or one not in replaced]
    assert {one.segment.id for one in plan.doomed if one.reason is ExpireReason.BEGUN} == _begun(
        real
    )


def _begun(segments: list[SegmentMetadata]) -> set[SegmentId]:
    return {one.id for one in segments if one.state is DS}
