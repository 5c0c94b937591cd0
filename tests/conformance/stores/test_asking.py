"""Questions to every store: ranges, listings, times and absent objects."""

from __future__ import annotations

import pickle
import time
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import InvalidArgument, StoreAbsent
from spark_tiering.stores.abandoned_uploads import sweep
from spark_tiering.stores.object_reading import read_whole
from spark_tiering.stores.results import (
    ListedFolder,
    ListedObject,
    ObjectAbsent,
    ObjectFacts,
    ObjectWritten,
    RangeBeyondObject,
)
from tests.support.stores.stores_under_test import bytes_of, content

if TYPE_CHECKING:
    from spark_tiering.stores.protocol import ObjectStore
    from tests.support.stores.stores_under_test import Place

DAY_MS = 24 * 60 * 60 * 1_000


def test_f124_range_is_inclusive_and_cut_to_the_object(store: ObjectStore, prefix: str) -> None:
    """A range includes both ends, is cut to the object's end, and refused from behind it."""
    key, whole = f"{prefix}one.log", bytes_of(content(1_000))
    store.put(key, content(1_000))
    assert store.get(key, 0, 0) == whole[:1]
    assert store.get(key, 10, 19) == whole[10:20]
    assert store.get(key, 990, 5_000) == whole[990:]
    assert store.get(key, 0, 10**12) == whole
    assert store.get(key, 1_000, 1_001) == RangeBeyondObject(key, 1_000)
    assert store.get(f"{prefix}other", 0, 1) == ObjectAbsent(f"{prefix}other")
    with pytest.raises(InvalidArgument, match="the end lies before the start"):
        store.get(key, 5, 4)
    with pytest.raises(InvalidArgument):
        store.get(key, -1, 4)


def test_range_of_an_empty_object_is_out_of_range(store: ObjectStore, prefix: str) -> None:
    """An empty object has no byte to read and is not the same as an absent one."""
    key = f"{prefix}empty"
    store.put(key, content(0))
    assert store.get(key, 0, 0) == RangeBeyondObject(key, 0)
    assert list(read_whole(store, key, 0)) == []


def test_listing_when_prefixes_are_alike_keeps_them_apart(store: ObjectStore, prefix: str) -> None:
    """A listing over pages gives every key with exactly its prefix once."""
    names = ["a-b/1", "a-b/2", "a.c", "a/1", "a/2/x", "a/2/y-é", "ab", "b"]
    for number, name in enumerate(reversed(names)):
        assert isinstance(store.put(f"{prefix}{name}", content(number)), ObjectWritten)
    found = sorted(store.list(prefix))
    assert [listed.key for listed in found] == [f"{prefix}{name}" for name in names]
    assert [listed.size_bytes for listed in found] == list(range(len(names) - 1, -1, -1))
    for begin in ("a", "a/", "a/2", "a/2/", "a-", "c", "a/2/x/"):
        keys = sorted(listed.key for listed in store.list(f"{prefix}{begin}"))
        assert keys == [f"{prefix}{name}" for name in names if name.startswith(begin)]


def test_level_has_its_objects_and_each_folder_once(store: ObjectStore, prefix: str) -> None:
    """A level lists its objects over several pages, and each folder once."""
    names = ["a-b/1", "a-b/2", "a.c", "a/1", "a/2/x", "a/2/y-é", "ab", "b", "c/1", "d/1/2/3"]
    for number, name in enumerate(names):
        assert isinstance(store.put(f"{prefix}{name}", content(number)), ObjectWritten)

    def level(begin: str) -> list[str]:
        found = sorted(store.level(f"{prefix}{begin}"), key=lambda one: one.key)
        for one in found:
            is_folder = isinstance(one, ListedFolder)
            assert is_folder == one.key.endswith("/")
            if isinstance(one, ListedObject):
                assert one in list(store.list(one.key))
        return [one.key.removeprefix(prefix) for one in found]

    assert level("") == ["a-b/", "a.c", "a/", "ab", "b", "c/", "d/"]
    assert level("a") == ["a-b/", "a.c", "a/", "ab"]
    assert level("a/") == ["a/1", "a/2/"]
    assert level("a/2/") == ["a/2/x", "a/2/y-é"]
    assert level("d/1") == ["d/1/"]
    assert level("e") == level("a/2/x/") == []


def test_times_when_told_are_of_now(store: ObjectStore, prefix: str) -> None:
    """Listing and head return the creation time of an object in milliseconds."""
    key = f"{prefix}one"
    store.put(key, content(1))
    facts = store.head(key, is_sum_wanted=False)
    assert isinstance(facts, ObjectFacts)
    now_ms = time.time() * 1_000
    for modified_ms in (facts.modified_ms, next(store.list(prefix)).modified_ms):
        assert abs(modified_ms - now_ms) < DAY_MS


def test_f122_sweep_leaves_young_uploads(place: Place, store: ObjectStore, prefix: str) -> None:
    """A sweep ends only uploads that began before the given moment."""
    place.leave_open(f"{prefix}one")
    (left,) = store.open_uploads(prefix)
    begun_ms = left.began_ms
    # Every upload of moto began in 2010.
    assert place.has_ages == (abs(begun_ms - time.time() * 1_000) < DAY_MS)
    assert sweep(store, prefix, begun_ms - DAY_MS) == ()
    assert [upload.key for upload in sweep(store, prefix, begun_ms + DAY_MS)] == [f"{prefix}one"]
    assert list(store.open_uploads(prefix)) == []


def test_probe_tells_traits_leaves_nothing(place: Place, store: ObjectStore, prefix: str) -> None:
    """The probe measures the abilities of the store and leaves no object."""
    assert store.probe(prefix) == place.traits
    assert list(store.list(prefix)) == []
    assert list(store.open_uploads(prefix)) == []


@pytest.mark.parametrize(
    "key",
    ["", "/a", "a/", "a//b", "../a", "a/../b", "./a", "a\n", "a\\b", ".rlmm-writing/a", "x" * 1025],
    ids=["none", "root", "end", "gap", "up", "middle", "here", "line", "back", "ours", "long"],
)
def test_key_when_some_store_cannot_have_it_is_refused(store: ObjectStore, key: str) -> None:
    """The stores refuse keys that could lead out of their folder."""
    for use in (
        lambda: store.put(key, content(1)),
        lambda: store.head(key),
        lambda: store.get(key, 0, 1),
        lambda: store.delete(key),
    ):
        with pytest.raises(InvalidArgument):
            use()


def test_store_when_its_place_is_gone_says_so(place: Place) -> None:
    """A missing bucket or folder is an error of its own, not an empty store."""
    with place.open_absent() as store:
        with pytest.raises(StoreAbsent, match=r"nobody-made-this|unmounted"):
            store.head("a/b")
        for use in (
            lambda: store.get("a/b", 0, 1),
            lambda: list(store.list("a/")),
            lambda: store.put("a/b", content(1)),
            lambda: store.put("a/b", content(7_000_000)),
            lambda: store.delete("a/b"),
        ):
            with pytest.raises(StoreAbsent):
                use()


def test_store_when_sent_to_another_process_is_refused(store: ObjectStore) -> None:
    """A store refuses to be pickled, so that connections and credentials stay in their process."""
    with pytest.raises(TypeError, match="send the settings"):
        pickle.dumps(store)
