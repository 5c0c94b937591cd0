"""Orphans deleted, each after another look at its proof, and waves of units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import ConfigError, EngineUnfit, RlmmError, StoreAbsent, StoreUnavailable
from rlmm.inspection.cluster_facts import TopicFacts
from rlmm.metadata.ids import Uuid
from spark_tiering.execution.in_process import InProcess
from spark_tiering.execution.protocol import UnitLost
from spark_tiering.layout.object_names import ObjectKind
from spark_tiering.maintenance.audit import orphan_deletion
from spark_tiering.maintenance.audit.object_set_verdict import AuditVerdict, OrphanProof
from spark_tiering.maintenance.audit.orphan_deletion import OrphanFate
from spark_tiering.maintenance.audit.store_shards import OBJECTS, raise_fault, run_waves
from spark_tiering.maintenance.audit.unknown_sets import format_head, format_loose, read_list
from tests.support.builders import tp
from tests.support.cli.metadata_history import START_MS
from tests.support.tier.audited_tiers import (
    CF,
    CS,
    DF,
    FINISHED,
    GONE,
    NOW_MS,
    ORDERS,
    AuditedTier,
    segment_of,
    told_cluster,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


@dataclass
class Done:
    number: int
    fault: tuple[str, str] | None = None


class Counting(InProcess):
    def __init__(self, lost: int = -1) -> None:
        super().__init__()
        self.waves: list[int] = []
        self._lost = lost

    def run_units(
        self,
        units: Sequence[Any],
        fn: Callable[[Any], Any],
        on_result: Callable[[Any], None] | None = None,
    ) -> list[Any]:
        self.waves.append(len(units))
        if self._lost in units and on_result is not None:
            on_result(UnitLost(0, "its worker died"))
        return super().run_units(units, fn, on_result)


def units(count: int, size: int, made: list[int] | None = None) -> Iterator[tuple[int, int]]:
    for number in range(count):
        if made is not None:
            made.append(number)
        yield number, size


def test_waves_when_units_are_many_hold_a_bounded_number_of_objects() -> None:
    """The units of a wave are made when it begins, so that a bounded number is held."""
    engine = Counting()
    heard: list[int] = []
    made: list[int] = []

    def hear(done: Done) -> None:
        heard.append(done.number)
        assert len(made) <= len(heard) + 4

    assert run_waves(engine, units(10, OBJECTS // 4, made), Done, hear, lambda: "") == ""
    assert engine.waves == [4, 4, 2]
    assert heard == list(range(10))


def test_waves_when_stopped_end_between_two_of_them() -> None:
    """Waves stop between two waves and report the reason."""
    done: list[Done] = []
    stop = run_waves(
        Counting(), units(10, OBJECTS), Done, done.append, lambda: "SIGTERM" if done[1:] else ""
    )
    assert (stop, [one.number for one in done]) == ("SIGTERM", [0, 1])


def test_waves_when_a_unit_is_lost_or_could_not_look_raise_what_kept_it() -> None:
    """A lost or failed unit raises its reason: nothing can be judged without it."""
    with pytest.raises(EngineUnfit, match="its worker died"):
        run_waves(Counting(lost=1), units(3, OBJECTS), Done, lambda _: None, lambda: "")
    with pytest.raises(StoreAbsent, match="no bucket"):
        run_waves(
            Counting(), units(1, 1), lambda one: Done(one, ("store-absent", "no bucket")),
            lambda _: None, lambda: "",
        )  # fmt: skip


@pytest.mark.parametrize(
    ("code", "kind"),
    [("config", ConfigError), ("store-unavailable", StoreUnavailable), ("?", StoreUnavailable)],
)  # fmt: skip
def test_fault_of_a_unit_raises_the_error_of_its_code(code: str, kind: type[RlmmError]) -> None:
    """A failed unit raises the error of its code, or a general one."""
    with pytest.raises(kind, match="why"):
        raise_fault(code, "why")


LOG, INDEXES, MANIFEST = ObjectKind


@pytest.fixture
def tier() -> Iterator[AuditedTier]:
    cluster = told_cluster(ORDERS, log_start=1_000, local_start=1_100)
    with AuditedTier(cluster=cluster) as tier:
        tier.bring(segment_of(1, 0, 99), DF)
        tier.put(segment_of(2, 100, 199))
        tier.bring(segment_of(3, 1_000, 1_099), CF)
        yield tier


def fates(tier: AuditedTier, **options: object) -> list[OrphanFate]:
    done = tier.delete(**options)
    return [one.fate for one in sorted(done.receipts, key=lambda one: one.orphan.start_offset)]


def test_f119_orphans_when_deleted_go_and_nothing_else_does(tier: AuditedTier) -> None:
    """A dry run deletes nothing, the deletion exactly the orphans, and the next audit is clean."""
    kept = {key for key in tier.store.objects if "00000000000000001000" in key}
    assert tier.audit().overall is AuditVerdict.DIRTY
    before = dict(tier.store.objects)
    assert fates(tier, is_dry=True) == [OrphanFate.WOULD_GO] * 2
    assert tier.store.objects == before
    assert not tier.delete(is_dry=True).is_fine
    done = tier.delete()
    assert done.is_fine
    assert [one.fate for one in done.receipts] == [OrphanFate.DELETED] * 2
    assert set(tier.store.objects) == kept
    assert len(kept) == 3
    text = "\n".join(done.lines())
    assert all(one.orphan.main in text for one in done.receipts)
    assert tier.audit().overall is AuditVerdict.CLEAN


def test_report_when_its_orphans_are_deleted_is_fine_if_that_is_all(tier: AuditedTier) -> None:
    """A deletion within its limit leaves the rest, and a report is fine when nothing is left."""
    report = tier.audit()
    assert not report.is_fine
    report.deletions = tier.delete(most=1)
    assert not report.is_fine
    done = report.deletions
    assert (len(done.receipts), done.left, done.is_fine) == (1, 1, False)
    assert "1 are left: --max-delete" in "\n".join(done.lines())
    report.deletions = tier.delete()
    assert report.is_fine
    tier.put(segment_of(9, 5_000, 5_099))
    other = tier.audit()
    other.deletions = tier.delete()
    assert not other.is_fine


def test_f119_each_batch_reads_anew(tier: AuditedTier, monkeypatch: pytest.MonkeyPatch) -> None:
    """The deletion reads the metadata again before each small batch."""
    monkeypatch.setattr(orphan_deletion, "BATCH", 1)
    tier.audit()
    tier.orphans.sort(key=lambda one: one.start_offset)

    def before(name: str, key: str) -> None:
        if name == "delete" and "0000000000-" in key:
            tier.store.before = lambda name, key: None
            tier.say(segment_of(2, 100, 199))

    tier.store.before = before
    assert fates(tier) == [OrphanFate.DELETED, OrphanFate.KEPT]


@pytest.mark.parametrize("case", ["log start", "partition", "topic", "deletion"])
def test_f119_orphan_when_its_proof_fails_by_now_is_kept(tier: AuditedTier, case: str) -> None:
    """The deletion keeps an orphan whose proof no longer holds."""
    assert tier.cluster is not None
    tier.end_partition(FINISHED, tp("ended", 0))
    tier.put(segment_of(4, partition=tp("ended", 0)))
    tier.bring(segment_of(5, partition=GONE), DF, kinds=())
    tier.put(segment_of(6, partition=GONE))
    tier.bring(segment_of(7, 2_000, 2_099), DF)
    tier.audit()
    proofs = {
        "log start": OrphanProof.BELOW_LOG_START,
        "partition": OrphanProof.PARTITION_DELETED,
        "topic": OrphanProof.TOPIC_DELETED,
        "deletion": OrphanProof.SEGMENT_DELETED,
    }
    tier.orphans = [one for one in tier.orphans if one.proof is proofs[case]][:1]
    assert fates(tier, is_dry=True) == [OrphanFate.WOULD_GO]
    if case == "log start":
        tier.cluster.ends = {}
    elif case == "topic":
        tier.cluster.topics_there = {"gone": TopicFacts("gone", GONE.topic_id, {})}
    elif case == "partition":
        other = tier.orphans[0].partition
        tier.orphans = [tier.orphans[0]._replace(partition=tp("other", other.partition))]
    else:
        tier.orphans = [tier.orphans[0]._replace(uuid=Uuid.of(0, 99))]
    before = dict(tier.store.objects)
    (fate,) = fates(tier)
    assert fate is OrphanFate.KEPT
    assert tier.store.objects == before


@pytest.mark.parametrize(
    ("kinds", "modified_ms"), [((LOG,), NOW_MS), ((INDEXES,), START_MS), ((MANIFEST,), NOW_MS)]
)
def test_f119_orphan_changed(
    tier: AuditedTier, kinds: tuple[ObjectKind, ...], modified_ms: int
) -> None:
    """An orphan with a young object, or one that was not there before, is kept."""
    tier.store.objects.clear()
    tier.put(segment_of(1, 0, 99), kinds=(LOG,))
    tier.audit()
    tier.put(segment_of(1, 0, 99), kinds=kinds, modified_ms=modified_ms)
    assert fates(tier) == [OrphanFate.KEPT]


def test_f118_orphan_when_somebody_has_deleted_it_is_success(tier: AuditedTier) -> None:
    """An orphan that another process deletes wholly or partly, at any moment, is a success."""
    tier.audit()
    tier.remove(segment_of(1, 0, 99))
    tier.remove(segment_of(2, 100, 199), LOG, INDEXES)
    assert fates(tier) == [OrphanFate.GONE, OrphanFate.DELETED]
    assert tier.delete().is_fine
    assert [one.fate for one in tier.delete().receipts] == [OrphanFate.GONE] * 2


def test_orphans_when_their_proof_is_not_one_of_those_named_are_kept(tier: AuditedTier) -> None:
    """Orphans of a proof that is not allowed are kept: another cluster may share the bucket."""
    tier.put(segment_of(4, partition=GONE))
    tier.audit()
    assert OrphanProof.TOPIC_UNKNOWN in {one.proof for one in tier.orphans}
    done = tier.delete()
    kept = [one for one in done.receipts if one.fate is OrphanFate.KEPT]
    assert [one.orphan.proof for one in kept] == [OrphanProof.TOPIC_UNKNOWN]
    assert "--proof" in kept[0].detail
    assert fates(tier, proofs=(OrphanProof.TOPIC_UNKNOWN,)).count(OrphanFate.DELETED) == 1


def test_deletion_when_the_store_fails_is_told_and_the_others_go_on(tier: AuditedTier) -> None:
    """A failed deletion is reported, the others go on, and a repeat is possible."""
    tier.audit()

    def away(name: str, key: str) -> None:
        if name == "delete" and "0000000000-" in key and key.endswith(".log"):
            raise StoreUnavailable("the store is away")

    tier.store.before = away
    assert fates(tier) == [OrphanFate.FAILED, OrphanFate.DELETED]
    tier.store.before = lambda name, key: None
    tier.audit()
    assert fates(tier) == [OrphanFate.DELETED]


def test_stopped_deletion_has_receipts(tier: AuditedTier, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stopped deletion ends between two batches and reports its progress."""
    monkeypatch.setattr(orphan_deletion, "BATCH", 1)
    tier.audit()
    said = iter(["", "SIGTERM"])
    done = tier.delete(why_stop=lambda: next(said))
    assert [one.fate for one in done.receipts] == [OrphanFate.DELETED]
    assert (done.stopped, done.is_fine) == ("SIGTERM", False)


