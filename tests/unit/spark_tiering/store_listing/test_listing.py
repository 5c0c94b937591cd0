"""Names of objects under several prefixes, their rows and sets, manifests and surveys."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import INT64_MAX, SegmentId, Uuid
from spark_tiering.copy_plan.rules import SegmentSelection
from spark_tiering.layout.object_names import ObjectKind, object_key, parse_object_key
from spark_tiering.maintenance.audit.store_shards import RowSpill
from spark_tiering.store_listing.key_names import (
    KINDS,
    OtherKey,
    Prefixes,
    SegmentKey,
    check_prefixes,
    shown,
)
from spark_tiering.store_listing.listing_tasks import (
    FolderSurvey,
    FolderToList,
    ListingResult,
    SortRules,
    sort_objects,
)
from spark_tiering.store_listing.manifests import (
    TopicFolder,
    is_partition,
    list_manifests,
    partition_folders,
    partition_manifests,
    read_topic_folder,
    topic_folders,
)
from spark_tiering.store_listing.rows import (
    ObjectRow,
    ObjectRows,
    RowBlob,
    ShardPlaces,
    gather,
    shards_for,
)
from tests.support.builders import tp
from tests.support.stores.memory_store import MemoryStore
from tests.support.tier.audited_tiers import segment_of

OTHER = tp("other-topic", 0, Uuid.of(9, 9))
SEGMENTS = [
    segment_of(1, 0, 99, tp("orders", 0)),
    segment_of(2, 100, 199, tp("orders", 0)),
    segment_of(3, 0, 99, tp("orders", 12)),
    segment_of(4, 7, 9, OTHER),
]
PREFIX = "tier/"


def store(*strays: str) -> MemoryStore:
    store = MemoryStore()
    for segment in SEGMENTS:
        for kind in ObjectKind:
            if segment is not SEGMENTS[-1] or kind is not ObjectKind.MANIFEST:
                key = object_key(segment.id, segment.start_offset, kind, PREFIX)
                store.objects[key] = b"12345"
    for key in ("tier/rlmm-jobs/jobs/x/plan.json", "elsewhere", "tier/photo", "tier/a/b", *strays):
        store.objects[key] = b"?"
    return store


def test_manifests_of_a_store_are_those_of_whole_segments() -> None:
    """A store's manifests are those of whole segments of the wanted topics, in order."""
    found = list(list_manifests(store(), PREFIX))
    assert [one.name.segment_id for one in found] == [one.id for one in SEGMENTS[:3]]
    assert [one.name.start_offset for one in found] == [0, 100, 0]
    assert {one.size_bytes for one in found} == {5}
    assert not list(list_manifests(store(), PREFIX, lambda topic: topic == "other-topic"))
    assert not list(list_manifests(store(), "nowhere/"))


def test_topics_and_partitions_of_a_store_are_known_by_their_folders() -> None:
    """Topics and partitions come from folder listings, with one request for each level."""
    here = store(f"tier/orders-{SEGMENTS[0].id.partition.topic_id}/03/x")
    topics = sorted(topic_folders(here, PREFIX))
    assert [(one.topic, one.topic_id) for one in topics] == [
        ("orders", tp().topic_id),
        ("other-topic", OTHER.topic_id),
    ]
    partitions = sorted(one.partition for one in partition_folders(here, topics[0]))
    assert partitions == [0, 12]
    assert len(here.calls) == 2
    manifests = list(partition_manifests(here, tp("orders", 0), PREFIX))
    assert [one.name.start_offset for one in manifests] == [0, 100]


def test_folder_names_that_are_no_topics_or_partitions_are_told() -> None:
    """A folder whose name is no canonical topic or partition is reported."""
    good = f"orders-{tp().topic_id}/"
    assert read_topic_folder(f"x{good}", "x") == TopicFolder(f"x{good}", "orders", tp().topic_id)
    for bad in ("orders/", f"{good}0/", good[:-1], f"-{'A' * 21}B/", ""):
        assert read_topic_folder(bad) is None, bad
    assert [text for text in ("0", "7", "2147483647") if is_partition(text)] == [
        "0", "7", "2147483647",
    ]  # fmt: skip
    for text in ("07", "-1", "2147483648", "", "x", "٣", "1" * 20):
        assert not is_partition(text), text


def survey(here: MemoryStore, large: int = 10, **expected: int) -> tuple[list[str], list[str]]:
    sorting = SortRules(Prefixes(PREFIX), ShardPlaces(), SegmentSelection())
    folders = {f"{PREFIX}{name}-{tp().topic_id}/": count for name, count in expected.items()}
    found = list(FolderSurvey(here, sorting, folders, large).found())
    names = [one.folder.removeprefix(PREFIX) for one in found if isinstance(one, FolderToList)]
    return names, [one.key for one in found if not isinstance(one, FolderToList)]


