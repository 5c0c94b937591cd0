"""Deletions of whole partitions published, whoever answers for the metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import EventRejected
from rlmm.metadata.segment import PartitionDeleteState
from tests.support.builders import partition_delete, started, tp
from tests.support.tier.metadata_accesses import KINDS, WAIT_S, access_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

MARKED, STARTED, FINISHED = PartitionDeleteState


@pytest.fixture(params=KINDS)
async def access(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
    """One of every kind, over an empty log."""
    async with access_of(request.param, tmp_path) as made:
        yield made


async def test_f116_deletion_when_it_moves_on_then_every_step_is_heard_and_seen(
    access: Any,
) -> None:
    """In Kafka's order; what skips a step, or follows the end, is refused and leaves no trace."""
    await access.publish(started("one"), WAIT_S)
    with pytest.raises(EventRejected):
        await access.put_partition_delete(partition_delete(FINISHED), WAIT_S)
    for offset, state in enumerate((MARKED, STARTED, FINISHED), 1):
        published = await access.put_partition_delete(partition_delete(state), WAIT_S)
        assert (published.offset, published.verdict) == (offset, "applied")
        (image,) = (await access.image([tp()], {}, WAIT_S)).partitions
        assert image.delete is state
    with pytest.raises(EventRejected):
        await access.put_partition_delete(partition_delete(FINISHED), WAIT_S)
