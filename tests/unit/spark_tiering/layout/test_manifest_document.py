"""Manifest documents: accepted where the plugin reads them, otherwise a finding with its place."""

from __future__ import annotations

import json
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

from spark_tiering.layout.findings import LayoutFault, LayoutFinding
from spark_tiering.layout.manifest import Manifest, SegmentDescription
from spark_tiering.layout.manifest_document import MANIFEST_BYTES_MAX, parse_manifest
from spark_tiering.layout.strict_json import VALUES_MAX
from tests.support.stores.recorded_manifests import (
    DESCRIBED,
    plain_manifest,
    recorded,
    zstd_manifest,
)

if TYPE_CHECKING:
    from collections.abc import Callable

INDEX_NAMES = ("offset", "timestamp", "producerSnapshot", "leaderEpoch", "transaction")
DELETE = object()


def changed(path: str, value: object, name: str = "plain") -> bytes:
    fields = json.loads(recorded(name))
    *folders, last = path.split(".")
    at: dict[str, Any] = fields
    for folder in folders:
        at = at[folder]
    if value is DELETE:
        del at[last]
    else:
        at[last] = value
    return json.dumps(fields).encode()


def refusal(content: bytes) -> LayoutFinding:
    found = parse_manifest(content)
    assert isinstance(found, LayoutFinding)
    return found


def strings_for_numbers(content: bytes) -> bytes:
    return json.dumps(json.loads(content, parse_int=str)).encode()


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(changed("version", 1), id="version as a number"),
        pytest.param(changed("encryption", None), id="encryption null"),
        pytest.param(json.dumps(json.loads(recorded("plain")), indent=4).encode(), id="indented"),
        pytest.param(
            json.dumps(json.loads(recorded("plain")), sort_keys=True).encode(), id="another order"
        ),
        pytest.param(strings_for_numbers(recorded("plain")), id="numbers as texts"),
        pytest.param(
            changed("remoteLogSegmentMetadata.theirs", {"a": [1, {"b": None}]}), id="theirs beside"
        ),
    ],
)
def test_manifest_in_another_form_that_the_plugin_reads_is_read(content: bytes) -> None:
    """A manifest in another form that the plugin's classes read as the same is read."""
    assert parse_manifest(content) == plain_manifest()


def test_manifest_without_a_description_is_read() -> None:
    """A manifest without our description is read, as the plugin does not need it."""
    for value in (DELETE, None):
        found = parse_manifest(changed("remoteLogSegmentMetadata", value))
        assert isinstance(found, Manifest)
        assert found.described is None


def test_manifest_with_an_empty_transaction_index_is_read() -> None:
    """A manifest with a transaction index of no bytes reads as one with an empty index."""
    place = {"position": 6034, "size": 0}
    found = parse_manifest(changed("segmentIndexes.transaction", place))
    assert isinstance(found, Manifest)
    assert found.indexes.transaction == (6034, 0)


def test_manifest_of_an_encrypted_segment_is_read_for_its_sizes() -> None:
    """The manifest of an encrypted segment is read without a key, for its sizes."""
    fields = json.loads(recorded("zstd"))
    fields["encryption"] = {"dataKey": "key:AAAA", "aad": "AAAA"}
    found = parse_manifest(json.dumps(fields).encode())
    assert isinstance(found, Manifest)
    assert found.is_encrypted
    assert found.chunks == zstd_manifest().chunks


@pytest.mark.parametrize(
    "path",
    [
        "extra",
        "segmentIndexes.extra",
        "chunkIndex.extra",
        "chunkIndex.transformedChunks",
        "segmentIndexes.offset.extra",
    ],
)
def test_field_that_the_plugin_does_not_know_is_a_finding(path: str) -> None:
    """An unknown field is a finding, since no unmodified broker reads the segment."""
    found = refusal(changed(path, "x"))
    assert found.kind is LayoutFault.FIELD_UNKNOWN
    assert path in found.detail


