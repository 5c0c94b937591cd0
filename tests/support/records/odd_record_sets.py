"""Record sets as a log may hold them: of transactions, compacted, compressed, damaged or cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.records.batch import TimestampType
from rlmm.records.compression import Compression
from rlmm.records.control import ControlType
from rlmm.records.record_set import RecordSet
from rlmm.records.writer import (
    Producer,
    build_batch,
    build_control_batch,
    records_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

_WRITER = Producer(7, 0, 0)
_TRANSACTION = Producer(8, 0, 0, is_transactional=True)


def odd_record_set(
    rng: Random, partition: int, at: int, value: Callable[[], bytes | None]
) -> tuple[RecordSet, int]:
    """Return a record set from offset *at* on, and how many records were written for it."""
    parts, count = [], 0
    for _ in range(rng.randint(1, 5)):
        at += rng.choice((0, 0, 0, 0, 2))
        values = [value() for _ in range(rng.choice((1, 1, 1, 3, 20)))]
        if rng.random() < 0.08:
            kind = rng.choice((ControlType.COMMIT, ControlType.ABORT))
            parts.append(build_control_batch(kind, at, producer=_TRANSACTION, timestamp_ms=at))
            at += 1
            continue
        count += len(values)
        data, at = _batch(rng, values, at)
        parts.append(data)
    data = b"".join(parts)
    kind_of_damage = rng.random()
    if kind_of_damage < 0.04:
        place = rng.randrange(len(data))
        data = data[:place] + bytes((data[place] ^ 1 << rng.randrange(8),)) + data[place + 1 :]
    elif kind_of_damage < 0.07:
        data = data[: rng.randrange(len(data))]
    return RecordSet(partition, data, rng.choice((None, None, at, at + 2))), count


def _batch(rng: Random, values: list[bytes | None], at: int) -> tuple[bytes, int]:
    """Write *values*, some of them compacted away; return the bytes and the offset behind."""
    records = records_of(values, at, rng.choice((-1, at)))
    stop = at + len(values)
    if rng.random() < 0.1:
        records = [record for record in records if rng.random() < 0.6]
    is_append_time = rng.random() < 0.1 or not records
    data = build_batch(
        records,
        at,
        last_offset=stop - 1,
        leader_epoch=rng.choice((-1, 0, 5)),
        compression=rng.choice((Compression.NONE,) * 6 + tuple(Compression)),
        timestamp_type=(
            TimestampType.LOG_APPEND_TIME if is_append_time else TimestampType.CREATE_TIME
        ),
        max_timestamp_ms=at if is_append_time else None,
        producer=rng.choice((Producer(), _WRITER, _TRANSACTION)),
    )
    return data, stop
