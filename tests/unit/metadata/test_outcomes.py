"""The table from our verdicts and errors to those of Kafka's classes."""

from __future__ import annotations

import pytest

from rlmm.errors import (
    ConfigError,
    ImageCorrupt,
    InvalidArgument,
    NotPublishable,
    NotReady,
    RlmmError,
    UnknownPartition,
)
from rlmm.metadata.outcomes import JAVA_CLASSES, KafkaError, Level, Outcome, error_of, outcome_of
from rlmm.metadata.segment import SegmentState
from rlmm.metadata.verdicts import (
    APPLIED,
    DUPLICATE,
    Applied,
    Rejected,
    RejectReason,
    Remark,
    Undecodable,
    UndecodableReason,
    Verdict,
)

CS, CF, DS, DF = SegmentState
EVERYWHERE = [(level, initialized) for level in Level for initialized in (False, True)]


def rejected(reason: RejectReason) -> Rejected:
    return Rejected(reason, CF, CS)


ALWAYS: dict[Verdict, Outcome | KafkaError] = {
    APPLIED: Outcome.APPLIED,
    DUPLICATE: Outcome.APPLIED,
    **{Applied(remark): Outcome.APPLIED for remark in Remark},
    rejected(RejectReason.ILLEGAL_TRANSITION): Outcome.DROPPED,
    rejected(RejectReason.ADD_NOT_STARTED): KafkaError.ILLEGAL_ARGUMENT,
    rejected(RejectReason.UPDATE_TO_STARTED): KafkaError.ILLEGAL_ARGUMENT,
    rejected(RejectReason.SNAPSHOT_RECORD): KafkaError.UNSUPPORTED_OPERATION,
    Undecodable(UndecodableReason.TOMBSTONE): KafkaError.NULL_ARGUMENT,
    Undecodable(UndecodableReason.UNKNOWN_STATE): KafkaError.NULL_POINTER,
    Undecodable(UndecodableReason.NO_EPOCHS): KafkaError.ILLEGAL_ARGUMENT,
    Undecodable(UndecodableReason.NEGATIVE_START_OFFSET): KafkaError.ILLEGAL_ARGUMENT,
    Undecodable(UndecodableReason.END_BEFORE_START): KafkaError.ILLEGAL_ARGUMENT,
    Undecodable(UndecodableReason.TRUNCATED): KafkaError.UNPARSABLE,
    Undecodable(UndecodableReason.RECORD_VERSION_1): KafkaError.UNPARSABLE,
    Undecodable(UndecodableReason.NULL_EPOCHS): KafkaError.UNPARSABLE,
}


@pytest.mark.parametrize(("level", "initialized"), EVERYWHERE)
@pytest.mark.parametrize("verdict", ALWAYS, ids=str)
def test_outcome_of_most_verdicts_is_one_for_both(
    verdict: Verdict, level: Level, initialized: bool
) -> None:
    """Applied or dropped, or the exception that stops Kafka's consumer."""
    assert outcome_of(verdict, level, initialized=initialized) == ALWAYS[verdict]


@pytest.mark.parametrize(
    ("level", "initialized", "expected"),
    [
        (Level.CACHE, True, KafkaError.NOT_FOUND),
        (Level.CACHE, False, Outcome.DROPPED),
        (Level.STORE, True, Outcome.DROPPED),
        (Level.STORE, False, Outcome.DROPPED),
    ],
)
def test_outcome_of_an_unknown_segment_then_is_told_by_an_initialised_cache_only(
    level: Level, initialized: bool, expected: Outcome | KafkaError
) -> None:
    """Only an initialised cache reports an unknown segment; a store and a replay ignore it."""
    verdict = Rejected(RejectReason.UNKNOWN_SEGMENT, None, DS)
    assert outcome_of(verdict, level, initialized=initialized) == expected


@pytest.mark.parametrize("reason", [*RejectReason, *UndecodableReason])
def test_outcome_table_has_every_reason(reason: RejectReason | UndecodableReason) -> None:
    """Each reason has a row in the table, and Kafka raises for everything undecodable."""
    is_rejected = isinstance(reason, RejectReason)
    verdict = rejected(reason) if isinstance(reason, RejectReason) else Undecodable(reason)
    for level, initialized in EVERYWHERE:
        found = outcome_of(verdict, level, initialized=initialized)
        assert isinstance(found, KafkaError) or (is_rejected and isinstance(found, Outcome))


@pytest.mark.parametrize("reason", RejectReason)
def test_f51_rejection_in_words_then_names_the_reason_and_both_states(reason: RejectReason) -> None:
    """The text of a rejection names the reason, the current state and the requested one."""
    assert str(rejected(reason)) == f"{reason}: COPY_SEGMENT_FINISHED -> COPY_SEGMENT_STARTED"
    assert str(Rejected(reason, None, None)) == f"{reason}: absent -> absent"


def test_java_classes_then_are_named_for_every_error() -> None:
    """An adapter raises the class of Kafka's that a caller expects."""
    assert set(JAVA_CLASSES) == set(KafkaError)
    assert all("." in name for name in JAVA_CLASSES.values())


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (UnknownPartition("x"), KafkaError.NOT_FOUND),
        (NotReady("x"), KafkaError.NOT_READY),
        (InvalidArgument("x"), KafkaError.ILLEGAL_ARGUMENT),
        (NotPublishable("x"), None),
        (ImageCorrupt("x"), None),
        (ConfigError("x"), None),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, RlmmError) else str(value),
)
def test_f83_error_has_kafkas_kind_or_none(error: RlmmError, expected: KafkaError | None) -> None:
    """Unknown and not ready have different kinds, and an error that Kafka lacks has none."""
    assert error_of(error) == expected
