"""Abandoned uploads, which killed writers left unfinished under a prefix: they are ended by age."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spark_tiering.stores.protocol import ObjectStore
    from spark_tiering.stores.results import OpenUpload


def left_behind(store: ObjectStore, prefix: str, began_before_ms: int) -> Iterator[OpenUpload]:
    """Return uploads that began before a moment; choose one that no writer outlasts."""
    return (upload for upload in store.open_uploads(prefix) if upload.began_ms < began_before_ms)


def sweep(store: ObjectStore, prefix: str, began_before_ms: int) -> tuple[OpenUpload, ...]:
    found = tuple(left_behind(store, prefix, began_before_ms))
    for upload in found:
        store.abort_upload(upload)
    return found
