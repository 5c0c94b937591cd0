"""Objects of segments taken away, several segments a unit."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import StoreUnavailable
from spark_tiering.layout.object_names import object_keys
from spark_tiering.maintenance.expire.actions import RemovalTarget, RemovalTask, remove
from spark_tiering.stores.content import BytesContent
from spark_tiering.stores.local import LocalStore
from spark_tiering.stores.local_settings import LocalSettings
from spark_tiering.stores.opening import process_store
from tests.support.builders import segment_id

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from spark_tiering.stores.results import OpenUpload

TARGETS = tuple(RemovalTarget(segment_id(at), at * 100, True) for at in range(3))


@pytest.fixture
def settings(tmp_path: Path) -> LocalSettings:
    found = LocalSettings(tmp_path, is_synced=False)
    store = process_store(found)
    for one in TARGETS:
        keys = [*object_keys(one.segment_id, one.start_offset, "tier/").values()]
        for key in keys[:1] if one is TARGETS[2] else keys:
            store.put(key, BytesContent(b"something"))
    store.put("tier/other", BytesContent(b"something else"))
    return found


def left(settings: LocalSettings) -> list[str]:
    return [one.key for one in process_store(settings).list()]


def test_f118_unit_when_objects_are_gone_or_not_then_all_of_it_is_gone(
    settings: LocalSettings,
) -> None:
    """The removal deletes only named objects, and reports whether a manifest was there."""
    task = pickle.loads(pickle.dumps(RemovalTask(settings, "tier/", (), TARGETS)))
    removals = remove(task)
    assert [(one.segment_id, one.is_done, one.was_there) for one in removals] == [
        (TARGETS[0].segment_id, True, True),
        (TARGETS[1].segment_id, True, True),
        (TARGETS[2].segment_id, True, False),
    ]
    assert left(settings) == ["tier/other"]
    assert [(one.is_done, one.was_there) for one in remove(task)] == [(True, False)] * 3


def test_unit_when_the_store_fails_then_nothing_behind_it_is_tried(
    settings: LocalSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a failure of the store the unit reports deletions and tries no other."""
    real, tried = LocalStore.delete, []

    def failing(self: LocalStore, key: str, **_: bool) -> None:
        tried.append(key)
        if len(tried) > 3:
            raise StoreUnavailable("no room for anything")
        real(self, key)

    monkeypatch.setattr(LocalStore, "delete", failing)
    removals = remove(RemovalTask(settings, "tier/", (), TARGETS))
    assert [one.is_done for one in removals] == [True, False, False]
    assert {one.detail for one in removals[1:]} == {"no room for anything"}
    assert len(tried) == 4
    monkeypatch.setattr(LocalStore, "head", failing)
    assert [one.is_done for one in remove(RemovalTask(settings, "x/", (), TARGETS))] == [False] * 3


@pytest.mark.parametrize("was_finished", [True, False])
def test_unit_when_a_copy_was_never_finished_then_its_uploads_are_looked_for(
    settings: LocalSettings, monkeypatch: pytest.MonkeyPatch, was_finished: bool
) -> None:
    """A unit lists uploads only of unfinished copies: a listing costs a request."""
    looked = []

    def looking(_: LocalStore, prefix: str = "") -> Iterator[OpenUpload]:
        looked.append(prefix)
        return iter(())

    monkeypatch.setattr(LocalStore, "open_uploads", looking)
    target = TARGETS[0]._replace(was_finished=was_finished)
    remove(RemovalTask(settings, "tier/", (), (target,)))
    assert len(looked) == (not was_finished)
