"""Verifying of a store's objects by manifest and metadata."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.metadata.segment import SegmentMetadata
from spark_tiering.layout.findings import LayoutFault, LayoutFinding
from spark_tiering.layout.object_names import ObjectKind
from spark_tiering.layout.object_verification import StoredObject, verify_objects, verify_segment
from spark_tiering.layout.segment_indexes import IndexPlace
from tests.support.stores.recorded_manifests import (
    DESCRIBED,
    LOG_BYTES,
    NOTE,
    SEGMENT_ID,
    STORED_SIZES,
    plain_manifest,
    zstd_manifest,
)

if TYPE_CHECKING:
    from spark_tiering.layout.manifest import Manifest

OURS = replace(zstd_manifest(), described=replace(DESCRIBED, note=NOTE))
SEGMENT = SegmentMetadata(SEGMENT_ID, 1500, 2999, 7, 1_700_000_000_000, 42, ((4, 1500),), LOG_BYTES)
SMALL_LOG = replace(NOTE, log_object=NOTE.log_object._replace(size_bytes=1))
LOG = StoredObject(sum(STORED_SIZES), 1)
INDEXES = StoredObject(6034, 2**64 - 1)


def kinds(findings: tuple[LayoutFinding, ...]) -> list[LayoutFault]:
    return [finding.kind for finding in findings]


def test_f128_objects_that_are_as_their_manifest_says_have_no_findings() -> None:
    """Right lengths give no finding; checksums count when store and manifest have one."""
    assert verify_objects(OURS, {ObjectKind.LOG: LOG, ObjectKind.INDEXES: INDEXES}) == ()
    untold = {ObjectKind.LOG: StoredObject(LOG.size_bytes), ObjectKind.INDEXES: INDEXES}
    assert verify_objects(OURS, untold) == ()
    assert (
        verify_objects(zstd_manifest(), {**untold, ObjectKind.LOG: LOG._replace(crc64nvme=9)}) == ()
    )


@pytest.mark.parametrize(
    ("log", "indexes", "expected"),
    [
        pytest.param(None, INDEXES, [LayoutFault.MISSING], id="no log"),
        pytest.param(LOG, None, [LayoutFault.MISSING], id="no indexes"),
        pytest.param(None, None, [LayoutFault.MISSING] * 2, id="neither"),
        pytest.param(
            LOG._replace(size_bytes=LOG.size_bytes - 1), INDEXES, [LayoutFault.LENGTH], id="partial"
        ),
        pytest.param(LOG, StoredObject(6035), [LayoutFault.LENGTH], id="longer indexes"),
        pytest.param(LOG._replace(crc64nvme=2), INDEXES, [LayoutFault.DAMAGED], id="other bytes"),
    ],
)
def test_f128_object_that_is_not_as_its_manifest_says_is_a_finding(
    log: StoredObject | None, indexes: StoredObject | None, expected: list[LayoutFault]
) -> None:
    """An object that differs from its manifest is a finding."""
    found = {ObjectKind.LOG: log, ObjectKind.INDEXES: indexes}
    stored = {kind: one for kind, one in found.items() if one is not None}
    assert kinds(verify_objects(OURS, stored)) == expected


@pytest.mark.parametrize(
    "manifest",
    [
        replace(OURS, described=replace(DESCRIBED, note=SMALL_LOG)),
        replace(OURS, indexes=OURS.indexes._replace(producer_snapshot=IndexPlace(6011, 10))),
    ],
    ids=["other digests", "overlapping indexes"],
)
def test_manifest_that_contradicts_itself_is_a_finding(manifest: Manifest) -> None:
    """A manifest whose sizes contradict its digests, or whose indexes overlap, is a finding."""
    found = verify_objects(manifest, {ObjectKind.LOG: LOG, ObjectKind.INDEXES: INDEXES})
    assert kinds(found) == [LayoutFault.INCONSISTENT]


def test_manifest_of_its_segment_has_no_findings() -> None:
    """A manifest of its segment has no finding even if broker and event time differ."""
    assert verify_segment(OURS, SEGMENT) == ()
    assert verify_segment(replace(plain_manifest(), described=None), SEGMENT) == ()


@pytest.mark.parametrize(
    "changed",
    [
        {"size_bytes": LOG_BYTES - 1},
        {"start_offset": 1499},
        {"last_offset": 3000},
        {"max_timestamp_ms": 0},
        {"epochs": ((5, 1500),)},
        {"id": replace(SEGMENT_ID, uuid=SEGMENT_ID.partition.topic_id)},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_manifest_of_another_segment_is_a_finding(changed: dict[str, Any]) -> None:
    """A difference in any field that brokers read is a finding."""
    found = verify_segment(OURS, replace(SEGMENT, **changed))
    assert kinds(found) == [LayoutFault.INCONSISTENT]


def test_transaction_index_that_the_metadata_denies_is_a_finding() -> None:
    """A denied transaction index is a finding: committed readers would ignore it."""
    denied = replace(SEGMENT, txn_index_empty=True)
    assert verify_segment(zstd_manifest(), denied) == ()
    assert verify_segment(zstd_manifest(has_aborted=True), SEGMENT) == ()
    assert kinds(verify_segment(zstd_manifest(has_aborted=True), denied)) == [
        LayoutFault.INCONSISTENT
    ]


def test_description_that_could_not_be_read_is_passed_on() -> None:
    """A description that could not be read adds that finding to the result."""
    finding = LayoutFinding(LayoutFault.FIELD_WRONG, "startOffset")
    assert verify_segment(replace(OURS, described=finding), SEGMENT) == (finding,)
