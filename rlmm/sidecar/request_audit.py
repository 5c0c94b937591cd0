"""The audit of one session: what its client wrote, took over and was refused, for the audit log."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from rlmm.errors import AppendUncertain, EventRejected, NotPermitted, RlmmError, TooBusy
from rlmm.sidecar.dispatch import event_broker, event_partition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rlmm.access.audit import AuditLog
    from rlmm.access.roles import Client, Peer
    from rlmm.engine.engine import Engine
    from rlmm.metadata.ids import TopicIdPartition

_NAMED_MAX: Final = 20
"""Partitions of an assignment that an entry names; it counts the others."""
UNKNOWN: Final = "unknown"
"""The verdict of a write that may be stored: its client left first, or its answer did not come."""


class RequestAudit:
    __slots__ = ("_client", "_log", "_peer")

    def __init__(self, log: AuditLog, client: Client, peer: Peer) -> None:
        self._log = log
        self._client = client
        self._peer = peer

    def refuse(self, action: str, error: RlmmError, method: str | None = None) -> None:
        self._log.refuse(action, self._client, self._peer, error, method=method)

    def metered(self, limit: Callable[[int], None] | None) -> Callable[[int], None] | None:
        """Return *limit*, the check for each request, with an entry where it raises."""
        if limit is None:
            return None

        def spend(size: int) -> None:
            try:
                limit(size)
            except TooBusy as error:
                self.refuse("request", error)
                raise

        return spend

    @contextmanager
    def judging(self, method: str) -> Iterator[None]:
        """Note that a request lacks the role."""
        try:
            yield
        except NotPermitted as error:
            self.refuse("request", error, method)
            raise

    @contextmanager
    def judging_write(self, method: str, event: Any) -> Iterator[None]:
        """Note that a write lacks the role, or names another broker."""
        try:
            yield
        except RlmmError as error:
            fields = _event_fields(method, event)
            self._log.refuse("write", self._client, self._peer, error, **fields)
            raise

    @contextmanager
    def writing(self, engine: Engine, method: str, event: Any) -> Iterator[dict[str, object]]:
        """Note the write with its end; the caller puts `verdict` and place into the value."""
        fields: dict[str, object] = {**_cluster_of(engine), **_event_fields(method, event)}
        try:
            yield fields
        except RlmmError as error:
            stored_at = getattr(error, "stored_at", None)
            if stored_at is None and not isinstance(error, AppendUncertain):
                self._log.refuse("write", self._client, self._peer, error, **fields)
                raise
            if stored_at is not None:
                fields["metadata_partition"], fields["offset"] = stored_at
            fields["verdict"] = "rejected" if isinstance(error, EventRejected) else UNKNOWN
            self._log.note("write", self._client, self._peer, **fields, reason=error.code)
            raise
        except asyncio.CancelledError:
            fields["verdict"] = UNKNOWN
            self._log.note("write", self._client, self._peer, **fields)
            raise
        self._log.note("write", self._client, self._peer, **fields)

    def assigned(
        self,
        engine: Engine,
        method: str,
        broker_id: int,
        partitions: Sequence[TopicIdPartition],
        *,
        has_taken_over: bool,
        **fields: object,
    ) -> None:
        told = {**_cluster_of(engine), "method": method, "broker_id": broker_id, **fields}
        if has_taken_over:
            self._log.note("takeover", self._client, self._peer, **told)
        names = ", ".join(map(str, partitions[:_NAMED_MAX]))
        told |= {"partitions": len(partitions), "user_partitions": names}
        self._log.note("assignment", self._client, self._peer, **told)


def _cluster_of(engine: Engine) -> Mapping[str, object]:
    identity = engine.identity
    return {"cluster_id": None if identity is None else identity.cluster_id}


def _event_fields(method: str, event: Any) -> dict[str, object]:
    segment_id = getattr(event, "id", None)
    return {
        "method": method,
        "broker_id": event_broker(event),
        "user_partition": str(event_partition(event)),
        "segment_id": None if segment_id is None else str(segment_id.uuid),
        "state": event.state.name,
    }
