"""
Partitions that a broker can have, apart from all others: the log holds whatever was written to it,
and no object can be named after a topic that Kafka does not allow. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlmm.findings.finding import Finding
from rlmm.findings.tier_findings import KEY_IMPOSSIBLE
from rlmm.metadata.ids import is_possible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlmm.inspection.moment import PartitionSummary

_NAME_CHARS: Final = 249
"""Of an impossible name, which may have 32,767 characters, so many are shown."""


def possible(summaries: Iterable[PartitionSummary]) -> list[PartitionSummary]:
    return [one for one in summaries if is_possible(one.partition)]


def impossible(summaries: Iterable[PartitionSummary]) -> list[Finding]:
    """Return a finding for each partition with segments that no broker can have."""
    return [_finding(one) for one in summaries if one.segments and not is_possible(one.partition)]


def _finding(one: PartitionSummary) -> Finding:
    partition = one.partition
    name = partition.topic[:_NAME_CHARS]
    told = f"{one.segments} segments, {one.finished} of them finished"
    return Finding(
        KEY_IMPOSSIBLE,
        f"{name!r}, partition {partition.partition}",
        f"topic id {partition.topic_id}: {told}; they were left out",
        fields={
            "topic": name,
            "topic_id": str(partition.topic_id),
            "partition": partition.partition,
            "segments": one.segments,
            "finished": one.finished,
        },
    )
