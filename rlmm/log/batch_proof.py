"""
The proof that a log still holds the batch on which a state stands: by leader epoch and checksum of
that batch, or by the log's own history of leader epochs where the cleaner rewrote the batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from rlmm.errors import LogUnavailable
from rlmm.records.batch import Batch, walk

if TYPE_CHECKING:
    from rlmm.log.protocol import LogBounds, MetadataLog
    from rlmm.records.header import BatchMark


@runtime_checkable
class EpochEndSource(Protocol):
    """A log that knows the leader epochs of its history: the `kafka` log."""

    async def epoch_end(
        self, partition: int, leader_epoch: int, *, timeout_s: float
    ) -> tuple[int, int] | None:
        """
        Return the largest leader epoch up to *leader_epoch*, and the offset after its last record;
        -1 for both where there is none, `None` where epochs are not kept.
        """


async def holds_batch(
    log: MetadataLog,
    partition: int,
    mark: BatchMark | None,
    bounds: LogBounds,
    *,
    position: int,
    needs_proof: bool = False,
    timeout_s: float,
) -> bool:
    """
    Return whether *log* holds what a state at *position* was made of: the batch of *mark*, so
    everything before it, and nothing else up to *position*. Where retention removed the batch, only
    a leader epoch can contradict; with *needs_proof* that is not enough. Raises as a read does.
    """
    if mark is None:
        return True
    is_trimmed = mark.last_offset < bounds.log_start_offset
    is_found = False
    if not is_trimmed:
        if mark.last_offset >= bounds.high_watermark:
            return False
        offset = max(mark.base_offset, bounds.log_start_offset)
        found = await _batch_at(log, partition, offset, timeout_s)
        if found is not None and found.base_offset == mark.base_offset:
            is_found = found.mark == mark
            if is_found and position <= mark.last_offset + 1:
                return True
            if found.leader_epoch != mark.leader_epoch:
                return False
    if is_trimmed and needs_proof:
        return False
    found_end = None
    if isinstance(log, EpochEndSource):
        found_end = await log.epoch_end(partition, mark.leader_epoch, timeout_s=timeout_s)
    if found_end is None or (is_trimmed and found_end[0] < 0):
        return (is_trimmed or is_found) and not needs_proof
    epoch, end = found_end
    # Records behind the batch may have been passed, as damaged or removed ones are: they must be of
    # its epoch, or others may stand there by now.
    return epoch == mark.leader_epoch and end >= max(mark.last_offset + 1, position)


async def _batch_at(
    log: MetadataLog, partition: int, offset: int, timeout_s: float
) -> Batch | None:
    found = await log.read(partition, offset, timeout_s=timeout_s, bytes_max=1)
    if found is None:
        msg = f"partition {partition}: the batch at offset {offset} was not read in {timeout_s:g} s"
        raise LogUnavailable(msg)
    batches = (one for one in walk(found.data) if isinstance(one, Batch))
    return next((one for one in batches if one.last_offset >= offset), None)
