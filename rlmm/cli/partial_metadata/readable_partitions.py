"""
Readable partitions: a search in a log where some metadata partitions cannot be read.

A note names the skipped ones. An item that was not found may be there, so the error is `NotReady`,
never "not found".
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlmm.cli.partial_metadata.ready_partitions import listed
from rlmm.errors import LogDamaged, LogError, LogUnavailable, NotReady
from rlmm.inspection.source_status import StateSourceKind

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rlmm.cli.common.query_run import QueryContext

_log = logging.getLogger("rlmm.cli.partly.readable")


@dataclass(frozen=True, slots=True)
class ReadablePartitions:
    """The readable metadata partitions, and the obstacles of the others."""

    places: tuple[int, ...]
    troubles: Mapping[int, LogError] = field(default_factory=dict)

    def notes(self) -> list[str]:
        """Return notes on skipped partitions."""
        if not self.troubles:
            return []
        first = next(iter(self.troubles.values()))
        return [
            "not looked at, because its log cannot be read: metadata partition "
            f"{listed(list(self.troubles))}; what is asked for may be there as well: {first}"
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
    Return the readable ones of *places*.

    Raises the obstacle of an unreadable one, unless the search *may lack* some and others are
    readable; `NotReady` if it was not copied.
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
