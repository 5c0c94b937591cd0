"""
The appends to one partition: in order, one batch at a time, each stored once. No I/O.

A waiting append is surely not stored. A batch is resent, with the same bytes and sequence numbers,
until a broker answers or no caller waits; only then is its outcome unknown. A broker stores a
sequence number once, also after the leader has changed.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.errors import AppendRefused, AppendUncertain, LogRecreated
from rlmm.kafka_client.code_errors import error_for
from rlmm.kafka_messages.error_codes import DENIED, ErrorCode, name_of
from rlmm.records.records import Record
from rlmm.records.writer import Producer, build_batch

if TYPE_CHECKING:
    import asyncio

    from rlmm.errors import LogError
    from rlmm.kafka_messages.produce import ProduceResult, ProducerId

RECORD_BYTES = 32
"""Most bytes that a record adds to its value."""
BATCH_BYTES = 64
"""Most bytes that a batch adds to its records."""
FIELD_BYTES = 5
"""Most bytes of the length of a field."""
_RECORDS_MAX = 1000
_SEQUENCES = 2**31
"""Numbers of records begin anew after the largest."""
_NOT_STORED = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    }
)
"""Answers to an append which say that this attempt left nothing behind; another may succeed."""

_REFUSED = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.INVALID_RECORD,
    }
    | DENIED
)
"""Answers to an append which say that it will never be stored as it is."""

_LOST_PRODUCER = frozenset(
    {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
    }
)
"""Answers to an append which say that the producer's numbering is void: it needs a new id."""
_TOO_LARGE = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})


@dataclass(slots=True, eq=False)
class ProducerAppend:
    """Carries one event to the broker; *offset* is its end."""

    value: bytes
    offset: asyncio.Future[int]
    is_sent: bool = False
    """Whether a broker may have stored it."""
    record: Record | None = None
    """The whole of it, where it is to be stored as it once was: with key, time and headers."""

    @property
    def size(self) -> int:
        """Return how many bytes it takes at most."""
        return len(self.value) + RECORD_BYTES + (self.record is not None and _more(self.record))

    def at(self, number: int, now_ms: int) -> Record:
        if self.record is None:
            return Record(number, now_ms, None, self.value)
        return self.record._replace(offset=number)

    def fail(self, error: LogError) -> None:
        if not self.offset.done():
            self.offset.set_exception(error)


@dataclass(slots=True, eq=False)
class ProducerBatch:
    """Appends that travel together, numbered."""

    appends: list[ProducerAppend]
    data: bytes
    is_unclear: bool = False
    """Whether the outcome of an attempt is unknown."""


