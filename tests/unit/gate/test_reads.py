"""Every question of the gate: the check of its arguments, the admission, and the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import InvalidArgument, NotAssigned, NotReady, RlmmError, Stopped, UnknownPartition
from rlmm.gate.admission import Gate
from rlmm.gate.reads import LOOKUPS_MAX, PartitionQueries
from rlmm.log.replay_progress import CaughtUp, PartitionReassigned, ReplayProgress
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.paging import Page, PageKey
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.metadata.segment import PartitionDeleteState
from tests.support.builders import finished, partition_delete, segment_id, started, tp
from tests.support.engine.chosen import ChosenShard

if TYPE_CHECKING:
    from collections.abc import Callable

COUNT = 4
TP = tp()
PLACE = metadata_partition_for(TP.topic_id, TP.partition, COUNT)
UNKNOWN = next(
    found
    for number in range(99)
    if metadata_partition_for((found := tp("unknown", number)).topic_id, number, COUNT) == PLACE
)
MARKED, STARTED, FINISHED = PartitionDeleteState
A, B = segment_id("a"), segment_id("b")

QUESTIONS: dict[str, Callable[[PartitionQueries], Any]] = {
    "segment_for": lambda reads: reads.segment_for(TP, 0, 50),
    "segment": lambda reads: reads.segment(A),
    "next_segment_with_txn_index": lambda reads: reads.next_segment_with_txn_index(TP, 0, 0),
    "highest_offset": lambda reads: reads.highest_offset(TP, 0),
    "segments": lambda reads: reads.segments(TP),
    "segments_of_epoch": lambda reads: reads.segments_of_epoch(TP, 0),
    "listing": lambda reads: reads.listing(TP),
    "listing_of_epoch": lambda reads: reads.listing(TP, 0),
    "page": lambda reads: reads.page(TP),
    "page_of_epoch": lambda reads: reads.page(TP, 0),
    "size": lambda reads: reads.size(TP),
    "size_of_epoch": lambda reads: reads.size_of_epoch(TP, 0),
    "partition_delete": lambda reads: reads.partition_delete(TP),
    "state_of": lambda reads: reads.state_of(TP),
}
ALL = pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS.keys())


class Asked:
    def __init__(self, *, is_open: bool = True) -> None:
        self.shard = ChosenShard(PLACE)
        for event in (started("a"), finished("a"), started("b", 100, 199)):
            self.shard.apply_event(event)
        self.gate = Gate()
        self.gate.connect(COUNT)
        self.gate.assign(Assignment.everything())
        self.gate.begin_partition(PLACE, ReplayProgress(PLACE, 0, 3, 0, 3, 0.0))
        self.gate.set_shard(PLACE, self.shard)
        if is_open:
            self.gate.take_fact(PLACE, CaughtUp(), ReplayProgress(PLACE, 3, 3, 0, 3, 0.0))
        self.reads = PartitionQueries(self.gate)


def test_questions_when_open_then_are_answered_as_the_shard_answers() -> None:
    """Admission adds nothing to an answer and takes nothing away."""
    reads = Asked().reads
    answers = {name: ask(reads) for name, ask in QUESTIONS.items() if "listing" not in name}
    a, b = answers["segments"]
    assert (a.id, b.id) == (A, B)
    assert answers == {
        "segment_for": a,
        "segment": a,
        "next_segment_with_txn_index": a,
        "highest_offset": 99,
        "segments": [a, b],
        "segments_of_epoch": [a, b],
        "page": Page((a, b), PageKey(100, B.uuid), is_last=True),
        "page_of_epoch": Page((a, b), PageKey(100, B.uuid), is_last=True),
        "size": 2 * 1024,
        "size_of_epoch": 2 * 1024,
        "partition_delete": None,
        "state_of": answers["state_of"],
    }
    assert reads.segment_for(TP, 0, 150) is None
    assert reads.highest_offset(TP, 9) is None


CLOSED: dict[type[RlmmError], Callable[[Gate], object]] = {
    NotReady: lambda gate: gate.take_fact(
        PLACE, PartitionReassigned(), ReplayProgress(PLACE, 0, 3, 0, 3, 0.0)
    ),
    NotAssigned: lambda gate: gate.assign(Assignment.nothing()),
    Stopped: lambda gate: gate.stop(Stopped, "over"),
    UnknownPartition: lambda gate: gate.set_shard(PLACE, ChosenShard(PLACE, 3)),
}


@pytest.mark.parametrize("error", CLOSED, ids=lambda error: error.__name__)
@ALL
def test_f20_f21_f26_f83_question_that_cannot_be_answered_then_is_refused_by_name(
    ask: Callable[[PartitionQueries], Any], error: type[RlmmError]
) -> None:
    """Each question gets the same refusal, without a partial or empty answer."""
    asked = Asked()
    CLOSED[error](asked.gate)
    with pytest.raises(error) as caught:
        ask(asked.reads)
    if isinstance(caught.value, NotReady):
        assert caught.value.metadata_partition == PLACE


def test_f83_known_partition_without_segments_then_is_answered_empty() -> None:
    """A partition of which only its deletion is known has no segments, and that is an answer."""
    asked = Asked()
    shard = ChosenShard(PLACE)
    shard.apply_event(partition_delete(MARKED))
    asked.gate.set_shard(PLACE, shard)
    reads = asked.reads
    assert reads.segments(TP) == []
    assert reads.segment_for(TP, 0, 0) is None
    assert reads.size(TP) == 0
    assert reads.partition_delete(TP) == partition_delete(MARKED)


def test_f82_deleted_partition_then_is_unknown_but_its_deletion_and_state_are_told() -> None:
    """A deleted partition has no segments; the end of its deletion and its state are known."""
    asked = Asked()
    for state in (MARKED, STARTED, FINISHED):
        asked.shard.apply_event(partition_delete(state))
    with pytest.raises(UnknownPartition, match="finished"):
        asked.reads.segments(TP)
    assert asked.reads.partition_delete(TP) == partition_delete(FINISHED)
    assert asked.reads.state_of(TP) is asked.shard


BAD_EPOCHS = [-1, 2**31, True, 1.0, "0"]
BAD_LIMITS = [0, -1, 1_001, True, 1.0, "1", None]
BAD_KEYS = [(1, A.uuid), 5, PageKey(-1, A.uuid), PageKey(True, A.uuid), PageKey(1, b"a")]  # type: ignore[arg-type]
BAD_OFFSETS = [-1, 2**63, True, 1.0, "0", None]


@pytest.mark.parametrize(
    ("ask", "bad"),
    [
        (ask, bad)
        for ask, values in (
            (lambda reads, bad: reads.segment_for(TP, bad, 0), (*BAD_EPOCHS, None)),
            (lambda reads, bad: reads.segment_for(TP, 0, bad), BAD_OFFSETS),
            (lambda reads, bad: reads.next_segment_with_txn_index(TP, bad, 0), (*BAD_EPOCHS, None)),
            (lambda reads, bad: reads.next_segment_with_txn_index(TP, 0, bad), BAD_OFFSETS),
            (lambda reads, bad: reads.highest_offset(TP, bad), (*BAD_EPOCHS, None)),
            (lambda reads, bad: reads.listing(TP, bad), BAD_EPOCHS),
            (lambda reads, bad: reads.segments_of_epoch(TP, bad), (*BAD_EPOCHS, None)),
            (lambda reads, bad: reads.page(TP, bad), BAD_EPOCHS),
            (lambda reads, bad: reads.page(TP, limit=bad), BAD_LIMITS),
            (lambda reads, bad: reads.page(TP, after=bad), BAD_KEYS),
            (lambda reads, bad: reads.size_of_epoch(TP, bad), (*BAD_EPOCHS, None)),
        )
        for bad in values
    ],
)
def test_question_that_cannot_be_meant_then_is_refused_before_anything_else(
    ask: Callable[[PartitionQueries, Any], Any], bad: object
) -> None:
    """A wrong argument gets the same refusal in every state."""
    closed = Asked(is_open=False)
    closed.gate.assign(Assignment.nothing())
    for asked in (Asked(), closed):
        with pytest.raises(InvalidArgument):
            ask(asked.reads, bad)


def test_largest_epoch_and_offset_then_can_be_asked_for() -> None:
    """The largest epoch and offset of Kafka are valid arguments."""
    assert Asked().reads.segment_for(TP, 2**31 - 1, 2**63 - 1) is None


def test_lookups_in_one_call_then_each_has_its_own_answer_in_order() -> None:
    """A refused look-up does not affect the others."""
    reads = Asked().reads
    answers = reads.segments_for(
        [(TP, 0, 50), (TP, -1, 0), (TP, 0, 150), (UNKNOWN, 0, 0), (TP, 0, 99)]
    )
    first, invalid, nothing, unknown, last = answers
    assert first == last == reads.segment(A)
    assert nothing is None
    assert isinstance(invalid, InvalidArgument)
    assert isinstance(unknown, UnknownPartition)


def test_lookups_when_closed_then_each_is_refused() -> None:
    """A closed gate refuses each look-up of a batch."""
    answers = Asked(is_open=False).reads.segments_for([(TP, 0, 50)] * 3)
    assert all(isinstance(answer, NotReady) for answer in answers)


def test_lookups_when_too_many_then_none_is_answered() -> None:
    """Too many look-ups in one call are refused as a whole."""
    reads = Asked().reads
    assert len(reads.segments_for([(TP, 0, 50)] * LOOKUPS_MAX)) == LOOKUPS_MAX
    with pytest.raises(InvalidArgument, match=f"{LOOKUPS_MAX + 1} look-ups"):
        reads.segments_for([(TP, 0, 50)] * (LOOKUPS_MAX + 1))


def test_f43_readiness_then_is_false_wherever_a_question_would_be_refused() -> None:
    """Readiness is false for not assigned and not ready, and true without any event."""
    assert Asked().reads.is_ready(TP)
    assert not Asked(is_open=False).reads.is_ready(TP)
    away = Asked()
    away.gate.assign(Assignment.nothing())
    assert not away.reads.is_ready(TP)


@pytest.mark.parametrize("epoch", [None, 0], ids=["all", "epoch"])
def test_f85_f88_listing_then_is_what_was_there_when_it_was_asked_for(epoch: int | None) -> None:
    """The pieces of a listing together are the list of one moment, in order."""
    asked = Asked()
    for number in range(100):
        asked.shard.apply_event(started(number, 1_000 - number, 2_000))
    expected = asked.reads.segments(TP)
    assert [found.start_offset for found in expected] == [0, 100, *range(901, 1_001)]
    listing = asked.reads.listing(TP, epoch)
    taken = []
    while (piece := listing.take(7)) is not None:
        assert len(piece) <= 7
        taken += piece
        asked.shard.apply_event(finished(len(taken) % 100))
    assert taken == expected


def test_metadata_partition_when_it_is_not_open_then_nobody_goes_through_it() -> None:
    """A listing of a metadata partition is refused by its state, whether or not it is assigned."""
    asked = Asked()
    assert asked.reads.place(PLACE) is asked.shard
    assert asked.reads.of_everyone().place(PLACE) is asked.shard
    with pytest.raises(NotReady) as caught:
        Asked(is_open=False).reads.place(PLACE)
    assert caught.value.metadata_partition == PLACE
    with pytest.raises(NotAssigned):
        asked.reads.place((PLACE + 1) % COUNT)
    with pytest.raises(InvalidArgument, match=f"there is no metadata partition {COUNT}"):
        asked.reads.place(COUNT)
    with pytest.raises(NotReady):
        PartitionQueries(Gate()).place(PLACE)
    asked.gate.stop(Stopped, "over")
    for place in (PLACE, (PLACE + 1) % COUNT):
        with pytest.raises(Stopped):
            asked.reads.place(place)
