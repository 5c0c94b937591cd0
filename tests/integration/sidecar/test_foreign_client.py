"""A client in another language, written from the page alone, talks to the real frame server."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from rlmm.metadata.assignment import Assignment
from tests.support.engines import World
from tests.support.java_client import running
from tests.support.java_client.running import SOURCE, java, run_client
from tests.support.server.frame_servers import listening

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(java() is None, reason="needs a JDK")

WHO = (running.TOPIC_ID, running.TOPIC, str(running.PARTITION))


@pytest.mark.parametrize("follows_brokers", [True, False], ids=["broker", "all"])
async def test_foreign_client_then_understands_every_answer_of_it(*, follows_brokers: bool) -> None:
    """A client in Java assigns, writes, waits, looks up, lists pages and reads refusals."""
    assignment = Assignment.awaited() if follows_brokers else Assignment.everything()
    async with (
        World().engine(assignment=assignment) as engine,
        listening(engine, follows_brokers=follows_brokers) as served,
    ):
        lines = await run_client(str(served.path), *WHO)
    running.require_told(lines)


def test_foreign_client_then_is_of_one_short_file_and_needs_a_jdk_alone(tmp_path: Path) -> None:
    """Below 200 lines, compiled without a warning, and of all modules it uses the JDK's first."""
    assert len(SOURCE.read_text(encoding="utf-8").splitlines()) < 200
    javac, jdeps = shutil.which("javac"), shutil.which("jdeps")
    assert javac is not None
    assert jdeps is not None
    compiling = [javac, "-Xlint:all", "-Werror", "-proc:none", "-encoding", "UTF-8", "-classpath"]
    subprocess.run([*compiling, str(tmp_path), "-d", str(tmp_path), str(SOURCE)], check=True)
    depending = [jdeps, "--list-deps", str(tmp_path)]
    found = subprocess.run(depending, check=True, capture_output=True, text=True)
    assert found.stdout.split() == ["java.base"]