class PartitionAppends:
    """Appends of one partition that wait, and the batch that was sent."""

    def __init__(self, partition: int, batch_bytes_max: int) -> None:
        self.batch: ProducerBatch | None = None
        self.producer: ProducerId | None = None
        self.trouble: LogError | None = None
        """The last error; None when the last attempt succeeded."""
        self._where = f"partition {partition}"
        self._batch_bytes_max = batch_bytes_max
        self._waiting: deque[ProducerAppend] = deque()
        self._sequence = 0
        self._next_offset = 0
        self._alone = 0

    def put(self, append: ProducerAppend) -> None:
        """Have *append* sent after those that wait."""
        self._waiting.append(append)

    def is_wanted(self) -> bool:
        """Forget appends whose callers have gone; return whether any append is left."""
        if self.batch is not None and all(append.offset.done() for append in self.batch.appends):
            # Its numbers may or may not be used up: go on as another producer.
            self._forget_producer()
        self._waiting = deque(append for append in self._waiting if not append.offset.done())
        return bool(self.batch or self._waiting)

    def fail(self, error: LogError) -> None:
        """End all appends: with *error* those that were surely not stored."""
        sent = self.batch.appends if self.batch is not None else []
        for append in (*sent, *self._waiting):
            text = f"{self._where}: {error}"
            append.fail(AppendUncertain(text) if append.is_sent else type(error)(text))

    def pack(self, now_ms: int) -> bytes | None:
        """Return the batch sent before, or a new one; None when nothing waits."""
        if self.batch is None and self.is_wanted():
            assert self.producer is not None
            appends = self._take()
            producer = Producer(self.producer.id, self.producer.epoch, self._sequence)
            records = [append.at(number, now_ms) for number, append in enumerate(appends)]
            self.batch = ProducerBatch(appends, build_batch(records, 0, producer=producer))
        return None if self.batch is None else self.batch.data

    def _take(self) -> list[ProducerAppend]:
        """Take as many waiting appends as fit into a batch, at least one."""
        appends = [self._waiting.popleft()]
        room = self._batch_bytes_max - BATCH_BYTES - appends[0].size
        self._alone = max(0, self._alone - 1)
        while (
            self._waiting
            and not self._alone
            and len(appends) < _RECORDS_MAX
            and self._waiting[0].size <= room
        ):
            append = self._waiting.popleft()
            room -= append.size
            appends.append(append)
        return appends

    def sent(self) -> None:
        """Note that the batch is on its way: from now on it may be stored."""
        assert self.batch is not None
        for append in self.batch.appends:
            append.is_sent = True

    def not_sent(self) -> None:
        """Note that this attempt never left: unless an earlier one did, all of it waits again."""
        if self.batch is not None and not self.batch.is_unclear:
            for append in self.batch.appends:
                append.is_sent = False
            self._waiting.extendleft(reversed(self.batch.appends))
            self.batch = None

    def lost(self, error: LogError) -> None:
        """Note that no answer came: the outcome of the batch is unknown."""
        assert self.batch is not None
        self.batch.is_unclear = True
        self.trouble = error

    def answered(self, told: ProduceResult | None) -> LogError | None:
        """Take the answer; returns the reason to send the batch, or its appends, again."""
        batch = self.batch
        assert batch is not None
        code = ErrorCode.UNKNOWN_SERVER_ERROR if told is None else told.code
        if told is not None and code == ErrorCode.NONE:
            self._stored(batch, told)
            return None
        self.trouble = error_for(self._where, code, "WRITE to the topic")
        if code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            self._unknown(batch, "it was stored before, the broker forgot at which offset")
            return None
        if code in _LOST_PRODUCER:
            return self._lost_producer(batch)
        if code in _REFUSED:
            self._refused(batch, code, None if told is None else told.reason)
            return None
        if code in _NOT_STORED:
            self.not_sent()
        else:
            batch.is_unclear = True
        return self.trouble

    def _stored(self, batch: ProducerBatch, told: ProduceResult) -> None:
        self.batch = None
        self._sequence = (self._sequence + len(batch.appends)) % _SEQUENCES
        if told.base_offset < self._next_offset and not told.is_by_topic_id:
            text = f"stored at offset {told.base_offset}, after {self._next_offset - 1} was given"
            error = LogRecreated(f"{self._where}: {text}: the topic was created anew")
            for append in batch.appends:
                append.fail(error)
            return
        self.trouble = None
        self._next_offset = told.base_offset + len(batch.appends)
        for offset, append in enumerate(batch.appends, told.base_offset):
            if not append.offset.done():
                append.offset.set_result(offset)

    def _unknown(self, batch: ProducerBatch, why: str) -> None:
        for append in batch.appends:
            append.fail(AppendUncertain(f"{self._where}: {why}"))
        self._forget_producer()

    def _lost_producer(self, batch: ProducerBatch) -> LogError | None:
        """Number the unstored appends anew: the broker does not follow our numbers."""
        if batch.is_unclear:
            self._unknown(batch, f"{self.trouble}, and an earlier attempt had no answer")
            return None
        self.not_sent()
        self._forget_producer()
        return self.trouble

    def _refused(self, batch: ProducerBatch, code: int, reason: str | None) -> None:
        what = f"{name_of(code)}: {reason}" if reason else name_of(code)
        if batch.is_unclear:
            self._unknown(batch, f"{what}, and an earlier attempt had no answer")
            return
        if code in _TOO_LARGE and len(batch.appends) > 1:
            self._alone = len(batch.appends) + 1
            self.not_sent()
            return
        self.batch = None
        denied = self.trouble if code in DENIED else None
        for append in batch.appends:
            append.is_sent = False
            text = f"{self._where}: the broker refused the event: {what}"
            append.fail(AppendRefused(text) if denied is None else type(denied)(str(denied)))

    def _forget_producer(self) -> None:
        self.batch = None
        self.producer = None
        self._sequence = 0

    def late(self, append: ProducerAppend, timeout_s: float) -> LogError:
        why = f": {self.trouble}" if self.trouble is not None else ""
        if append.is_sent:
            return AppendUncertain(
                f"{self._where}: no answer to an append in {timeout_s:g} s, it may be stored{why}"
            )
        return AppendRefused(f"{self._where}: not sent in {timeout_s:g} s, it is not stored{why}")


def _more(record: Record) -> int:
    fields = [record.key or b""]
    for name, value in record.headers:
        fields += (name.encode(), value or b"")
    return sum(len(field) + FIELD_BYTES for field in fields)
