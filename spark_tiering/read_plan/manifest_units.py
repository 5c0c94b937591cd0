"""Manifests in a store, read by units of work on any engine; faulty ones are named and left out."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from rlmm.errors import StoreUnavailable
from spark_tiering.execution.protocol import UnitLost
from spark_tiering.layout.findings import LayoutFinding
from spark_tiering.layout.manifest_document import MANIFEST_BYTES_MAX
from spark_tiering.layout.metadata_recovery import recover_segment
from spark_tiering.reporting.progress import Meter
from spark_tiering.store_listing.manifests import list_manifests
from spark_tiering.stores.opening import process_store
from spark_tiering.stores.results import ObjectAbsent, ObjectArchived, RangeBeyondObject

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.execution.protocol import ExecutionEngine
    from spark_tiering.reporting.progress import Meter
    from spark_tiering.store_listing.manifests import ListedManifest
    from spark_tiering.stores.opening import StoreSettings
    from spark_tiering.stores.protocol import ObjectStore

MANIFESTS_OF_UNIT = 200
_NOT_READ = {ObjectAbsent: "absent", ObjectArchived: "archived", RangeBeyondObject: "outofrange"}
"""Few enough to be read in seconds, many enough that Spark's own time is nothing beside it."""


class UnreadableManifest(NamedTuple):
    key: str
    why: str


class ManifestContents(NamedTuple):
    segments: list[SegmentMetadata]
    unread: list[UnreadableManifest]


@dataclass(frozen=True, slots=True)
class ManifestTask:
    store: StoreSettings
    prefix: str
    manifests: tuple[ListedManifest, ...]


def told_by_manifests(
    settings: StoreSettings,
    store: ObjectStore,
    engine: ExecutionEngine,
    prefix: str,
    wants_topic: Callable[[str], bool],
    meter: Meter | None = None,
) -> ManifestContents:
    """Return the segments under *prefix*; raises `StoreUnavailable` for a lost unit."""
    listed = list_manifests(store, prefix, wants_topic)
    tasks = []
    while some := tuple(islice(listed, MANIFESTS_OF_UNIT)):
        tasks.append(ManifestTask(settings, prefix, some))
    told = ManifestContents([], [])
    total = sum(len(one.manifests) for one in tasks)
    read = [0]

    def came_back(result: ManifestContents | UnitLost) -> None:
        read[0] += 0 if isinstance(result, UnitLost) else len(result.segments) + len(result.unread)
        if meter is not None:
            meter.reach("manifests read", read[0], total)

    for one in engine.run_units(tasks, read_manifests, came_back):
        if isinstance(one, UnitLost):
            msg = f"manifests were not read: {one.why}"
            raise StoreUnavailable(msg)
        told.segments.extend(one.segments)
        told.unread.extend(one.unread)
    told.unread.sort()
    return told


def read_manifests(task: ManifestTask) -> ManifestContents:
    store = process_store(task.store)
    told = ManifestContents([], [])
    for one in task.manifests:
        found = _read(store, one, task.prefix)
        if isinstance(found, UnreadableManifest):
            told.unread.append(found)
        else:
            told.segments.append(found)
    return told


def _read(
    store: ObjectStore, listed: ListedManifest, prefix: str
) -> SegmentMetadata | UnreadableManifest:
    if not 0 < listed.size_bytes <= MANIFEST_BYTES_MAX:
        return UnreadableManifest(listed.key, f"{listed.size_bytes} bytes are no manifest")
    content = store.get(listed.key, 0, listed.size_bytes - 1)
    if not isinstance(content, bytes):
        return UnreadableManifest(listed.key, f"not readable: {_NOT_READ[type(content)]}")
    found = recover_segment(listed.name, content, prefix=prefix)
    if isinstance(found, LayoutFinding):
        return UnreadableManifest(listed.key, str(found))
    return found.segment
