"""Checks of requests to a log, before any I/O."""

from __future__ import annotations

import math
from pathlib import Path

from rlmm.errors import ConfigError, InvalidArgument
from rlmm.metadata.ids import INT64_MAX

PARTITION_COUNT_MAX = 100_000
"""Far above any topic; more is a slip."""
_LOG_CALLS = ("identity", "bounds", "read", "append", "statistics", "close")


def require_count(partition_count: int | None) -> None:
    """Refuse an invalid number of partitions, before a folder is touched."""
    if partition_count is None:
        return
    if type(partition_count) is not int or not 1 <= partition_count <= PARTITION_COUNT_MAX:
        msg = f"a metadata topic has 1 to {PARTITION_COUNT_MAX} partitions, got {partition_count!r}"
        raise ConfigError(msg)


def require_partition(partition: int, partition_count: int) -> None:
    """Refuse the number of a partition that the topic does not have."""
    if type(partition) is not int or not 0 <= partition < partition_count:
        msg = f"metadata partition must be 0 to {partition_count - 1}, got {partition!r}"
        raise InvalidArgument(msg)


def require_position(position: int, bytes_max: int) -> None:
    """Refuse an offset that no record can have, and a read of no bytes at all."""
    if type(position) is not int or not 0 <= position <= INT64_MAX:
        raise InvalidArgument(f"position must be an offset from 0 to {INT64_MAX}, got {position!r}")
    if bytes_max < 1:
        raise InvalidArgument(f"a read must be allowed 1 byte or more, got {bytes_max}")


def require_value(value: bytes) -> None:
    """Refuse a null value: it would be a tombstone."""
    if not isinstance(value, bytes):
        raise InvalidArgument(f"an event is made of bytes, got {value!r}")


def require_timeout(timeout_s: float) -> float:
    """Refuse a wait that is none, or that would never end."""
    if type(timeout_s) not in {int, float} or not 0 < timeout_s < math.inf:
        raise InvalidArgument(f"a time-out is a number of seconds above 0, got {timeout_s!r}")
    return timeout_s


def is_log(value: object) -> bool:
    """Return whether *value* has every call of a `MetadataLog`; a class of logs is none."""
    return not isinstance(value, type) and all(
        callable(getattr(value, call, None)) for call in _LOG_CALLS
    )


def require_openable(log: object, snapshots: object) -> None:
    """Refuse a value that is neither a log nor its folder, and snapshots without a folder."""
    if not isinstance(log, (Path, str)) and not is_log(log):
        raise InvalidArgument(f"log must be a folder or an open log, got {log!r}")
    if not isinstance(snapshots, (Path, str, type(None))):
        raise InvalidArgument(f"snapshots must be a folder or None, got {snapshots!r}")
