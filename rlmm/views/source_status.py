"""The status of a source of the tiered state, as it is shown. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Meta, UnsetType

from rlmm.inspection.source_status import StateSourceKind
from rlmm.views.segment import SegmentStateName
from rlmm.views.values import Count, Counts, Number, TimeText, UuidText, ViewObject

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rlmm.inspection.source_status import MetadataPartitionStatus, SourceStatus

Age = Annotated[Number, Meta(ge=0)]


class SourceStatusView(ViewObject, kw_only=True):
    at: TimeText | UnsetType = UNSET
    """When the source was asked; with --watch alone."""
    source: StateSourceKind
    where: str
    cluster_id: str | None
    topic_id: UuidText | None
    partition_count: Count | None
    engine: str | UnsetType = UNSET
    """`native` or `python`; an older service does not tell."""
    engine_version: str | UnsetType = UNSET
    is_caught_up: Annotated[
        bool, Meta(description="Whether everything is answered from; exit code 4 where not.")
    ]
    notes: list[str]


class PlaceStatusView(ViewObject):
    """One metadata partition; null is unknown."""

    metadata_partition: Count
    state: str
    why: str | None
    detail: str
    log_start: int | None
    position: int | None
    target: int | None
    log_end: int | None
    lag_records: Count | None
    lag_s: Annotated[
        Number | None, Meta(description="Age of the last applied record, where later ones exist.")
    ]
    user_partitions: Count | None
    segments: dict[SegmentStateName, Count] | None
    size_bytes: int | None
    rejected: Counts
    rejected_total: Count
    undecodable: Counts
    undecodable_total: Count
    is_history_complete: bool | None
    snapshot_age_s: Number | None
    records_per_s: Annotated[
        int | UnsetType | None, Meta(description="With --watch: since the last time.")
    ] = UNSET


class StatusTotals(ViewObject):
    """All metadata partitions of the source together; null where one is unknown."""

    metadata_partitions: Count
    open: Count
    lag_records: Count | None
    lag_s: Number | None
    user_partitions: Count | None
    segments: dict[SegmentStateName, Count] | None
    size_bytes: int | None
    rejected: Counts
    undecodable: Counts
    snapshot_age_s: Number | None


def standing_view(standing: SourceStatus) -> SourceStatusView:
    identity = standing.identity
    engine, engine_version = standing.engine or (UNSET, UNSET)
    return SourceStatusView(
        source=standing.kind,
        where=standing.where,
        cluster_id=None if identity is None else identity.cluster_id,
        topic_id=None if identity is None else str(identity.topic_id),
        partition_count=None if identity is None else identity.partition_count,
        engine=engine,
        engine_version=engine_version,
        is_caught_up=standing.is_caught_up,
        notes=list(standing.notes),
    )


def place_standing_view(place: MetadataPartitionStatus) -> PlaceStatusView:
    return PlaceStatusView(
        metadata_partition=place.metadata_partition,
        state=place.state,
        why=place.why,
        detail=place.detail,
        log_start=place.log_start,
        position=place.position,
        target=place.target,
        log_end=place.log_end,
        lag_records=place.lag_records,
        lag_s=place.lag_s,
        user_partitions=place.user_partitions,
        segments=None if place.segments is None else dict(place.segments),
        size_bytes=place.size_bytes,
        rejected=dict(place.rejected),
        rejected_total=sum(place.rejected.values()),
        undecodable=dict(place.undecodable),
        undecodable_total=sum(place.undecodable.values()),
        is_history_complete=place.is_history_complete,
        snapshot_age_s=place.snapshot_age_s,
    )


def standing_totals(places: Iterable[MetadataPartitionStatus]) -> StatusTotals:
    every = [place for place in places if place.is_assigned]
    ages = [place.snapshot_age_s for place in every if place.snapshot_age_s is not None]
    held = [place.segments for place in every if place.segments is not None]
    return StatusTotals(
        metadata_partitions=len(every),
        open=sum(place.is_caught_up for place in every),
        lag_records=_sum(place.lag_records for place in every),
        lag_s=_largest([place.lag_s for place in every]),
        user_partitions=_sum(place.user_partitions for place in every),
        segments=_by_name(held) if len(held) == len(every) else None,
        size_bytes=_sum(place.size_bytes for place in every),
        rejected=_by_name(place.rejected for place in every),
        undecodable=_by_name(place.undecodable for place in every),
        snapshot_age_s=max(ages, default=None),
    )


def _sum(values: Iterable[int | None]) -> int | None:
    known = list(values)
    return None if None in known else sum(value for value in known if value is not None)


def _largest(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return None if len(known) < len(values) else max(known, default=None)


def _by_name(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for counted in counts:
        for name, count in counted.items():
            total[name] = total.get(name, 0) + count
    return total
