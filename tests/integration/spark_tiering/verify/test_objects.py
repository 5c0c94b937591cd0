"""Objects of a tier, sound, encrypted, and with each fault: segments 0-119 and 120-250, twice."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from spark_tiering.layout.object_names import ObjectKind
from spark_tiering.maintenance.verify.values import VerifyOptions
from spark_tiering.segments.findings import SegmentPart
from tests.support.stores.encrypted_segments import IDS, KeyFiles
from tests.support.tier.job_folders import ORDERS, PLAIN, ZSTD, TierPlace
from tests.support.tier.verified_tiers import DEEP, stored, told, verify

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from spark_tiering.executor.tasks import CopyOptions
    from tests.support.tier.verified_tiers import Stored

LOG, INDEXES, MANIFEST = ObjectKind.LOG, ObjectKind.INDEXES, ObjectKind.MANIFEST
FIRST = [0, 119]
BATCH = 1171
"""Bytes of a batch of ten records."""


@pytest.mark.parametrize("options", [PLAIN, ZSTD])
@pytest.mark.parametrize("prefix", ["", "tier/"])
def test_sound_tier(tiered: Callable[..., TierPlace], options: CopyOptions, prefix: str) -> None:
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


def test_f121_segment_when_all_its_objects_are_gone_names_each(
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


def test_cut_log_has_another_length_and_lost_offsets(place: TierPlace, one: Stored) -> None:
    """A cut log may lack all its offsets; a full read loses those from the cut batch on."""
    one.put(LOG, one.get(LOG)[: 7 * BATCH + 5])
    assert told(verify(place))[0] == ("TIER-OBJECT-LENGTH", "log", [FIRST])
    deep = verify(place, DEEP)
    assert ("TIER-OBJECT-LENGTH", "log", [[70, 119]]) in told(deep)
    assert dict(deep.lost) == {ORDERS: ((70, 119),)}


@pytest.mark.parametrize("extra", [b"x", bytes(5000)])
def test_log_longer_than_its_manifest(place: TierPlace, one: Stored, extra: bytes) -> None:
    """A log longer than in its manifest loses no offsets, as ranges go by the manifest."""
    one.put(LOG, one.get(LOG) + extra)
    codes = [code for code, _, _ in told(verify(place))]
    assert "TIER-OBJECT-LENGTH" in codes
    assert not verify(place, DEEP).lost


def test_flipped_bit_shows_in_the_sum_and_loses_a_batch(place: TierPlace, one: Stored) -> None:
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


def test_log_when_a_chunk_is_damaged_loses_batches(tiered: Callable[..., TierPlace]) -> None:
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


MALFORMED, MISMATCH = "TIER-MANIFEST-MALFORMED", "TIER-MANIFEST-MISMATCH"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        *((content, MALFORMED) for content in
          (b"", b"{}", b"\xff\xfe", b'{"version": "2"}', b"[" * 100_000)),
        *((fields, MISMATCH) for fields in (
            {"endOffset": 118}, {"startOffset": 1}, {"maxTimestampMs": 1}, {"brokerId": "x"},
            {"segmentLeaderEpochs": {"5": 0}},
            {"remoteLogSegmentId__id": "EBESExQVFhcYGRobHB0eHw"},
        )),
    ],
)  # fmt: skip
def test_manifest_when_it_is_unreadable_or_contradicts_the_metadata_then_it_is_told(
    place: TierPlace, one: Stored, change: bytes | dict[str, Any], code: str
) -> None:
    """A manifest is one finding; only one that no broker could read loses the log's offsets."""
    if isinstance(change, bytes):
        one.put(MANIFEST, change)
    else:
        one.say(**{f"remoteLogSegmentMetadata__{name}": value for name, value in change.items()})
    lost = [FIRST] if code == MALFORMED else []
    assert told(verify(place, DEEP)) == [(code, "rsm-manifest", lost)]


