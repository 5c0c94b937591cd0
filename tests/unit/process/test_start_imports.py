"""The imports of a start, and those that are made behind it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import TYPE_CHECKING

from rlmm.process.later_imports import LATER, OF_KAFKA, import_later
from tests.support.engines import until

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

NOT_FOR_A_START = {
    "aiokafka", "boto3", "prometheus_client", "pygments", "rich", "structlog",
    "rlmm.inspection.history", "rlmm.kafka_client.admin",
    "rlmm.kafka_client.connections", "rlmm.kafka_client.fetch", "rlmm.kafka_client.produce",
    "rlmm.kafka_messages", "rlmm.log.kafka", "rlmm.log.memory", "rlmm.metrics.page",
    "rlmm.state_sources", "spark_tiering",
}  # fmt: skip
"""Packages and modules that a service with an embedded log does without until it listens."""
_SAYS_WHAT_A_START_IMPORTS = """
import asyncio, os, signal, sys
import rlmm.cli.service.serve as command

async def told(names, after):
    await after.wait()
    print(*sys.modules)
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.Event().wait()

command.import_later = told
command.serve_command(["--data-dir", sys.argv[1], "--http-listen", "127.0.0.1:0"])
"""


def test_start_when_the_log_is_embedded_imports_nothing_that_it_does_without(
    tmp_path: Path,
) -> None:
    """A service that listens has imported no client of Kafka, no page of metrics, no tables."""
    done = subprocess.run(
        [sys.executable, "-c", _SAYS_WHAT_A_START_IMPORTS, str(tmp_path / "data")],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    modules = set(done.stdout.split())
    assert "rlmm.sidecar.listener" in modules
    assert not NOT_FOR_A_START & modules
    assert {*LATER, OF_KAFKA}.isdisjoint(modules)


async def test_later_imports_when_the_service_listens_are_made_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a start did without is imported behind it, and not by the event loop."""
    (tmp_path / "imported_later.py").write_text(
        "import threading\nthread = threading.current_thread().name\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    listening = asyncio.Event()
    task = asyncio.create_task(import_later(["imported_later"], listening))
    try:
        await asyncio.sleep(0)
        assert "imported_later" not in sys.modules
        listening.set()
        await until(lambda: "imported_later" in sys.modules)
        await until(lambda: hasattr(sys.modules["imported_later"], "thread"))
        assert sys.modules["imported_later"].thread == "imports"
        assert not task.done()
    finally:
        task.cancel()
        sys.modules.pop("imported_later", None)
