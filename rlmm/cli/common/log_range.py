"""Range of the log that a command reads, from its flags."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlmm.errors import InvalidArgument
from rlmm.inspection.moment import ReplayEnd

if TYPE_CHECKING:
    from collections.abc import Collection

    from rlmm.cli.common.query_run import QueryContext
    from rlmm.inspection.selectors import MomentSelector


def looking_up_to(looking: QueryContext, to: MomentSelector | None) -> QueryContext:
    """Return the query up to *to*, if given. `InvalidArgument` if `--at` contradicts it."""
    if to is None:
        return looking
    if not looking.is_now:
        msg = "--to and --at both say where it ends: give one of them"
        raise InvalidArgument(msg)
    return replace(looking, bound=ReplayEnd(to.offsets, to.time_ms), offset=to.offset)


def require_places(places: Collection[int], count: int) -> None:
    """Refuse the number of a metadata partition that a topic of *count* does not have."""
    beyond = sorted(place for place in places if not 0 <= place < count)
    if beyond:
        msg = f"there is no metadata partition {beyond[0]}: the topic has {count}, numbered from 0"
        raise InvalidArgument(msg)


def named_places(looking: QueryContext, begin: MomentSelector | None) -> set[int]:
    """Return the metadata partitions for which `--at`, `--to` or `--from` gives an offset."""
    return {*looking.bound.offsets, *(() if begin is None else begin.offsets)}


def first_offsets(begin: MomentSelector | None, places: Collection[int]) -> dict[int, int]:
    """Return first offsets by place. `InvalidArgument` for a bare offset of several places."""
    if begin is None:
        return {}
    if begin.offset is None:
        return dict(begin.offsets)
    if len(places) != 1:
        msg = (
            f"--from {begin.offset} is an offset of one metadata partition, and several are read: "
            f"say which, --from PARTITION:{begin.offset}, or a time"
        )
        raise InvalidArgument(msg)
    return {next(iter(places)): begin.offset}


def bound_from(at: MomentSelector, places: Collection[int]) -> ReplayEnd:
    """Return *at* as the bound of a replay of *places*; raises as `first_offsets` does."""
    return ReplayEnd(first_offsets(at, places), at.time_ms)
