"""Manifests: byte for byte the plugin's, with our note only where the plugin does not look."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from rlmm.errors import InvalidArgument
from rlmm.metadata.segment import SegmentMetadata
from spark_tiering.layout.chunk_index import FixedChunks
from spark_tiering.layout.findings import LayoutFault, LayoutFinding
from spark_tiering.layout.manifest import LABEL_CHARACTERS_MAX, Manifest, describe
from spark_tiering.layout.manifest_document import format_manifest, parse_manifest
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
