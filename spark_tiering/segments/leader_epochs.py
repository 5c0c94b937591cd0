"""Leader epochs of a segment, never guessed: from check point or batches, and their cut. Pure."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from rlmm.partition_log.checkpoints import CheckpointFault, parse_epochs
from rlmm.partition_log.epochs import EpochStarts
from spark_tiering.segments.findings import SegmentFinding, SegmentFindingKind, SegmentPart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spark_tiering.segments.log_walk import LogBatch

CHECKPOINT_BYTES_MAX = 4 * 1024 * 1024
EPOCHS_MAX = 100_000
"""Most epochs that a log may add: those of 70 days with a new leader each minute."""

Epochs = tuple[tuple[int, int], ...]
"""(leader epoch, its first offset), both rising."""

_PART = SegmentPart.LEADER_EPOCHS


def epochs_of_file(name: str, content: bytes) -> Epochs | SegmentFinding:
    """Read a check point of leader epochs; one without an epoch is as good as none."""
    entries = parse_epochs(content)
    if isinstance(entries, CheckpointFault):
        return SegmentFinding(_PART, SegmentFindingKind.DAMAGED, f"{name}: {entries.detail}")
    for earlier, later in pairwise(entries):
        if later[0] <= earlier[0] or later[1] <= earlier[1]:
            return SegmentFinding(
                _PART, SegmentFindingKind.UNORDERED, f"{name}: {later} follows {earlier}"
            )
    if not entries:
        return SegmentFinding(_PART, SegmentFindingKind.MISSING, f"{name}: no epochs in it")
    return tuple(entries)


def epochs_until(epochs: Epochs, next_offset: int) -> Epochs:
    """Return the history that a segment carries which ends below *next_offset*."""
    return tuple(entry for entry in epochs if entry[1] < next_offset)


def epochs_within(epochs: Epochs, base_offset: int, next_offset: int) -> Epochs | None:
    """Return the epochs of [base_offset, next_offset); None where the first is not known."""
    cut = EpochStarts(epochs_until(epochs, next_offset))
    if cut.epoch_at(base_offset) < 0:
        return None
    cut.advance_to(base_offset)
    return cut.entries


class EpochsJudge:
    def __init__(self, name: str, epochs: Sequence[tuple[int, int]]) -> None:
        self.finding: SegmentFinding | None = None
        self._name = name
        self._epochs = epochs
        self._index = -1

    def note(self, batch: LogBatch) -> None:
        while (
            self._index + 1 < len(self._epochs)
            and self._epochs[self._index + 1][1] <= batch.base_offset
        ):
            self._index += 1
        epoch = self._epochs[self._index][0] if self._index >= 0 else -1
        if self.finding is None and (epoch != batch.leader_epoch or epoch < 0):
            detail = f"epoch {epoch} at offset {batch.base_offset}, the log has"
            text = f"{self._name}: {detail} {batch.leader_epoch}"
            self.finding = SegmentFinding(_PART, SegmentFindingKind.WRONG, text)


class EpochsOfLog:
    """Collects the epochs that batches prove, after the earlier ones; None if unknown."""

    def __init__(self, before: Epochs | None) -> None:
        self._epochs = None if before is None else EpochStarts(before)
        self._latest = -1 if self._epochs is None else self._epochs.latest
        self._added = 0

    def note(self, batch: LogBatch) -> None:
        if self._epochs is None or batch.leader_epoch == self._latest >= 0:
            return
        self._added += 1
        if batch.leader_epoch < max(self._latest, 0) or self._added > EPOCHS_MAX:
            self._epochs = None
            return
        self._epochs.assign(batch.leader_epoch, batch.base_offset)
        self._latest = batch.leader_epoch

    @property
    def entries(self) -> Epochs | None:
        return None if self._epochs is None else self._epochs.entries
