"""
Assigned partitions: a query about everything, asked of a service that follows only some metadata
partitions.

A service beside a broker follows those that hold its broker's user partitions. The answer covers
what the service follows, and a note tells what is left out. A query about one named partition uses
`ready_partitions`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.errors import NotReady

if TYPE_CHECKING:
    from rlmm.cli.common.query_run import QueryContext
    from rlmm.inspection.moment import Moment


async def of_assigned(looking: QueryContext) -> Moment:
    """
    Return the state of everything that the source serves. Raises `NotReady` if a part of it is not
    ready, or not known yet.
    """
    try:
        return await looking.whole()
    except NotReady:
        standing = await looking.source.standing()
        if not standing.left_out:
            raise
    moment = await looking.whole([one.metadata_partition for one in standing.assigned])
    looking.tell(standing.left_out)
    return moment


def is_of_all(moment: Moment) -> bool:
    """Return whether *moment* covers every metadata partition, so that its totals are complete."""
    return len(moment.positions) == moment.identity.partition_count
