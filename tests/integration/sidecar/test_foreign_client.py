"""A client in another language, written from the page alone, talks to the real frame server."""

import pytest

from rlmm.assignment import Assignment
from tests.support.engines import World
from tests.support.foreign import story
from tests.support.foreign.running import java, run_client
from tests.support.sidecars import listening

pytestmark = pytest.mark.skipif(java() is None, reason="needs a JDK")

WHO = (story.TOPIC_ID, story.TOPIC, str(story.PARTITION))


@pytest.mark.parametrize("follows_brokers", [True, False], ids=["broker", "all"])
async def test_foreign_client_when_it_talks_to_the_service_understands_every_answer(
    *, follows_brokers: bool
) -> None:
    """It assigns, writes, waits, looks up, lists by pages, and understands what is refused."""
    assignment = Assignment.awaited() if follows_brokers else Assignment.everything()
    async with (
        World().engine(assignment=assignment) as engine,
        listening(engine, follows_brokers=follows_brokers) as served,
    ):
        lines = await run_client(str(served.path), *WHO)
    story.require_told(lines)
