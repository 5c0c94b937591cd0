"""`rlmm tier expire` beside copy jobs, other prefixes, and clusters that own the topics."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import ConfigError
from rlmm.findings import expire_findings as kinds
from rlmm.inspection.cluster_facts import PartitionOffsets, TopicFacts
from rlmm.metadata.ids import Uuid
from rlmm.metadata.segment import SegmentState
from spark_tiering.job_registry.job_store import JobTopic
from spark_tiering.layout.object_names import object_keys
from spark_tiering.maintenance.expire.execution import ExpireFate
from spark_tiering.maintenance.expire.job import expire_lease
from spark_tiering.maintenance.tier import CareRequest
from spark_tiering.maintenance.wiring import open_tier
from spark_tiering.stores.content import BytesContent
from spark_tiering.stores.local import LocalStore
from spark_tiering.stores.opening import process_store
from tests.support.cli.expire_command import codes, document, expired, run
from tests.support.cli.tier_command import Command
from tests.support.kafka.fake_cluster import FakeCluster, settings
from tests.support.tier.job_folders import JOBS, ORDERS, PAYMENTS, TierPlace, WatchedUnits

if TYPE_CHECKING:
    from pathlib import Path

DS = SegmentState.DELETE_SEGMENT_STARTED


pytestmark = pytest.mark.usefixtures("bare_environment")


def test_f120_topic_when_a_copy_job_is_at_work_then_is_left_to_it(tier: Command) -> None:
    """A topic is left to its running copy job, and expires when that is over."""
    place = tier.place
    request = CareRequest(store=place.store_settings)
    with open_tier(request) as care, expire_lease(care) as life:
        assert not life.claim_each([JobTopic(ORDERS.topic, ORDERS.topic_id)])
        result = expired(tier, "--retention-ms", "1d", "--apply", "--output", "json", code=4)
        told = document(result)
        (finding,) = told["findings"]
        assert (finding["code"], finding["subject"]) == ("TIER-EXPIRE-BUSY", "orders")
        assert life.job_id in finding["detail"]
        assert {one.id.partition for one in place.check()} == {ORDERS}
        assert len(place.objects()) == 6
    expired(tier, "--retention-ms", "1d", "--apply")
    assert (place.segments(), place.objects()) == ([], {})


def test_f120_copy_when_a_job_is_at_it_then_stays_however_old_it_is(tmp_path: Path) -> None:
    """A copy of a running job stays however old it is, also in a dry run."""
    tier = Command(place := TierPlace(tmp_path, partitions=(ORDERS,)))
    flags = ["--retention-ms", "0", "--min-age", "0s", "--end-open-copies", "--output", "json"]
    shown: list[dict[str, Any]] = []
    report = place.run(
        engine=WatchedUnits(before=lambda task: shown.append(document(expired(tier, *flags))))
    )
    assert report.is_fine
    first = shown[0]
    assert (first["segments"], codes(first)) == ([], ["TIER-EXPIRE-OPEN"])
    assert first["partitions"][0]["openSegments"] == 2
    assert len(document(expired(tier, *flags))["segments"]) == 2


def test_f125_prefix_when_it_has_changed_then_old_objects_go_without_asking_twice_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Objects under both prefixes are deleted without a second request for all."""
    place = TierPlace(tmp_path, prefix="old/", partitions=(ORDERS,))
    assert place.run().is_fine
    place.prefix = "new/"
    first, second = place.segments()
    store = process_store(place.store_settings)
    for old, new in zip(
        object_keys(second.id, second.start_offset, "old/").values(),
        object_keys(second.id, second.start_offset, "new/").values(),
        strict=True,
    ):
        size = store.head(old).size_bytes  # type: ignore[union-attr]
        content = store.get(old, 0, size - 1)
        assert isinstance(content, bytes)
        store.put(new, BytesContent(content))
        store.delete(old)
    asked: Counter[str] = Counter()
    for name in ("delete", "head"):
        real = getattr(LocalStore, name)

        def counted(self: Any, key: str, *args: Any, _real: Any = real, _name: str = name,
                    **more: Any) -> Any:  # fmt: skip
            if "rlmm-jobs" not in key:
                asked[f"{_name} {key.partition('/')[0]}"] += 1
            return _real(self, key, *args, **more)

        monkeypatch.setattr(LocalStore, name, counted)
    report = run(place, retention_ms=0, old_prefixes=("old/", "new/"))
    assert report.is_fine, list(report.lines())
    assert [one.was_there for one in report.receipts] == [True, True]
    # Of the one under the present prefix nothing is asked elsewhere; one is looked for before.
    assert asked == {"head new": 2 + 1, "delete new": 6, "head old": 1 + 1, "delete old": 3}
    place.prefix = ""
    assert [key for key in place.objects("old/") if JOBS not in key] == []
    assert [key for key in place.objects("new/") if JOBS not in key] == []
    assert place.segments() == []
    assert first.start_offset < second.start_offset


