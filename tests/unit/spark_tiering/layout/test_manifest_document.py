"""Manifest documents: the plugin's bytes, and accepted exactly where the plugin reads them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from rlmm.errors import InvalidArgument
from rlmm.metadata.segment import SegmentMetadata
from spark_tiering.layout.chunk_index import FixedChunks
from spark_tiering.layout.findings import LayoutFault, LayoutFinding
from spark_tiering.layout.manifest import LABEL_CHARACTERS_MAX, Manifest, describe
from spark_tiering.layout.manifest_document import (
    MANIFEST_BYTES_MAX,
    format_manifest,
    parse_manifest,
)
from tests.support.stores.findings import assert_finding
from tests.support.stores.recorded_manifests import (
    DESCRIBED,
    LOG_BYTES,
    NOTE,
    SEGMENT_ID,
    plain_manifest,
    recorded,
    zstd_manifest,
)

RECORDED = {
    "plain": plain_manifest(),
    "zstd": zstd_manifest(),
    "plain-aborted": plain_manifest(has_aborted=True),
    "zstd-aborted": zstd_manifest(has_aborted=True),
    "tiered-by-us": replace(zstd_manifest(), described=replace(DESCRIBED, note=NOTE)),
}


@pytest.mark.parametrize("name", RECORDED)
def test_manifest_when_written_is_the_recorded_one_and_back(name: str) -> None:
    """A written manifest equals the plugin's recorded bytes and reads back whole."""
    assert format_manifest(RECORDED[name]) == recorded(name)
    assert parse_manifest(recorded(name)) == RECORDED[name]


def test_note_when_written_stands_only_where_the_plugin_does_not_look() -> None:
    """The note leaves all fields of the manifest that the plugin reads unchanged."""
    ours = json.loads(recorded("tiered-by-us"))
    del ours["remoteLogSegmentMetadata"]["rlmm"]
    assert ours == json.loads(recorded("zstd"))


def test_description_when_made_of_metadata_repeats_it() -> None:
    """The description in a manifest repeats the segment's metadata."""
    segment = SegmentMetadata(
        SEGMENT_ID, 1500, 2999, 1, 1_700_000_000_000, 1_700_000_300_000, ((4, 1500),), LOG_BYTES
    )
    assert describe(segment) == DESCRIBED
    assert describe(segment, NOTE) == replace(DESCRIBED, note=NOTE)


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(
            replace(plain_manifest(), chunks=FixedChunks(100, 250, 110, 60)), id="not as it is"
        ),
        pytest.param(
            replace(plain_manifest(), described=LayoutFinding(LayoutFault.FIELD_WRONG, "x")),
            id="description not understood",
        ),
    ],
)
def test_manifest_that_we_cannot_stand_for_when_written_is_refused(manifest: Manifest) -> None:
    """The writer refuses a manifest that was only read, because its source is not known."""
    with pytest.raises(InvalidArgument):
        format_manifest(manifest)


@pytest.mark.parametrize("label", ["", "a\nb", 'a"b', "ü", "x" * (LABEL_CHARACTERS_MAX + 1)])
def test_note_with_a_label_that_is_not_plain_is_refused(label: str) -> None:
    """A label with escapes, or a long one, is refused: every language must write equal bytes."""
    with pytest.raises(InvalidArgument, match="label"):
        replace(NOTE, job_id=label)
    with pytest.raises(InvalidArgument, match="label"):
        replace(NOTE, writer=label)


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


def read(path: str, value: object, name: str = "plain") -> Manifest:
    found = parse_manifest(changed(path, value, name))
    assert isinstance(found, Manifest)
    return found


PLAIN = json.loads(recorded("plain"))
OTHER_FORMS = {
    "version as a number": changed("version", 1),
    "encryption null": changed("encryption", None),
    "indented": json.dumps(PLAIN, indent=4).encode(),
    "another order": json.dumps(PLAIN, sort_keys=True).encode(),
    "numbers as texts": json.dumps(json.loads(recorded("plain"), parse_int=str)).encode(),
    "theirs beside": changed("remoteLogSegmentMetadata.theirs", {"a": [1, {"b": None}]}),
}


@pytest.mark.parametrize("content", OTHER_FORMS.values(), ids=OTHER_FORMS)
def test_manifest_in_another_form_that_the_plugin_reads_is_read(content: bytes) -> None:
    """A manifest in another form that the plugin's classes read as the same is read."""
    assert parse_manifest(content) == plain_manifest()


@pytest.mark.parametrize("value", [DELETE, None], ids=["absent", "null"])
def test_manifest_without_a_description_is_read(value: object) -> None:
    """A manifest without our description is read, as the plugin does not need it."""
    assert read("remoteLogSegmentMetadata", value).described is None


