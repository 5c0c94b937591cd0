"""
Kafka's exceptions: for each of our errors, the one that a broker expects of its metadata manager.

"Replica not available" alone makes a consumer wait and retry. A retriable storage exception keeps a
copy and tries it again; any other one undoes the copy.
"""

from __future__ import annotations

from typing import NamedTuple

from rlmm.errors import (
    InvalidArgument,
    NotAssigned,
    NotFound,
    NotPublishable,
    NotReady,
    RlmmError,
    Stopped,
)

_STORAGE = "org.apache.kafka.server.log.remote.storage"


class BrokerException(NamedTuple):
    """An exception class of Kafka's, and whether a broker tries again by itself."""

    java_class: str
    retriable: bool


NOT_READY = BrokerException("org.apache.kafka.common.errors.ReplicaNotAvailableException", True)
NOT_FOUND = BrokerException(f"{_STORAGE}.RemoteResourceNotFoundException", False)
BAD_ARGUMENT = BrokerException("java.lang.IllegalArgumentException", False)
CLOSED = BrokerException("java.lang.IllegalStateException", False)
FAILED = BrokerException(f"{_STORAGE}.RemoteStorageException", False)
FAILED_FOR_NOW = BrokerException(f"{_STORAGE}.RetriableRemoteStorageException", True)


def exception_for(error: RlmmError) -> BrokerException:
    match error:
        case NotReady():
            return NOT_READY
        case NotFound() | NotAssigned():
            # Kafka's own manager has only what is assigned, and answers alike of all the rest.
            return NOT_FOUND
        case InvalidArgument() | NotPublishable():
            return BAD_ARGUMENT
        case Stopped():
            return CLOSED
        case _:
            return FAILED_FOR_NOW if error.retriable else FAILED
