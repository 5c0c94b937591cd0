"""Several clusters in one service, and broker files beside them."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import LogUnavailable
from rlmm.library.remote_log_metadata import open_metadata
from spark_tiering.segment_sources.settings import SidecarSourceSettings
from spark_tiering.segment_sources.sidecar import SidecarSegmentSource
from tests.integration.service.conftest import TWO
from tests.integration.service.test_clusters import kept_positions
from tests.kafka.tiered import METADATA_PARTITIONS
from tests.support.builders import segment_id, started, tp
from tests.support.partitions.broker_folders import FIRST, NODE, PARTITION, write_example
from tests.support.server.serve_process import FOLDER, serving

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kafka.fixtures import FreshKafka
    from tests.support.server.serve_process import Serving


async def fill(folder: Path, name: str, partition_count: int) -> None:
    async with open_metadata(folder, partition_count=partition_count) as metadata:
        await metadata.add_segment(started(segment_id(name, tp(name))))


async def until_answered(served: Serving, counts: dict[str, int]) -> None:
    left = dict(counts)
    while left:
        line = await served.until("is answered from")
        count = left.get(line["cluster"])
        if f"{count} of {count} are" in line["message"]:
            del left[line["cluster"]]


def snapshot_write(*options: str) -> dict[str, dict[str, list[int]]]:
    done = subprocess.run(
        [sys.executable, "-m", "rlmm", "snapshot", "write", *options],
        capture_output=True,
        text=True,
        check=True,
    )
    document: dict[str, dict[str, list[int]]] = json.loads(done.stdout)
    return document


async def test_serve_when_the_file_has_two_clusters_then_both(file: Path, tmp_path: Path) -> None:
    """Each cluster has its own folder, its own field in log lines, and its own snapshots."""
    clusters = tmp_path / "data" / "clusters"
    await fill(clusters / "east" / "log", "east", 2)
    await fill(clusters / "west" / "log", "west", 3)
    async with serving(tmp_path, "--config", str(file)) as served:
        await until_answered(served, {"east": 2, "west": 3})
        document = await asyncio.to_thread(snapshot_write, "--config", str(file))
        assert await served.end(signal.SIGTERM) == 0
    assert {name: len(found["written"]) for name, found in document.items()} == {
        "east": 1,
        "west": 1,
    }
    for name in ("east", "west"):
        assert await kept_positions(clusters / name / "snapshots") == [1]


async def test_snapshot_write_without_service_then_writes_all(file: Path, tmp_path: Path) -> None:
    """The command writes the snapshots of one cluster after the other and names each."""
    clusters = tmp_path / "data" / "clusters"
    await fill(clusters / "east" / "log", "east", 2)
    await fill(clusters / "west" / "log", "west", 3)
    document = await asyncio.to_thread(snapshot_write, "--config", str(file))
    assert {name: len(found["written"]) for name, found in document.items()} == {
        "east": 1,
        "west": 1,
    }
    assert [found["not_ready"] for found in document.values()] == [[], []]


async def test_serve_when_two_clusters_are_one_log_then_is_refused(tmp_path: Path) -> None:
    """The service refuses a copied folder, because it has the identity of the original log."""
    clusters = tmp_path / "rlmm-data" / "clusters"
    await fill(clusters / "east" / "log", "east", 3)
    await asyncio.to_thread(shutil.copytree, clusters / "east", clusters / "west")
    file = tmp_path / "rlmm.toml"
    file.write_text("[clusters.east]\n[clusters.west]\n")
    async with serving(tmp_path, "--config", str(file)) as served:
        assert await served.end() == 2
    assert "east and west follow one and the same log" in served.messages[-1]


async def test_serve_when_a_single_log_is_named_then_says_so(file: Path, tmp_path: Path) -> None:
    """The start names the former log that is not used, and leaves it unchanged."""
    await fill(tmp_path / "data" / "log", "old", 3)
    async with serving(tmp_path, "--config", str(file)) as served:
        line = await served.until("is of none of the clusters and is not served")
        await until_answered(served, {"east": 2, "west": 3})
        assert await served.end(signal.SIGTERM) == 0
    assert line["level"] == "warning"


async def test_serve_when_one_cluster_is_on_a_kafka_broker_then_answers_from_both(
    fresh_kafka: FreshKafka, tmp_path: Path
) -> None:
    """A broker's topic and an embedded log both come back from their snapshots."""
    kafka = await asyncio.to_thread(fresh_kafka.tiered)
    file = tmp_path / "rlmm.toml"
    file.write_text(f'{TWO}\n[clusters.broker.kafka]\nbootstrap.servers = "{kafka.bootstrap}"\n')
    counts = {"broker": METADATA_PARTITIONS, "east": 2, "west": 3}
    async with serving(tmp_path, "--config", str(file)) as served:
        await until_answered(served, counts)
        modes = {
            line["cluster"]: line["message"]
            for line in served.lines
            if line["message"].startswith("serving from")
        }
        assert "log kafka, mode observer" in modes["broker"]
        assert "log files, mode serve" in modes["east"]
        assert await served.end(signal.SIGTERM) == 0


HTTP = ("--http-listen", "127.0.0.1:0", "--log-kind", "memory", "--log-num-partitions", "1")
NOBODY = ("--broker-log-bootstrap-servers", "127.0.0.1:1")


async def test_serve_when_the_cluster_is_away_then_lists_partitions_and_serves_none_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Partitions come from the disk, and no file while the last stable offset is unknown."""
    root = write_example(tmp_path / "kafka-logs")
    monkeypatch.setattr("time.sleep", lambda _: None)
    arguments = (*HTTP, *NOBODY, "--broker-log-folders", str(root))
    async with serving(tmp_path, *arguments, "--broker-log-ask-timeout-ms", "200") as served:
        said = await served.until("health, metrics and API at")
        address = str(said["message"]).rpartition(" ")[2]
        await served.until(f"sealed segments below {root} are served by HTTP")
        token_file = str(tmp_path / FOLDER / "http.token")

        def asked() -> None:
            source = SidecarSegmentSource(SidecarSourceSettings((address,), token_file=token_file))
            ((found,), unusable) = source.partitions()
            assert (found.partition, found.origin.node_id, unusable) == (PARTITION, NODE, [])
            assert f"{FIRST}.log" in found.files.facts()
            with pytest.raises(LogUnavailable, match=r"stable .* is not known"):
                found.files.read(f"{FIRST}.log", 0, 10)

        await asyncio.to_thread(asked)
        assert await served.end(signal.SIGTERM) == 0
    assert served.messages[-1] == "stopped"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--broker-log-folders", "/x"), "broker_log.bootstrap_servers"),
        (("--broker-log-folders", "/x", *NOBODY, "--http-listen", "none"), "http.listen is none"),
        (
            ("--broker-log-folders", "/x", *NOBODY, "--broker-log-command-config", "absent"),
            "broker_log.command_config: kafka.command_config: absent cannot be read",
        ),
    ],
    ids=["nobody", "nowhere", "no-file"],
)
async def test_serve_when_folders_cannot_be_served_then_is_refused(
    tmp_path: Path, arguments: tuple[str, ...], told: str
) -> None:
    """The process refuses unusable folders with one line and exit code 2."""
    async with serving(tmp_path, *HTTP, *arguments) as served:
        assert await served.end() == 2
    assert told in served.messages[-1]
    assert served.lines[-1]["error"] == "config"
