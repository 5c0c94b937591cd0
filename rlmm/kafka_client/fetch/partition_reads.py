"""Reads of one partition: whole batches of an answer, waiting reads, state between them. No I/O."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from rlmm.base.backoff import RETRY, Backoff
from rlmm.errors import LogDamaged, LogError, LogTruncated, LogUnavailable
from rlmm.kafka_client.code_errors import error_for
from rlmm.kafka_messages.error_codes import ErrorCode, name_of
from rlmm.kafka_messages.fetch import NO_EPOCH, FetchedPartition, FetchPartition
from rlmm.records.header import BATCH_BYTES_MAX, HEADER_BYTES, LENGTH_FROM, MAGIC
from rlmm.records.record_set import RecordSet

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable


_START = struct.Struct(">qi")
_INT32 = struct.Struct(">i")
_LEADER_EPOCH_AT = 12
_MAGIC_AT = 16
_LAST_DELTA_AT = 23
_LENGTH_MIN = 14
"""The smallest that any format ever had, as a length counts."""
_NO_EPOCH = -1


class WholeBatches(NamedTuple):
    """
    The whole batches at the start of some bytes.

    *size* is their end, *next_offset* and *leader_epoch* are the last one's; without one 0, None,
    -1. *wanted* is the size of the batch behind them, 0 where cut off; *damage* why there is none.
    The last one begins at *last_start*.
    """

    size: int
    next_offset: int | None
    leader_epoch: int
    wanted: int
    damage: str | None
    last_start: int = 0


def whole_batches(data: bytes | memoryview) -> WholeBatches:
    """Find the whole batches at the begin of *data*."""
    unpack = _START.unpack_from
    count = len(data)
    at = last = wanted = 0
    damage = None
    while count - at >= LENGTH_FROM:
        base_offset, length = unpack(data, at)
        if not _LENGTH_MIN <= length <= BATCH_BYTES_MAX:
            damage = f"a batch at offset {base_offset} claims a length of {length}"
            break
        stop = at + LENGTH_FROM + length
        if stop > count:
            wanted = stop - at
            break
        last = at
        at = stop
    if at == 0:
        return WholeBatches(0, None, _NO_EPOCH, wanted, damage)
    base_offset, _ = unpack(data, last)
    if data[last + _MAGIC_AT] != MAGIC or at - last < HEADER_BYTES:
        return WholeBatches(at, base_offset + 1, _NO_EPOCH, wanted, damage, last)
    (last_delta,) = _INT32.unpack_from(data, last + _LAST_DELTA_AT)
    (leader_epoch,) = _INT32.unpack_from(data, last + _LEADER_EPOCH_AT)
    return WholeBatches(at, base_offset + last_delta + 1, leader_epoch, wanted, damage, last)


_GROWTH = 2
_BYTES_MAX = 2**31 - 1
"""Largest size that a request can have."""


@dataclass(slots=True, eq=False)
class PendingRead:
    """Waits for records; *answer* is its end."""

    partition: int
    position: int
    bytes_max: int
    answer: asyncio.Future[RecordSet]
    is_answered: bool = False
    """Whether the leader has said since the read began that nothing is there yet."""


def answer(read: PendingRead, found: RecordSet | LogError) -> None:
    if read.answer.done():
        return
    if isinstance(found, LogError):
        read.answer.set_exception(found)
    else:
        read.answer.set_result(found)


class FetchOutOfRange(NamedTuple):
    """The leader answers that the position is out of range."""

    is_diverging: bool


class FetchAgain(NamedTuple):
    """The read goes on: because there is nothing yet, or it did not fit, or something is wrong."""

    trouble: LogError | None
    is_stale: bool = False
    """Whether the leader may be another by now."""


class AnsweredOffsets(NamedTuple):
    """The offsets of the last answer, and the leader epochs before it and at its end."""

    first: int
    next_offset: int
    before: int
    leader_epoch: int

    def epoch_before(self, position: int) -> int:
        """
        Return the last fetched epoch of a reader at *position*, -1 where it is not known. A reader
        may want a part of the answer again, or all of it: then the last epoch is at least as new as
        its own, and a leader that has lost records finds it diverging all the same.
        """
        if position == self.first:
            return self.before
        return self.leader_epoch if self.first < position <= self.next_offset else NO_EPOCH


class FetchPosition:
    """The state of one partition by the last answers."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.backoff = Backoff(RETRY, now)
        self.trouble: LogError | None = None
        self.tail: int | None = None
        """The position at which the leader had nothing more when it answered last."""
        self.heard_at = float("-inf")
        """When the leader answered last without complaint."""
        self.bytes_wanted = 0
        """How much the batch at the position needs, where that is more than was asked for."""
        self.timer: asyncio.TimerHandle | None = None
        """Ends the pause after the last failure."""
        self.led_by: tuple[int | None, int] | None = None
        """Leader and its epoch when they were looked up last."""
        self._answered = AnsweredOffsets(-1, -1, NO_EPOCH, NO_EPOCH)

    def wanted(self, read: PendingRead, leader_epoch: int) -> FetchPartition:
        return FetchPartition(
            read.partition,
            read.position,
            min(max(read.bytes_max, self.bytes_wanted), _BYTES_MAX),
            leader_epoch,
            self._answered.epoch_before(read.position),
        )

    def judge(
        self, read: PendingRead, fetched: FetchedPartition, *, is_first: bool
    ) -> RecordSet | LogError | FetchOutOfRange | FetchAgain:
        """Judge an answer for *read*, the first of which (*is_first*) has a whole batch."""
        if fetched.is_diverging:
            return FetchOutOfRange(is_diverging=True)
        if fetched.code != ErrorCode.NONE:
            return self._refusal(read, fetched.code)
        self._heard()
        found = whole_batches(fetched.data)
        if found.next_offset is not None:
            if found.next_offset > fetched.high_watermark >= 0:
                return _within(read, fetched, found)
            if found.next_offset <= read.position:
                return self._damaged(read, f"the leader answers up to {found.next_offset} only")
            before = self._answered.epoch_before(read.position)
            self._answered = AnsweredOffsets(
                read.position, found.next_offset, before, found.leader_epoch
            )
            if found.next_offset >= fetched.high_watermark:
                self.tail = found.next_offset
            return RecordSet(read.partition, bytes(fetched.data[: found.size]), found.next_offset)
        if found.damage is not None:
            return self._damaged(read, found.damage)
        if fetched.data:
            self.bytes_wanted = found.wanted or _GROWTH * max(read.bytes_max, len(fetched.data))
        elif fetched.high_watermark <= read.position or is_first:
            self.tail = read.position
            read.is_answered = True
        return FetchAgain(None)

    def failed(self, error: LogError) -> float:
        """Note that nothing could be learned, and return the pause until it is tried again."""
        self.trouble = error
        self.tail = None
        self.heard_at = float("-inf")
        return self.backoff.failed()

    def forget_epoch(self) -> None:
        """Ask without the epoch of the batch before: the leader cannot tell by it."""
        self._answered = AnsweredOffsets(-1, -1, NO_EPOCH, NO_EPOCH)

    def _heard(self) -> None:
        self.backoff.succeeded()
        self.trouble = None
        self.tail = None
        self.heard_at = self._now()
        self.bytes_wanted = 0

    def _refusal(self, read: PendingRead, code: int) -> LogError | FetchOutOfRange | FetchAgain:
        where = f"partition {read.partition}"
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            return FetchOutOfRange(is_diverging=False)
        if code == ErrorCode.CORRUPT_MESSAGE:
            return self._damaged(read, f"the leader says {name_of(code)}")
        error = error_for(where, code, "READ the topic")
        return FetchAgain(error, is_stale=True) if isinstance(error, LogUnavailable) else error

    def _damaged(self, read: PendingRead, why: str) -> LogDamaged:
        return LogDamaged(f"partition {read.partition} at offset {read.position}: {why}")


