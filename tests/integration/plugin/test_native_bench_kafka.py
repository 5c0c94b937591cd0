"""Kafka's own classes in the benchmark of the native core: built by Maven, with equal answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from bench.__main__ import main

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kafka.jars import Jars

STATED = {
    "N1: Kafka's classes, cold, batches of 1, best": "M/process CPU s",
    "N1: native / Kafka's classes, warm, by thread, batches of 500": "times",
    "N1: native / Kafka's classes, warm, by process, batches of 1": "times",
    "N3: look-ups answered, equal in all": "look-ups",
    "N3: hot, Kafka's classes, warm": "ns",
    "N3: native, 64 in a call / Kafka's classes": "times",
}

pytest.importorskip("rlmm_native", reason="needs the native core: make native")


def test_kafkas_classes_apply_the_same_history_and_answer_the_same(
    kafka_jars: Jars, tmp_path: Path
) -> None:
    """The run ends well only where all contenders answer the same; each figure is stated."""
    del kafka_jars  # a machine without Java or Maven is named by it
    output = tmp_path / "run.json"
    command = ["native", "--quick", "--only", "N1", "--only", "N3", "--output", str(output)]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    recorded: dict[str, Any] = json.loads(output.read_text())
    values = {(figure["name"], figure["unit"]): figure["value"] for figure in recorded["figures"]}
    for name, unit in STATED.items():
        assert values[name, unit] > 0
    assert not [note for note in recorded.get("notes", []) if "without Kafka" in note]