def test_manifest_of_another_size_is_not_used(place: TierPlace, one: Stored, two: Stored) -> None:
    """A log is not read by a manifest of another size, although all three objects fit."""
    for kind in ObjectKind:
        one.put(kind, two.get(kind))
    found = told(verify(place, DEEP))
    assert {code for code, _, _ in found} == {"TIER-MANIFEST-MISMATCH"}
    assert ("TIER-MANIFEST-MISMATCH", "rsm-manifest", [FIRST]) in found


def flip(*positions: int) -> Callable[[Stored], None]:
    def damage(one: Stored) -> None:
        for at in positions:
            one.flip(LOG, at)

    return damage


def anothers_batches(one: Stored) -> None:
    body = stored(one.place, 2).get(LOG)
    assert len(body) == one.segment.size_bytes
    moved = [
        (int.from_bytes(body[at : at + 8]) + 1).to_bytes(8) + body[at + 8 : at + BATCH]
        for at in range(0, len(body), BATCH)
    ]
    one.put(LOG, b"".join(moved))


def first_batch_last(one: Stored) -> None:
    body = one.get(LOG)
    one.put(LOG, body[: 11 * BATCH] + body[:BATCH])


def no_transaction_index(one: Stored) -> None:
    one.say(segmentIndexes__transaction=None)
    one.put(INDEXES, one.get(INDEXES)[:-34])


def part(
    part: SegmentPart, change: Callable[[bytes], bytes], code: str = "TIER-INDEX-WRONG"
) -> tuple[Callable[[Stored], None], tuple[str, str, list[list[int]]]]:
    return lambda two: two.replace_part(part, change(two.part(part))), (code, part.value, [])


def flipped(at: int) -> Callable[[bytes], bytes]:
    return lambda was: was[:at] + bytes([was[at] ^ 1]) + was[at:][1:]


OFFSETS, TIMES, TRANSACTIONS = (
    SegmentPart.OFFSET_INDEX, SegmentPart.TIME_INDEX, SegmentPart.TXN_INDEX,
)  # fmt: skip
PRODUCERS, EPOCHS = SegmentPart.PRODUCER_SNAPSHOT, SegmentPart.LEADER_EPOCHS
BROKEN, ZEROS = "TIER-BATCH-DAMAGED", lambda was: bytes(len(was))
OF_THE_FIRST = {
    # An entry of the index is of offset 89, whose batch begins with 80.
    "length of a batch": (flip(5 * BATCH + 8), (BROKEN, "log", [[50, 79]])),
    "two batches": (flip(2 * BATCH + 200, 9 * BATCH + 200), (BROKEN, "log", [[20, 29], [90, 99]])),
    "another's batches": (anothers_batches, ("TIER-START-OFFSET", "log", [[0, 0]])),
    # Offsets that begin anew are no end.
    "first batch last": (first_batch_last, (BROKEN, "log", [[110, 119]])),
}
OF_THE_SECOND = {
    "zeros": part(OFFSETS, ZEROS),
    "swapped": part(OFFSETS, lambda was: was[8:] + was[:8]),
    "off": part(OFFSETS, flipped(7)),
    "times of zero": part(TIMES, ZEROS),
    "end": part(TIMES, flipped(-5)),
    "no transaction": part(TRANSACTIONS, ZEROS),
    "whose": part(TRANSACTIONS, flipped(9)),
    # Committed readers would get aborted records.
    "no transaction index": (no_transaction_index, ("TIER-INDEX-WRONG", "transaction", [])),
    "no snapshot": part(PRODUCERS, ZEROS),
    "snapshot's CRC": part(PRODUCERS, lambda was: was[:-1] + b"\xff"),
    "no epochs": part(EPOCHS, lambda was: b"x" * len(was)),
    "another history": part(EPOCHS, lambda was: b"0\n1\n5 0\n", "TIER-EPOCH-ORDER"),
}


