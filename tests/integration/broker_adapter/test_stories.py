"""
The engine's twelve stories, told through a socket by both clients: over the embedded log and over a
topic of a real broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.engine import test_stories as engine_stories
from tests.integration.engine.conftest import FilesPlace, Town, kafka_place
from tests.support.story_clients import TownOfClients

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.integration.engine.conftest import Place

STORIES = {name: story for name, story in vars(engine_stories).items() if "_story_" in name}
globals().update(STORIES)


@pytest.fixture(
    params=[
        "files-async",
        "files-sync",
        pytest.param("kafka-async", marks=pytest.mark.kafka),
        pytest.param("kafka-sync", marks=pytest.mark.kafka),
    ]
)
async def town(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[TownOfClients]:
    where, _, kind = request.param.partition("-")
    is_kafka = where == "kafka"
    place: Place = kafka_place(request, tmp_path) if is_kafka else FilesPlace(tmp_path)
    try:
        yield TownOfClients(place, Town(place).service, kind)
    finally:
        await place.close()


def test_stories_then_there_are_twelve() -> None:
    """None is left out."""
    assert len(STORIES) == 12
