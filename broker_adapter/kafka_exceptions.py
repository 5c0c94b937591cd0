"""
For each of our errors, the exception that a broker expects from its metadata manager.

What a broker does with an exception depends on its class alone, and the differences are large. Only
"replica not available" tells a consumer to wait and ask again; every other class reaches it as an
unknown server error. A retriable storage exception keeps a copy quiet and is tried again; another
one undoes the copy. So an error is translated here and nowhere else.
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
