"""Objects in few bytes, and together by segment."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rlmm.metadata.ids import INT64_MAX, Uuid
from spark_tiering.layout.object_names import ObjectKind
from spark_tiering.maintenance.audit.store_shards import RowSpill
from spark_tiering.store_listing.rows import (
    ObjectRow,
    ObjectRows,
    RowBlob,
    ShardPlaces,
    gather,
    shards_for,
)
from tests.support.builders import tp

_ROWS = st.builds(
    ObjectRow,
    st.sampled_from([tp("a", 0), tp("b", 2**31 - 1), tp("a", 1, Uuid.of(1, 2))]),
    st.integers(0, INT64_MAX),
    st.binary(min_size=16, max_size=16),
    st.integers(0, 255),
    st.integers(0, 2),
    st.sampled_from(["", "STANDARD", "GLACIER"]),
    st.integers(0, 2**63),
    st.integers(-(2**63), 2**63 - 1),
)


@given(st.lists(_ROWS))
def test_rows_when_packed_and_read_are_the_same(rows: list[ObjectRow]) -> None:
    """Packed rows are read back in their order."""
    packed = ObjectRows()
    for row in rows:
        packed.add(row)
    blob = RowBlob(packed.blob())
    assert list(blob.objects()) == rows
    assert set(blob.partitions) == {row.partition for row in rows}


def test_rows_of_more_classes_than_fit_have_none() -> None:
    """A row keeps its place without a storage class when the store has more classes than fit."""
    packed = ObjectRows()
    for number in range(300):
        packed.add(ObjectRow(tp(), 0, bytes(16), 0, 0, f"class-{number}", 1, 1))
    told = [row.storage_class for row in RowBlob(packed.blob()).objects()]
    assert told == [f"class-{number}" for number in range(255)] + [""] * 45


@given(st.lists(_ROWS, max_size=30), st.randoms())
def test_sets_when_rows_come_in_any_order_are_the_same(rows: list[ObjectRow], rng: object) -> None:
    """A set is the same for any order of rows, by id, offset, prefix and partition."""
    named = {(row.uuid, row.partition, row.start_offset, row.prefix, row.kind): row for row in rows}
    unique = list(named.values())
    sets = [one for found in gather(unique).values() for one in found]
    assert sum(len(one.objects) for one in sets) == len(unique)
    assert len({(one.uuid, one.partition, one.start_offset, one.prefix) for one in sets}) == len(
        sets
    )
    rng.shuffle(unique)  # type: ignore[attr-defined]
    again = [one for found in gather(unique).values() for one in found]
    assert sorted(map(repr, again)) == sorted(map(repr, again))
    assert {one[:4] for one in again} == {one[:4] for one in sets}


def test_set_when_something_is_lacking_names_it() -> None:
    """An incomplete set names its first missing object in the order of writing."""
    rows = [ObjectRow(tp(), 7, bytes(16), 0, kind, "", 10 + kind, kind) for kind in (0, 2)]
    ((one,),) = gather(rows).values()
    assert one.lacking == [ObjectKind.INDEXES]
    assert (one.is_whole, one.has_manifest, one.size_bytes, one.modified_ms) == (False, True, 22, 2)


def test_shards_when_they_are_spread_keep_a_segment_together() -> None:
    """A segment's rows lie in one shard, a partition's in few, and all shards are used."""
    shards = shards_for(10_000_000, 30_000, 1_024)
    assert shards == ShardPlaces(334, 41)
    assert shards_for(0, 30_000, 1_024) == ShardPlaces(1, 1)
    assert shards_for(10**12, 30_000, 1_024).count == 1_024
    partition = tp("a", 0)
    used = {shards.of(partition, number.to_bytes(16)) for number in range(2_000)}
    assert len(used) == 41
    assert all(0 <= shard < 334 for shard in used)


def test_spill_when_read_gives_the_blobs_of_a_shard_in_their_order() -> None:
    """A spill gives a shard's blobs in order and leaves no file."""
    with RowSpill() as spill:
        spill.add("a", {0: b"one", 1: b"two"})
        spill.add("a", {0: b""})
        spill.add("b", {0: b"three"})
        assert list(spill.read("a", 0)) == [b"one", b""]
        assert list(spill.read("a", 1)) == [b"two"]
        assert list(spill.read("a", 2)) == []
        spill.remove("a", 0)
        spill.remove("a", 0)
        assert list(spill.read("a", 0)) == []
        folder = spill.file("x").parent
    assert not folder.exists()
