"""Objects of a tier, sound and with each fault: segments 0-119 (12 batches) and 120-250, twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from spark_tiering.layout.object_names import ObjectKind
from spark_tiering.maintenance.verify.values import VerifyOptions
from spark_tiering.segments.findings import SegmentPart
from tests.support.tier.job_folders import ORDERS, PLAIN, ZSTD, TierPlace
from tests.support.tier.verified_tiers import DEEP, stored, told, verify

if TYPE_CHECKING:
    from collections.abc import Callable

    from spark_tiering.executor.tasks import CopyOptions
    from tests.support.tier.verified_tiers import Stored

LOG, INDEXES, MANIFEST = ObjectKind.LOG, ObjectKind.INDEXES, ObjectKind.MANIFEST
FIRST = [0, 119]
BATCH = 1171
"""Bytes of a batch of ten records."""


@pytest.mark.parametrize("options", [PLAIN, ZSTD])
@pytest.mark.parametrize("prefix", ["", "tier/"])
def test_tier_when_nothing_is_wrong_then_nothing_is_found(
    tiered: Callable[..., TierPlace], options: CopyOptions, prefix: str
) -> None:
    """Verify of a whole tier takes three requests for each segment, and two more for reading."""
    place = tiered(options, prefix)
    report = verify(place)
    assert report.is_fine
    assert not report.findings
    assert (report.work.segments, report.work.objects, report.work.requests) == (4, 12, 12)
    assert report.requests_per_million == 3_000_000
    deep = verify(place, DEEP)
    assert deep.is_fine, told(deep)
    assert deep.work.requests == 20
    assert deep.work.read_bytes == sum(one.size_bytes for one in place.segments())


def test_tier_when_it_was_written_by_brokers_then_nothing_is_found(place: TierPlace) -> None:
    """Verify finds nothing in a tier that brokers wrote, whose manifests hold no checksums."""
    for at in range(4):
        stored(place, at).forget_sums()
    assert verify(place).is_fine
    assert verify(place, DEEP).is_fine


@pytest.mark.parametrize("kind", list(ObjectKind))
@pytest.mark.parametrize("options", [VerifyOptions(), DEEP])
def test_f121_object_when_it_is_gone_then_kind_and_offsets_are_told(
    place: TierPlace, one: Stored, kind: ObjectKind, options: VerifyOptions
) -> None:
    """A missing object is reported with kind, key and lost offsets."""
    one.put(kind, None)
    report = verify(place, options)
    assert told(report) == [("TIER-OBJECT-MISSING", kind.value, [FIRST])]
    assert report.findings[0].fields["key"] == one.keys[kind]
    assert report.findings[0].fields["segment_id"] == str(one.segment.id.uuid)
    assert dict(report.lost) == {ORDERS: ((0, 119),)}
    assert not report.is_fine


def test_f121_segment_when_all_its_objects_are_gone_then_each_is_told(
    place: TierPlace, one: Stored
) -> None:
    """A segment without objects has a finding for each, and loses its offsets once."""
    for kind in ObjectKind:
        one.put(kind, None)
    report = verify(place, DEEP)
    assert sorted(told(report)) == sorted(
        ("TIER-OBJECT-MISSING", kind.value, [FIRST]) for kind in ObjectKind
    )
    assert dict(report.lost) == {ORDERS: ((0, 119),)}


def test_log_when_it_is_cut_then_its_length_is_told_and_reading_says_which_offsets(
    place: TierPlace, one: Stored
) -> None:
    """A cut log may lack all its offsets; a full read loses those from the cut batch on."""
    one.put(LOG, one.get(LOG)[: 7 * BATCH + 5])
    assert told(verify(place))[0] == ("TIER-OBJECT-LENGTH", "log", [FIRST])
    deep = verify(place, DEEP)
    assert ("TIER-OBJECT-LENGTH", "log", [[70, 119]]) in told(deep)
    assert dict(deep.lost) == {ORDERS: ((70, 119),)}


@pytest.mark.parametrize("extra", [b"x", bytes(5000)])
def test_log_when_it_is_longer_than_told_then_its_length_is_told(
    place: TierPlace, one: Stored, extra: bytes
) -> None:
    """A log longer than in its manifest loses no offsets, as ranges go by the manifest."""
    one.put(LOG, one.get(LOG) + extra)
    codes = [code for code, _, _ in told(verify(place))]
    assert "TIER-OBJECT-LENGTH" in codes
    assert not verify(place, DEEP).lost


def test_log_when_a_bit_is_flipped_then_its_sum_tells_and_reading_says_which_offsets(
    place: TierPlace, one: Stored
) -> None:
    """A flipped bit shows in the checksum, and a full read loses its one batch."""
    one.flip(LOG, 5 * BATCH + 200)
    assert told(verify(place)) == [("TIER-OBJECT-DAMAGED", "log", [FIRST])]
    deep = verify(place, DEEP)
    assert sorted(told(deep)) == [
        ("TIER-BATCH-DAMAGED", "log", [[50, 59]]),
        ("TIER-OBJECT-DAMAGED", "log", []),
    ]
    assert dict(deep.lost) == {ORDERS: ((50, 59),)}
    one.forget_sums()
    assert verify(place).is_fine, "nobody can tell without reading"
    assert told(verify(place, DEEP)) == [("TIER-BATCH-DAMAGED", "log", [[50, 59]])]


def test_log_when_a_length_is_flipped_then_reading_goes_on_by_the_offset_index(
    place: TierPlace, one: Stored
) -> None:
    """After a flipped batch length the reader continues by the offset index."""
    one.forget_sums()
    one.flip(LOG, 5 * BATCH + 8)
    (found,) = told(verify(place, DEEP))
    assert found[0] == "TIER-BATCH-DAMAGED"
    # An entry of the index is of offset 89, whose batch begins with 80.
    assert found[2] == [[50, 79]]


def test_logs_when_two_batches_are_damaged_then_both_ranges_are_told(
    place: TierPlace, one: Stored
) -> None:
    """Two damaged batches are two lost ranges without the records between them."""
    one.forget_sums()
    one.flip(LOG, 2 * BATCH + 200)
    one.flip(LOG, 9 * BATCH + 200)
    deep = verify(place, DEEP)
    assert told(deep) == [("TIER-BATCH-DAMAGED", "log", [[20, 29], [90, 99]])]
    assert dict(deep.lost) == {ORDERS: ((20, 29), (90, 99))}


def test_log_when_a_compressed_chunk_is_damaged_then_its_batches_are_lost(
    tiered: Callable[..., TierPlace],
) -> None:
    """A damaged chunk loses its batches, up to the next one that the offset index names."""
    place = tiered(ZSTD)
    one = stored(place)
    one.forget_sums()
    chunk = one.manifest.chunks.chunk(1)
    one.flip(LOG, chunk.stored_start + chunk.stored_bytes - 3)
    deep = verify(place, DEEP)
    ((code, part, lost),) = told(deep)
    assert (code, part) == ("TIER-OBJECT-DAMAGED", "log")
    # Batches 30-39 to 60-69 touch it; the index leads to the batch that ends with offset 89.
    assert lost == [[30, 79]]
    # Five for each segment, and as few more as it takes: nothing is sought within the chunk.
    assert deep.work.requests == 4 * 5 + 4


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "TIER-MANIFEST-MALFORMED"),
        (b"{}", "TIER-MANIFEST-MALFORMED"),
        (b"\xff\xfe", "TIER-MANIFEST-MALFORMED"),
        (b'{"version": "2"}', "TIER-MANIFEST-MALFORMED"),
        (b"[" * 100_000, "TIER-MANIFEST-MALFORMED"),
    ],
)
def test_manifest_when_no_broker_could_read_it_then_it_is_told(
    place: TierPlace, one: Stored, content: bytes, code: str
) -> None:
    """A manifest that no broker could read is one finding, whatever its bytes are."""
    one.put(MANIFEST, content)
    assert told(verify(place, DEEP)) == [(code, "rsm-manifest", [FIRST])]


@pytest.mark.parametrize(
    "changes",
    [
        {"remoteLogSegmentMetadata__endOffset": 118},
        {"remoteLogSegmentMetadata__startOffset": 1},
        {"remoteLogSegmentMetadata__maxTimestampMs": 1},
        {"remoteLogSegmentMetadata__segmentLeaderEpochs": {"5": 0}},
        {"remoteLogSegmentMetadata__remoteLogSegmentId__id": "EBESExQVFhcYGRobHB0eHw"},
        {"remoteLogSegmentMetadata__brokerId": "x"},
    ],
)
def test_manifest_when_it_contradicts_the_metadata_then_it_is_told(
    place: TierPlace, one: Stored, changes: dict[str, Any]
) -> None:
    """A manifest that contradicts the metadata is a finding, and the log is judged by itself."""
    one.say(**changes)
    found = told(verify(place, DEEP))
    assert found == [("TIER-MANIFEST-MISMATCH", "rsm-manifest", [])]


def test_manifest_when_it_is_of_another_size_then_its_log_is_not_read_by_it(
    place: TierPlace, one: Stored, two: Stored
) -> None:
    """A log is not read by a manifest of another size, although all three objects fit."""
    for kind in ObjectKind:
        one.put(kind, two.get(kind))
    found = told(verify(place, DEEP))
    assert {code for code, _, _ in found} == {"TIER-MANIFEST-MISMATCH"}
    assert ("TIER-MANIFEST-MISMATCH", "rsm-manifest", [FIRST]) in found


def test_log_when_it_is_another_segments_then_its_offsets_are_told(
    place: TierPlace, one: Stored
) -> None:
    """A log with another segment's sound batches is a finding with its offsets."""
    other = stored(place, 2)
    assert one.segment.size_bytes == other.segment.size_bytes
    one.forget_sums()
    body = other.get(LOG)
    moved = b"".join(
        (int.from_bytes(body[at : at + 8]) + 1).to_bytes(8) + body[at + 8 : at + BATCH]
        for at in range(0, len(body), BATCH)
    )
    one.put(LOG, moved)
    assert told(verify(place, DEEP)) == [("TIER-START-OFFSET", "log", [[0, 0]])]


