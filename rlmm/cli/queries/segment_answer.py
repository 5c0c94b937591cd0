"""The answers of `rlmm segments describe` and `rlmm segments find`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta
from msgspec.structs import asdict

from rlmm.cli.common.answer_header import MomentHead, moment_fields
from rlmm.cli.common.object_places import ObjectKeys, object_places, stored_fields
from rlmm.cli.printing.answer import Column, CommandAnswer, ValueFormat
from rlmm.cli.printing.cells import epochs_text, partition_label, size_text
from rlmm.cli.queries.segments import COLUMNS as LIST_COLUMNS
from rlmm.cli.queries.segments import segments_of
from rlmm.errors import InvalidArgument, NotFound
from rlmm.inspection.segment_search import SegmentFilter, holding, newest_from
from rlmm.metadata.ids import SegmentId
from rlmm.views.segment import Offset, SegmentView, segment_view
from rlmm.views.values import Count, UuidText, ViewObject

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlmm.cli.common.query_run import QueryContext
    from rlmm.inspection.moment import Moment
    from rlmm.inspection.segment_search import SegmentMatch
    from rlmm.inspection.selectors import PartitionLabel, SegmentLabel
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.metadata.shard import Shard
    from rlmm.views.values import View


class StoredFieldsView(ViewObject):
    remote_size_bytes: int | None
    object_prefix: str | None
    object_key: str | None


class PlacedSegmentView(SegmentView):
    metadata_partition: Count
    objects: Annotated[
        ObjectKeys | None, Meta(description="Null for a topic that no broker can have.")
    ]
    stored: Annotated[
        StoredFieldsView | None, Meta(description="Null where there is none, or another plugin's.")
    ]


class EpochLookupView(ViewObject):
    epoch: int
    first_offset: int
    last_offset: int
    found_at_first: bool
    found_at_last: bool


class DescribedSegmentView(PlacedSegmentView):
    lookups: list[EpochLookupView]


class FoundSegmentView(PlacedSegmentView):
    found_in_epochs: list[int]


class FindQuestion(ViewObject):
    offset: Count | None
    time_ms: int | None
    epoch: Count | None


class FindHead(MomentHead):
    partition: Annotated[str, Meta(description="TOPIC-ID:TOPIC-PARTITION")]
    asked: FindQuestion


class SegmentEdge(ViewObject):
    """The finished segment next to the offset."""

    segment_id: UuidText
    start_offset: Offset
    last_offset: Offset


class FindFoot(ViewObject):
    is_found: Annotated[bool, Meta(description="Whether any look-up finds it.")]
    epochs: Annotated[
        list[int], Meta(description="Leader epochs in which any copy was ever finished.")
    ]
    finished_before: SegmentEdge | None
    finished_behind: SegmentEdge | None


_NAMED_MAX = 10
DESCRIBE_COLUMNS = (
    *LIST_COLUMNS,
    Column("metadata_partition", "METADATA PARTITION", ValueFormat.NUMBER, is_extra=True),
)
FIND_COLUMNS = (
    *DESCRIBE_COLUMNS,
    Column("found_in_epochs", "FOUND IN EPOCHS", is_extra=True),
    Column("objects.log", "LOG OBJECT", is_extra=True),
)


# -------------------------------------------------------------------------------------- describe


async def describe_answer(
    looking: QueryContext, *, label: SegmentLabel, prefix: str
) -> CommandAnswer:
    """Describe the segment of *label*; `NotFound`, or `InvalidArgument` if it names several."""
    moment, segment = await _meant(looking, label)
    shard = await moment.state(segment.id.partition)
    item = DescribedSegmentView(
        **_segment(segment, shard.partition, prefix),
        lookups=[
            EpochLookupView(
                epoch=epoch,
                first_offset=first,
                last_offset=last,
                found_at_first=_is_found(shard, segment, epoch, first),
                found_at_last=_is_found(shard, segment, epoch, last),
            )
            for epoch, first, last in _stretches(segment)
        ],
    )
    head = MomentHead(**moment_fields(looking, moment))
    return CommandAnswer("segment", DESCRIBE_COLUMNS, [item], head, text=_described)


async def _meant(looking: QueryContext, label: SegmentLabel) -> tuple[Moment, SegmentMetadata]:
    if label.partition is not None:
        partition = await looking.partition(label.partition)
        moment = await looking.moment([await looking.place_of(partition)])
        found = await _of_partition(moment, partition, label)
    else:
        moment = await _with_segment(looking, label)
        found = await _everywhere(moment, label)
    if not found:
        msg = (
            f"no segment {label}: no copy of it was started, or its deletion is finished; what "
            "happened to it `rlmm history` knows"
        )
        raise NotFound(msg)
    if len(found) > 1:
        names = ", ".join(_short(one) for one in found[:_NAMED_MAX])
        more = f" and {len(found) - _NAMED_MAX} more" if len(found) > _NAMED_MAX else ""
        msg = f"{label} is one of {len(found)} segments, say which: {names}{more}"
        raise InvalidArgument(msg)
    return moment, found[0]


async def _with_segment(looking: QueryContext, label: SegmentLabel) -> Moment:
    """Return the moment of the segment; the beginning of an id needs every metadata partition."""

    async def holds(moment: Moment) -> bool:
        return label.uuid is not None and bool(await _everywhere(moment, label))

    return await looking.moment_with(holds)


async def _everywhere(moment: Moment, label: SegmentLabel) -> list[SegmentMetadata]:
    every = segments_of(moment, SegmentFilter())
    return [segment async for segment in every if label.names(segment.id.uuid)]


async def _of_partition(
    moment: Moment, partition: TopicIdPartition, label: SegmentLabel
) -> list[SegmentMetadata]:
    uuid = label.uuid
    if uuid is None:
        pages = moment.segments(partition)
        return [one async for page in pages for one in page if label.names(one.id.uuid)]
    found = (await moment.state(partition)).segment(SegmentId(partition, uuid))
    return [] if found is None else [found]


def _short(segment: SegmentMetadata) -> str:
    partition = segment.id.partition
    return f"{partition.topic}-{partition.partition}/{segment.id.uuid}"


def _stretches(segment: SegmentMetadata) -> Iterator[tuple[int, int, int]]:
    """Yield each leader epoch of *segment* with its first and its last offset there."""
    ends = [offset - 1 for _, offset in segment.epochs[1:]] + [segment.last_offset]
    for (epoch, first), last in zip(segment.epochs, ends, strict=True):
        yield epoch, first, last


def _is_found(shard: Shard, segment: SegmentMetadata, epoch: int, offset: int) -> bool:
    found = shard.segment_for(segment.id.partition, epoch, offset)
    return found is not None and found.id == segment.id


def _segment(segment: SegmentMetadata, place: int, prefix: str) -> dict[str, Any]:
    custom = stored_fields(segment)
    return {
        **asdict(segment_view(segment)),
        "metadata_partition": place,
        "objects": object_places(segment, prefix),
        "stored": None
        if custom is None
        else StoredFieldsView(custom.remote_size_bytes, custom.prefix, custom.main_key),
    }


# ------------------------------------------------------------------------------------------ find


async def find_answer(
    looking: QueryContext,
    *,
    label: PartitionLabel,
    offset: int | None,
    time_ms: int | None,
    epoch: int | None,
    prefix: str,
) -> CommandAnswer:
    """Find the segments with *offset*, or the first with records of *time_ms* or later."""
    partition = await looking.partition(label)
    place = await looking.place_of(partition)
    moment = await looking.moment([place])
    shard = await moment.state(partition)
    if offset is not None:
        found = holding(shard, partition, offset, epoch)
    else:
        assert time_ms is not None, "an offset or a time"
        found = newest_from(shard, partition, time_ms, epoch)
    head = FindHead(
        **moment_fields(looking, moment),
        partition=str(partition),
        asked=FindQuestion(offset, time_ms, epoch),
    )
    return CommandAnswer(
        "segments-found",
        FIND_COLUMNS,
        [_found(one, place, prefix) for one in found.held],
        head,
        foot=lambda: FindFoot(
            is_found=found.is_found,
            epochs=list(found.epochs),
            finished_before=_edge(found.before),
            finished_behind=_edge(found.behind),
        ),
        text=_found_text,
        exit_code=0 if found.is_found else 1,
    )


def _found(held: SegmentMatch, place: int, prefix: str) -> FoundSegmentView:
    return FoundSegmentView(
        **_segment(held.segment, place, prefix), found_in_epochs=list(held.epochs)
    )


def _edge(segment: SegmentMetadata | None) -> SegmentEdge | None:
    if segment is None:
        return None
    return SegmentEdge(str(segment.id.uuid), segment.start_offset, segment.last_offset)


# ----------------------------------------------------------------------------------- for people


def _described(document: View) -> Iterator[str]:
    items = document["items"]
    for item in items:
        yield from segment_lines(item)
        for one in item["lookups"]:
            yield _row(
                f"epoch {one['epoch']}",
                f"offsets {one['first_offset']} to {one['last_offset']}: {_answered(one)}",
            )


def _answered(lookup: View) -> str:
    first, last = lookup["found_at_first"], lookup["found_at_last"]
    if first and last:
        return "look-ups find this segment"
    if first or last:
        return f"look-ups find it at its {'first' if first else 'last'} offset, not at the other"
    return "look-ups do not find this segment"


def segment_lines(item: View) -> Iterator[str]:
    epochs, stored, objects = item["epochs"], item["stored"], item["objects"]
    size, start, last = item["size_bytes"], item["start_offset"], item["last_offset"]
    yield _row("segment", item["segment_id"])
    yield _row("partition", f"{partition_label(item)}, topic id {item['topic_id']}")
    yield _row("state", item["state"])
    yield _row("offsets", f"{start} to {last}, {last - start + 1:,} of them")
    yield _row("size", f"{size_text(size)} ({size:,} bytes)")
    yield _row("epochs", epochs_text(epochs))
    yield _row("newest record", item["max_timestamp"] or "not said")
    yield _row(
        "last event", f"{item['event_timestamp'] or 'not said'} by broker {item['broker_id']}"
    )
    yield _row("metadata", f"metadata partition {item['metadata_partition']}")
    if item["txn_index_empty"]:
        yield _row("transactions", "none were aborted: there is no index of them")
    if isinstance(stored, dict):
        said = ", ".join(f"{name} {value}" for name, value in stored.items() if value is not None)
        yield _row("stored", said or "nothing is said")
    elif item["custom_metadata_bytes"] is not None:
        yield _row("custom", f"{item['custom_metadata_bytes']} bytes of another plugin")
    if isinstance(objects, dict):
        for name, key in objects.items():
            yield _row(name, key)


def _row(name: str, value: object) -> str:
    return f"{name:<14}  {value}"


def _found_text(document: View) -> Iterator[str]:
    items, asked = document["items"], document["asked"]
    for item in items:
        yield from segment_lines(item)
        epochs = ", ".join(str(one) for one in item["found_in_epochs"])
        yield _row("found", f"by look-ups in leader epoch {epochs}" if epochs else "by no look-up")
        yield ""
    if document["is_found"]:
        return
    what = (
        f"offset {asked['offset']}" if asked["offset"] is not None else "that time, or a later one"
    )
    where = "" if asked["epoch"] is None else f" in leader epoch {asked['epoch']}"
    yield f"no finished segment of {document['partition']} holds {what}{where}"
    for name, side in (("before", "finished_before"), ("behind", "finished_behind")):
        edge = document[side]
        if isinstance(edge, dict):
            yield _row(
                name,
                f"{edge['segment_id']} ends at {edge['last_offset']}"
                if name == "before"
                else f"{edge['segment_id']} begins at {edge['start_offset']}",
            )
    if not document["epochs"]:
        yield "no copy was ever finished there"
