"""What a broker is told for each of our errors."""

from __future__ import annotations

import pytest

from broker_adapter.translate import BrokerException, exception_for
from rlmm import errors
from rlmm.errors import RlmmError
from rlmm.metadata.outcomes import JAVA_CLASSES, error_of

ALL_ERRORS = sorted(
    (
        found
        for found in vars(errors).values()
        if isinstance(found, type) and issubclass(found, RlmmError)
    ),
    key=lambda found: found.__name__,
)


def test_not_ready_is_the_one_answer_a_consumer_can_tell_from_damage() -> None:
    """Not ready, and nothing else, becomes the class that makes clients wait and ask again."""
    waits = "org.apache.kafka.common.errors.ReplicaNotAvailableException"
    told = {error: exception_for(error("x")) for error in ALL_ERRORS}
    assert [error.__name__ for error, says in told.items() if says.java_class == waits] == [
        "NotReady"
    ]


def test_unknown_partition_is_told_as_a_missing_resource() -> None:
    """A partition that is not here is not the same as one that is not ready."""
    assert exception_for(errors.UnknownPartition("x")) == BrokerException(
        "org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException", False
    )


@pytest.mark.parametrize("error", ALL_ERRORS, ids=lambda error: error.__name__)
def test_every_error_is_told_with_its_own_retriability(error: type[RlmmError]) -> None:
    """A broker tries again by itself exactly where trying again can help."""
    assert exception_for(error("x")).retriable is error.retriable


@pytest.mark.parametrize("error", ALL_ERRORS, ids=lambda error: error.__name__)
def test_translation_agrees_with_kafkas_own_outcome_where_there_is_one(
    error: type[RlmmError],
) -> None:
    """Where Kafka's classes raise something for the same thing, a broker is told just that."""
    outcome = error_of(error("x"))
    if outcome is not None:
        assert exception_for(error("x")).java_class == JAVA_CLASSES[outcome]
    else:
        assert exception_for(error("x")).java_class
