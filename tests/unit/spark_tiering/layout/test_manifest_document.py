"""Manifest documents and custom metadata: the plugin's bytes, and what the plugin reads."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from rlmm.errors import InvalidArgument
from rlmm.metadata.segment import SegmentMetadata
from spark_tiering.layout.chunk_index import FixedChunks
from spark_tiering.layout.custom_metadata import (
    CustomMetadata,
    format_custom_metadata,
    parse_custom_metadata,
)
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
    """A manifest without our description, or with an empty transaction index, is read."""
    assert read("remoteLogSegmentMetadata", value).described is None
    place = {"position": 6034, "size": 0}
    assert read("segmentIndexes.transaction", place).indexes.transaction == (6034, 0)


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


VECTORS = {
    "size and key": (CustomMetadata(100, main_key="foo"), "02 00 02 c801 02 04 04666f6f"),
    "all": (CustomMetadata(100, "pfx/", "foo"), "03 0002c801 0105057066782f 020404666f6f"),
    "size alone": (CustomMetadata(0), "01 00 01 00"),
    "empty prefix": (CustomMetadata(prefix=""), "01 01 01 01"),
    "largest size": (CustomMetadata(2**63 - 1), "01 00 0a feffffffffffffffff01"),
    "another's": (CustomMetadata(1, others={9: b"xyz"}), "02 000102 090378797a"),
}


@pytest.mark.parametrize(("custom", "section"), VECTORS.values(), ids=VECTORS)
def test_custom_metadata_when_written_is_the_plugins(custom: CustomMetadata, section: str) -> None:
    """Fields are written by rising tag as by the plugin, and unknown fields survive."""
    assert format_custom_metadata(custom) == bytes.fromhex(section)
    assert parse_custom_metadata(bytes.fromhex(section)) == custom


@pytest.mark.parametrize("section", [None, b""], ids=["absent", "empty"])
def test_custom_metadata_that_is_absent_has_no_fields(section: bytes | None) -> None:
    """Absent custom metadata, the plugin's default, has no fields."""
    assert parse_custom_metadata(section) == CustomMetadata()
    assert format_custom_metadata(CustomMetadata()) is None


def test_custom_metadata_beyond_the_limit_of_brokers_is_refused() -> None:
    """Metadata above the brokers' limit is refused: a broker would stop copying the partition."""
    custom = CustomMetadata(1, "", "k" * 116)
    assert len(format_custom_metadata(custom) or b"") == 126
    with pytest.raises(InvalidArgument, match="129 bytes, the broker takes 128"):
        format_custom_metadata(CustomMetadata(1, "pfx", "k" * 116))
    assert format_custom_metadata(CustomMetadata(1, "pfx", "k" * 116), 129) is not None


@pytest.mark.parametrize(
    "custom",
    [
        CustomMetadata(-1),
        CustomMetadata(2**63),
        CustomMetadata(others={0: b""}),
        CustomMetadata(others={2: b""}),
        CustomMetadata(others={2**31: b""}),
    ],
)
def test_custom_metadata_that_means_nothing_when_written_is_refused(custom: CustomMetadata) -> None:
    """Custom metadata with a negative size, or an unknown field under a known tag, is refused."""
    with pytest.raises(InvalidArgument):
        format_custom_metadata(custom)


@pytest.mark.parametrize(
    "section",
    [
        pytest.param("02 00 02 c801", id="a field too few"),
        pytest.param("01 00 02 c801 00", id="bytes behind the end"),
        pytest.param("02 020404666f6f 0002c801", id="tags that fall"),
        pytest.param("02 0002c801 0002c801", id="a tag twice"),
        pytest.param("01 00 03 c801", id="a length beyond the end"),
        pytest.param("01 00 03 c80100", id="a number shorter than its field"),
        pytest.param("01 00 01 c8", id="a number longer than its field"),
        pytest.param("01 00 0b 8080808080808080808001", id="a number of eleven bytes"),
        pytest.param("01 00 0a ffffffffffffffffff7f", id="a number above 64 bits"),
        pytest.param("01 02 01 00", id="a null text"),
        pytest.param("01 02 03 04666f", id="a text cut off"),
        pytest.param("01 02 03 02666f", id="a text shorter than its field"),
        pytest.param("01 02 02 02ff", id="no UTF-8"),
        pytest.param("ffffffff0f", id="a count that lies"),
        pytest.param("ffffffffff01", id="a count of six bytes"),
        pytest.param("01 ffffffff0f 00", id="a tag above int"),
        pytest.param("7b2261223a317d", id="another plugin's"),
    ],
)
def test_custom_metadata_of_somebody_else_when_parsed_is_a_finding(section: str) -> None:
    """Another plugin's custom metadata is a finding."""
    assert_finding(parse_custom_metadata(bytes.fromhex(section)), LayoutFault.DAMAGED)
