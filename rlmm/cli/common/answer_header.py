"""Header of answers: the source that was asked, and the moment that the answer describes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, UnsetType

from rlmm.inspection.source_status import StateSourceKind
from rlmm.metadata.assignment import place_of
from rlmm.views.values import PlaceOffsets, UuidText, ViewObject

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rlmm.cli.common.query_run import QueryContext
    from rlmm.inspection.moment import Moment, PartitionSummary
    from rlmm.log.protocol import LogIdentity
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.views.values import View

Notes = Annotated[
    list[str] | UnsetType, Meta(description="What could not be asked, and what was assumed.")
]


class SourceHead(ViewObject):
    source: StateSourceKind
    where: Annotated[str, Meta(description="An address, or folders.")]


class LogHead(SourceHead):
    cluster_id: str
    topic_id: Annotated[UuidText, Meta(description="Of the metadata topic.")]


class MomentHead(LogHead):
    """The source, and its moment: with `--at` the same question has the same answer."""

    as_of_offsets: Annotated[
        PlaceOffsets,
        Meta(description="The last applied offset by metadata partition, -1 for none."),
    ]


def shared_fields(view: type[ViewObject], value: object) -> dict[str, Any]:
    return {name: getattr(value, name) for name in view.__struct_fields__ if hasattr(value, name)}


def source_fields(looking: QueryContext) -> dict[str, Any]:
    return {"source": looking.source.kind, "where": looking.source.where}


def log_fields(looking: QueryContext, identity: LogIdentity) -> dict[str, Any]:
    return {
        **source_fields(looking),
        "cluster_id": identity.cluster_id,
        "topic_id": str(identity.topic_id),
    }


def moment_fields(looking: QueryContext, moment: Moment) -> dict[str, Any]:
    return {
        **log_fields(looking, moment.identity),
        "as_of_offsets": offsets_before(moment.positions),
    }


def offsets_before(positions: Mapping[int, int]) -> dict[str, int]:
    """Return the last offset before each position, by metadata partition; -1 for none."""
    return {str(place): position - 1 for place, position in sorted(positions.items())}


def note_lines(document: View) -> Iterator[str]:
    for note in document.get("notes", ()):
        yield f"note: {note}"


async def all_segments(moment: Moment, partition: TopicIdPartition) -> list[SegmentMetadata]:
    return [segment async for page in moment.segments(partition) for segment in page]


async def partitions_in_place(
    moment: Moment, notes: list[str] | None = None
) -> list[PartitionSummary]:
    """Return the user partitions where brokers look for them; *notes* count the others."""
    count = moment.identity.partition_count
    summaries = await moment.user_partitions()
    found = [one for one in summaries if place_of(one.partition, count) == one.metadata_partition]
    misplaced = len(summaries) - len(found)
    if misplaced and notes is not None:
        notes.append(
            f"{misplaced} of {len(summaries)} user partitions lie in a metadata partition where "
            "no broker looks for them, and are left out: see `rlmm verify`"
        )
    return found
