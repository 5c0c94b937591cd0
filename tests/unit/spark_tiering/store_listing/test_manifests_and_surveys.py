"""Manifests and surveys: topics, partitions and manifests of a store, and the parts to list."""

from __future__ import annotations

from rlmm.metadata.ids import Uuid
from spark_tiering.copy_plan.rules import SegmentSelection
from spark_tiering.layout.object_names import ObjectKind, object_key
from spark_tiering.store_listing.key_names import Prefixes
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
from spark_tiering.store_listing.rows import ShardPlaces
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
