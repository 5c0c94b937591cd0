"""
The removal of objects on executors, several segments a unit.

An older prefix is searched only for segments that are not under the present one: one more request
for each of them, not twice all of them (F125).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from rlmm.errors import RlmmError
from spark_tiering.executor.object_deletion import delete_objects
from spark_tiering.executor.tasks import one_line
from spark_tiering.layout.object_names import ObjectKind, object_key
from spark_tiering.stores.opening import process_store
from spark_tiering.stores.results import ObjectAbsent

if TYPE_CHECKING:
    from rlmm.metadata.ids import SegmentId
    from spark_tiering.stores.opening import StoreSettings
    from spark_tiering.stores.protocol import ObjectStore


class RemovalTarget(NamedTuple):
    segment_id: SegmentId
    start_offset: int
    was_finished: bool
    """Its copy was finished: none of its objects can be half-written."""


@dataclass(frozen=True, slots=True)
class RemovalTask:
    store: StoreSettings
    prefix: str
    old_prefixes: tuple[str, ...]
    targets: tuple[RemovalTarget, ...]


class RemovalResult(NamedTuple):
    """Where a removal is not done, some objects may still exist, and *detail* says why."""

    segment_id: SegmentId
    is_done: bool
    was_there: bool
    detail: str = ""


def remove(task: RemovalTask) -> list[RemovalResult]:
    """
    Delete the objects of each target; a missing object is fine (F118).

    After a failure of the store the unit skips the rest, which would fail as well.
    """
    removals: list[RemovalResult] = []
    failure = ""
    for target in task.targets:
        if failure:
            removals.append(RemovalResult(target.segment_id, False, False, failure))
            continue
        try:
            removal = _remove(process_store(task.store), target, task)
        except RlmmError as error:
            removal = RemovalResult(target.segment_id, False, False, one_line(str(error)))
        failure = "" if removal.is_done else removal.detail or "the store failed"
        removals.append(removal)
    return removals


def _remove(store: ObjectStore, target: RemovalTarget, task: RemovalTask) -> RemovalResult:
    was_there = _has_manifest(store, target, task.prefix)
    # What is under the present prefix was written there, and is nowhere else. One whose manifest is
    # not there may have been begun there, or be elsewhere: all places then.
    for place in [task.prefix] if was_there else [task.prefix, *task.old_prefixes]:
        if place != task.prefix:
            was_there = was_there or _has_manifest(store, target, place)
        deletion = delete_objects(
            store,
            target.segment_id,
            target.start_offset,
            place,
            with_uploads=not target.was_finished,
        )
        if not deletion.is_done:
            return RemovalResult(target.segment_id, False, was_there, one_line(deletion.detail))
    return RemovalResult(target.segment_id, True, was_there)


def _has_manifest(store: ObjectStore, target: RemovalTarget, prefix: str) -> bool:
    key = object_key(target.segment_id, target.start_offset, ObjectKind.MANIFEST, prefix)
    return not isinstance(store.head(key, is_sum_wanted=False), ObjectAbsent)