@pytest.mark.parametrize(
    ("number", "damage", "expected"),
    [
        pytest.param(number, *row, id=name)
        for number, rows in enumerate((OF_THE_FIRST, OF_THE_SECOND))
        for name, row in rows.items()
    ],
)
def test_object_when_its_content_is_damaged_then_reading_tells_what_is_lost(
    place: TierPlace,
    number: int,
    damage: Callable[[Stored], None],
    expected: tuple[str, str, list[list[int]]],
) -> None:
    """Damage without checksums is found by reading alone: lost offsets, or a wrong index."""
    damaged = stored(place, number)
    damaged.forget_sums()
    damage(damaged)
    assert verify(place).is_fine, "lengths are right"
    deep = verify(place, DEEP)
    assert told(deep) == [expected]
    lost = tuple((first, last) for first, last in expected[2])
    assert dict(deep.lost) == ({ORDERS: lost} if lost else {})


def test_indexes_when_cut_then_are_one_finding(place: TierPlace, one: Stored) -> None:
    """A cut index object is one finding for its length and not one for each index."""
    one.put(INDEXES, one.get(INDEXES)[:-1])
    one.forget_sums()
    codes = [(code, part) for code, part, _ in told(verify(place, DEEP))]
    assert codes.count(("TIER-OBJECT-LENGTH", "indexes")) == 1


@pytest.fixture
def keys(tmp_path: Path) -> KeyFiles:
    return KeyFiles(tmp_path / "keys")


@pytest.fixture(params=[PLAIN, ZSTD], ids=["plain", "zstd"])
def sealed(tiered: Callable[..., TierPlace], request: pytest.FixtureRequest) -> TierPlace:
    place = tiered(request.param)
    for at in range(4):
        stored(place, at).seal(IDS[at % 2])
    return place


def with_keys(keys: KeyFiles) -> VerifyOptions:
    return replace(DEEP, key_ring=keys.settings)


def test_encrypted_tier_is_judged_without_a_key(sealed: TierPlace, keys: KeyFiles) -> None:
    """Verify judges lengths of encrypted objects without a key, and needs it only to read them."""
    assert verify(sealed).is_fine
    report = verify(sealed, with_keys(keys))
    assert report.is_fine, told(report)
    assert report.work.opened == 4


def test_encrypted_tier_read_without_keys_is_named(sealed: TierPlace, keys: KeyFiles) -> None:
    """Verify reports encrypted objects without a key, and counts no record as lost."""
    report = verify(sealed, DEEP)
    assert {code for code, _, _ in told(report)} == {"TIER-OBJECT-ENCRYPTED"}
    assert report.counts == {"TIER-OBJECT-ENCRYPTED": 4}
    assert (report.work.read_bytes, report.work.opened) == (0, 0)
    assert not report.lost
    assert not report.is_fine
    keys.write({IDS[0]: ""})
    assert verify(sealed, with_keys(keys)).counts == {"TIER-OBJECT-ENCRYPTED": 2}
    keys.write({IDS[0]: IDS[1], IDS[1]: ""})
    assert verify(sealed, with_keys(keys)).counts == {"TIER-KEY-WRONG": 2}


def cut_log(one: Stored) -> None:
    one.put(LOG, one.get(LOG)[: one.manifest.chunks.chunk(2).stored_start + 50])


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        pytest.param(
            lambda one: one.flip(LOG, one.manifest.chunks.chunk(1).stored_start + 40),
            ("TIER-OBJECT-DAMAGED", "log", [[30, 79]]), id="chunk",
        ),
        pytest.param(cut_log, ("TIER-OBJECT-LENGTH", "log", [[60, 119]]), id="whole chunks"),
        pytest.param(
            lambda one: one.say(encryption__aad="AAAA"),
            ("TIER-MANIFEST-MISMATCH", "rsm-manifest", [FIRST]), id="one finding for the aad",
        ),
        pytest.param(
            lambda one: one.flip(INDEXES, 20), ("TIER-OBJECT-DAMAGED", "offset", [FIRST]),
            id="index",
        ),
    ],
)  # fmt: skip
def test_encrypted_object_when_it_is_changed_then_its_offsets_are_told(
    sealed: TierPlace,
    keys: KeyFiles,
    damage: Callable[[Stored], None],
    expected: tuple[str, str, list[list[int]]],
) -> None:
    """Verify names the part of a changed object by its tag, and reads the chunks around it."""
    damage(stored(sealed))
    assert told(verify(sealed, with_keys(keys))) == [expected]
