"""The end of one leader epoch of a partition, asked of its leader."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.errors import LogUnavailable
from rlmm.kafka_client.code_errors import error_for
from rlmm.kafka_messages.error_codes import ErrorCode
from rlmm.kafka_messages.offsets import EpochEndsRequest

if TYPE_CHECKING:
    from rlmm.kafka_client.connections.cluster_view import ClusterConnection, ClusterView


async def epoch_end_of(
    cluster: ClusterConnection, topic: str, partition: int, leader_epoch: int
) -> tuple[int, int]:
    """
    Return the largest leader epoch up to *leader_epoch* in the leader's log, and the offset after
    its last record; -1 for both where there is none. Asks a moved leader once more.
    """
    view = await cluster.view_now()
    try:
        return await _ask(cluster, view, topic, partition, leader_epoch)
    except LogUnavailable:
        view = await cluster.view_after(view.number)
        return await _ask(cluster, view, topic, partition, leader_epoch)


async def _ask(
    cluster: ClusterConnection, view: ClusterView, topic: str, partition: int, leader_epoch: int
) -> tuple[int, int]:
    leader = view.leader_of(partition)
    if leader is None:
        raise LogUnavailable(view.without_leader(partition))
    connection = await cluster.node(leader).control()
    answer = await connection.call(EpochEndsRequest({topic: {partition: leader_epoch}}))
    end = answer.get(topic, {}).get(partition)
    if end is None:
        raise LogUnavailable(f"partition {partition}: the answer does not name it")
    if end.code != ErrorCode.NONE:
        raise error_for(f"partition {partition}", end.code, "DESCRIBE the topic")
    return end.epoch, end.next_offset
