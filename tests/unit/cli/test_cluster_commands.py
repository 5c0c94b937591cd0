"""`lag`, `offsets`, `preflight` and `support-bundle`: their questions and their output."""

from __future__ import annotations

import json
import tarfile
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from rlmm.cli.main import cli
from rlmm.cli.queries.lag import lag_answer, offsets_answer
from rlmm.cli.queries.preflight import delete_answer, reassign_answer
from rlmm.cli.queries.support_bundle import bundle_answer
from rlmm.errors import ConfigError, InvalidArgument
from rlmm.inspection.cluster_facts import LogDir, PartitionOffsets, PartitionPlace, TopicFacts
from tests.support.builders import TOPIC_ID, finished, started, tp
from tests.support.cli.memory_source import exit_code, looking_at
from tests.support.cli.memory_source import valid_document_of as document_of
from tests.support.cli.metadata_history import START_MS, History
from tests.support.kafka.fake_cluster import FakeCluster, settings

if TYPE_CHECKING:
    from pathlib import Path


DAY_MS = 86_400_000


async def a_history() -> History:
    history = History()
    await history.add(
        started("a", 0, 99, max_timestamp_ms=START_MS), finished("a"),
        started("b", 100, 199, max_timestamp_ms=START_MS + 1_000), finished("b"),
        started("open", 200, 299), finished("nobody"),
    )  # fmt: skip
    return history


def a_cluster() -> FakeCluster:
    place = PartitionPlace(1, 3, (1, 2), (1, 2))
    orders = TopicFacts(
        "orders", TOPIC_ID, {7: place, 8: place}, settings(remote_storage_enable="true")
    )
    ends = PartitionOffsets(
        earliest=0, earliest_local=250, latest=350, last_stable=340, latest_tiered=99
    )
    return FakeCluster(
        {"orders": orders, "plain": TopicFacts("plain", TOPIC_ID, {0: place}, settings())},
        {tp(): ends},
        (1, 2),
        {1: settings(remote_log_storage_system_enable="true"),
         2: settings(remote_log_storage_system_enable="false")},
        [LogDir(1, "/a", 10_000, 4_096, {("orders", 7): 1_000})],
    )  # fmt: skip


@pytest.mark.parametrize("command", ["doctor", "lag", "preflight reassign orders"])
def test_command_about_a_cluster_when_none_is_named_then_asks_for_it(command: str) -> None:
    """A command that asks the cluster names the flag, whether or not a service runs."""
    result = CliRunner().invoke(cli, [*command.split(), "--sidecar", "/nowhere/rlmm.sock"])
    assert (result.exit_code, "--bootstrap-server" in result.stderr) == (2, True), result.output
    assert "sidecar-unavailable" not in result.stderr


async def test_lag_goes_by_the_log_and_by_finished_segments_not_by_the_leaders_word() -> None:
    """Partitions of tiered topics alone, also those of which nothing was ever copied."""
    looking = looking_at(await a_history(), cluster=a_cluster(), now_ms=START_MS + DAY_MS)
    document = await document_of(
        await lag_answer(looking, topic=None, window_ms=2 * DAY_MS, shows_disks=False)
    )
    first, second = document["items"]
    assert (first["partition"], first["tier_end"], first["lag_offsets"]) == (7, 199, 140)
    assert (first["leader_differs"], first["open_copies"]) == (True, 1)
    assert (first["only_local_bytes"], first["lag_s"]) == (1_000, (DAY_MS - 1_000) / 1_000)
    assert (second["partition"], second["tier_end"], second["lag_offsets"]) == (8, None, None)
    assert document["totals"]["leaders_differ"] == 1


async def test_lag_without_a_cluster_is_refused_and_offsets_tell_the_tier_alone() -> None:
    """The lag without a cluster is refused, and the offsets are those of the tier."""
    history = await a_history()
    with pytest.raises(ConfigError, match="--bootstrap-server"):
        await lag_answer(looking_at(history), topic=None, window_ms=1, shows_disks=False)
    document = await document_of(await offsets_answer(looking_at(history), topic=None))
    (only,) = document["items"]
    assert (only["tier_start"], only["tier_end"], only["earliest"]) == (0, 199, None)
    document = await document_of(
        await offsets_answer(looking_at(history, cluster=a_cluster()), topic="orders")
    )
    rows = [(one["partition"], one["earliest_local"], one["latest_tiered"], one["tier_end"])
            for one in document["items"]]  # fmt: skip
    assert rows == [(7, 250, 99, 199), (8, None, None, None)]


