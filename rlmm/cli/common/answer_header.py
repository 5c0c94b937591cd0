"""Header of answers: the source that was asked, and the moment that the answer describes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.metadata.assignment import place_of

if TYPE_CHECKING:
    from rlmm.cli.common.query_run import QueryContext
    from rlmm.inspection.moment import Moment, PartitionSummary


def moment_head(looking: QueryContext, moment: Moment) -> dict[str, object]:
    """
    Return the source, and the last applied offset of each metadata partition, -1 without one. The
    same question with these offsets in `--at` has the same answer.
    """
    identity = moment.identity
    return {
        "source": str(looking.source.kind),
        "where": looking.source.where,
        "cluster_id": identity.cluster_id,
        "topic_id": str(identity.topic_id),
        "as_of_offsets": {
            str(place): position - 1 for place, position in sorted(moment.positions.items())
        },
    }


async def partitions_in_place(
    moment: Moment, notes: list[str] | None = None
) -> list[PartitionSummary]:
    """
    Return every user partition that is in the metadata partition where brokers look for it; *notes*
    count the others, which no question can reach.
    """
    count = moment.identity.partition_count
    summaries = await moment.user_partitions()
    found = [one for one in summaries if place_of(one.partition, count) == one.metadata_partition]
    astray = len(summaries) - len(found)
    if astray and notes is not None:
        notes.append(
            f"{astray} of {len(summaries)} user partitions lie in a metadata partition where "
            "nobody looks for them, and are left out: see `rlmm verify`"
        )
    return found
