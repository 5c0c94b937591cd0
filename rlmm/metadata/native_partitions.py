"""User partitions in the native core, for the code that asks a `PartitionState`; its verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlmm.metadata.decoding import decode_partition_key
from rlmm.metadata.events import PartitionDelete
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from rlmm.metadata.verdicts import (
    APPLIED,
    DUPLICATE,
    Applied,
    Rejected,
    RejectReason,
    Remark,
    Verdict,
)

if TYPE_CHECKING:
    from rlmm_native import Core

_REMARKS: Final = (
    None,
    Remark.DISPLACED_ANOTHER_SEGMENT,
    Remark.FINISHED_BY_ANOTHER_BROKER,
    Remark.PARTITION_BEING_DELETED,
    Remark.PARTITION_WAS_DELETED,
    Remark.PARTITION_DELETE_OUT_OF_ORDER,
)
_REASONS: Final = (
    None,
    RejectReason.UNKNOWN_SEGMENT,
    RejectReason.ILLEGAL_TRANSITION,
    RejectReason.UPDATE_TO_STARTED,
)


def verdict_of(number: int) -> Verdict:
    kind, detail = number & 0xFF, number >> 8 & 0xFF
    if kind == 0:
        remark = _REMARKS[detail]
        return APPLIED if remark is None else Applied(remark)
    if kind == 1:
        return DUPLICATE
    reason, current, requested = _REASONS[detail], number >> 16 & 0xFF, number >> 24
    assert reason is not None
    return Rejected(reason, SegmentState(current - 1) if current else None, SegmentState(requested))


class _Rows:
    __slots__ = ("_core", "_key")

    def __init__(self, core: Core, key: bytes) -> None:
        self._core, self._key = core, key

    def get(self, uuid: bytes) -> bytes | None:
        return self._core.row(self._key, uuid)

    def __getitem__(self, uuid: bytes) -> bytes:
        row = self.get(uuid)
        if row is None:
            raise KeyError(uuid)
        return row


class CorePartition:
    """One user partition in the core, for the code that asks a `PartitionState`."""

    __slots__ = ("_core", "key")
    epochs = ()
    """No event takes long for their number here."""

    def __init__(self, core: Core, key: bytes) -> None:
        self._core, self.key = core, key

    @property
    def rows(self) -> _Rows:
        return _Rows(self._core, self.key)

    @property
    def delete(self) -> PartitionDelete | None:
        found = self._core.delete(self.key)
        if found is None:
            return None
        partition = decode_partition_key(self.key)
        assert partition is not None, self.key.hex()
        state, broker_id, timestamp_ms = found
        return PartitionDelete(partition, broker_id, timestamp_ms, PartitionDeleteState(state))

    def add(self, uuid: bytes, row: bytes) -> Verdict:
        return verdict_of(self._core.add(self.key, uuid, row))

    def update(
        self, uuid: bytes, target: int, writer: bytes, custom: bytes, offset: int
    ) -> Verdict:
        number = self._core.update(self.key, uuid, target, writer, custom, offset)
        if number is None:
            return Rejected(RejectReason.UNKNOWN_SEGMENT, None, SegmentState(target))
        return verdict_of(number)

    def lookup(self, epoch: int, offset: int) -> bytes | None:
        found = self._core.row_for(self, epoch, offset)
        return None if found is None else found[0]


class CorePartitions:
    """The user partitions that the core has, by key."""

    __slots__ = ("_core",)

    def __init__(self, core: Core) -> None:
        self._core = core

    def get(self, key: bytes) -> CorePartition | None:
        return CorePartition(self._core, key) if self._core.has(key) else None
