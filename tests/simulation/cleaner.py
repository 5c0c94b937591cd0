"""The log cleaner: batches from which it removed records, and batches that it wrote anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.log.memory.partition import StoredBatch
from rlmm.metadata.encoding import encode_any
from rlmm.records.batch import Batch, walk
from rlmm.records.compression import Compression
from rlmm.records.records import Record
from rlmm.records.writer import Producer, build_batch
from tests.simulation.failures import any_place

if TYPE_CHECKING:
    from tests.simulation.world import World

_NEWEST = 4
"""How many of the newest batches may be written anew: a snapshot may stand on one of them."""


def write_holes(world: World) -> None:
    """Store a batch from which the cleaner has removed records before a reader sees them."""
    place = any_place(world)
    if place is None:
        return
    tier = world.random.choice(world.tiers)
    event = encode_any(tier.propose_nonsense(world.random, world.clock.now_ms()))
    first = world.store(place, event, event, event, event)
    if first is None:
        return
    gone = {first + number for number in range(4) if world.random.random() < 0.6}
    keeps_empty = world.random.random() < 0.5
    world.script.compact(place, gone, keeps_empty=keeps_empty)
    world.topic.forget_holes(place, first)
    world.tell("cleaner", f"{place}: {len(gone)} of 4 records from {first} on")
    if not keeps_empty:
        world.store(place, event)  # no cleaner removes the newest batch of a log


def rewrite(world: World) -> None:
    """Write a batch anew with other bytes: its records stay, and a checksum proves nothing."""
    place = any_place(world)
    if place is None:
        return
    held = world.topic.partitions[place]
    newest = range(max(0, len(held.batches) - _NEWEST), len(held.batches))
    if newest:
        at = world.random.choice(newest)
        held.replace([*held.batches[:at], _rewritten(held.batches[at]), *held.batches[at + 1 :]])
        world.tell("cleaner", f"{place}: the batch at {held.batches[at].base_offset} anew")


def _rewritten(stored: StoredBatch) -> StoredBatch:
    (batch,) = walk(stored.data)
    assert isinstance(batch, Batch)
    records = [record for record in batch.records() if isinstance(record, Record)]
    if batch.is_control or not records:
        return stored
    data = build_batch(
        records,
        batch.base_offset,
        last_offset=batch.last_offset,
        leader_epoch=batch.leader_epoch,
        compression=Compression.NONE if batch.compression else Compression.GZIP,
        producer=Producer(
            batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.is_transactional
        ),
    )
    return StoredBatch(stored.base_offset, stored.last_offset, data)
