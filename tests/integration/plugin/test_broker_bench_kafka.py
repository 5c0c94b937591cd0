"""The benchmark of a broker, in its quick form: with Kafka's own manager and with ours."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from bench import broker
from bench.broker_ground import Keeper
from bench.broker_start import Start
from tests.support.repository.tree import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kafka.jars import Jars

EVENTS = f"{broker.QUICK.start.events[-1]:,} events"
OF_EACH_START = {
    "broker start to first read from the tier": "s",
    "broker started to first read from the tier": "s",
}
OF_EACH_MANAGER = {
    f"broker heap, {{}}, {EVENTS}": "MiB",
    f"broker resident, {{}}, {EVENTS}": "MiB",
    "roll to COPY_SEGMENT_FINISHED, p95, {}": "ms",
    "roll to highest tiered offset, median, {}": "ms",
    "COPY_SEGMENT_STARTED to FINISHED, median, {}": "ms",
    "tier read, best pass, {}": "MB/s",
    "look-up p99, {}": "us",
}
RATIOS = {
    "roll to COPY_SEGMENT_FINISHED, median, rlmm / Kafka's manager",
    "roll to highest tiered offset, p95, rlmm / Kafka's manager",
    "tier read, median pass, rlmm / Kafka's manager",
    f"broker heap, rlmm / Kafka's manager, {EVENTS}",
    f"broker heap and service resident, rlmm / broker heap, Kafka's manager, {EVENTS}",
}


@pytest.mark.long
@pytest.mark.timeout(1_200)  # some fifteen starts of a broker, on a busy machine
def test_quick_run_states_figures_of_both(kafka_jars: Jars, plugins: Path, tmp_path: Path) -> None:
    """The quick benchmark prints each figure once for both managers and leaves no folder."""
    del kafka_jars, plugins  # the run finds them where they are, and does not wait for Maven
    output = tmp_path / "run.json"
    command = [sys.executable, "-m", "bench", "broker", "--quick", "--folder", str(tmp_path)]
    done = subprocess.run(
        [*command, "--output", str(output)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]
    recorded: dict[str, Any] = json.loads(output.read_text())
    figures = {figure["name"]: figure for figure in recorded["figures"]}
    assert len(figures) == len(recorded["figures"])
    expected = {name.format(one): unit for name, unit in OF_EACH_MANAGER.items() for one in Keeper}
    expected |= {
        f"{name}, {start}, {EVENTS}": unit
        for name, unit in OF_EACH_START.items()
        for start in Start
    }
    expected |= {
        f"{name}, {start} / Kafka's manager, {EVENTS}": "times"
        for name in OF_EACH_START
        for start in Start
        if start is not Start.KAFKA
    }
    expected |= dict.fromkeys(RATIOS, "times")
    for name, unit in expected.items():
        assert figures[name]["unit"] == unit
        assert figures[name]["value"] > 0
        assert name in done.stdout
    assert recorded["sizes"]["segments"] == broker.QUICK.segments
    assert str(tmp_path) not in json.dumps(recorded)
