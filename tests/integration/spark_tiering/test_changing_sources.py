"""Sources that change, vanish or fail while a segment is copied from them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from spark_tiering.copy_plan.inputs import StoredObjects
from spark_tiering.executor.object_check import look
from spark_tiering.executor.segment_inspection import inspect_task
from spark_tiering.executor.tasks import CopyOptions, InspectTask, UnitOutcome
from spark_tiering.stores.local import LocalStore
from spark_tiering.stores.local_settings import LocalSettings
from tests.support.partitions.segments import MemoryFiles, changed, example_partition
from tests.support.stores.failing_stores import FailingFiles, SourceTrouble
from tests.support.tier.copy_tasks import (
    ORDERS,
    PLAIN,
    SECOND,
    ZSTD,
    assert_equals_source,
    copy_task,
    report_on,
    run,
)

if TYPE_CHECKING:
    from pathlib import Path

    from spark_tiering.segments.partition_files import SourceFileFacts

EXAMPLE = example_partition()
LOG = SECOND.file(".log")


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(LocalSettings(tmp_path / "objects", is_synced=False))


@pytest.mark.parametrize("options", [PLAIN, ZSTD], ids=["plain", "zstd"])
@pytest.mark.parametrize(
    ("trouble", "outcome"),
    [
        (SourceTrouble.GONE, UnitOutcome.SOURCE_GONE),
        (SourceTrouble.CUT, UnitOutcome.SOURCE_CHANGED),
        (SourceTrouble.TOUCHED, UnitOutcome.SOURCE_CHANGED),
        (SourceTrouble.AWAY, UnitOutcome.SOURCE_FAILED),
    ],
)
def test_f120_source_when_it_vanishes_or_changes_at_any_moment_then_no_manifest_is_left(
    tmp_path: Path, options: CopyOptions, trouble: SourceTrouble, outcome: UnitOutcome
) -> None:
    """A source that vanishes or changes at any call fails the unit without a manifest."""
    healthy = FailingFiles(EXAMPLE, LOG, {})
    task = copy_task(healthy, options=options, planned_from=EXAMPLE)
    run(task, LocalStore(LocalSettings(tmp_path / "healthy", is_synced=False)))
    assert healthy.calls > 20
    # What befalls the first call is not noticed: it is what the unit begins with.
    for at in range(1, healthy.calls):
        store = LocalStore(LocalSettings(tmp_path / str(at), is_synced=False))
        failing = replace(task, files=FailingFiles(EXAMPLE, LOG, {at: trouble}))
        result = run(failing, store)
        assert result.outcome is outcome, (at, result)
        found = look(store, task.segment, task.prefix)
        assert found in (StoredObjects.NONE, StoredObjects.PARTIAL)


@pytest.mark.parametrize("options", [PLAIN, ZSTD], ids=["plain", "zstd"])
def test_f120_unseen_change_is_never_copied(tmp_path: Path, options: CopyOptions) -> None:
    """A bit that changes between inspection and upload ends the unit: no mixture is copied."""
    healthy = FailingFiles(EXAMPLE, LOG, {})
    task = copy_task(healthy, options=options, planned_from=EXAMPLE)
    run(task, LocalStore(LocalSettings(tmp_path / "healthy", is_synced=False)))
    outcomes = []
    for at in range(healthy.calls):
        store = LocalStore(LocalSettings(tmp_path / str(at), is_synced=False))
        files = FailingFiles(EXAMPLE, LOG, {at: SourceTrouble.OTHER})
        result = run(replace(task, files=files), store)
        outcomes.append(result.outcome)
        found = look(store, task.segment, task.prefix)
        assert (found is StoredObjects.WHOLE) == result.outcome.is_done
        if result.outcome.is_done:
            assert_equals_source(task, store, EXAMPLE)
    assert set(outcomes) == {UnitOutcome.BLOCKED, UnitOutcome.SOURCE_CHANGED, UnitOutcome.COPIED}


def test_file_beside_the_log_when_changed_then_the_unit_is_repeated(store: LocalStore) -> None:
    """A companion file that changes after its inspection leaves the copy open for a repeat."""

    class Rewritten(MemoryFiles):
        looks = 0

        def facts(self) -> dict[str, SourceFileFacts]:
            self.looks += 1
            name = SECOND.file(".index")
            found = super().facts()
            if self.looks > 1:
                found[name] = found[name]._replace(modified_ms=1)
            return found

    result = run(copy_task(Rewritten(EXAMPLE.contents), planned_from=EXAMPLE), store)
    assert result.outcome is UnitOutcome.SOURCE_FAILED
    assert result.outcome.is_retriable
    assert ".index" in result.detail
    assert not list(store.list())


def test_segment_when_it_is_inspected_then_tells_what_its_copy_will_be_planned_with() -> None:
    """An inspection reports the details its copy is planned with, and reasons against it."""
    told = inspect_task(InspectTask(ORDERS, EXAMPLE, SECOND, log_start=0))
    report = report_on(EXAMPLE, SECOND)
    assert told.details is not None
    assert told.details.epochs == report.epochs
    assert told.details.indexes_bytes == 24 + 36 + 148 + 8 + 34
    assert told.details.blockers == ()
    assert told.unit_id == f"orders-{ORDERS.topic_id}/3/00000000000000000120"
    torn = changed(EXAMPLE, log=EXAMPLE.contents[LOG][:-1])
    blocked = inspect_task(InspectTask(ORDERS, torn, SECOND))
    assert blocked.details is not None
    assert "torn" in blocked.details.blockers[0]
    gone = inspect_task(InspectTask(ORDERS, EXAMPLE.without("120.log"), SECOND))
    assert (gone.details, gone.why[:12]) == (None, "log: missing")


def test_segment_without_check_point_when_inspected_then_tells_epochs_by_the_whole_log() -> None:
    """Without a checkpoint file only a log complete from its start proves its epochs."""
    files = changed(EXAMPLE, checkpoint=None)
    told = inspect_task(InspectTask(ORDERS, files, SECOND))
    assert told.details is not None
    assert told.details.epochs == ((4, 120),)
    assert not told.details.blockers
    cut = files.without("00000000000000000000.log")
    blocked = inspect_task(InspectTask(ORDERS, cut, SECOND))
    assert blocked.details is not None
    assert "leaderEpoch: unknown" in " ".join(blocked.details.blockers)
    known = inspect_task(InspectTask(ORDERS, cut, SECOND, log_start=120))
    assert known.details is not None
    assert known.details.epochs == ((4, 120),)
