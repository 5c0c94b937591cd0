"""How a source of the tiered state stands, as it is shown. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rlmm.inspection.source_status import MetadataPartitionStatus, SourceStatus
    from rlmm.views.values import View


def standing_view(standing: SourceStatus) -> View:
    """Who was asked, and whose metadata it is."""
    identity = standing.identity
    return {
        "source": str(standing.kind),
        "where": standing.where,
        "cluster_id": None if identity is None else identity.cluster_id,
        "topic_id": None if identity is None else str(identity.topic_id),
        "partition_count": None if identity is None else identity.partition_count,
        "is_caught_up": standing.is_caught_up,
        "notes": list(standing.notes),
    }


def place_standing_view(place: MetadataPartitionStatus) -> View:
    """One metadata partition; null is what cannot be known."""
    return {
        "metadata_partition": place.metadata_partition,
        "state": place.state,
        "why": place.why,
        "detail": place.detail,
        "log_start": place.log_start,
        "position": place.position,
        "target": place.target,
        "log_end": place.log_end,
        "lag_records": place.lag_records,
        "lag_s": place.lag_s,
        "user_partitions": place.user_partitions,
        "segments": None if place.segments is None else dict(place.segments),
        "size_bytes": place.size_bytes,
        "rejected": dict(place.rejected),
        "rejected_total": sum(place.rejected.values()),
        "undecodable": dict(place.undecodable),
        "undecodable_total": sum(place.undecodable.values()),
        "is_history_complete": place.is_history_complete,
        "snapshot_age_s": place.snapshot_age_s,
    }


def standing_totals(places: Iterable[MetadataPartitionStatus]) -> View:
    """
    All metadata partitions together that the source is there for; null where one of them does not
    say.
    """
    every = [place for place in places if place.is_assigned]
    segments: dict[str, int] | None = {}
    for place in every:
        if place.segments is None:
            segments = None
            break
        assert segments is not None
        for state, count in place.segments.items():
            segments[state] = segments.get(state, 0) + count
    ages = [place.snapshot_age_s for place in every if place.snapshot_age_s is not None]
    return {
        "metadata_partitions": len(every),
        "open": sum(place.is_caught_up for place in every),
        "lag_records": _sum(place.lag_records for place in every),
        "lag_s": _largest([place.lag_s for place in every]),
        "user_partitions": _sum(place.user_partitions for place in every),
        "segments": segments,
        "size_bytes": _sum(place.size_bytes for place in every),
        "rejected": _by_name(place.rejected for place in every),
        "undecodable": _by_name(place.undecodable for place in every),
        "snapshot_age_s": max(ages, default=None),
    }


def _sum(values: Iterable[int | None]) -> int | None:
    total = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def _largest(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return None if len(known) < len(values) else max(known, default=None)


def _by_name(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for one in counts:
        for name, count in one.items():
            total[name] = total.get(name, 0) + count
    return total