def test_survey_when_a_topic_is_small_lists_it_whole_and_parts_others() -> None:
    """The survey lists small topics whole and large ones in parts, without jobs' records."""
    orders = f"orders-{tp().topic_id}/"
    other = f"other-topic-{OTHER.topic_id}/0/"
    assert survey(store(), orders=9) == (["a/", orders, other], ["tier/photo"])
    assert survey(store(), orders=11)[0] == ["a/", f"{orders}0/", f"{orders}12/", other]
    assert survey(store()) == survey(store(), orders=11)


def test_survey_when_all_of_it_is_listed_finds_every_object_once() -> None:
    """The survey finds every object exactly once, for any store content."""
    here = store(f"tier/orders-{tp().topic_id}/stray", f"tier/orders-{tp().topic_id}/0/stray/deep")
    sorting = SortRules(Prefixes(PREFIX), ShardPlaces(), SegmentSelection())
    looked = ListingResult()
    for one in FolderSurvey(here, sorting, {}, 10).found():
        sort_objects(
            here.list(one.folder) if isinstance(one, FolderToList) else [one], sorting, looked
        )
    assert looked.objects == 11
    assert sum(one.count for one in looked.others.values()) == 4


ONE = SegmentId(tp("a-b.c_d", 7), Uuid(bytes(range(16))))
KEY = object_key(ONE, 1500, ObjectKind.INDEXES, "kafka/")
_ODD = st.text(st.sampled_from("abAQgw09-_./\n"), max_size=8)


def test_key_of_a_segment_when_read_names_all_of_it() -> None:
    """A segment's key is read into all of its parts, also by pickled prefixes."""
    prefixes = Prefixes("kafka/", ("", "old/"))
    found = prefixes.read(KEY)
    assert found == SegmentKey(0, ONE.partition, bytes(ONE.uuid), 1500, 1)
    assert isinstance(found, SegmentKey)
    assert pickle.loads(pickle.dumps(prefixes)).read(KEY) == found


@given(
    at=st.integers(0, len(KEY)),
    cut=st.integers(0, 3),
    odd=_ODD,
    prefix=st.sampled_from(["kafka/", "", "kafka", "kafka/a-"]),
)
def test_key_nearly_right_is_read_as_strictly(at: int, cut: int, odd: str, prefix: str) -> None:
    """The fast key reader accepts exactly the keys that `parse_object_key` accepts."""
    key = KEY[:at] + odd + KEY[at + cut :]
    found, strict = Prefixes(prefix).read(key), parse_object_key(key, prefix)
    if strict is None:
        assert isinstance(found, OtherKey), (found, key)
    else:
        assert isinstance(found, SegmentKey)
        assert SegmentId(found.partition, Uuid(found.uuid)) == strict.segment_id
        assert (found.start_offset, KINDS[found.kind]) == (strict.start_offset, strict.kind)


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("kafka/rlmm-jobs/jobs/x/plan.json", OtherKey.JOBS),
        ("kafka/.rlmm-writing/x", OtherKey.JOBS),
        (f"kafka/t-3-{'A' * 22}/{0:020d}-{'B' * 22}.timeindex", OtherKey.LOCAL_TIERED),
        ("kafka/photo.jpg", OtherKey.UNKNOWN),
        (f"kafka/t-{'A' * 22}/0/{0:020d}-{'B' * 22}.log", OtherKey.UNKNOWN),
        (f"kafka/t-{'B' * 22}/0/{0:020d}-{'A' * 22}.log", OtherKey.UNKNOWN),
        ("photo.jpg", OtherKey.OUTSIDE),
    ],
)
def test_key_that_is_no_segments_is_told_apart(key: str, kind: OtherKey) -> None:
    """The key reader distinguishes the jobs' records from foreign objects."""
    assert Prefixes("kafka/").read(key) is kind


def test_f125_key_under_two_prefixes_belongs_to_the_longest() -> None:
    """A key under two prefixes belongs to the longest, so that it counts once."""
    prefixes = Prefixes("", ("a/", "a/b/"))
    for number, prefix in enumerate(("", "a/", "a/b/")):
        assert prefixes.owner(object_key(ONE, 0, ObjectKind.LOG, prefix)) == number
    assert prefixes.owner("a/b/stray") == 2
    assert prefixes.owner("stray") == 0
    assert Prefixes("a/").owner("stray") is None
    assert Prefixes("x/", ("x/", "y/", "y/")).all == ("x/", "y/")


@given(st.text(max_size=300))
def test_key_when_shown_is_one_safe_line(key: str) -> None:
    """A key is shown as one line of safe characters, whatever it contains."""
    assert shown(key).isprintable()
    assert len(shown(key)) <= 210


@pytest.mark.parametrize("prefix", ["a\n", "x" * 1_025, "\udcff"])
def test_prefix_that_no_key_has_is_refused(prefix: str) -> None:
    """An impossible prefix is refused before anything is listed."""
    with pytest.raises(InvalidArgument, match="no key has the prefix"):
        check_prefixes(("", prefix))


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
    found = [row.storage_class for row in RowBlob(packed.blob()).objects()]
    assert found == [f"class-{number}" for number in range(255)] + [""] * 45


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
    assert {one[:4]: one.objects for one in again} == {one[:4]: one.objects for one in sets}


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