def test_log_when_its_end_is_cut_with_its_manifest_then_the_offsets_behind_are_told(
    place: TierPlace, one: Stored
) -> None:
    """A log cut with its manifest is a finding with the last offsets that the metadata promises."""
    segment = one.segment
    body = one.get(LOG)
    one.put(LOG, body[: 11 * BATCH] + body[:BATCH])
    one.forget_sums()
    ((code, _, lost),) = told(verify(place, DEEP))
    assert code == "TIER-BATCH-DAMAGED", "offsets that begin anew are no end"
    assert lost == [[110, 119]]
    assert segment.last_offset == 119


@pytest.mark.parametrize(
    ("part", "change"),
    [
        pytest.param(SegmentPart.OFFSET_INDEX, lambda was: bytes(len(was)), id="zeros"),
        pytest.param(SegmentPart.OFFSET_INDEX, lambda was: was[8:] + was[:8], id="swapped"),
        pytest.param(
            SegmentPart.OFFSET_INDEX, lambda was: was[:7] + bytes([was[7] ^ 1]) + was[8:], id="off"
        ),
        pytest.param(SegmentPart.TIME_INDEX, lambda was: bytes(len(was)), id="times of zero"),
        pytest.param(
            SegmentPart.TIME_INDEX, lambda was: was[:-5] + bytes([was[-5] ^ 1]) + was[-4:], id="end"
        ),
        pytest.param(SegmentPart.TXN_INDEX, lambda was: bytes(len(was)), id="no transaction"),
        pytest.param(
            SegmentPart.TXN_INDEX, lambda was: was[:9] + bytes([was[9] ^ 1]) + was[10:], id="whose"
        ),
        pytest.param(SegmentPart.PRODUCER_SNAPSHOT, lambda was: bytes(len(was)), id="no snapshot"),
        pytest.param(
            SegmentPart.PRODUCER_SNAPSHOT, lambda was: was[:-1] + b"\xff", id="snapshot's CRC"
        ),
        pytest.param(SegmentPart.LEADER_EPOCHS, lambda was: b"x" * len(was), id="no epochs"),
    ],
)
def test_index_when_it_leads_astray_then_it_is_told(
    place: TierPlace, two: Stored, part: SegmentPart, change: Callable[[bytes], bytes]
) -> None:
    """An index that leads to wrong places is a finding, and no record counts as lost."""
    two.replace_part(part, change(two.part(part)))
    assert verify(place).is_fine, "lengths are right"
    deep = verify(place, DEEP)
    assert [(code, where) for code, where, _ in told(deep)] == [("TIER-INDEX-WRONG", part.value)]
    assert not deep.lost