def test_list_of_orphans_when_it_is_none_is_refused_with_its_line(tier: AuditedTier) -> None:
    """A bad list of orphans is refused in one line with the line number."""
    tier.audit()
    head, good = format_head("/nowhere", 1), format_loose(tier.orphans[0])
    unproven = format_loose(tier.orphans[0]._replace(proof=None))
    cases = {
        "this is no list of orphans": [],
        "no list of orphans": ["{}\n"],
        "version 9": [head.replace(":1,", ":9,")],
        "not of /nowhere": [format_head("/elsewhere", 1)],
        "line 3: this is no orphan": [head, good, "[]\n"],
        "line 2: this is no orphan": [head, good.replace('"start":', '"begin":')],
        "line 2: this is no orphan of a list": [head, good.replace("log", "l/g")],
        "line 2: it is orphan, and only": [head, unproven],
        "line 2: the prefix 'x/'": [head, good.replace("tier/", "x/")],
        "9000 bytes": [head, "x" * 9_000],
    }
    for text, lines in cases.items():
        with pytest.raises(ConfigError, match=text) as caught:
            list(read_list(lines, "list", "/nowhere", ("tier/",)))
        assert "\n" not in str(caught.value)


def test_f119_orphan_when_the_metadata_knows_it_by_now_is_kept(tier: AuditedTier) -> None:
    """An orphan that the metadata knows by now is kept: the deletion reads it again."""
    tier.audit()
    tier.say(segment_of(1, 0, 99))
    tier.bring(segment_of(2, 100, 199), CS, kinds=())
    done = tier.delete()
    assert [(one.fate, one.detail) for one in done.receipts] == [
        (OrphanFate.KEPT, "the metadata knows it now")
    ] * 2
    assert sum("0000000100-" in key for key in tier.store.objects) == 3
