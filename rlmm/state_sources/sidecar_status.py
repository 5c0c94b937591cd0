"""Status of a running service in the form that all sources share; missing is unknown. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rlmm.inspection.source_status import (
    NOT_ASSIGNED,
    MetadataPartitionStatus,
    SourceStatus,
    StateSourceKind,
    lost_note,
    unread,
)
from rlmm.log.protocol import LogIdentity
from rlmm.metadata.ids import Uuid

if TYPE_CHECKING:
    from collections.abc import Mapping

    Said = Mapping[object, object]

ABSENT: Final = "absent"
"""A metadata partition that the service does not read, before its assignment is known."""
OBSERVER: Final = "observer"


def standing_of(said: Said, where: str, mode: str) -> SourceStatus:
    """Return the status of the service at *where* from its answer *said*; the lag is not known."""
    identity = identity_of(said)
    notes = [] if mode != OBSERVER else ["the service observes: it writes nothing"]
    if identity is None:
        trouble = said.get("last_trouble") or "it has not answered yet"
        notes.append(f"the service has not reached its log: {trouble}")
        return SourceStatus(
            StateSourceKind.SIDECAR, where, None, (), tuple(notes), engine=engine_of(said)
        )
    found = {
        number: one
        for one in _maps(said.get("metadata_partitions"))
        if (number := _number(one.get("metadata_partition"))) is not None
    }
    told = {number: _place(number, one) for number, one in found.items()}
    notes += _not_understood(found)
    absent = [place for place in range(identity.partition_count) if place not in told]
    state, why = _unread_as(said.get("is_assignment_known"))
    for place in absent:
        told[place] = unread(place, state, why, "the service does not read it")
    left_out = ""
    if absent:
        notes.append(
            f"{len(absent)} of {identity.partition_count} metadata partitions are not read by the "
            f"service: it answers for {said.get('assignment') or 'others'}"
        )
        if state == NOT_ASSIGNED:
            notes[-1] = left_out = f"{notes[-1]}; --bootstrap-server shows all"
    places = tuple(told[place] for place in sorted(told))
    return SourceStatus(
        StateSourceKind.SIDECAR, where, identity, places, tuple(notes), left_out, engine_of(said)
    )


def _unread_as(is_assignment_known: object) -> tuple[str, str]:
    """Return state and reason of partitions that are not read; an older service does not tell."""
    if is_assignment_known is True:
        return NOT_ASSIGNED, NOT_ASSIGNED
    return ABSENT, "assignment-unknown" if is_assignment_known is False else ABSENT


def _not_understood(found: Mapping[int, Said]) -> list[str]:
    notes = []
    for place, one in sorted(found.items()):
        history = _map(one.get("history"))
        undecodable, records = (_number(history.get(key)) for key in ("undecodable", "records"))
        if undecodable and records is not None:
            notes.append(lost_note(place, undecodable, records))
    return notes


def engine_of(said: Said) -> tuple[str, str] | None:
    """Return name and version of what holds the state; an older service does not tell."""
    name, version = said.get("engine"), said.get("engine_version")
    return (name, version) if isinstance(name, str) and isinstance(version, str) else None


def identity_of(said: Said) -> LogIdentity | None:
    """Return the identity of the followed log; `None` while the service does not know it."""
    count = _number(said.get("partition_count"))
    if count is None or said.get("topic_id") is None:
        return None
    return LogIdentity(str(said.get("cluster_id")), Uuid.parse(str(said["topic_id"])), count)


def with_lag(standing: SourceStatus, lags: Mapping[int, float | None]) -> SourceStatus:
    """Return *standing* with the age of the last applied record by metadata partition."""
    places = tuple(
        replace(one, lag_s=lags.get(one.metadata_partition, one.lag_s)) for one in standing.places
    )
    return replace(standing, places=places)


def _place(number: int, said: Said) -> MetadataPartitionStatus:
    target, lag = _number(said.get("target")), _number(said.get("lag_records"))
    snapshot, history = _map(said.get("snapshot")), _map(said.get("history"))
    age_ms, is_complete = _number(snapshot.get("age_ms")), history.get("is_complete")
    segments = said.get("segments")
    return MetadataPartitionStatus(
        metadata_partition=number,
        state=str(said.get("state")),
        why=None if said.get("why") is None else str(said["why"]),
        detail=str(said.get("detail") or ""),
        log_start=_number(said.get("log_start")),
        position=None if target is None else _number(said.get("position")),
        target=target,
        log_end=_number(said.get("log_end")),
        lag_records=lag,
        lag_s=0.0 if lag == 0 else None,
        user_partitions=_number(said.get("user_partitions")),
        segments=None if segments is None else _counts(segments),
        size_bytes=_number(said.get("size_bytes")),
        rejected=_counts(said.get("rejected")),
        undecodable=_counts(said.get("undecodable")),
        is_history_complete=is_complete if isinstance(is_complete, bool) else None,
        snapshot_age_s=None if age_ms is None else age_ms / 1_000,
        lost_records=_number(history.get("undecodable")),
        without_base=_number(history.get("without_base")),
    )


def _number(value: object) -> int | None:
    return value if type(value) is int else None


def _map(value: object) -> Said:
    return value if isinstance(value, dict) else {}


def _maps(value: object) -> list[Said]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _counts(value: object) -> dict[str, int]:
    return {str(name): count for name, count in _map(value).items() if type(count) is int}
