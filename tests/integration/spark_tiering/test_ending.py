"""The objects of a segment looked for and taken away, in a folder and in a bucket."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.errors import StoreUnavailable, StoreUnsuitable
from spark_tiering.copy_plan.inputs import StoredObjects
from spark_tiering.executor.object_check import examine, look
from spark_tiering.executor.object_deletion import delete_objects
from spark_tiering.layout.object_names import ObjectKind, main_key, object_keys
from spark_tiering.stores.content import BytesContent
from tests.support.builders import segment_id
from tests.support.partitions.segments import example_partition
from tests.support.stores.s3_stub import ObjectStub
from tests.support.stores.stores_under_test import Folder, Place, known_as, stub_bucket
from tests.support.tier.copy_tasks import FIRST, ORDERS, PREFIX, SECOND, copy_task, run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from spark_tiering.stores.protocol import ObjectStore

EXAMPLE = example_partition()


@pytest.fixture(params=["folder", "bucket"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Place]:
    known_as("somebody", "something", tmp_path, monkeypatch)
    if request.param == "folder":
        yield Folder(path=tmp_path / "objects")
        return
    with ObjectStub() as stub:
        yield stub_bucket(stub)


@pytest.fixture
def store(place: Place) -> Iterator[ObjectStore]:
    with place.open() as store:
        yield store


def test_f118_segment_when_deleted_then_only_its_objects(store: ObjectStore, place: Place) -> None:
    """A deletion removes the segment's objects and open uploads, and nothing of other segments."""
    task, other = copy_task(EXAMPLE), copy_task(EXAMPLE, FIRST)
    for one in (task, other):
        run(one, store)
    strangers = [
        f"{PREFIX}{main_key(other.segment.id, 0)}.log",
        f"{PREFIX}{main_key(task.segment.id, 120)}.log.of-somebody-else",
    ]
    keys = object_keys(task.segment.id, SECOND.base_offset, PREFIX)
    for key in (keys[ObjectKind.LOG], keys[ObjectKind.INDEXES], *strangers):
        place.leave_open(key)
    ended = delete_objects(store, task.segment.id, SECOND.base_offset, PREFIX)
    assert (ended.is_done, ended.uploads_ended, ended.detail) == (True, 2, "")
    assert look(store, task.segment, PREFIX) is StoredObjects.NONE
    assert look(store, other.segment, PREFIX) is StoredObjects.WHOLE
    assert sorted(upload.key for upload in store.open_uploads()) == sorted(strangers)
    again = delete_objects(store, task.segment.id, SECOND.base_offset, PREFIX)
    assert (again.is_done, again.uploads_ended) == (True, 0)


def test_f121_deletion_when_it_fails_then_leaves_no_manifest_alone(store: ObjectStore) -> None:
    """A deletion removes the manifest first and reports its failure at any step."""
    task = copy_task(EXAMPLE)
    for failing_at in range(4):
        run(task, store)
        calls = iter(range(9))

        class Flaky:
            def delete(self, key: str) -> None:
                self.step()
                store.delete(key)

            def open_uploads(self, prefix: str) -> object:
                self.step()
                return store.open_uploads(prefix)

            def step(self, calls: Iterator[int] = calls, failing_at: int = failing_at) -> None:
                if next(calls) == failing_at:
                    msg = "the store went away"
                    raise StoreUnavailable(msg)

        ended = delete_objects(Flaky(), task.segment.id, 120, PREFIX)  # type: ignore[arg-type]  # enough of a store
        assert not ended.is_done
        assert ended.detail == "the store went away"
        found = look(store, task.segment, PREFIX)
        assert found is (StoredObjects.PARTIAL if failing_at else StoredObjects.WHOLE)
        assert delete_objects(store, task.segment.id, 120, PREFIX).is_done
        assert look(store, task.segment, PREFIX) is StoredObjects.NONE


def test_deletion_when_uploads_cannot_be_listed_is_done_and_says_so(store: ObjectStore) -> None:
    """A deletion removes the objects and says that uploads could not be listed."""
    task = copy_task(EXAMPLE)
    run(task, store)

    class Simple:
        delete = store.delete

        def open_uploads(self, prefix: str) -> object:
            raise StoreUnsuitable(prefix)

    ended = delete_objects(Simple(), task.segment.id, 120, PREFIX)  # type: ignore[arg-type]  # enough of a store
    assert ended.is_done
    assert "uploads" in ended.detail
    assert look(store, task.segment, PREFIX) is StoredObjects.NONE


@pytest.mark.parametrize(
    ("taken", "found"),
    [
        ([], StoredObjects.WHOLE),
        ([ObjectKind.MANIFEST], StoredObjects.PARTIAL),
        ([ObjectKind.MANIFEST, ObjectKind.INDEXES], StoredObjects.PARTIAL),
        ([ObjectKind.MANIFEST, ObjectKind.LOG], StoredObjects.PARTIAL),
        ([ObjectKind.LOG], StoredObjects.DAMAGED),
        ([ObjectKind.INDEXES], StoredObjects.DAMAGED),
        (list(ObjectKind), StoredObjects.NONE),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_f121_set_of_objects_when_looked_at_is_whole_only_with_all_of_them(
    store: ObjectStore, taken: list[ObjectKind], found: StoredObjects
) -> None:
    """Objects are whole only together: without manifest incomplete, a manifest alone is damage."""
    task = copy_task(EXAMPLE)
    run(task, store)
    keys = object_keys(task.segment.id, 120, PREFIX)
    for kind in taken:
        store.delete(keys[kind])
    seen = examine(store, task.segment, PREFIX)
    assert seen.objects is found
    assert set(seen.facts) == set(ObjectKind) - set(taken)
    assert all(any(kind in finding for finding in seen.findings) for kind in taken)


def test_manifest_when_unreadable_or_of_another_segment_is_damage(store: ObjectStore) -> None:
    """A manifest that cannot be read, or that describes another segment, counts as damage."""
    task = copy_task(EXAMPLE)
    run(task, store)
    keys = object_keys(task.segment.id, 120, PREFIX)
    other = copy_task(EXAMPLE, uuid=segment_id("other", ORDERS).uuid).segment
    contents = {kind: store.get(key, 0, 1 << 20) for kind, key in keys.items()}
    for kind, key in object_keys(other.id, 120, PREFIX).items():
        content = contents[kind]
        assert isinstance(content, bytes)
        store.put(key, BytesContent(content))
    assert look(store, other, PREFIX) is StoredObjects.DAMAGED
    for content in (b"", b"no manifest"):
        store.delete(keys[ObjectKind.MANIFEST])
        store.put(keys[ObjectKind.MANIFEST], BytesContent(content))
        assert look(store, task.segment, PREFIX) is StoredObjects.DAMAGED


def test_store_that_is_away_when_it_is_looked_at_tells_nothing(place: Place) -> None:
    """A store that does not answer leaves the state of the objects unknown, not empty."""
    with place.open_absent() as absent:
        assert look(absent, copy_task(EXAMPLE).segment, PREFIX) is StoredObjects.UNKNOWN
        ended = delete_objects(absent, copy_task(EXAMPLE).segment.id, 120, PREFIX)
        assert not ended.is_done
