"""`rlmm tier expire` for archives: deletions, continued deletions and refusals."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from rlmm.base.clock import SYSTEM_CLOCK
from rlmm.findings import expire_findings as kinds
from rlmm.metadata.events import PartitionDelete
from rlmm.metadata.ids import Uuid
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from spark_tiering.layout.object_names import object_keys
from spark_tiering.maintenance.expire.decision import ExpireOptions
from spark_tiering.maintenance.expire.execution import ExpireFate
from spark_tiering.maintenance.expire.job import expire
from spark_tiering.maintenance.tier import CareRequest
from spark_tiering.maintenance.wiring import open_tier
from spark_tiering.stores.content import BytesContent
from spark_tiering.stores.opening import process_store
from tests.support.cli.expire_command import (
    SIZES,
    WAIT_S,
    codes,
    document,
    expired,
    moved,
    opened,
    run,
    writing,
)
from tests.support.cli.tier_command import Command, trees
from tests.support.tier.job_folders import LATER_MS, ORDERS, PAYMENTS, PLACES, TierPlace
from tests.support.tier.simulated_expiry import lives_in

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("bare_environment")
CS, CF, DS, DF = SegmentState
MARKED, STARTED, FINISHED = PartitionDeleteState


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Command:
    command = Command(TierPlace(tmp_path_factory.mktemp("copied")))
    assert command.place.run().is_fine
    return command


def test_dry_run_when_a_limit_is_given_then_shows_and_changes_nothing(tier: Command) -> None:
    """The dry run shows bytes, reasons and new log starts, and makes neither folder nor job."""
    before = trees(tier.place)
    result = expired(tier, "--retention-bytes", str(SIZES[1]))
    lines = result.stdout.splitlines()
    assert lines[0].startswith("dry run: 2 segments, 27.4 KiB would go")
    assert "orders-3: 1 segment, 13.7 KiB (1 by retention-bytes); start 0 -> 120" in lines[1]
    assert trees(tier.place) == before
    told = document(expired(tier, "--retention-bytes", str(SIZES[1]), "--output", "json"))
    assert (told["format"], told["version"], told["isApplied"]) == ("rlmm-tier-expire", 1, False)
    assert told["totals"]["would-go"] == {"segments": 2, "sizeBytes": 2 * SIZES[0]}
    assert [one["startAfter"] for one in told["partitions"]] == [120, 120]
    assert {one["reason"] for one in told["segments"]} == {"retention-bytes"}
    assert trees(tier.place) == before


def test_run_when_applied_then_deletes_what_was_shown(tier: Command, tmp_path: Path) -> None:
    """The run deletes exactly the shown objects and metadata, and keeps a report."""
    kept = {key for key in tier.place.objects() if "-payments" not in key and "0120-" in key}
    report = tmp_path / "expired.json"
    more = ["--retention-bytes", str(SIZES[1]), "--topic", "orders", "--apply"]
    result = expired(tier, *more, "--report", str(report))
    assert "1 segment, 13.7 KiB deleted, of 1 segment" in result.stdout
    assert [(one.id.partition, one.start_offset) for one in tier.place.check()] == [
        (ORDERS, 120), (PAYMENTS, 0), (PAYMENTS, 120),
    ]  # fmt: skip
    assert kept <= set(tier.place.objects())
    assert len(tier.place.objects()) == 9
    assert json.loads(report.read_text())["totals"]["deleted"]["segments"] == 1
    again = expired(tier, *more)
    assert "of 0 segments" in again.stdout


LIMITS = [
    (["--retention-bytes", str(sum(SIZES))], [0, 0]),
    (["--retention-bytes", str(sum(SIZES) - SIZES[0] + 1)], [0, 0]),
    (["--retention-bytes", str(SIZES[1])], [120, 120]),
    (["--retention-bytes", "14KiB"], [120, 120]),
    (["--retention-bytes", "0"], [None, None]),
    (["--retention-ms", "-1"], [0, 0]),
    (["--retention-ms", "1d"], [None, None]),
    (["--retention-ms", "86400000"], [None, None]),
    (["--retention-ms", "36500d"], [0, 0]),
    (["--log-start-offset", "orders-3@120"], [120, 0]),
    (["--log-start-offset", "orders-3@119"], [0, 0]),
    (["--log-start-offset", "orders-3@251", "--log-start-offset", "payments-2@130"], [None, 120]),
]


@pytest.mark.parametrize(("flags", "starts"), LIMITS, ids=lambda value: " ".join(map(str, value)))
def test_f117_strict_limits(copied: Command, flags: list[str], starts: list[int | None]) -> None:
    """A segment that ends exactly at a limit, or lies partly beyond it, stays."""
    told = document(expired(copied, *flags, "--output", "json"))
    assert [one["startAfter"] for one in told["partitions"]] == starts


def test_f115_open_copy_when_abandoned_then_passes_every_deletion_state(tier: Command) -> None:
    """An abandoned copy goes through CS, DS, DF: without DS it would return as a ghost."""
    lone = opened(tier.place, Uuid.of(7, 1), 251, 300)
    store = process_store(tier.place.store_settings)
    keys = object_keys(lone.id, lone.start_offset)
    store.put(next(iter(keys.values())), BytesContent(b"half of it"))
    young = opened(tier.place, Uuid.of(7, 2), 301, 400, at_ms=SYSTEM_CLOCK.now_ms())
    result = expired(tier, "--end-open-copies", "--apply", "--output", "json")
    told = document(result)
    assert [(one["id"], one["reason"]) for one in told["segments"]] == [
        (str(lone.id.uuid), "open-copy")
    ]
    assert kinds.EXPIRE_OPEN.code in codes(told)
    lives = lives_in(tier.place.archive, PLACES)
    assert (lives[lone.id], lives[young.id]) == ([CS, DS, DF], [CS])
    assert len(tier.place.objects()) == 12


@pytest.mark.parametrize("state", [MARKED, STARTED])
def test_f116_deletion_of_a_partition_when_it_was_left_then_is_listed_and_brought_to_its_end(
    tier: Command, state: PartitionDeleteState
) -> None:
    """An abandoned partition deletion is listed, completed, and not reported again."""
    first, *_ = tier.place.segments()
    moved(tier.place, first, DS)
    with writing(tier.place) as metadata:
        for each in (MARKED, STARTED)[: state.value + 1]:
            metadata.put_partition_delete(PartitionDelete(ORDERS, 4, 5, each), WAIT_S)
    shown = expired(tier, "--output", "json")
    (finding,) = document(shown)["findings"]
    assert finding["code"] == "TIER-EXPIRE-DELETION"
    fields = finding["fields"]
    assert (fields["segments"], fields["size_bytes"]) == (2, sum(SIZES))
    assert (fields["topic_id"], fields["state"]) == (str(ORDERS.topic_id), state.name)
    assert fields["last_event_ms"] > 10**12
    half = expired(tier, "--apply", "--max-delete", "1", "--output", "json", code=1)
    (finding,) = document(half)["findings"]
    assert (finding["fields"]["segments"], finding["fields"]["size_bytes"]) == (1, SIZES[1])
    whole = expired(tier, "--apply", "--output", "json")
    assert document(whole)["findings"] == []
    assert {one.id.partition for one in tier.place.segments()} == {PAYMENTS}
    with writing(tier.place) as metadata:
        (image,) = metadata.image([ORDERS], {}, WAIT_S).partitions
    assert (image.segments, image.delete) == ((), FINISHED)
    again = expired(tier, "--apply", "--output", "json")
    assert [one["topic"] for one in document(again)["partitions"]] == ["payments"]


REFUSED = [
    (["--log-start-offset", "earliest"], "--log-start-offset earliest asks the cluster"),
    (["--deleted-topics"], "--deleted-topics asks the cluster"),
    (["--log-start-offset", "orders-9@5"], "orders-9, of which the metadata knows nothing"),
    (["--log-start-offset", "orders@5"], "'orders' names no partition"),
    (["--log-start-offset", f"{ORDERS.topic_id}:3@5"], "names a partition by its topic"),
    (["--retention-ms", "-2"], "-2 is no limit"),
    (["--retention-bytes", "many"], "'many' is no size"),
    (["--max-delete", "0"], "0 is not in the range"),
]


@pytest.mark.parametrize(("flags", "why"), REFUSED, ids=[" ".join(flags) for flags, _ in REFUSED])
def test_wrong_flags_are_refused_in_one_line(copied: Command, flags: list[str], why: str) -> None:
    """Wrong flags are refused in one line, and nothing is touched."""
    before = trees(copied.place)
    result = expired(copied, *flags, "--apply", code=2)
    assert why in result.stderr
    assert "Traceback" not in result.output
    assert trees(copied.place) == before


@pytest.mark.parametrize("more", [(), ("--apply",)])
def test_store_that_is_absent_is_not_made(tier: Command, more: tuple[str, ...]) -> None:
    """A missing store is refused and not created: it may be mistyped."""
    nowhere = tier.place.folder / "nowhere"
    flags = ["--embedded", str(tier.place.archive), "--no-spark", "--retention-ms", "0", *more]
    result = tier("expire", *flags, "--store", str(nowhere))
    assert (result.exit_code, "store-absent" in result.stderr) == (3, True), result.output
    assert not nowhere.exists()


def test_dry_run_when_the_store_is_wrong_then_has_a_note(tier: Command, tmp_path: Path) -> None:
    """A dry run on the wrong store says that it has none of the objects."""
    other = tmp_path / "other"
    other.mkdir()
    flags = ["--embedded", str(tier.place.archive), "--retention-ms", "0", "--no-spark"]
    wrong = tier("expire", *flags, "--store", str(other))
    assert wrong.exit_code == 0, wrong.output
    assert "none of the first 4 segments that would go has a manifest in the store" in wrong.stdout
    assert "none of the first" not in tier("expire", *flags, *tier.store).stdout


def test_copied_folders_when_something_is_to_be_deleted_by_them_then_refused(tier: Command) -> None:
    """Copied folders need --offline or a cluster, as brokers may be live, and are only read."""
    log = ["--log-dirs", str(tier.place.archive / "log"), *tier.store, "--no-spark"]
    flags = [*log, "--offline", "--retention-ms", "0"]
    shown = tier("expire", *flags, "--output", "json")
    assert document(shown)["totals"]["would-go"]["segments"] == 4
    before = trees(tier.place)
    for refused, why in (
        ([*flags, "--apply"], "copied folders are only looked at"),
        ([*log, "--retention-ms", "0"], "whether live brokers expire these topics is not known"),
        ([*flags, "--bootstrap-server", "nowhere:9092"], "--offline asks no cluster"),
    ):
        result = tier("expire", *refused)
        assert (result.exit_code, why in result.stderr) == (2, True), result.output
    assert trees(tier.place) == before


def test_run_when_it_is_told_to_stop_then_says_what_is_left(tier: Command) -> None:
    """A run that is stopped by any signal ends between waves and reports the rest."""
    request = CareRequest(embedded=tier.place.archive, store=tier.place.store_settings)
    with open_tier(request) as opened_tier:
        report = expire(opened_tier, ExpireOptions(retention_ms=0), is_applied=True,
                        why_stop=lambda: "SIGTERM")  # fmt: skip
    assert (report.stopped, report.is_fine) == ("SIGTERM", False)
    assert report.count(ExpireFate.NOT_BEGUN).segments == 4
    assert "stopped: SIGTERM" in "\n".join(report.lines())
    assert len(tier.place.check()) == 4
    assert run(tier.place, later_ms=LATER_MS, retention_ms=0).is_fine
    assert tier.place.segments() == []
