"""Units where they run, over a store in memory."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import StoreUnavailable
from rlmm.metadata.ids import SegmentId
from rlmm.metadata.segment import SegmentMetadata
from spark_tiering.executor.throttle import UNBOUND, Throttle
from spark_tiering.layout.object_names import ObjectKind
from spark_tiering.maintenance.verify.unit_execution import (
    REFUSALS_MAX,
    carry_out,
    readable_bytes,
    verify_unit,
)
from spark_tiering.maintenance.verify.values import UnitVerdict, VerifyUnit, VerifyWork
from spark_tiering.segment_reading.key_files import KeyRingSettings
from spark_tiering.segments.findings import SegmentFinding, SegmentPart
from spark_tiering.segments.segment_listing import list_segments
from spark_tiering.stores.local_settings import LocalSettings
from tests.support.builders import segment_id
from tests.support.partitions.segments import (
    MemoryFiles,
    content_of,
    inspect_all,
    recorded_partition,
)
from tests.support.stores.memory_store import MemoryStore
from tests.support.stores.tiered_bytes import FORMS, PREFIX, TieredBytes, example, key_ring
from tests.support.tier.copy_tasks import NOWHERE

if TYPE_CHECKING:
    from pathlib import Path


def unit(*segments: SegmentMetadata, **changes: Any) -> VerifyUnit:
    said = VerifyUnit(0, "job", segments, NOWHERE, (PREFIX,), True, None, False, UNBOUND)
    return replace(said, **changes)


def look(store: MemoryStore, *segments: SegmentMetadata, **changes: Any) -> UnitVerdict:
    return carry_out(unit(*segments, **changes), store, key_ring(), Throttle(UNBOUND))


def codes(verdict: UnitVerdict) -> list[str]:
    return [fault.code for one in verdict.found for fault in one.faults]


def tier_of(files: MemoryFiles, form: str) -> list[TieredBytes]:
    store = MemoryStore()
    made = []
    for number, report in enumerate(inspect_all(files)):
        assert not report.blockers
        parts = {SegmentPart.LOG: files.contents[report.segment.file(".log")]}
        for part, content in report.parts.items():
            if part is not SegmentPart.LOG:
                found = content_of(files, part, content)
                assert not isinstance(found, SegmentFinding)
                parts[part] = found
        assert report.segment.next_offset is not None
        segment = SegmentMetadata(
            segment_id(number + 1), report.segment.base_offset, report.segment.next_offset - 1, 1,
            report.max_timestamp_ms, 1, report.epochs, report.size_bytes,
            txn_index_empty=report.txn_index_empty,
        )  # fmt: skip
        made.append(TieredBytes(form, segment, parts, store))
    return made


@pytest.mark.parametrize("form", FORMS)
def test_partition_of_a_broker_when_looked_at_then_nothing_is_found(form: str) -> None:
    """Verify finds nothing in a recorded partition of a 4.3.1 broker with five codecs."""
    made = tier_of(recorded_partition(), form)
    assert len(made) == len(list_segments(recorded_partition().facts())) - 1
    verdict = look(made[0].store, *(one.segment for one in made))
    assert not verdict.found
    assert verdict.work.segments == len(made)
    # Each by itself: nothing is known of what came before.
    for one in made:
        assert not look(one.store, one.segment).found


def test_unit_when_pickled_then_says_nothing_secret_and_runs_elsewhere() -> None:
    """A pickled unit holds settings without secrets, and a worker opens its own client."""
    sent = unit(example("plain").segment, key_ring=KeyRingSettings("/keys/ring.json"))
    assert pickle.loads(pickle.dumps(sent)) == sent


def test_segment_when_its_log_has_a_hole_then_a_topic_may_be_compacted() -> None:
    """A hole in a log is a finding unless the caller says that the topic is compacted."""
    tiered = example("plain")
    log = tiered.log
    cut = replace(tiered.segment, size_bytes=len(log) - 1171)
    holed = TieredBytes(
        "plain", cut, {**tiered.parts, SegmentPart.LOG: log[:1171] + log[2 * 1171 :]}
    )
    verdict = look(holed.store, cut)
    (fault, *_) = verdict.found[0].faults
    assert (fault.code, fault.lost) == ("TIER-BATCH-DAMAGED", ((130, 139),))
    allowed = look(holed.store, cut, allows_holes=True)
    assert "TIER-BATCH-DAMAGED" not in codes(allowed)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"max_timestamp_ms": 1}, "TIER-TIMESTAMP-WRONG"),
        ({"epochs": ((5, 120),)}, "TIER-EPOCH-ORDER"),
        ({"epochs": ((4, 120), (5, 200))}, "TIER-EPOCH-ORDER"),
        ({"last_offset": 260}, "TIER-NEXT-OFFSET"),
        ({"last_offset": 249}, "TIER-NEXT-OFFSET"),
        ({"start_offset": 110}, "TIER-START-OFFSET"),
        ({"txn_index_empty": True}, "TIER-MANIFEST-MISMATCH"),
    ],
)
def test_metadata_that_differs_from_the_log_is_named(changes: dict[str, Any], code: str) -> None:
    """Metadata that differs from log and objects, which agree with each other, is a finding."""
    tiered = example("plain")
    other = replace(tiered.segment, **changes)
    keys = tiered.keys
    tiered.store.objects = {
        key.replace(f"{120:020d}", f"{other.start_offset:020d}"): body
        for key, body in tiered.store.objects.items()
    }
    assert keys
    assert code in codes(look(tiered.store, other))


def test_records_when_metadata_begins_behind_them_then_nothing_is_found() -> None:
    """Records before the metadata's start are no finding: the log start moved."""
    tiered = example("plain")
    found = codes(look(tiered.store, replace(tiered.segment, epochs=((4, 150),))))
    assert found == ["TIER-MANIFEST-MISMATCH"], "which the manifest does not know"


