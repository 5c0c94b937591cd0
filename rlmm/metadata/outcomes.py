"""
Outcomes in Kafka's own classes for our verdicts and errors, exceptions included. Kafka's *cache*
(one user partition) tells its caller more than its *store* (all of them), so one verdict can have
two outcomes.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from rlmm.errors import InvalidArgument, NotReady, RlmmError, UnknownPartition
from rlmm.metadata.verdicts import (
    Applied,
    Duplicate,
    Rejected,
    RejectReason,
    Undecodable,
    UndecodableReason,
    Verdict,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


class Level(StrEnum):
    CACHE = "cache"
    STORE = "store"


class Outcome(StrEnum):
    APPLIED = "applied"
    DROPPED = "dropped"


class KafkaError(StrEnum):
    """The exceptions a caller of Kafka's classes can meet."""

    NULL_ARGUMENT = "null_argument"
    NULL_POINTER = "null_pointer"
    ILLEGAL_ARGUMENT = "illegal_argument"
    ILLEGAL_STATE = "illegal_state"
    NOT_FOUND = "not_found"
    NOT_READY = "not_ready"
    UNSUPPORTED_OPERATION = "unsupported_operation"
    UNPARSABLE = "unparsable"


JAVA_CLASSES: Mapping[KafkaError, str] = {
    KafkaError.NULL_ARGUMENT: "java.lang.NullPointerException",
    KafkaError.NULL_POINTER: "java.lang.NullPointerException",
    KafkaError.ILLEGAL_ARGUMENT: "java.lang.IllegalArgumentException",
    KafkaError.ILLEGAL_STATE: "java.lang.IllegalStateException",
    KafkaError.NOT_FOUND: (
        "org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException"
    ),
    KafkaError.NOT_READY: "org.apache.kafka.common.errors.ReplicaNotAvailableException",
    KafkaError.UNSUPPORTED_OPERATION: "java.lang.UnsupportedOperationException",
    KafkaError.UNPARSABLE: "org.apache.kafka.server.common.serialization.MetadataParseException",
}
"""The Java class of each; a null argument is checked for, a null pointer is met by accident."""

_REJECTED: Mapping[RejectReason, Outcome | KafkaError] = {
    RejectReason.UNKNOWN_SEGMENT: Outcome.DROPPED,
    RejectReason.ILLEGAL_TRANSITION: Outcome.DROPPED,
    RejectReason.ADD_NOT_STARTED: KafkaError.ILLEGAL_ARGUMENT,
    RejectReason.UPDATE_TO_STARTED: KafkaError.ILLEGAL_ARGUMENT,
    RejectReason.SNAPSHOT_RECORD: KafkaError.UNSUPPORTED_OPERATION,
    # Kafka does not hold writers to these: it stores and acknowledges what they send.
    RejectReason.PARTITION_BEING_DELETED: Outcome.APPLIED,
    RejectReason.PARTITION_WAS_DELETED: KafkaError.ILLEGAL_STATE,
    RejectReason.NOT_THE_COPIER: Outcome.APPLIED,
    RejectReason.COPIED_BY_ANOTHER: Outcome.APPLIED,
}

_UNDECODABLE: Mapping[UndecodableReason, KafkaError] = {
    UndecodableReason.TOMBSTONE: KafkaError.NULL_ARGUMENT,
    UndecodableReason.UNKNOWN_STATE: KafkaError.NULL_POINTER,
    UndecodableReason.NO_EPOCHS: KafkaError.ILLEGAL_ARGUMENT,
    UndecodableReason.NEGATIVE_START_OFFSET: KafkaError.ILLEGAL_ARGUMENT,
    UndecodableReason.END_BEFORE_START: KafkaError.ILLEGAL_ARGUMENT,
}
"""Every other reason is a record that Kafka's decoder cannot parse."""


def outcome_of(verdict: Verdict, level: Level, *, initialized: bool) -> Outcome | KafkaError:
    """
    Return Kafka's outcome of the event that got *verdict* here, at *level*. An initialised cache
    reports an update of an unknown segment to its caller; a store drops it.
    """
    match verdict:
        case Applied() | Duplicate():
            return Outcome.APPLIED
        case Rejected(reason=RejectReason.UNKNOWN_SEGMENT) if level is Level.CACHE and initialized:
            return KafkaError.NOT_FOUND
        case Rejected(reason=reason):
            return _REJECTED[reason]
        case Undecodable(reason=why):
            return _UNDECODABLE.get(why, KafkaError.UNPARSABLE)


def error_of(error: RlmmError) -> KafkaError | None:
    """Return Kafka's exception for *error*; `None` where Kafka has nothing of the kind."""
    match error:
        case UnknownPartition():
            return KafkaError.NOT_FOUND
        case NotReady():
            return KafkaError.NOT_READY
        case InvalidArgument():
            return KafkaError.ILLEGAL_ARGUMENT
        case _:
            return None
