"""`rlmm serve` with log folders of a broker: it serves them, says so, and ends in order."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import LogUnavailable
from spark_tiering.segment_sources.settings import SidecarSourceSettings
from spark_tiering.segment_sources.sidecar import SidecarSegmentSource
from tests.support.partitions.broker_folders import FIRST, NODE, PARTITION, write_example
from tests.support.server.serve_process import FOLDER, serving

if TYPE_CHECKING:
    from pathlib import Path

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
