"""
A metadata topic that existed before, and was deleted or created again.

Brokers take an empty topic for an empty tier: they move log start offsets past the tier and later
delete its data. So where an earlier topic is remembered, an empty one is neither made nor followed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlmm.errors import LogError, LogRecreated, LogUnavailable, TopicAbsent
from rlmm.kafka_client.offsets.log_bounds import gone as replaced

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from rlmm.kafka_client.connections.cluster import ClusterView
    from rlmm.log.protocol import LogBounds, LogIdentity

    Remember = Callable[[str], Awaitable[frozenset[str]]]
    """Of which topics of a cluster some record is remembered: their ids."""
    AskBounds = Callable[..., Awaitable[Mapping[int, LogBounds | LogError]]]

_WAY_OUT: Final = (
    "brokers would take an empty one for an empty tier; rebuild it while no service runs "
    "(docs/operating.md, lost topic)"
)


async def nothing(_: str) -> frozenset[str]:
    return frozenset()


def gone(name: str, cluster_id: str) -> TopicAbsent:
    msg = f"topic {name} of cluster {cluster_id} was there before and is gone: {_WAY_OUT}"
    return TopicAbsent(msg)


def another_than(bound: LogIdentity | None, view: ClusterView, name: str) -> LogRecreated | None:
    if bound is None or view.topic is None:
        return None
    if view.cluster_id != bound.cluster_id:
        return LogRecreated(
            f"this is another cluster: its id was {bound.cluster_id}, now {view.cluster_id}"
        )
    if view.topic.topic_id == bound.topic_id:
        return None
    return LogRecreated(str(replaced(name, bound.topic_id, view.topic.topic_id)))


async def refuse_empty(
    found: LogIdentity, name: str, remember: Remember, ask: AskBounds, timeout_s: float
) -> None:
    """
    Raise `TopicAbsent` where *found* never held a record and an earlier topic did.

    Raises `LogUnavailable` where its bounds are unknown.
    """
    known = await remember(found.cluster_id)
    if not known:
        return
    told = await ask(range(found.partition_count), timeout_s=timeout_s)
    for bounds in told.values():
        if isinstance(bounds, LogError):
            msg = f"topic {name}: whether it is empty cannot be asked: {bounds}"
            raise LogUnavailable(msg) from bounds
        if bounds.high_watermark:
            return
    raise TopicAbsent(
        f"topic {name} of cluster {found.cluster_id} is {found.topic_id} and empty, while "
        f"snapshots of {', '.join(sorted(known))} are here: it was lost, and {_WAY_OUT}. Where the "
        "tier is really given up, move those snapshots away"
    )
