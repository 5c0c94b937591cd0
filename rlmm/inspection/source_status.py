"""The status of a source of the tiered state, in the same words for each source. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.log.protocol import LogIdentity


NOT_ASSIGNED: Final = "not-assigned"


class StateSourceKind(StrEnum):
    SIDECAR = "sidecar"
    KAFKA = "kafka"
    FOLDERS = "folders"


@dataclass(frozen=True, slots=True)
class MetadataPartitionStatus:
    """The status of a place in the words of every source; None: cannot be known."""

    metadata_partition: int
    state: str
    """The gate's word; `open` for a replay, `absent` for a missing folder, or `not-assigned`."""
    why: str | None
    detail: str
    log_start: int | None
    position: int | None
    target: int | None
    log_end: int | None
    lag_records: int | None
    lag_s: float | None
    """How old the last applied record is, where there are later ones; 0 where there are none."""
    user_partitions: int | None
    segments: Mapping[str, int] | None
    size_bytes: int | None
    rejected: Mapping[str, int] = field(default_factory=dict)
    """By reason, of what was read since the start: a state from a snapshot begins to count anew."""
    undecodable: Mapping[str, int] = field(default_factory=dict)
    is_history_complete: bool | None = None
    """Whether the log was there from its beginning."""
    snapshot_age_s: float | None = None
    lost_records: int | None = None
    """Records of the whole history that could not be understood: what snapshots keep of it."""
    without_base: int | None = None
    """Updates of segments that were not there; of the whole history, too."""

    @property
    def is_caught_up(self) -> bool:
        return self.state == "open"

    @property
    def is_assigned(self) -> bool:
        return self.state != NOT_ASSIGNED


@dataclass(frozen=True, slots=True)
class SourceStatus:
    kind: StateSourceKind
    where: str
    identity: LogIdentity | None
    places: tuple[MetadataPartitionStatus, ...]
    notes: tuple[str, ...] = ()
    """What else an operator has to know: folders that are missing, a service that observes."""
    left_out: str = ""
    """Says so where it was not given every metadata partition; one of the notes, too."""
    engine: tuple[str, str] | None = None
    """The name and version of what holds the state; `None` where the service does not say."""

    @property
    def assigned(self) -> list[MetadataPartitionStatus]:
        return [one for one in self.places if one.is_assigned]

    @property
    def is_caught_up(self) -> bool:
        return self.identity is not None and all(one.is_caught_up for one in self.assigned)


def unread(
    place: int,
    state: str,
    why: str,
    detail: str,
    *,
    position: int | None = None,
    target: int | None = None,
) -> MetadataPartitionStatus:
    return MetadataPartitionStatus(
        place, state, why, detail, None, position, target, None, None, None, None, None, None
    )


def lost_note(place: int, undecodable: int, records: int) -> str:
    return (
        f"metadata partition {place}: {undecodable} of {records} records could not be understood: "
        "what they said is not in any answer"
    )
