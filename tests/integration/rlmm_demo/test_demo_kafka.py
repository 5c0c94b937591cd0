"""The demonstration with an unmodified broker, as `make demo` shows it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.cli.demo_run import TITLES, ToldDemo, tell_demo
from tests.support.repository import tree

if TYPE_CHECKING:
    from tests.kafka.jars import Jars

pytestmark = pytest.mark.timeout(960)

README = tree.read(Path("README.md"))


@pytest.fixture(scope="module")
def demo(kafka_jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> ToldDemo:
    del kafka_jars  # who cannot run a broker is told how
    cache = tree.ROOT / ".cache" / "demo"
    return tell_demo(tmp_path_factory.mktemp("demo"), "--cache", str(cache))


def test_demo_on_kafka_shows_all_nine_claims(demo: ToldDemo) -> None:
    """A stock consumer of an unmodified broker reads every record without local data."""
    assert demo.status == 0, demo.text
    assert "With an unmodified Kafka broker." in demo.text
    assert tuple(demo.screens) == TITLES
    assert "✗" not in demo.text
    assert "198,000 of 198,000 records" in demo.screens["read cold"]
    assert "kafka-console-consumer" in demo.screens["read cold"]
    assert "topic adopted" in demo.screens["copy"]


def test_demo_on_kafka_shows_what_the_readme_shows(demo: ToldDemo) -> None:
    """The demo prints every line that the README quotes, measured numbers aside."""
    quoted = next(
        block for block in re.findall(r"```text\n(.*?)```", README, re.DOTALL) if "✓" in block
    )
    measured = re.compile(r"\b[0-9a-f]{16}\b|\d[\d,.]*( kB| MB| s)?")
    printed = {measured.sub("N", line.strip()) for line in demo.text.splitlines()}
    lines = [
        measured.sub("N", line.strip()) for line in quoted.splitlines() if line.strip() != "..."
    ]
    assert not [line for line in lines if line not in printed]