async def test_preflight_of_a_move_names_replicas_that_would_not_come_up() -> None:
    """Offset 249 is in no finished segment, and broker 2 does not tier."""
    looking = looking_at(await a_history(), cluster=a_cluster())
    answer = await reassign_answer(looking, topic="orders", partitions="7", to_brokers="1,2")
    codes = [one["code"] for one in (await document_of(answer))["items"]]
    assert codes == [
        "NO-STATE-BEFORE-LOCAL", "TARGET-WITHOUT-TIER", "COPIES-BEHIND", "COPY-UNDER-WAY"
    ]  # fmt: skip
    assert exit_code(answer) == 1
    for topic, partitions in (("nobody", None), ("orders", "9"), ("orders", "x")):
        with pytest.raises(InvalidArgument):
            await reassign_answer(looking, topic=topic, partitions=partitions, to_brokers=None)


async def test_preflight_of_a_move_when_stock_brokers_find_no_segment_then_says_so() -> None:
    """The check names offset 249, for which a stock broker asks the second segment."""
    history = History()
    await history.add(started("a", 0, 299), finished("a"), started("b", 50, 199), finished("b"))
    looking = looking_at(history, cluster=a_cluster())
    answer = await reassign_answer(looking, topic="orders", partitions="7", to_brokers=None)
    codes = [one["code"] for one in (await document_of(answer))["items"]]
    assert codes == ["STOCK-LOOKUP-EMPTY", "COPIES-BEHIND"]


async def test_preflight_of_a_deletion_names_what_only_the_tier_has() -> None:
    """The check names data that only the tier has, and lacks that distinction without a cluster."""
    history = await a_history()
    for cluster in (None, a_cluster(), FakeCluster(is_away=True)):
        answer = await delete_answer(looking_at(history, cluster=cluster), topic="orders")
        document = await document_of(answer)
        codes = [one["code"] for one in document["items"]]
        assert codes == ["DATA-ONLY-REMOTE", "LEFTOVERS-LIKELY"]
        assert ("notes" in document) == (cluster is not None and cluster.is_away)


async def bundle(path: Path, *, keeps_names: bool = False, cluster: FakeCluster | None = None) -> (
    dict[str, Any]
):  # fmt: skip
    looking = looking_at(await a_history(), cluster=cluster)
    answer = await bundle_answer(
        looking, path=path, keeps_names=keeps_names, events_max=10, reads_history=True
    )
    assert exit_code(answer) == 0
    with tarfile.open(path) as packed:
        return {
            entry.name.removeprefix("rlmm-support/"): json.load(packed.extractfile(entry))  # type: ignore[arg-type]
            for entry in packed.getmembers()
        }


async def test_f78_bundle_holds_standing_findings_and_refused_events_without_names(
    tmp_path: Path,
) -> None:
    """The bundle is readable by its owner only and never overwrites a file."""
    path = tmp_path / "bundle.tar.gz"
    found = await bundle(path)
    assert set(found) == {
        "about.json", "configuration.json", "events.json", "findings.json", "partitions.json",
        "status.json",
    }  # fmt: skip
    assert "orders" not in json.dumps(found)
    (event,) = found["events.json"]
    assert event["verdict"].startswith("unknown-segment")
    assert found["partitions.json"][0]["finished"] == 2
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(ConfigError, match="already"):
        await bundle(path)


async def test_bundle_when_names_are_kept_and_the_cluster_is_away_then_says_what_it_lacks(
    tmp_path: Path,
) -> None:
    """The bundle names every question that the cluster did not answer."""
    found = await bundle(tmp_path / "a.tar.gz", keeps_names=True, cluster=FakeCluster(is_away=True))
    assert found["partitions.json"][0]["topic"] == "orders"
    assert list(found["about.json"]["not_asked"]) == ["findings of doctor"]
    assert any(one["key"] == "log.kind" for one in found["configuration.json"])