@pytest.mark.parametrize(
    "path",
    [
        "version",
        "chunkIndex",
        "segmentIndexes",
        "compression",
        "chunkIndex.type",
        "chunkIndex.originalChunkSize",
        "chunkIndex.originalFileSize",
        "chunkIndex.transformedChunkSize",
        "chunkIndex.finalTransformedChunkSize",
        *(f"segmentIndexes.{name}" for name in INDEX_NAMES),
        "segmentIndexes.offset.position",
        "segmentIndexes.offset.size",
    ],
)
def test_field_that_the_plugin_needs_when_missing_is_a_finding(path: str) -> None:
    """Each missing field is a finding, also that of an absent transaction index."""
    found = refusal(changed(path, DELETE))
    assert found.kind is LayoutFault.FIELD_MISSING
    assert path in found.detail


@pytest.mark.parametrize(
    ("path", "value", "kind"),
    [
        ("version", "2", LayoutFault.UNSUPPORTED),
        ("version", 1.0, LayoutFault.UNSUPPORTED),
        ("version", True, LayoutFault.UNSUPPORTED),
        ("version", None, LayoutFault.UNSUPPORTED),
        ("version", ["1"], LayoutFault.UNSUPPORTED),
        ("chunkIndex", [], LayoutFault.FIELD_WRONG),
        ("chunkIndex", None, LayoutFault.FIELD_WRONG),
        ("chunkIndex.type", "other", LayoutFault.UNSUPPORTED),
        ("chunkIndex.type", 1, LayoutFault.FIELD_WRONG),
        ("chunkIndex.originalChunkSize", 0, LayoutFault.FIELD_WRONG),
        ("chunkIndex.originalChunkSize", -1, LayoutFault.FIELD_WRONG),
        ("chunkIndex.originalChunkSize", 1.5, LayoutFault.FIELD_WRONG),
        ("chunkIndex.originalChunkSize", True, LayoutFault.FIELD_WRONG),
        ("chunkIndex.originalChunkSize", 2**31, LayoutFault.FIELD_WRONG),
        ("chunkIndex.originalChunkSize", "4194304 ", LayoutFault.FIELD_WRONG),
        ("chunkIndex.originalFileSize", 10**30, LayoutFault.FIELD_WRONG),
        ("chunkIndex.originalFileSize", 12_584_961, LayoutFault.INCONSISTENT),
        ("chunkIndex.transformedChunkSize", 4_194_332, LayoutFault.INCONSISTENT),
        ("chunkIndex.transformedChunkSize", 2**31 - 1, LayoutFault.INCONSISTENT),
        ("segmentIndexes", "x", LayoutFault.FIELD_WRONG),
        ("segmentIndexes.offset", None, LayoutFault.FIELD_WRONG),
        ("segmentIndexes.offset.size", -1, LayoutFault.FIELD_WRONG),
        ("segmentIndexes.offset.position", None, LayoutFault.FIELD_WRONG),
        ("segmentIndexes.transaction", 0, LayoutFault.FIELD_WRONG),
        ("segmentIndexes.transaction", {"position": 2**31 - 1, "size": 1}, LayoutFault.FIELD_WRONG),
        ("compression", "false", LayoutFault.FIELD_WRONG),
        ("compression", 0, LayoutFault.FIELD_WRONG),
        ("compression", None, LayoutFault.FIELD_WRONG),
        ("encryption", "x", LayoutFault.FIELD_WRONG),
        ("encryption", {}, LayoutFault.FIELD_MISSING),
    ],
)
def test_value_that_the_plugin_could_not_use_is_a_finding(
    path: str, value: object, kind: LayoutFault
) -> None:
    """A value that the plugin could not use is a finding with field, value and expectation."""
    found = refusal(changed(path, value))
    assert found.kind is kind
    assert path.split(".", maxsplit=1)[0] in found.detail
    assert len(found.detail) < 400


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("KLUv/SAQgQ==", LayoutFault.DAMAGED),
        ("KLUv/SAPeQAAAAAAAwAAAAoBAAoAAAAe", LayoutFault.INCONSISTENT),
        (7, LayoutFault.FIELD_WRONG),
    ],
)
def test_list_of_chunks_that_does_not_fit_is_a_finding(text: object, kind: LayoutFault) -> None:
    """A list of chunks that does not fit the log's size is a finding."""
    found = refusal(changed("chunkIndex.transformedChunks", text, "zstd"))
    assert found.kind is kind
    assert "chunkIndex" in found.detail


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"null", id="null"),
        pytest.param(b"[1]", id="a list"),
        pytest.param(recorded("plain")[:-1], id="cut"),
        pytest.param(recorded("plain") + b"x", id="more behind"),
        pytest.param(b"\xef\xbb\xbf" + recorded("plain"), id="a byte order mark"),
        pytest.param(recorded("plain").decode().encode("utf-16"), id="UTF-16"),
        pytest.param(b'{"version":"\xff"}', id="no UTF-8"),
        pytest.param(b'{"version":NaN}', id="not a number"),
        pytest.param(b'{"version":' + b"1" * 5000 + b"}", id="a number of 5000 digits"),
        pytest.param(b'{"version":"1","version":"1"}', id="a name twice"),
        pytest.param(b'{"version":' + b"[" * 50_000 + b"]" * 50_000 + b"}", id="very deep"),
    ],
)
def test_bytes_that_are_no_manifest_are_a_finding(content: bytes) -> None:
    """Bytes that are no manifest are a finding, never an error."""
    assert refusal(content).kind is LayoutFault.NOT_JSON


