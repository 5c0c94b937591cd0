"""
Ready partitions: a query about one item, asked of a source where some are not ready.

A note names the others. An item that was not found may be there, so the error is `NotReady`, never
"not found".
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from rlmm.errors import LogDamaged, LogError, LogUnavailable, NotReady

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence

    from rlmm.cli.common.query_run import QueryContext
    from rlmm.inspection.moment import Moment
    from rlmm.metadata.ids import TopicIdPartition

    Holds = Callable[[Moment], Awaitable[bool]]
    """Whether what is meant is there."""

_log = logging.getLogger("rlmm.cli.partly.ready")

_LISTED_MAX: Final = 10
_ANSWERS_S: Final = 1.0
"""
Within that a log says who it is that was reached a moment ago; one that was not reached at all is
not waited for a second time.
"""


def knows(names: Callable[[TopicIdPartition], bool]) -> Holds:
    """
    Return a test for a partition that *names* allows. A deleted one does not count: a new topic of
    the same name may be in another metadata partition.
    """

    async def holds(moment: Moment) -> bool:
        summaries = await moment.user_partitions()
        return any(one.delete is None and names(one.partition) for one in summaries)

    return holds


async def of_ready(
    looking: QueryContext,
    ask: Callable[[Collection[int] | None], Awaitable[Moment]],
    holds: Holds,
    places: Collection[int] | None = None,
) -> Moment:
    """
    Return the answer of *ask* for *places*, or all; if some are not ready, that of the ready ones,
    provided that it *holds* the item. Raises `NotReady` otherwise.
    """
    try:
        return await ask(places)
    except (NotReady, LogUnavailable, LogDamaged) as error:
        ready, others, left_out = await _places(looking, places)
        if not ready or not (others or left_out):
            raise
        moment = await ask(ready)
        if not await holds(moment):
            if isinstance(error, NotReady):
                raise
            msg = f"what is asked for is not where it can be looked for, and elsewhere: {error}"
            place = others[0] if others else None
            raise NotReady(msg, reason="partly", metadata_partition=place) from error
        if others:
            _log.warning(
                "not looked at, because it is not ready: metadata partition %s; another topic of "
                "the same name may be there, see `rlmm status`",
                listed(others),
            )
        if left_out:
            _log.warning("%s; another topic of the same name may be there", left_out)
        return moment


async def _places(
    looking: QueryContext, asked: Collection[int] | None
) -> tuple[Sequence[int], Sequence[int], str]:
    """Return *asked* places that are ready, those that are not, and a note on unassigned ones."""
    try:
        await looking.source.log.identity(timeout_s=min(_ANSWERS_S, looking.timeout_s))
        standing = await looking.source.standing()
    except (NotReady, LogError):
        return (), (), ""  # what was told before says more
    meant = [
        one for one in standing.places if asked is None or one.metadata_partition in set(asked)
    ]
    return (
        [one.metadata_partition for one in meant if one.is_caught_up],
        [one.metadata_partition for one in meant if one.is_assigned and not one.is_caught_up],
        "" if all(one.is_assigned for one in meant) else standing.left_out,
    )


def listed(places: Sequence[int]) -> str:
    """Return numbers for a message, cut if there are many."""
    shown = ", ".join(map(str, places[:_LISTED_MAX]))
    more = len(places) - _LISTED_MAX
    return f"{shown} and {more} more" if more > 0 else shown
