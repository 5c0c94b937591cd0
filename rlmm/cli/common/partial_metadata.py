"""
Partial metadata: answers of a source where some metadata partitions are not assigned, ready or
readable. A note names the others. An item that was not found may be there, so the error is
`NotReady`, never "not found".
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rlmm.errors import LogDamaged, LogError, LogUnavailable, NotReady
from rlmm.inspection.source_status import StateSourceKind

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

    from rlmm.cli.common.query_run import QueryContext
    from rlmm.inspection.moment import Moment
    from rlmm.metadata.ids import TopicIdPartition

    Holds = Callable[[Moment], Awaitable[bool]]

_log = logging.getLogger(__name__)

_LISTED_MAX: Final = 10
_ANSWERS_S: Final = 1.0
"""A log that was just reached answers in this time; an unreachable one is not waited for again."""


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
            msg = f"not in the metadata partitions that can be read; the others: {error}"
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


@dataclass(frozen=True, slots=True)
class ReadablePartitions:
    places: tuple[int, ...]
    troubles: Mapping[int, LogError] = field(default_factory=dict)

    def notes(self) -> list[str]:
        if not self.troubles:
            return []
        first = next(iter(self.troubles.values()))
        return [
            "not looked at, because its log cannot be read: metadata partition "
            f"{listed(list(self.troubles))}; events of the answer may be there as well: {first}"
        ]

    def not_found(self, looking: QueryContext, what: str) -> NotReady:
        """Return the error for *what*, which is not in the readable partitions."""
        place, first = next(iter(self.troubles.items()))
        msg = (
            f"no event about {what} is where it can be looked for, and metadata partition "
            f"{listed(list(self.troubles))} cannot be read: {first}"
        )
        return NotReady(msg, reason=_reason(looking), metadata_partition=place)


async def readable(
    looking: QueryContext, places: Collection[int], *, may_lack: bool
) -> ReadablePartitions:
    """
    Return the readable ones of *places*. Raises the obstacle of an unreadable one, unless the
    search *may lack* some and others are readable; `NotReady` if it was not copied.
    """
    found = await looking.source.log.bounds(places, timeout_s=looking.timeout_s)
    troubles = {place: one for place, one in sorted(found.items()) if isinstance(one, LogError)}
    for error in troubles.values():
        if not may_lack or not isinstance(error, LogUnavailable | LogDamaged):
            raise _refusal(looking, troubles, error)
    if troubles and len(troubles) == len(found):
        raise _refusal(looking, troubles, next(iter(troubles.values())))
    there = ReadablePartitions(tuple(sorted(found.keys() - troubles.keys())), troubles)
    for note in there.notes():
        _log.warning("%s", note)  # rows of CSV, and lines, have no notes
    return there


def _refusal(looking: QueryContext, troubles: Mapping[int, LogError], error: LogError) -> Exception:
    if looking.source.kind is not StateSourceKind.FOLDERS or not isinstance(error, LogUnavailable):
        return error
    absent = [place for place, one in troubles.items() if isinstance(one, LogUnavailable)]
    msg = f"metadata partition {listed(absent)} cannot be read: {error}"
    return NotReady(msg, reason=_reason(looking), metadata_partition=absent[0])


def _reason(looking: QueryContext) -> str:
    return "absent" if looking.source.kind is StateSourceKind.FOLDERS else "partly"


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
