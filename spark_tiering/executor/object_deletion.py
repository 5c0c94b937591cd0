"""The deletion of a segment's objects, with unfinished uploads of its writers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.errors import StoreError, StoreUnsuitable
from spark_tiering.layout.object_names import ObjectKind, main_key, object_keys

if TYPE_CHECKING:
    from rlmm.metadata.ids import SegmentId
    from spark_tiering.stores.protocol import ObjectStore

AFTER_THE_MANIFEST = (ObjectKind.INDEXES, ObjectKind.LOG)


@dataclass(frozen=True, slots=True)
class ObjectDeletion:
    """*detail* says what failed; a done one has it for uploads that could not be looked for."""

    is_done: bool
    uploads_ended: int = 0
    detail: str = ""


def delete_objects(
    store: ObjectStore,
    segment_id: SegmentId,
    start_offset: int,
    prefix: str = "",
    *,
    with_uploads: bool = True,
) -> ObjectDeletion:
    """
    Delete the objects, the manifest first, and unfinished uploads before the other two, so that no
    leftover writer completes one; absent ones are no error.
    """
    keys = object_keys(segment_id, start_offset, prefix)
    ended, detail = 0, ""
    try:
        store.delete(keys[ObjectKind.MANIFEST])
        try:
            if with_uploads:
                main = main_key(segment_id, start_offset)
                ended = _end_uploads(store, f"{prefix}{main}.", keys)
        except StoreUnsuitable as error:
            detail = f"unfinished uploads could not be looked for: {error}"
        for kind in AFTER_THE_MANIFEST:
            store.delete(keys[kind])
    except StoreError as error:
        return ObjectDeletion(False, ended, str(error))
    return ObjectDeletion(True, ended, detail)


def _end_uploads(store: ObjectStore, prefix: str, keys: dict[ObjectKind, str]) -> int:
    found = [upload for upload in store.open_uploads(prefix) if upload.key in keys.values()]
    for upload in found:
        store.abort_upload(upload)
    return len(found)
