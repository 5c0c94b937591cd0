"""The validation of a user partition: its image reads back equal, and so do all derived parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.errors import ImageCorrupt
from rlmm.metadata.image import partition_image
from rlmm.metadata.image_reading import read_partition_image

if TYPE_CHECKING:
    from rlmm.metadata.epoch_state import EpochState, Rows
    from rlmm.metadata.partition_state import PartitionState


def violations(state: PartitionState) -> list[str]:
    """Return every broken rule, in words; empty when the state is sound."""
    found = _dangling(state)
    if found:
        return found  # an image of such a state cannot even be written
    try:
        fresh = read_partition_image(partition_image(state))
    except ImageCorrupt as error:
        return [str(error)]
    found = _differences("partition", state, fresh, ("counts", "size_bytes", "strays", "delete"))
    for epoch, entry in state.epochs.items():
        found += _epoch_differences(entry, fresh.epochs[epoch])
        if entry.cover not in (None, entry.build_cover(state.rows)):
            found.append(f"epoch {epoch}: the index of hidden segments is out of date")
        found += _stretch_violations(entry, state.rows)
    return found


def _dangling(state: PartitionState) -> list[str]:
    found = []
    for epoch, entry in state.epochs.items():
        listed = entry.unreferenced.union(entry.slots.ids(), entry.shadowed)
        missing = listed - state.rows.keys()
        if missing:
            found.append(f"epoch {epoch} lists {len(missing)} segments that do not exist")
        if entry.epoch != epoch:
            found.append(f"epoch {epoch} stands under the number {entry.epoch}")
    missing = state.strays.keys() - state.rows.keys()
    if missing:
        found.append(f"{len(missing)} strays do not exist")
    return found


def _epoch_differences(kept: EpochState, fresh: EpochState) -> list[str]:
    name = f"epoch {kept.epoch}"
    found = _differences(
        name, kept, fresh, ("size_bytes", "indexed_count", "unreferenced", "highest")
    )
    if list(kept.slots) != list(fresh.slots) or len(kept.slots) != len(fresh.slots):
        found.append(f"{name}: slots differ")
    if kept.slots.top != fresh.slots.top:
        found.append(f"{name}: largest slot is {kept.slots.top}, should be {fresh.slots.top}")
    if any(kept.slots.get(offset) != uuid for offset, uuid in fresh.slots):
        found.append(f"{name}: slots are not found where they stand")
    if not fresh.shadowed <= kept.shadowed:
        found.append(
            f"{name}: {len(fresh.shadowed - kept.shadowed)} hidden segments are not remembered"
        )
    return found


def _stretch_violations(entry: EpochState, rows: Rows) -> list[str]:
    skips, slots = entry.skips, entry.slots
    name = f"epoch {entry.epoch}"
    if skips is None:
        return []
    if slots.top is None or skips.looked_to > slots.top:
        return [f"{name}: stretches were looked for behind the last slot"]
    found = []
    if any(slots.get(offset) != uuid for offset, uuid in skips.ends):
        found.append(f"{name}: a stretch ends where no slot is")
    missing = skips.missing(slots, rows)
    if missing:
        found.append(f"{name}: {len(missing)} ends of stretches are not known")
    return found


def _differences(name: str, kept: object, fresh: object, fields: tuple[str, ...]) -> list[str]:
    return [
        f"{name}: {field} is {getattr(kept, field)!r}, should be {getattr(fresh, field)!r}"
        for field in fields
        if getattr(kept, field) != getattr(fresh, field)
    ]