def _within(read: PendingRead, fetched: FetchedPartition, found: WholeBatches) -> RecordSet:
    """
    Return a record set whose last batch claims offsets beyond the high watermark: no CRC covers a
    base offset. The batches before it come alone; the first one begins at the position.
    """
    before = whole_batches(fetched.data[: found.last_start])
    if before.next_offset is not None and before.next_offset > read.position:
        end, size = min(before.next_offset, fetched.high_watermark), before.size
    else:
        delta = 0
        if found.size - found.last_start >= HEADER_BYTES:
            (delta,) = _INT32.unpack_from(fetched.data, found.last_start + _LAST_DELTA_AT)
        end = min(read.position + max(delta, 0) + 1, fetched.high_watermark)
        size = found.size
    return RecordSet(read.partition, bytes(fetched.data[:size]), max(end, read.position + 1))


def truncated(
    read: PendingRead, log_start: int, next_offset: int, *, is_diverging: bool
) -> LogTruncated | None:
    """Return the error for a position outside of the bounds; None when it is within them."""
    where = f"partition {read.partition}: offset {read.position}"
    held = f"the log holds {log_start} to {next_offset}"
    if is_diverging:
        what = f"{where} belongs to a history that its leader does not have (unclean election)"
    elif log_start <= read.position <= next_offset:
        return None
    else:
        what = f"{where} is not there"
    return LogTruncated(f"{what}; {held}", log_start, next_offset)
