"""A segment's metadata out of its manifest."""

from __future__ import annotations

from dataclasses import replace

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
from spark_tiering.layout.segment_indexes import IndexPlace
from tests.support.builders import segment_id
from tests.support.stores.findings import assert_finding
from tests.support.stores.recorded_manifests import (
    DESCRIBED,
    LOG_BYTES,
    ORDERS,
    SEGMENT_ID,
    STORED_SIZES,
    plain_manifest,
    recorded,
    zstd_manifest,
)

NAME = ObjectName(SEGMENT_ID, 1500, ObjectKind.MANIFEST)
SEGMENT = SegmentMetadata(
    SEGMENT_ID, 1500, 2999, 1, 1_700_000_000_000, 1_700_000_300_000, ((4, 1500),), LOG_BYTES, None,
    SegmentState.COPY_SEGMENT_FINISHED, True,
)  # fmt: skip


def recovered(manifest: Manifest, name: ObjectName = NAME) -> SegmentMetadata | LayoutFinding:
    return recover_from(name, manifest, 900)


@pytest.mark.parametrize("name", ["plain", "zstd", "tiered-by-us", "plain-aborted", "zstd-aborted"])
def test_recover_when_a_manifest_was_recorded_then_is_the_segment(name: str) -> None:
    """Size and transactions come from chunks and indexes, the rest from the description."""
    found = recover_segment(NAME, recorded(name))
    assert isinstance(found, RecoveredSegment)
    assert found.segment == replace(SEGMENT, txn_index_empty="aborted" not in name)


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
        found = recover_segment(NAME, content, prefix="pfx/", fields=fields)
        assert isinstance(found, RecoveredSegment)
        told = parse_custom_metadata(found.segment.custom_metadata)
        assert told == expected


def test_recover_when_custom_metadata_is_too_much_then_says_so() -> None:
    """Custom metadata above the limit is a finding: a broker would stop copying."""
    found = recover_segment(
        NAME, recorded("zstd"), prefix="p" * 100, fields=CustomFields.ALL, custom_bytes_max=128
    )
    assert_finding(found, LayoutFault.INCONSISTENT, "the broker takes 128")


def test_recover_when_nothing_is_described_then_says_so() -> None:
    """A manifest without description is a finding, since nothing gives the offsets."""
    assert_finding(recovered(replace(plain_manifest(), described=None)), LayoutFault.FIELD_MISSING)
    wrong = LayoutFinding(LayoutFault.FIELD_WRONG, "endOffset")
    assert recovered(replace(plain_manifest(), described=wrong)) is wrong
    assert isinstance(recover_segment(NAME, b"{}"), LayoutFinding)


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
    found = recovered(plain_manifest(), replace(NAME, kind=ObjectKind.LOG))
    assert isinstance(found, LayoutFinding)
    assert "no manifest's" in found.detail


def test_recover_when_its_bytes_are_ours_then_they_are_read_as_any() -> None:
    """Recovery of our own manifest gives the segment that was written."""
    described = replace(DESCRIBED, max_timestamp_ms=-1)
    content = format_manifest(replace(zstd_manifest(), described=described))
    found = recover_segment(NAME, content)
    assert isinstance(found, RecoveredSegment)
    assert found.segment == replace(SEGMENT, max_timestamp_ms=-1)
