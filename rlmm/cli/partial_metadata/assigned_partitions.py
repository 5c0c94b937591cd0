"""
Assigned partitions: a query about everything, asked of a service that follows only some.

The answer covers what the service follows, and a note tells what is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.errors import NotReady

if TYPE_CHECKING:
    from rlmm.cli.common.query_run import QueryContext
    from rlmm.inspection.moment import Moment


async def of_assigned(looking: QueryContext) -> Moment:
    """Return the state of all that the source serves; `NotReady` if a part is not ready."""
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