def test_f125_prefix_when_the_old_one_is_not_named_then_is_asked_for(tmp_path: Path) -> None:
    """Absent objects stop a run unless the operator declares them gone."""
    place = TierPlace(tmp_path, prefix="old/", partitions=(ORDERS,))
    assert place.run().is_fine
    place.prefix = "new/"
    with pytest.raises(ConfigError, match=r"none of the first 2 .*--old-prefix .*--objects-gone"):
        run(place, retention_ms=0)
    assert len(place.segments()) == 2
    report = run(place, retention_ms=0, is_without_objects=True)
    assert [one.kind for one in report.findings()] == [kinds.EXPIRE_ABSENT]
    assert not report.is_fine
    assert "--old-prefix" in "\n".join(report.lines())


def told_cluster(is_tiered: bool = False, **said: Any) -> FakeCluster:
    facts = {
        one.topic: TopicFacts(
            one.topic, one.topic_id, {},
            settings(remote_storage_enable=str(is_tiered).lower() if one is ORDERS else "false",
                     retention_ms="86400000", retention_bytes="-1"),
        )
        for one in (ORDERS, PAYMENTS)
    }  # fmt: skip
    return FakeCluster(facts, {ORDERS: PartitionOffsets(earliest=120)}, **said)


@pytest.mark.parametrize("is_tiered", [True, False], ids=["live brokers", "not described"])
def test_topic_when_live_brokers_may_expire_it_is_refused(tier: Command, is_tiered: bool) -> None:
    """A topic of live brokers, or one that the cluster hides, is refused; others go on."""
    cluster, kind = told_cluster(is_tiered), kinds.EXPIRE_LIVE
    if not is_tiered:
        there, kind = {"payments": cluster.topics_there["payments"]}, kinds.EXPIRE_UNTOLD
        rights = type(cluster.told_rights)(None, {"orders": frozenset()})
        cluster = replace(cluster, topics_there=there, told_rights=rights)
    report = run(tier.place, cluster=cluster, retention_ms=None if is_tiered else 0)
    assert [(one.kind, one.subject) for one in report.findings()] == [(kind, "orders")]
    assert not report.is_fine
    assert {one.id.partition for one in tier.place.check()} == {ORDERS}
    assert report.count(ExpireFate.DELETED).segments == 2


def test_topic_when_it_was_made_anew_then_the_archive_of_the_old_one_is_ours(tier: Command) -> None:
    """The archive of a deleted topic ignores the settings of a new one of its name."""
    cluster = told_cluster(is_tiered=True)
    anew = replace(cluster.topics_there["orders"], topic_id=Uuid.of(1, 1))
    cluster = replace(cluster, topics_there={"orders": anew})
    report = run(tier.place, cluster=cluster)
    assert (report.findings(), report.receipts) == ([], ())
    assert "no limit is known of orders, payments" in report.notes[0]
    report = run(tier.place, cluster=cluster, retention_ms=0)
    assert report.is_fine
    assert tier.place.segments() == []


def test_archive_when_the_local_log_begins_later_then_expires_nothing(tier: Command) -> None:
    """A later local log start expires nothing of an archive, unless asked for."""
    said: dict[str, Any] = {"retention_ms": -1, "is_applied": False, "cluster": told_cluster()}
    assert run(tier.place, **said).receipts == ()
    report = run(tier.place, asks_log_start=True, **said)
    assert [(one.segment.id.partition, one.reason.value) for one in report.receipts] == [
        (ORDERS, "log-start")
    ]
    assert [one.start_after for one in report.plans] == [120, 0]


def test_deleted_topics_of_an_archive_when_asked_for_then_refused(tier: Command) -> None:
    """Deleted topics of an archive are kept, and a request to expire them is refused."""
    with pytest.raises(ConfigError, match="--deleted-topics would end it"):
        run(tier.place, cluster=told_cluster(), drops_deleted_topics=True)
