"""
The branches of a metadata partition: what each unclean election left of its records, and what came
after it. A branch shares the records below its cut with the branch before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class BranchBatch:
    base_offset: int
    next_offset: int
    stored_s: float
    data: bytes


@dataclass(slots=True)
class Branch:
    batches: list[BranchBatch] = field(default_factory=list)
    cut_at: int = 0
    """The first offset that it does not share with the branch before it."""
    began_s: float = 0.0


Gaps = tuple[tuple[int, int], ...]


class Lineage(NamedTuple):
    """What a state was read from."""

    history: History
    branch: int
    gaps: Gaps
    """Offsets that retention removed before the state read them."""

    def lost_s(self, position: int) -> float | None:
        """Return when records below *position* were lost, if they were."""
        return self.history.disowned_s(self.branch, position)

    def is_lost(self, position: int) -> bool:
        return self.lost_s(position) is not None


class History:
    """All records that were ever stored in one metadata partition of one topic."""

    def __init__(self, place: int) -> None:
        self.place = place
        self.branches = [Branch()]
        self._published: dict[int, list[tuple[int, bytes]]] = {}
        """Offset -> the values that engines stored there, each with the number of its branch."""

    @property
    def current(self) -> int:
        return len(self.branches) - 1

    @property
    def batches(self) -> list[BranchBatch]:
        return self.branches[-1].batches

    def publish(self, offset: int, value: bytes) -> None:
        self._published.setdefault(offset, []).append((self.current, value))

    def published(self, offset: int) -> list[bytes]:
        return [value for _, value in self._published.get(offset, ())]

    def holds(self, offset: int, value: bytes) -> bool:
        """Whether no election has lost *value*, which an engine stored at *offset*."""
        return any(
            kept == value and self.shares(branch, offset + 1, self.current)
            for branch, kept in self._published.get(offset, ())
        )

    def cut(self, next_offset: int, now_s: float) -> None:
        """Begin a branch that has the records below *next_offset*."""
        kept = [batch for batch in self.batches if batch.base_offset < next_offset]
        if kept and kept[-1].next_offset > next_offset:
            # The cut is in a hole that the cleaner made: records there are gone already.
            kept[-1] = BranchBatch(kept[-1].base_offset, next_offset, kept[-1].stored_s, b"")
        self.branches.append(Branch(kept, next_offset, now_s))

    def shares(self, branch: int, position: int, later: int) -> bool:
        """Whether branch *later* has all that *branch* has below *position*."""
        return branch <= later and all(
            position <= found.cut_at for found in self.branches[branch + 1 : later + 1]
        )

    def disowned_s(self, branch: int, position: int) -> float | None:
        """Return when records below *position* of *branch* were lost, if they were."""
        for found in self.branches[branch + 1 :]:
            if position > found.cut_at:
                return found.began_s
        return None

    def stored_s(self, position: int) -> float | None:
        """Return the time of storing of the first record at or behind *position*, or `None`."""
        found = None
        for kept in reversed(self.batches):
            if kept.next_offset <= position:
                break
            found = kept.stored_s
        return found

    def forget_holes(self, there: dict[int, bytes], from_offset: int) -> None:
        """Forget the records from *from_offset* on that are not *there*, by base offset."""
        for index, kept in enumerate(self.batches):
            if kept.base_offset >= from_offset:
                data = there.get(kept.base_offset, b"")
                self.batches[index] = BranchBatch(
                    kept.base_offset, kept.next_offset, kept.stored_s, data
                )
