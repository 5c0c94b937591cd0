"""
Log of the metadata topic, read through a running service by pages of record batches. It is
available also while the service is not caught up, and requires the admin role.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from broker_adapter.calls import status
from rlmm.errors import LogRecreated, LogUnavailable, NotPermitted, NotReady
from rlmm.log.protocol import LogBounds
from rlmm.records.record_set import RecordSet
from rlmm.state_sources.sidecar_link import log_bounds, read_log
from rlmm.state_sources.sidecar_status import identity_of
from rlmm.wire.operator_queries import LogEnds

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rlmm.errors import LogError
    from rlmm.log.protocol import LogIdentity
    from rlmm.state_sources.sidecar_link import SidecarLink
    from rlmm.wire.operator_queries import LogPiece

ADMIN: Final = "admin"
PLACES_MAX: Final = 500
"""Metadata partitions whose bounds are asked for at once; less than any service takes."""
ANSWER_S: Final = 5.0
"""What an answer may take beyond the time that is waited for records."""
_ATTEMPTS: Final = 3
_PAUSE_S: Final = 0.05


class SidecarLog:
    """Several tasks may read at a time."""

    def __init__(self, link: SidecarLink) -> None:
        self._link = link
        self._identity: LogIdentity | None = None

    @property
    def may_read(self) -> bool:
        return self._link.server.role == ADMIN

    async def identity(self, *, timeout_s: float) -> LogIdentity:
        """See `EventLog`; raises `NotReady` while the service has not reached its log."""
        if self._identity is not None:
            return self._identity
        said = await self._link.ask(status(), timeout_s)
        found = identity_of(said)
        if found is None:
            trouble = said.get("last_trouble") or "it has not answered yet"
            msg = f"the service at {self._link.where} has not reached its log: {trouble}"
            raise NotReady(msg, reason="connecting")
        self._identity = found
        return found

    async def bounds(
        self, partitions: Collection[int], *, timeout_s: float
    ) -> Mapping[int, LogBounds | LogError]:
        self._require_role()
        identity = await self.identity(timeout_s=timeout_s)
        asked = list(partitions)
        found: dict[int, LogBounds | LogError] = {}
        for start in range(0, len(asked), PLACES_MAX):
            part = asked[start : start + PLACES_MAX]
            topic_id, ends = await self._link.ask(log_bounds(part), timeout_s)
            if topic_id != identity.topic_id:
                msg = f"the topic with id {identity.topic_id} is gone, {topic_id} is followed now"
                raise LogRecreated(msg)
            found.update(zip(part, map(_bounds, ends), strict=True))
        return found

    async def read(
        self, partition: int, position: int, *, timeout_s: float, bytes_max: int = 1 << 20
    ) -> RecordSet | None:
        """See `EventLog`; a batch larger than a frame comes in pieces."""
        self._require_role()
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + timeout_s
        for _ in range(_ATTEMPTS):
            while (first := await self._first(partition, position, deadline_s, bytes_max)) is None:
                if loop.time() >= deadline_s:
                    return None
                await asyncio.sleep(_PAUSE_S)  # whoever answers too early is not to be pressed
            data = await self._whole(partition, position, first, bytes_max)
            if data is not None:
                return RecordSet(partition, data, first.next_offset)
        msg = f"partition {partition} at offset {position}: the batch changes while it is read"
        raise LogUnavailable(msg)

    async def _first(
        self, partition: int, position: int, deadline_s: float, bytes_max: int
    ) -> LogPiece | None:
        left_s = max(0.0, deadline_s - asyncio.get_running_loop().time())
        return await self._piece(partition, position, 0, bytes_max, left_s)

    async def _piece(
        self, partition: int, position: int, skip: int, bytes_max: int, wait_s: float = 0.0
    ) -> LogPiece | None:
        identity = await self.identity(timeout_s=wait_s + ANSWER_S)
        most_ms = self._link.server.limits.timeout_ms_max
        wait_ms = min(int(wait_s * 1_000), most_ms or 1_000)
        call = read_log(identity.topic_id, partition, position, skip, bytes_max, wait_ms)
        return await self._link.ask(call, wait_ms / 1_000 + ANSWER_S)

    async def _whole(
        self, partition: int, position: int, first: LogPiece, bytes_max: int
    ) -> bytes | None:
        """Read the rest of the batch that *first* begins; `None` if it has changed meanwhile."""
        if not first.left_bytes:
            return first.data
        pieces, had = [first.data], len(first.data)
        size = had + first.left_bytes
        while had < size:
            more = await self._piece(partition, position, had, bytes_max)
            if more is None or not more.data or more.next_offset != first.next_offset:
                return None
            pieces.append(more.data)
            had += len(more.data)
            if had + more.left_bytes != size:
                return None
        return b"".join(pieces)

    def _require_role(self) -> None:
        if not self.may_read:
            msg = (
                f"what has happened is told to the role {ADMIN} alone, and this one is "
                f"{self._link.server.role} at {self._link.where}"
            )
            raise NotPermitted(msg)


def _bounds(found: LogEnds | LogError) -> LogBounds | LogError:
    return LogBounds(*found) if isinstance(found, LogEnds) else found
