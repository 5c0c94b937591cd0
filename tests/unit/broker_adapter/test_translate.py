"""Kafka's error for each of our errors."""

from __future__ import annotations

import pytest

from broker_adapter.kafka_exceptions import BrokerException, exception_for
from rlmm import errors
from rlmm.errors import RlmmError
from rlmm.metadata.outcomes import JAVA_CLASSES, error_of
from rlmm.wire.errors import read_error

ALL_ERRORS = sorted(
    (
        found
        for found in vars(errors).values()
        if isinstance(found, type) and issubclass(found, RlmmError)
    ),
    key=lambda found: found.__name__,
)


def test_not_ready_is_the_one_answer_a_consumer_can_tell_from_damage() -> None:
    """Only not ready becomes the class on which clients wait and retry."""
    waits = "org.apache.kafka.common.errors.ReplicaNotAvailableException"
    told = {error: exception_for(error("x")) for error in ALL_ERRORS}
    assert [error.__name__ for error, says in told.items() if says.java_class == waits] == [
        "NotReady"
    ]


def test_unknown_partition_is_told_as_a_missing_resource() -> None:
    """An unknown partition becomes Kafka's missing resource, unlike one that is not ready."""
    assert exception_for(errors.UnknownPartition("x")) == BrokerException(
        "org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException", False
    )


@pytest.mark.parametrize("error", ALL_ERRORS, ids=lambda error: error.__name__)
def test_every_error_is_told_with_its_own_retriability(error: type[RlmmError]) -> None:
    """A broker tries again by itself exactly where trying again can help."""
    assert exception_for(error("x")).retriable is error.retriable


@pytest.mark.parametrize("error", ALL_ERRORS, ids=lambda error: error.__name__)
def test_translation_agrees_with_kafkas_own_outcomes(error: type[RlmmError]) -> None:
    """The broker gets the error of Kafka's own classes where they have one."""
    outcome = error_of(error("x"))
    if outcome is not None:
        assert exception_for(error("x")).java_class == JAVA_CLASSES[outcome]
    else:
        assert exception_for(error("x")).java_class


WAIT = "ReplicaNotAvailableException"
MISSING = "RemoteResourceNotFoundException"
WRONG = "IllegalArgumentException"
CLOSED = "IllegalStateException"
LATER = "RetriableRemoteStorageException"
BROKEN = "RemoteStorageException"

TOLD = {
    "AppendRefused": BROKEN,
    "AppendUncertain": BROKEN,
    "AssignmentLost": BROKEN,
    "ConfigError": BROKEN,
    "CredentialsAbsent": BROKEN,
    "DataLost": BROKEN,
    "EngineFailed": BROKEN,
    "EngineUnfit": BROKEN,
    "EventRejected": BROKEN,
    "FileAbsent": MISSING,
    "FolderInUse": BROKEN,
    "ImageCorrupt": BROKEN,
    "InvalidArgument": WRONG,
    "LogDamaged": BROKEN,
    "LogError": BROKEN,
    "LogNotPermitted": BROKEN,
    "LogRecreated": BROKEN,
    "LogTruncated": BROKEN,
    "LogUnavailable": LATER,
    "NotAssigned": MISSING,
    "NotFound": MISSING,
    "NotPermitted": BROKEN,
    "NotPublishable": WRONG,
    "NotReady": WAIT,
    "NotSealed": BROKEN,
    "NotWritable": BROKEN,
    "OutcomeUnknown": LATER,
    "OverBudget": LATER,
    "PartFailed": BROKEN,
    "PlanStale": BROKEN,
    "ProtocolError": BROKEN,
    "PumpFailed": BROKEN,
    "RequestError": BROKEN,
    "RlmmError": BROKEN,
    "SidecarUnavailable": LATER,
    "SnapshotCorrupt": BROKEN,
    "SnapshotError": BROKEN,
    "SnapshotForeign": BROKEN,
    "SnapshotRefused": BROKEN,
    "SnapshotUnsupported": BROKEN,
    "StopTimedOut": BROKEN,
    "Stopped": CLOSED,
    "StoreAbsent": BROKEN,
    "StoreError": BROKEN,
    "StoreNotPermitted": BROKEN,
    "StoreUnavailable": LATER,
    "StoreUnsuitable": BROKEN,
    "Superseded": BROKEN,
    "TierUnreadable": BROKEN,
    "TooBusy": LATER,
    "TopicAbsent": BROKEN,
    "TopicBusy": LATER,
    "UnknownMethod": BROKEN,
    "UnknownPartition": MISSING,
    "Unresolved": BROKEN,
    "UnsupportedVersion": BROKEN,
    "WrongCluster": BROKEN,
}


def test_every_error_has_its_place_in_the_table() -> None:
    """The table has every class of error."""
    told = {
        error.__name__: exception_for(error("x")).java_class.rpartition(".")[2]
        for error in ALL_ERRORS
    }
    assert told == TOLD


def test_error_of_a_newer_service_then_told_by_what_it_says_of_itself() -> None:
    """An unknown class of error is retriable if the service says so."""
    value = ["brand-new", "something else", True, {"base": "log"}]
    assert exception_for(read_error(value)).retriable is True
