"""Strategies of hypothesis: events, histories, damaged values."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from rlmm.metadata.encoding import encode_any
from rlmm.metadata.events import Event, PartitionDelete, SegmentSnapshot, SegmentUpdate
from rlmm.metadata.ids import (
    INT32_MAX,
    INT32_MIN,
    INT64_MAX,
    INT64_MIN,
    SegmentId,
    TopicIdPartition,
    Uuid,
)
from rlmm.metadata.segment import PartitionDeleteState, SegmentMetadata, SegmentState
from tests.support.builders import segment_id, tp

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random

COPY_STARTED, COPY_FINISHED, DELETE_STARTED, DELETE_FINISHED = SegmentState

INT32 = st.integers(INT32_MIN, INT32_MAX)
INT64 = st.integers(INT64_MIN, INT64_MAX)
OFFSETS = st.integers(0, INT64_MAX)
UUIDS = st.binary(min_size=16, max_size=16).map(Uuid)
NAMES = st.text(max_size=20) | st.integers(120, 260).map(lambda size: size * "n")
CUSTOM = st.none() | st.binary(max_size=20) | st.integers(120, 260).map(bytes)
EPOCHS = st.dictionaries(INT32, INT64, min_size=1, max_size=5) | st.integers(120, 140).map(
    lambda count: {epoch: epoch for epoch in range(count)}
)

PARTITIONS = st.builds(TopicIdPartition, UUIDS, NAMES, INT32)
SEGMENT_IDS = st.builds(SegmentId, PARTITIONS, UUIDS)
STATES = st.sampled_from(SegmentState)


@st.composite
def segments(draw: st.DrawFn) -> SegmentMetadata:
    start, last = sorted((draw(OFFSETS), draw(OFFSETS)))
    return SegmentMetadata(
        draw(SEGMENT_IDS),
        start,
        last,
        draw(INT32),
        draw(INT64),
        draw(INT64),
        tuple(draw(EPOCHS).items()),
        draw(INT32),
        draw(CUSTOM),
        draw(STATES),
        draw(st.booleans()),
    )


UPDATES = st.builds(SegmentUpdate, SEGMENT_IDS, INT32, INT64, CUSTOM, STATES)
PARTITION_DELETES = st.builds(
    PartitionDelete, PARTITIONS, INT32, INT64, st.sampled_from(PartitionDeleteState)
)
SNAPSHOTS = st.builds(
    SegmentSnapshot,
    UUIDS,
    INT64,
    INT64,
    INT32,
    INT64,
    INT64,
    EPOCHS.map(lambda epochs: tuple(epochs.items())),
    INT32,
    CUSTOM,
    STATES,
    st.booleans(),
)
EVENTS: st.SearchStrategy[Event] = segments() | UPDATES | PARTITION_DELETES | SNAPSHOTS

# --------------------------------------------------------------- a small world, where events meet

_SMALL_PARTITIONS = st.sampled_from([*6 * [tp()], tp(partition=8), tp("\u00e9t\u00e9", 0)])
_SMALL_IDS = st.builds(segment_id, st.integers(1, 4), _SMALL_PARTITIONS)
_SMALL_EPOCHS = st.dictionaries(st.integers(0, 2), st.integers(0, 20), min_size=1, max_size=3)
_SMALL_CUSTOM = st.sampled_from([None, None, b"", b"c"])
_BROKERS = st.integers(1, 2)
_TIMES = st.integers(0, 2)


@st.composite
def _small_segments(draw: st.DrawFn) -> SegmentMetadata:
    start, last = sorted((draw(st.integers(0, 30)), draw(st.integers(0, 30))))
    state = draw(st.sampled_from([*40 * [COPY_STARTED], *SegmentState]))
    return SegmentMetadata(
        draw(_SMALL_IDS),
        start,
        last,
        draw(_BROKERS),
        draw(_TIMES),
        draw(_TIMES),
        tuple(draw(_SMALL_EPOCHS).items()),
        draw(st.integers(0, 3)),
        draw(_SMALL_CUSTOM),
        state,
        draw(st.booleans()),
    )


_SMALL_UPDATES = st.builds(
    SegmentUpdate,
    _SMALL_IDS,
    _BROKERS,
    _TIMES,
    _SMALL_CUSTOM,
    st.sampled_from([*8 * [COPY_FINISHED], *3 * [DELETE_STARTED], DELETE_FINISHED, COPY_STARTED]),
)
_SMALL_DELETES = st.builds(
    PartitionDelete, _SMALL_PARTITIONS, _BROKERS, _TIMES, st.sampled_from(PartitionDeleteState)
)


@st.composite
def histories(draw: st.DrawFn, max_size: int = 25) -> list[Event]:
    size = draw(st.integers(0, max_size))
    history: list[Event] = []
    known = []
    for kind in draw(st.lists(st.integers(0, 29), min_size=size, max_size=size)):
        event = draw(_strategy_of(kind))
        if isinstance(event, SegmentMetadata):
            known.append(event.id)
        elif isinstance(event, SegmentUpdate) and known and kind > 14:
            event = replace(event, id=draw(st.sampled_from(known)))
        history.append(event)
    return history


def _strategy_of(kind: int) -> st.SearchStrategy[Event]:
    if kind == 17:  # rare, and neither the first nor the last number: those are drawn often
        return _SMALL_DELETES
    if kind == 23:
        return SNAPSHOTS
    return _small_segments() if kind < 12 else _SMALL_UPDATES


RANDOM = st.randoms(use_true_random=True)
"""For tests that try many damaged values in one example: drawing each of them would be slow."""

_EDGES = (0, 1, 2, 3, 4, 0x7F, 0x80, 0x81, 0xFF)


def damaged(random: Random, value: bytes) -> bytes:
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        at = random.randrange(len(value) + 1)
        before = value[at] if at < len(value) else 0
        byte = bytes((random.choice((before ^ 1 << random.randrange(8), random.choice(_EDGES))),))
        match random.choice("rrrrrridxsc"):
            case "r":
                value = value[:at] + byte + value[at + 1 :]
            case "i":
                value = value[:at] + byte + value[at:]
            case "d":
                value = value[:at] + value[at + 1 :]
            case "x":
                value += byte
            case "s":  # two neighbouring stretches change places
                size = random.choice((1, 4, 8, 13, 16))
                first, second = value[at : at + size], value[at + size : at + 2 * size]
                value = value[:at] + second + first + value[at + 2 * size :]
            case _:
                value = value[:at]
    return value


def values_of(history: Iterable[Event]) -> list[bytes]:
    return [encode_any(event) for event in history]
