"""Assignment requests: what the broker of a session leads and follows, noted in the audit log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.errors import NotPermitted, RlmmError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.sidecar.broker_assignments import BrokerAssignments
    from rlmm.sidecar.broker_starts import BrokerStart
    from rlmm.sidecar.session import ClientSession


def assign(
    session: ClientSession, method: str, partitions: list[TopicIdPartition], *, complete: bool
) -> int:
    """Return the generation of the assignment; raises as `BrokerAssignments.assign`."""

    def change(brokers: BrokerAssignments, start: BrokerStart) -> int:
        return brokers.assign(start, partitions, complete=complete)

    return _changed(session, method, partitions, change, complete=complete)


def stop_partitions(session: ClientSession, method: str, partitions: list[TopicIdPartition]) -> int:
    """Return the generation of the assignment; raises as `BrokerAssignments.stop`."""

    def change(brokers: BrokerAssignments, start: BrokerStart) -> int:
        return brokers.stop(start, partitions)

    return _changed(session, method, partitions, change)


def _changed(
    session: ClientSession,
    method: str,
    partitions: list[TopicIdPartition],
    change: Callable[[BrokerAssignments, BrokerStart], int],
    **told: object,
) -> int:
    try:
        engine = session.engine()
        start = session.broker
        if start is None:
            msg = f"{method} is said by a broker: hello named no broker_id"
            raise NotPermitted(msg)
        takeovers = start.broker.takeovers
        generation = change(session.brokers(engine), start)
    except RlmmError as error:
        session.audit.refuse("assignment", error, method)
        raise
    session.audit.assigned(
        engine, method, start.broker.broker_id, partitions,
        has_taken_over=start.broker.takeovers > takeovers, **told,
    )  # fmt: skip
    return generation