@pytest.mark.parametrize(
    ("make", "detail"),
    [
        pytest.param(lambda: b" " * (MANIFEST_BYTES_MAX + 1), "bytes", id="too long"),
        pytest.param(
            lambda: b'{"a":[' + b"{}," * (1024 * 1024) + b"{}]}", "values", id="many objects"
        ),
        pytest.param(lambda: b'{"a":[' + b"0," * VALUES_MAX + b"0]}", "values", id="many numbers"),
    ],
)
def test_manifest_that_would_take_too_much_memory_is_not_parsed(
    make: Callable[[], bytes], detail: str
) -> None:
    """A manifest with too many small objects is counted and refused before it is parsed."""
    content = make()
    tracemalloc.start()
    try:
        found = refusal(content)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.kind is LayoutFault.TOO_LARGE
    assert detail in found.detail
    assert peak < 1024 * 1024


ID_PATH = "remoteLogSegmentId.topicIdPartition"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("startOffset", -1),
        ("endOffset", 1499),
        ("endOffset", 2**63),
        ("segmentLeaderEpochs", {}),
        ("segmentLeaderEpochs", {"x": 1}),
        ("segmentLeaderEpochs", {"04": 1500}),
        ("segmentLeaderEpochs", {"4": 1500, "5": 1500}),
        ("segmentLeaderEpochs", {"4": 1500, "3": 1600}),
        (f"{ID_PATH}.topicId", "short"),
        (f"{ID_PATH}.topicPartition.topic", "\ud800"),
        (f"{ID_PATH}.topicPartition.partition", 2**31),
        ("remoteLogSegmentId.id", DELETE),
        ("rlmm", {}),
        ("rlmm", 1),
    ],
)
def test_description_that_cannot_be_used_leaves_the_manifest_readable(
    path: str, value: object
) -> None:
    """A bad description leaves the manifest readable, and recovery reports the reason."""
    found = parse_manifest(changed(f"remoteLogSegmentMetadata.{path}", value))
    assert isinstance(found, Manifest)
    assert isinstance(found.described, LayoutFinding)
    assert "remoteLogSegmentMetadata" in found.described.detail
    assert found.chunks == plain_manifest().chunks


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("log", DELETE),
        ("log.sha256", "00"),
        ("log.sha256", "A" * 64),
        ("source.crc64nvme", "AAAA"),
        ("indexes.size", -1),
        ("writer", ""),
        ("jobId", "a\nb"),
    ],
)
def test_note_that_cannot_be_used_is_a_finding_beside_the_manifest(
    path: str, value: object
) -> None:
    """An invalid digest in the note is a finding beside the manifest."""
    content = changed(f"remoteLogSegmentMetadata.rlmm.{path}", value, "tiered-by-us")
    found = parse_manifest(content)
    assert isinstance(found, Manifest)
    assert isinstance(found.described, LayoutFinding)


def test_leader_epochs_in_another_order_are_read_rising() -> None:
    """Leader epochs in any JSON order are read in rising order."""
    epochs = {"10": 2000, "4": 1500}
    found = parse_manifest(changed("remoteLogSegmentMetadata.segmentLeaderEpochs", epochs))
    assert isinstance(found, Manifest)
    assert isinstance(found.described, SegmentDescription)
    assert found.described.epochs == ((4, 1500), (10, 2000))
    assert found.described.segment_id == DESCRIBED.segment_id
