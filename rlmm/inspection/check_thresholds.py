"""Thresholds, judged once, for a cron job or a probe, like the alerts in `deploy/`. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.findings.finding import Finding, FindingKind, error, warning

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rlmm.inspection.source_status import MetadataPartitionStatus, SourceStatus

NOT_READY = error(
    "NOT-READY",
    "a metadata partition is not answered from",
    "brokers that ask are told to come back: reads of tiered data wait, nothing is copied",
    "see what `rlmm status` says of it; a replay ends by itself, a gate that closed has a reason",
)
BEHIND = warning(
    "BEHIND",
    "the state is behind the log",
    "answers are of an earlier moment; a copy that was finished since is not found",
    "see whether brokers are slow, or this process is short of processor time",
)
EVENTS_REJECTED = warning(
    "EVENTS-REJECTED",
    "events contradict what is stored",
    "a broker has missed something, or two of them take turns: what it wrote has no effect",
    "see them with `rlmm events --verdict rejected`",
)
RECORDS_UNDECODABLE = warning(
    "RECORDS-UNDECODABLE",
    "records of the metadata topic that cannot be decoded",
    "what they said is lost, and a stock broker stops at them",
    "see their bytes with `rlmm events --verdict undecodable`",
)
SNAPSHOT_OLD = warning(
    "SNAPSHOT-OLD",
    "no snapshot was written for long",
    "the next start reads that much of the log again",
    "see `rlmm status` for why they fail, and whether the disk is full",
)
HISTORY_INCOMPLETE = warning(
    "HISTORY-INCOMPLETE",
    "the metadata topic does not begin at its beginning",
    "segments whose first record is gone are not known any more",
    "see `rlmm verify`, and set `retention.ms=-1` on the metadata topic",
)
KINDS = (
    NOT_READY, BEHIND, EVENTS_REJECTED, RECORDS_UNDECODABLE, SNAPSHOT_OLD, HISTORY_INCOMPLETE
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The largest values that are fine; None: not checked."""

    lag_s_max: float | None = 300.0
    lag_records_max: int | None = None
    rejected_max: int | None = None
    undecodable_max: int | None = 0
    snapshot_age_s_max: float | None = None
    needs_whole_history: bool = False


def judge(standing: SourceStatus, thresholds: Thresholds) -> list[Finding]:
    if standing.identity is None:
        return [Finding(NOT_READY, standing.where, "the log has not been reached")]
    asked = (place for place in standing.places if place.is_assigned)
    return [finding for place in asked for finding in _of_place(place, thresholds)]


def _of_place(place: MetadataPartitionStatus, limits: Thresholds) -> Iterator[Finding]:
    where = {"metadata_partition": place.metadata_partition}

    def found(kind: FindingKind, detail: str, **fields: object) -> Finding:
        subject = f"__remote_log_metadata-{place.metadata_partition}"
        return Finding(kind, subject, detail, fields={**where, **fields})

    if not place.is_caught_up:
        why = place.detail or place.why or "without a reason"
        yield found(
            NOT_READY, f"{place.state}: {why}; position {place.position}, target {place.target}",
            state=place.state, position=place.position, target=place.target,
        )  # fmt: skip
    if _is_over(place.lag_s, limits.lag_s_max):
        yield found(BEHIND, f"the last event applied is {place.lag_s:.0f} s old, and there are "
                    f"{place.lag_records} later ones", lag_s=place.lag_s)  # fmt: skip
    elif _is_over(place.lag_records, limits.lag_records_max):
        yield found(BEHIND, f"{place.lag_records} records", lag_records=place.lag_records)
    rejected, undecodable = sum(place.rejected.values()), sum(place.undecodable.values())
    if _is_over(rejected, limits.rejected_max):
        yield found(EVENTS_REJECTED, _by_reason(place.rejected.items()), rejected=rejected)
    if _is_over(undecodable, limits.undecodable_max):
        yield found(
            RECORDS_UNDECODABLE, _by_reason(place.undecodable.items()), undecodable=undecodable
        )
    elif _is_over(place.lost_records, limits.undecodable_max):
        yield found(
            RECORDS_UNDECODABLE,
            f"{place.lost_records} in all that its state is made of, {undecodable} of them since "
            "the start",
            undecodable=place.lost_records,
        )
    if _is_over(place.snapshot_age_s, limits.snapshot_age_s_max):
        yield found(SNAPSHOT_OLD, f"the last one is {place.snapshot_age_s:.0f} s old",
                    snapshot_age_s=place.snapshot_age_s)  # fmt: skip
    if limits.needs_whole_history and place.is_history_complete is False:
        yield found(HISTORY_INCOMPLETE, f"it begins at offset {place.log_start}",
                    log_start=place.log_start)  # fmt: skip


def _is_over(value: float | None, limit: float | None) -> bool:
    return value is not None and limit is not None and value > limit


def _by_reason(counts: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in sorted(counts) if count)
