"""Spark's own Kafka source: its jars, fetched and checked once, as those of the broker are."""

from __future__ import annotations

from pathlib import Path

from tests.kafka.jars import CACHE, fetched, locked

HERE = Path(__file__).parent


def connector_jars(cache: Path = CACHE) -> list[Path]:
    with locked(cache):
        return sorted(fetched(cache, HERE / "pom.xml", HERE / "jars.sha256").glob("*.jar"))
