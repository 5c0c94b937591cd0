"""A tier with copies in it, looked at, and damaged on purpose in one of its objects."""

from __future__ import annotations

import copy
import json
import shutil
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rlmm.metadata.events import SegmentUpdate
from spark_tiering.layout.manifest import Manifest, SegmentDescription
from spark_tiering.layout.manifest_document import format_manifest, parse_manifest
from spark_tiering.layout.object_names import ObjectKind, object_keys
from spark_tiering.maintenance.tier import CareRequest
from spark_tiering.maintenance.verify.values import VerifyOptions
from spark_tiering.maintenance.verify.verification import verify_tier
from spark_tiering.maintenance.wiring import only_looking, open_tier
from spark_tiering.stores.content import BytesContent
from spark_tiering.stores.local_settings import LocalSettings
from spark_tiering.stores.opening import process_store
from spark_tiering.tier_metadata.opening import open_metadata_access
from spark_tiering.tier_metadata.settings import EmbeddedAccess
from tests.support.stores.encrypted_segments import seal_segment

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rlmm.metadata.segment import SegmentMetadata, SegmentState
    from spark_tiering.execution.protocol import ExecutionEngine
    from spark_tiering.maintenance.verify.report import VerifyReport
    from spark_tiering.segments.findings import SegmentPart
    from tests.support.tier.job_folders import TierPlace


def copied_place(template: TierPlace, folder: Path) -> TierPlace:
    """Copy the tier to another folder, which is faster than making one."""
    shutil.copytree(template.folder, folder)
    place = copy.copy(template)
    place.folder, place.archive = folder, folder / "archive"
    place.log_dir = folder / template.log_dir.relative_to(template.folder)
    place.store_settings = LocalSettings(folder / "store", is_synced=False)
    place.metadata = EmbeddedAccess(
        folder=place.archive / "log", snapshots=place.archive / "snapshots"
    )
    return place


def care_request(place: TierPlace, **changes: Any) -> CareRequest:
    request = CareRequest(embedded=place.archive, store=place.store_settings, prefix=place.prefix)
    return only_looking(replace(request, **changes))


def verify(
    place: TierPlace,
    options: VerifyOptions | None = None,
    *,
    engine: ExecutionEngine | None = None,
    why_stop: Callable[[], str] = lambda: "",
    **changes: Any,
) -> VerifyReport:
    with open_tier(care_request(place, **changes), engine=engine) as tier:
        return verify_tier(tier, options or VerifyOptions(), why_stop=why_stop)


DEEP = VerifyOptions(is_deep=True)


@dataclass
class Stored:
    place: TierPlace
    segment: SegmentMetadata

    @property
    def keys(self) -> dict[ObjectKind, str]:
        return object_keys(self.segment.id, self.segment.start_offset, self.place.prefix)

    def get(self, kind: ObjectKind) -> bytes:
        got = process_store(self.place.store_settings).get(self.keys[kind], 0, 1 << 31)
        assert isinstance(got, bytes)
        return got

    def put(self, kind: ObjectKind, content: bytes | None) -> None:
        store = process_store(self.place.store_settings)
        store.delete(self.keys[kind])
        if content is not None:
            store.put(self.keys[kind], BytesContent(content))

    def flip(self, kind: ObjectKind, at: int) -> None:
        body = bytearray(self.get(kind))
        body[at] ^= 1
        self.put(kind, bytes(body))

    @property
    def manifest(self) -> Manifest:
        found = parse_manifest(self.get(ObjectKind.MANIFEST))
        assert isinstance(found, Manifest)
        return found

    def say(self, **changes: Any) -> None:
        """Write another manifest: fields of its JSON, at the top or by a path with dots."""
        fields = json.loads(self.get(ObjectKind.MANIFEST))
        for path, value in changes.items():
            *folders, name = path.split("__")
            within = fields
            for folder in folders:
                within = within[folder]
            within[name] = value
        self.put(ObjectKind.MANIFEST, json.dumps(fields).encode())

    def forget_sums(self) -> None:
        """Write the manifest as a broker does, without checksums."""
        manifest = self.manifest
        described = manifest.described
        assert isinstance(described, SegmentDescription)
        plain = replace(manifest, described=replace(described, note=None))
        self.put(ObjectKind.MANIFEST, format_manifest(plain))

    def replace_part(self, part: SegmentPart, content: bytes) -> None:
        self.forget_sums()
        place = self.manifest.indexes.place(part)
        assert place is not None
        assert place.size_bytes == len(content)
        body = bytearray(self.get(ObjectKind.INDEXES))
        body[place.position : place.next_position] = content
        self.put(ObjectKind.INDEXES, bytes(body))

    def part(self, part: SegmentPart) -> bytes:
        place = self.manifest.indexes.place(part)
        assert place is not None
        return self.get(ObjectKind.INDEXES)[place.position : place.next_position]

    def seal(self, key_id: str) -> None:
        seal_segment(
            process_store(self.place.store_settings), self.segment, self.place.prefix, key_id
        )

    def say_in_metadata(self, state: SegmentState, custom: bytes | None = None) -> None:
        assert self.place.metadata is not None
        at_ms = self.segment.event_timestamp_ms + 1
        with closing(open_metadata_access(self.place.metadata)) as metadata:
            metadata.publish(SegmentUpdate(self.segment.id, 1, at_ms, custom, state), 10.0)


def stored(place: TierPlace, at: int = 0) -> Stored:
    return Stored(place, place.segments()[at])


def told(report: VerifyReport) -> list[tuple[str, str, object]]:
    return [
        (one.kind.code, str(one.fields.get("part", "")), one.fields["lost"])
        for one in report.findings
    ]
