"""Bounds of a read in each partition, as in Spark's Kafka source, but of the tier. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from rlmm.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

EARLIEST, LATEST = -2, -1
"""How the two are written where an offset is expected."""


class PartitionName(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class NoOffset(StrEnum):
    """Says what to do where a start is given as a time, and no record is as late."""

    ERROR = "error"
    LATEST = "latest"


@dataclass(frozen=True, slots=True)
class AtEdge:
    """Bounds every partition by its first offset, or by its last."""

    offset: int


@dataclass(frozen=True, slots=True)
class AtOffsets:
    """Bounds each partition by an offset of its own; `EARLIEST` and `LATEST` are offsets, too."""

    option: str
    offsets: Mapping[PartitionName, int]


@dataclass(frozen=True, slots=True)
class AtTime:
    """Bounds every partition by one time: the offset of the first record that is not older."""

    option: str
    time_ms: int
    no_offset: NoOffset


@dataclass(frozen=True, slots=True)
class AtTimes:
    option: str
    times_ms: Mapping[PartitionName, int]
    no_offset: NoOffset


Bound = AtEdge | AtOffsets | AtTime | AtTimes


class PartitionBound(NamedTuple):
    """Bounds one partition by an offset, or by a time whose offset is looked up."""

    offset: int | None
    time_ms: int | None = None
    no_offset: NoOffset = NoOffset.LATEST


def asked_of(bound: Bound, partition: PartitionName) -> PartitionBound:
    match bound:
        case AtEdge(offset):
            return PartitionBound(offset)
        case AtOffsets(_, offsets):
            return PartitionBound(offsets[partition])
        case AtTime(_, time_ms, no_offset):
            return PartitionBound(None, time_ms, no_offset)
        case AtTimes(_, times_ms, no_offset):
            return PartitionBound(None, times_ms[partition], no_offset)


def require_named(bound: Bound, partitions: Collection[PartitionName]) -> None:
    """Raise `ConfigError` where *bound* names single partitions, and not all *partitions*."""
    if isinstance(bound, AtOffsets):
        named = bound.offsets.keys()
    elif isinstance(bound, AtTimes):
        named = bound.times_ms.keys()
    else:
        return
    wanted = set(partitions)
    if named == wanted:
        return
    lacking = ", ".join(map(str, sorted(wanted - named)[:5]))
    unknown = ", ".join(map(str, sorted(named - wanted)[:5]))
    told = [f"lacks {lacking}"] if lacking else []
    told += [f"names {unknown}, which is not read"] if unknown else []
    msg = (
        f"{bound.option} has to name every partition that is read and no other: it "
        f"{' and '.join(told)}; {EARLIEST} stands for the earliest offset, {LATEST} for the latest"
    )
    raise ConfigError(msg)
