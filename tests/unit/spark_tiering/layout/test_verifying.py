"""Stored objects and segments verified, and metadata recovered, by manifests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rlmm.metadata.segment import SegmentMetadata, SegmentState
from spark_tiering.layout.custom_metadata import CustomMetadata, parse_custom_metadata
from spark_tiering.layout.encryption import SEALED_BYTES
from spark_tiering.layout.findings import LayoutFault, LayoutFinding
from spark_tiering.layout.manifest import Manifest, SegmentEncryption
from spark_tiering.layout.manifest_document import format_manifest
from spark_tiering.layout.metadata_recovery import (
    CustomFields,
    RecoveredSegment,
    has_transactions,
    recover_from,
    recover_segment,
)
from spark_tiering.layout.object_names import ObjectKind, ObjectName, main_key
from spark_tiering.layout.object_verification import StoredObject, verify_objects, verify_segment
from spark_tiering.layout.segment_indexes import IndexPlace
from tests.support.builders import segment_id
from tests.support.stores.findings import assert_finding
from tests.support.stores.recorded_manifests import (
    DESCRIBED,
    LOG_BYTES,
    NOTE,
    ORDERS,
    SEGMENT_ID,
    STORED_SIZES,
    plain_manifest,
    recorded,
    zstd_manifest,
)

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
    """A manifest of its segment has no finding but that of its description."""
    assert verify_segment(OURS, SEGMENT) == ()
    assert verify_segment(replace(plain_manifest(), described=None), SEGMENT) == ()
    finding = LayoutFinding(LayoutFault.FIELD_WRONG, "startOffset")
    assert verify_segment(replace(OURS, described=finding), SEGMENT) == (finding,)


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


MANIFEST_NAME = ObjectName(SEGMENT_ID, 1500, ObjectKind.MANIFEST)
RECOVERED = SegmentMetadata(
    SEGMENT_ID, 1500, 2999, 1, 1_700_000_000_000, 1_700_000_300_000, ((4, 1500),), LOG_BYTES, None,
    SegmentState.COPY_SEGMENT_FINISHED, True,
)  # fmt: skip


def recovered(
    manifest: Manifest, name: ObjectName = MANIFEST_NAME
) -> SegmentMetadata | LayoutFinding:
    return recover_from(name, manifest, 900)


@pytest.mark.parametrize("name", ["plain", "zstd", "tiered-by-us", "plain-aborted", "zstd-aborted"])
def test_recover_when_a_manifest_was_recorded_then_is_the_segment(name: str) -> None:
    """Size and transactions come from chunks and indexes, the rest from the description."""
    found = recover_segment(MANIFEST_NAME, recorded(name))
    assert isinstance(found, RecoveredSegment)
    assert found.segment == replace(RECOVERED, txn_index_empty="aborted" not in name)
    described = replace(DESCRIBED, max_timestamp_ms=-1)
    ours = format_manifest(replace(zstd_manifest(), described=described))
    found = recover_segment(MANIFEST_NAME, ours)
    assert isinstance(found, RecoveredSegment)
    assert found.segment == replace(RECOVERED, max_timestamp_ms=-1)


@pytest.mark.parametrize(
    ("size_bytes", "is_encrypted", "expected"),
    [
        (0, False, False),
        (34, False, True),
        (SEALED_BYTES, True, False),
        (SEALED_BYTES + 34, True, True),
    ],
)
def test_transactions_when_parts_are_encrypted_then_an_empty_one_is_known_by_its_length(
    size_bytes: int, is_encrypted: bool, expected: bool
) -> None:
    """An encrypted index is empty when it holds only the encryption's overhead."""
    manifest = plain_manifest(has_aborted=True)
    indexes = manifest.indexes._replace(transaction=IndexPlace(6034, size_bytes))
    sealed = SegmentEncryption("key-1", b"sealed", b"aad") if is_encrypted else None
    assert has_transactions(replace(manifest, indexes=indexes, encryption=sealed)) is expected


def test_recover_when_custom_metadata_is_configured_then_is_as_brokers_have_it() -> None:
    """Recovered custom metadata has the configured form: none, size, or size, prefix and key."""
    content = recorded("zstd")
    size_bytes = sum(STORED_SIZES) + zstd_manifest().indexes.size_bytes + len(content)
    main = main_key(SEGMENT_ID, 1500)
    for fields, expected in (
        (CustomFields.NONE, CustomMetadata()),
        (CustomFields.REMOTE_SIZE, CustomMetadata(size_bytes)),
        (CustomFields.ALL, CustomMetadata(size_bytes, "pfx/", main)),
    ):
        found = recover_segment(MANIFEST_NAME, content, prefix="pfx/", fields=fields)
        assert isinstance(found, RecoveredSegment)
        told = parse_custom_metadata(found.segment.custom_metadata)
        assert told == expected


def test_recover_when_custom_metadata_is_too_much_then_says_so() -> None:
    """Custom metadata above the limit is a finding: a broker would stop copying."""
    found = recover_segment(
        MANIFEST_NAME,
        recorded("zstd"),
        prefix="p" * 100,
        fields=CustomFields.ALL,
        custom_bytes_max=128,
    )
    assert_finding(found, LayoutFault.INCONSISTENT, "the broker takes 128")


def test_recover_when_nothing_is_described_then_says_so() -> None:
    """A manifest without description is a finding, since nothing gives the offsets."""
    assert_finding(recovered(replace(plain_manifest(), described=None)), LayoutFault.FIELD_MISSING)
    wrong = LayoutFinding(LayoutFault.FIELD_WRONG, "endOffset")
    assert recovered(replace(plain_manifest(), described=wrong)) is wrong
    assert isinstance(recover_segment(MANIFEST_NAME, b"{}"), LayoutFinding)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        pytest.param({"segment_id": segment_id(9, ORDERS)}, "segment", id="another segment"),
        pytest.param({"start_offset": 1499}, "start offset 1499", id="another start"),
        pytest.param({"epochs": ((4, 1499),)}, "leader epoch 4", id="epoch before it"),
        pytest.param({"epochs": ((4, 1500), (5, 3000))}, "leader epoch 5", id="epoch behind it"),
    ],
)
def test_recover_when_a_manifest_contradicts_its_key(changed: dict[str, object], said: str) -> None:
    """A manifest that contradicts its key is of a segment that never existed."""
    described = replace(DESCRIBED, **changed)  # type: ignore[arg-type]
    assert_finding(
        recovered(replace(plain_manifest(), described=described)), LayoutFault.INCONSISTENT, said
    )


def test_recover_when_the_key_is_of_another_object_then_is_refused() -> None:
    """Recovery refuses the key of an object that is no manifest."""
    found = recovered(plain_manifest(), replace(MANIFEST_NAME, kind=ObjectKind.LOG))
    assert isinstance(found, LayoutFinding)
    assert "no manifest's" in found.detail
