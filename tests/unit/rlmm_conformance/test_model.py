"""The literal model, called directly, for cases that the corpus does not have."""

from __future__ import annotations

import pytest

from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from rlmm_conformance.answers import ErrorKind
from rlmm_conformance.model import CacheModel, ModelFailure, StoreModel
from rlmm_conformance.rules import ConformanceRule
from rlmm_conformance.steps import SegmentFields, UpdateFields

FINISHED = SegmentState.COPY_SEGMENT_FINISHED
INT64_MAX = 2**63 - 1


def copy(
    cache: CacheModel,
    label: str,
    start: int,
    end: int,
    epochs: tuple[tuple[int, int], ...] | None = None,
    *,
    txn_empty: bool = False,
) -> None:
    listed = ((0, start),) if epochs is None else epochs
    assert cache.add(SegmentFields(label, start, end, listed, txn_index_empty=txn_empty))
    assert cache.update(UpdateFields(label, FINISHED)) == "applied"


@pytest.mark.parametrize(
    ("end", "epochs", "found_at"),
    [(100, ((0, 0), (1, 200)), 150), (INT64_MAX, ((0, 0),), INT64_MAX)],
    ids=["comes-back-to-itself", "largest-offset"],
)
def test_next_txn_when_the_walk_cannot_go_on_finds_nothing(
    end: int, epochs: tuple[tuple[int, int], ...], found_at: int
) -> None:
    """The walk ends at the largest offset, and where an epoch's end lies past its segment's."""
    cache = CacheModel()
    copy(cache, "a", 0, end, epochs, txn_empty=True)
    assert cache.get(0, found_at) == "a"
    assert cache.next_txn(0, 50) is None


def test_epoch_end_when_below_the_least_offset_wraps_as_in_java() -> None:
    """Java's subtraction wraps, so such an epoch has the largest end there is."""
    cache = CacheModel()
    copy(cache, "a", 0, 9, ((0, 0), (1, -(2**63))))
    assert cache.highest(0) == INT64_MAX


def test_cover_lookup_when_several_cover_answers_the_one_finished_last() -> None:
    """A repeated finish counts as the newest, also here."""
    cache = CacheModel(frozenset({ConformanceRule.COVER_LOOKUP}), initialized=True)
    for label in ("a", "b"):
        copy(cache, label, 0, 200)
    copy(cache, "short", 0, 100)
    assert cache.get(0, 150) == "b"
    cache.update(UpdateFields("a", FINISHED))
    cache.update(UpdateFields("short", FINISHED))
    assert cache.get(0, 50) == "short"
    assert cache.get(0, 150) == "a"


def test_cover_lookup_when_the_segment_does_not_list_the_epoch_finds_nothing() -> None:
    """The caller's epoch decides, never the offsets alone."""
    cache = CacheModel(frozenset({ConformanceRule.COVER_LOOKUP}))
    copy(cache, "a", 0, 200, ((0, 0), (2, 100)))
    assert cache.get(1, 50) is None
    assert cache.get(0, 150) is None
    assert cache.get(2, 50) is None


def test_cover_lookup_when_the_segment_is_being_deleted_finds_nothing() -> None:
    """A look-up answers from finished segments only."""
    cache = CacheModel(frozenset({ConformanceRule.COVER_LOOKUP}))
    copy(cache, "a", 0, 200)
    copy(cache, "b", 0, 100)
    cache.update(UpdateFields("a", SegmentState.DELETE_SEGMENT_STARTED))
    assert cache.get(0, 150) is None


def test_store_when_it_holds_all_shows_everything_after_load() -> None:
    """Events from before the load are there at once, and readiness starts anew."""
    store = StoreModel(frozenset({ConformanceRule.SHARD_HOLDS_ALL}))
    assert store.add("tp", SegmentFields("a", 0, 9, ((0, 0),))) == "applied"
    assert store.queried("tp") == ModelFailure(ErrorKind.NOT_FOUND)
    store.load("tp")
    assert store.queried("tp") == ModelFailure(ErrorKind.NOT_READY)
    store.mark_initialized("tp")
    store.clear("tp")
    store.load("tp")
    assert not store.is_ready("tp")
    store.mark_initialized("tp")
    cache = store.queried("tp")
    assert isinstance(cache, CacheModel)
    assert cache.list_all() == ["a"]


@pytest.mark.parametrize(
    "rules", [frozenset(), frozenset({ConformanceRule.SHARD_HOLDS_ALL})], ids=repr
)
def test_store_when_deletion_is_finished_drops_all(rules: frozenset[ConformanceRule]) -> None:
    """A finished deletion empties and unloads the partition, whatever the rules."""
    store = StoreModel(rules)
    store.load("tp")
    store.add("tp", SegmentFields("a", 0, 9, ((0, 0),)))
    store.partition_delete("tp", PartitionDeleteState.DELETE_PARTITION_FINISHED)
    assert store.partition_state("tp") is None
    assert store.mark_initialized("tp") == ModelFailure(ErrorKind.NULL_POINTER)
    store.load("tp")
    store.mark_initialized("tp")
    cache = store.queried("tp")
    assert isinstance(cache, CacheModel)
    assert not cache.list_all()