def test_store_when_it_fails_again_and_again_then_the_rest_is_left_alone() -> None:
    """Verify leaves the rest of a store that fails repeatedly alone."""

    def fail(name: str, key: str) -> None:
        raise StoreUnavailable(f"{name} {key}: no answer")

    tiered = example("plain")
    segments = [
        replace(tiered.segment, id=SegmentId(tiered.segment.id.partition, segment_id(n).uuid))
        for n in range(1, 20)
    ]
    tiered.store.before = fail
    verdict = look(tiered.store, *segments)
    assert codes(verdict) == ["TIER-UNREADABLE"] * 19
    assert verdict.work == VerifyWork(requests=REFUSALS_MAX)
    assert "left alone" in verdict.found[-1].faults[0].detail


def test_unit_when_its_store_or_ring_cannot_be_opened_then_says_why(tmp_path: Path) -> None:
    """A unit that cannot open its store or key ring reports why, as no finding."""
    segment = example("plain").segment
    nowhere = LocalSettings(tmp_path / "no/such")
    assert "no/such" in verify_unit(unit(segment, store=nowhere)).failed
    here = LocalSettings(tmp_path)
    ring = KeyRingSettings(str(tmp_path / "ring.json"))
    assert "ring.json" in verify_unit(unit(segment, store=here, key_ring=ring)).failed


@pytest.mark.parametrize("form", FORMS)
def test_readable_bytes_of_an_object_are_those_of_whole_chunks(form: str) -> None:
    """Readable are whole chunks, or all bytes of an uncompressed log."""
    tiered = example(form)
    manifest = tiered.open().manifest
    stored = len(tiered.store.objects[tiered.keys[ObjectKind.LOG]])
    assert readable_bytes(manifest, stored) == len(tiered.log)
    assert readable_bytes(manifest, stored + 5) == len(tiered.log)
    one_less = readable_bytes(manifest, stored - 1)
    assert one_less == (len(tiered.log) - 1 if form == "plain" else 3 * 4096)
    assert readable_bytes(manifest, 0) == 0


def test_transaction_when_it_began_in_the_segment_before_is_known_by_its_snapshot() -> None:
    """An earlier transaction is known from the producer snapshot alone."""
    before, one = tier_of(recorded_partition(), "plain")
    entries = one.parts[SegmentPart.TXN_INDEX]
    firsts = [int.from_bytes(entries[at + 10 : at + 18]) for at in range(0, len(entries), 34)]
    assert max(firsts) < one.segment.start_offset
    parts = dict(one.parts)
    del parts[SegmentPart.TXN_INDEX]
    store = MemoryStore()
    segment = replace(one.segment, txn_index_empty=True)
    TieredBytes("plain", before.segment, before.parts, store)
    TieredBytes("plain", segment, parts, store)
    assert codes(look(store, before.segment, segment)) == ["TIER-INDEX-WRONG"]
    assert not look(store, segment).found


def test_segment_when_the_one_before_it_is_of_elsewhere_is_judged_by_itself() -> None:
    """A segment whose predecessor is on another line of leaders is judged by itself."""
    other, _ = tier_of(recorded_partition(), "plain")
    one = example("plain")
    TieredBytes("plain", one.segment, one.parts, other.store)
    assert other.segment.last_offset + 1 != one.segment.start_offset
    assert not look(other.store, other.segment, one.segment).found
