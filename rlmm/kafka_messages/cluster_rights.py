"""What our credentials may do with the cluster, and how brokers say it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.kafka_messages.metadata import NO_OPERATIONS
from rlmm.kafka_messages.wire import MessageReader, MessageType, MessageWriter, Request

if TYPE_CHECKING:
    from collections.abc import Mapping

_OPERATIONS: Mapping[int, str] = {
    3: "READ",
    4: "WRITE",
    5: "CREATE",
    6: "DELETE",
    7: "ALTER",
    8: "DESCRIBE",
    9: "CLUSTER_ACTION",
    10: "DESCRIBE_CONFIGS",
    11: "ALTER_CONFIGS",
    12: "IDEMPOTENT_WRITE",
    13: "CREATE_TOKENS",
    14: "DESCRIBE_TOKENS",
    15: "TWO_PHASE_COMMIT",
}
"""Kafka's codes for what a right is about; each is a bit of what a broker tells."""


def operations_of(bits: int | None) -> frozenset[str] | None:
    """The operations that *bits* stand for, in Kafka's words; None where nobody told any."""
    if bits is None:
        return None
    return frozenset(name for code, name in _OPERATIONS.items() if bits >> code & 1)


@dataclass(frozen=True, slots=True)
class ClusterRights:
    """What we may do with the cluster as a whole, or the code that stands instead."""

    code: int
    operations: int | None


class DescribeClusterRequest(Request[ClusterRights]):
    """Asks any broker what we may do with the cluster."""

    api = MessageType("DescribeCluster", 60, (0,))

    def write(self, out: MessageWriter, version: int) -> None:
        out.boolean(True)
        out.no_tags()

    def read(self, answer: MessageReader, version: int) -> ClusterRights:
        """Read the body of the answer, as far as it is wanted."""
        answer.int32()
        code = answer.int16()
        answer.nullable_text()
        answer.text()
        answer.int32()
        answer.array(lambda: _broker(answer))
        operations = answer.int32()
        return ClusterRights(code, None if operations == NO_OPERATIONS else operations)


def _broker(answer: MessageReader) -> None:
    answer.int32()
    answer.text()
    answer.int32()
    answer.nullable_text()
    answer.tags()