def test_epochs_when_the_part_is_another_history_then_it_is_told(
    place: TierPlace, two: Stored
) -> None:
    """A sound epoch checkpoint of another history is a finding."""
    two.replace_part(SegmentPart.LEADER_EPOCHS, b"0\n1\n5 0\n")
    found = told(verify(place, DEEP))
    assert [(code, part) for code, part, _ in found] == [("TIER-EPOCH-ORDER", "leaderEpoch")]


def test_transaction_index_when_it_is_left_out_then_it_is_told(
    place: TierPlace, two: Stored
) -> None:
    """A missing transaction index is a finding, as committed readers would get aborted records."""
    two.forget_sums()
    two.say(segmentIndexes__transaction=None)
    body = two.get(INDEXES)
    two.put(INDEXES, body[:-34])
    assert verify(place).is_fine, "nothing says that there ought to be one"
    found = told(verify(place, DEEP))
    assert [(code, part) for code, part, _ in found] == [("TIER-INDEX-WRONG", "transaction")]


def test_indexes_when_their_object_is_cut_then_its_length_is_told_once(
    place: TierPlace, one: Stored
) -> None:
    """A cut index object is one finding for its length and not one for each index."""
    one.put(INDEXES, one.get(INDEXES)[:-1])
    one.forget_sums()
    codes = [(code, part) for code, part, _ in told(verify(place, DEEP))]
    assert codes.count(("TIER-OBJECT-LENGTH", "indexes")) == 1
