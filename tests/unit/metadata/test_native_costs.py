"""The costs of the native core: what is dead takes few bytes; the other engine has few values."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rlmm.metadata import python_shard
from rlmm.metadata.encoding import encode
from rlmm.metadata.fast_decoding import cut
from rlmm.metadata.page_order_cache import PageOrderCache
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from rlmm.records.compression import Compression
from rlmm.records.record_set import RecordSet
from rlmm.records.writer import build_batch, records_of
from tests.support.builders import partition_delete, segment_id, started, tp, update
from tests.support.engine.chosen import needs_native
from tests.support.engine.shards import batch_of
from tests.support.repository import tree

pytestmark = needs_native

DEAD_BYTES_MAX = 100
COUNT = 5_000
FINISHED = PartitionDeleteState.DELETE_PARTITION_FINISHED
_, *LATER_STATES = SegmentState


def new_shard() -> python_shard.PythonShard:
    from rlmm.metadata.native_shard import NativeShard  # noqa: PLC0415 - may not be built

    return NativeShard(0)


def held_bytes(shard: python_shard.PythonShard) -> int:
    held: int = shard._core.held_bytes()  # type: ignore[attr-defined]  # of the native shard
    return held


def test_partition_when_its_deletion_is_finished_then_costs_a_hundred_bytes_at_most() -> None:
    """A deleted user partition is its key and its deletion, also when segments went with it."""
    shard = new_shard()
    before = held_bytes(shard)
    for number in range(COUNT):
        user = tp("orders-of-a-region", number)
        shard.apply(RecordSet(0, batch_of([started(segment_id(1, user), 0, 9)], shard.position)))
        shard.apply(RecordSet(0, batch_of([partition_delete(FINISHED, user)], shard.position)))
    assert shard.user_partitions == COUNT
    assert held_bytes(shard) - before < DEAD_BYTES_MAX * COUNT
    assert shard.statistics().oldest_started_ms is None
    assert shard.validate() == []


@pytest.mark.parametrize("order", [1, -1], ids=["rising", "falling"])
def test_leader_epoch_when_its_segments_are_gone_then_costs_a_hundred_bytes_at_most(
    order: int,
) -> None:
    """A leader epoch without segments is its number and its highest offset."""
    shard = new_shard()
    before = held_bytes(shard)
    for number in range(COUNT)[::order]:
        segment = segment_id(number)
        shard.apply_event(started(segment, number, number + 9, {number: number}))
        for state in LATER_STATES:
            shard.apply_event(update(segment, state))
    assert held_bytes(shard) - before < DEAD_BYTES_MAX * COUNT
    assert shard.highest_offset(tp(), COUNT // 2) == COUNT // 2 + 9
    assert len(list(shard.watermarks())) == COUNT
    assert shard.validate() == []


def test_compressed_batch_when_among_usual_ones_then_goes_alone_to_the_other_engine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The values of a compressed batch are cut by the pure-Python engine, and no others."""
    values = [encode(started(number, number, number)) for number in range(300)]
    parts = [
        build_batch(
            records_of(values[first : first + 3], first),
            first,
            compression=Compression.ZSTD if first == 150 else Compression.NONE,
        )
        for first in range(0, 300, 3)
    ]
    taken: list[bytes] = []

    def noted(value: bytes) -> object:
        taken.append(value)
        return cut(value)

    monkeypatch.setattr(python_shard, "cut", noted)
    shard = new_shard()
    shard.apply(
        RecordSet(0, batch_of([started("first", 0, 0)], 0))
    )  # so that it knows the partition
    taken.clear()
    shard.position = 0
    assert shard.apply(RecordSet(0, b"".join(parts))).tally.applied == len(values)
    assert taken == values[150:153]


LITTLE_MEMORY = """
import resource, sys
from rlmm.metadata.native_shard import NativeShard
from tests.support.builders import finished, segment_id, started, tp
from tests.support.engine.shards import batch_of
from rlmm.records.record_set import RecordSet

shard = NativeShard(0)
for at in range(0, 40_000, 500):
    events = [started(segment_id(n), n, n) for n in range(at, at + 500)]
    shard.apply(RecordSet(0, batch_of(events, shard.position)))
frozen = shard._core.freeze()
while sys.argv[1] == "image" and not frozen.go_on():
    pass
with open("/proc/self/statm") as pages:
    size = int(pages.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + 1_000_000,) * 2)
try:
    while not frozen.go_on():
        pass
    frozen.image(0)
except MemoryError as error:
    print(error)
"""


@pytest.mark.parametrize("made", ["copy", "image"])
def test_snapshot_when_there_is_no_memory_for_it_then_fails_alone(made: str) -> None:
    """The system refuses memory for a copy of the state, or for its image: the process goes on."""
    done = subprocess.run(
        [sys.executable, "-c", LITTLE_MEMORY, made],
        cwd=tree.ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    expected = "no memory for the copy of a user partition, or for its state image\n"
    assert (done.returncode, done.stdout) == (0, expected), done.stderr


def test_page_when_there_is_no_room_for_its_order_then_nothing_is_kept_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A listing that is refused for want of room leaves no entry for its user partition."""
    shard = new_shard()
    shard.apply(RecordSet(0, batch_of([started(segment_id(1, tp("orders")), 0, 9)], 0)))
    monkeypatch.setattr(PageOrderCache, "make_room", lambda *_: False)
    page = shard.page(tp("orders"), limit=10)
    assert (page.segments, page.is_last) == ((), False)
    assert shard._orders == {}  # type: ignore[attr-defined]  # of the native shard
