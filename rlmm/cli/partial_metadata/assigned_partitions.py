"""
A question about everything, asked of a service that was given some metadata partitions alone: one
beside a broker follows those that its broker's user partitions live in. It is answered for what the
service is there for, and a note says what that leaves out. What is asked for by its name is another
matter, see `partly_ready`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.errors import NotReady

if TYPE_CHECKING:
    from rlmm.cli.common.query_run import QueryContext
    from rlmm.inspection.moment import Moment


async def of_assigned(looking: QueryContext) -> Moment:
    """
    The state that is meant, of all that the source is there for. Raises `NotReady` where that is
    not known yet, or any of it is not ready.
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
    """Whether nothing is left out of *moment*, so that sums over it are sums over all."""
    return len(moment.positions) == moment.identity.partition_count
