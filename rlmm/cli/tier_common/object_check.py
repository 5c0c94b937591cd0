"""The object check of one segment: its objects exist and are whole. Needs `tiering` and `s3`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rlmm.base.threads import in_own_thread
from rlmm.cli.common.object_places import ObjectCheckView, StoredObjectsView, StoredObjectView
from rlmm.cli.tier_common.object_store import StoreChoice
from rlmm.inspection.explain_findings import OBJECT_DAMAGED, OBJECT_MISSING, OBJECT_UNKNOWN
from rlmm.views.values import iso_time
from spark_tiering.copy_plan.inputs import StoredObjects
from spark_tiering.executor.object_check import examine
from spark_tiering.layout.object_names import ObjectKind
from spark_tiering.stores.local_settings import LocalSettings
from spark_tiering.stores.opening import open_store, parse_store, require_libraries
from spark_tiering.stores.s3_settings import S3Settings

if TYPE_CHECKING:
    from rlmm.findings.finding import FindingKind
    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.executor.object_check import StoredSegmentState

NAMES = {ObjectKind.LOG: "log", ObjectKind.INDEXES: "indexes", ObjectKind.MANIFEST: "manifest"}


def checked_store(address: str, prefix: str = "", **of_bucket: Any) -> StoreChoice:
    """Return the store of the check, only looked at; raises `ConfigError`, `EngineUnfit`."""
    found, own_prefix = parse_store(address, S3Settings("of-the-address", **of_bucket))
    require_libraries(found)
    if isinstance(found, LocalSettings):
        found = replace(found, is_made=False)
    return StoreChoice(found, own_prefix or prefix)


@dataclass(frozen=True, slots=True)
class ObjectCheck:
    view: ObjectCheckView
    kind: FindingKind | None
    detail: str


async def check_objects(
    choice: StoreChoice, segment: SegmentMetadata, *, is_sure: bool
) -> ObjectCheck:
    """Check the objects of *segment*; *is_sure* reads them where the store has no checksums."""

    def look() -> StoredSegmentState:
        with open_store(choice.settings) as store:
            return examine(store, segment, choice.prefix, is_sure=is_sure)

    return checked_of(await in_own_thread("objects", look))


def checked_of(seen: StoredSegmentState) -> ObjectCheck:
    objects: dict[str, StoredObjectView | None] = {}
    for kind, name in NAMES.items():
        facts = seen.facts.get(kind)
        objects[name] = None if facts is None else StoredObjectView(
            size_bytes=facts.size_bytes,
            crc64nvme=None if facts.crc64nvme is None else f"{facts.crc64nvme:016x}",
            modified_ms=facts.modified_ms,
            modified=iso_time(facts.modified_ms),
            storage_class=facts.storage_class,
            is_archived=facts.is_archived,
        )  # fmt: skip
    view = ObjectCheckView(
        found=str(seen.objects), objects=StoredObjectsView(**objects), findings=list(seen.findings)
    )
    return ObjectCheck(view, _kind(seen), "; ".join(seen.findings) or str(seen.objects))


def _kind(seen: StoredSegmentState) -> FindingKind | None:
    match seen.objects:
        case StoredObjects.WHOLE:
            return None
        case StoredObjects.UNKNOWN:
            return OBJECT_UNKNOWN
    return OBJECT_MISSING if len(seen.facts) < len(NAMES) else OBJECT_DAMAGED