def test_manifest_with_an_empty_transaction_index_is_read() -> None:
    """A manifest with a transaction index of no bytes reads as one with an empty index."""
    place = {"position": 6034, "size": 0}
    assert read("segmentIndexes.transaction", place).indexes.transaction == (6034, 0)


def test_manifest_of_an_encrypted_segment_is_read_for_its_sizes() -> None:
    """The manifest of an encrypted segment is read without a key, for its sizes."""
    found = read("encryption", {"dataKey": "key:AAAA", "aad": "AAAA"}, "zstd")
    assert found.is_encrypted
    assert found.chunks == zstd_manifest().chunks


@pytest.mark.parametrize(
    ("path", "value", "kind"),
    [
        ("extra", "x", LayoutFault.FIELD_UNKNOWN),
        ("chunkIndex.transformedChunks", "x", LayoutFault.FIELD_UNKNOWN),
        ("segmentIndexes.offset.extra", "x", LayoutFault.FIELD_UNKNOWN),
        ("chunkIndex.finalTransformedChunkSize", DELETE, LayoutFault.FIELD_MISSING),
        ("segmentIndexes.transaction", DELETE, LayoutFault.FIELD_MISSING),
        ("version", ["1"], LayoutFault.UNSUPPORTED),
        ("version", "2", LayoutFault.UNSUPPORTED),
        ("chunkIndex.type", "other", LayoutFault.UNSUPPORTED),
        ("chunkIndex.originalChunkSize", 0, LayoutFault.FIELD_WRONG),
        ("chunkIndex.originalChunkSize", "4194304 ", LayoutFault.FIELD_WRONG),
        ("chunkIndex.originalFileSize", 12_584_961, LayoutFault.INCONSISTENT),
        ("chunkIndex.transformedChunkSize", 4_194_332, LayoutFault.INCONSISTENT),
        ("chunkIndex.transformedChunkSize", 2**31 - 1, LayoutFault.INCONSISTENT),
        ("segmentIndexes.transaction", {"position": 2**31 - 1, "size": 1}, LayoutFault.FIELD_WRONG),
        ("compression", "false", LayoutFault.FIELD_WRONG),
        ("compression", 0, LayoutFault.FIELD_WRONG),
    ],
)
def test_field_that_is_unusable_is_a_finding(path: str, value: object, kind: LayoutFault) -> None:
    """An unknown field, a missing one, and a wrong value are findings with their place."""
    found = parse_manifest(changed(path, value))
    assert_finding(found, kind, path if kind.startswith("field") else path.partition(".")[0])
    assert len(str(found)) < 400


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("KLUv/SAQgQ==", LayoutFault.DAMAGED),
        ("KLUv/SAPeQAAAAAAAwAAAAoBAAoAAAAe", LayoutFault.INCONSISTENT),
    ],
)
def test_list_of_chunks_that_does_not_fit_is_a_finding(text: object, kind: LayoutFault) -> None:
    """A list of chunks that does not fit the log's size is a finding."""
    found = parse_manifest(changed("chunkIndex.transformedChunks", text, "zstd"))
    assert_finding(found, kind, "chunkIndex")


@pytest.mark.parametrize("content", [b"null", recorded("plain").decode().encode("utf-16")])
def test_bytes_that_are_no_manifest_are_a_finding(content: bytes) -> None:
    """Bytes that are no manifest are a finding, never an error."""
    assert_finding(parse_manifest(content), LayoutFault.NOT_JSON)
    assert_finding(parse_manifest(b" " * (MANIFEST_BYTES_MAX + 1)), LayoutFault.TOO_LARGE, "bytes")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("segmentLeaderEpochs", {"x": 1}),
        ("segmentLeaderEpochs", {"04": 1500}),
        ("segmentLeaderEpochs", {"4": 1500, "5": 1500}),
        ("segmentLeaderEpochs", {"4": 1500, "3": 1600}),
        ("endOffset", 1499),
        ("rlmm.log.sha256", "00"),
        ("rlmm.log.sha256", "A" * 64),
        ("rlmm.source.crc64nvme", "AAAA"),
        ("rlmm.jobId", "a\nb"),
    ],
)
def test_description_when_it_is_bad_leaves_the_manifest_readable(path: str, value: object) -> None:
    """A bad description or note leaves the manifest readable, and recovery reports the reason."""
    found = read(f"remoteLogSegmentMetadata.{path}", value, "tiered-by-us")
    assert_finding(found.described, LayoutFault.FIELD_WRONG, "remoteLogSegmentMetadata")
    assert found.chunks == zstd_manifest().chunks


def test_leader_epochs_in_another_order_are_read_rising() -> None:
    """Leader epochs in any JSON order are read in rising order."""
    epochs = {"10": 2000, "4": 1500}
    found = read("remoteLogSegmentMetadata.segmentLeaderEpochs", epochs).described
    assert found == replace(DESCRIBED, epochs=((4, 1500), (10, 2000)))
