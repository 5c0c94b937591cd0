"""
What a check found: a stable code, what it is about, why it matters, and the way out. Pure.

Codes are an interface, like the names of metrics: scripts and runbooks go by them, so each is
registered once with its meaning, and none ever changes what it means.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType, to_builtins

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.metadata.ids import TopicIdPartition


class Severity(IntEnum):
    """How bad a finding is; rising."""

    NOTE = 1
    """Worth knowing; nothing is wrong."""
    WARNING = 2
    """Will hurt, or hurts already without losing anything."""
    ERROR = 3
    """Data is not found, is lost, or will be."""

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class FindingKind:
    """A kind of finding, as it is registered and documented."""

    code: str
    """Stable, upper case, words joined by hyphens: `LOOKUP-HOLE`."""
    severity: Severity
    title: str
    """What it is, in a few words."""
    reason: str
    """Why it matters."""
    fix: str
    """What to do, with the command where there is one."""


class FindingView(Struct, forbid_unknown_fields=True):
    """A finding as it is shown to programs."""

    code: Annotated[str, Meta(pattern="^[A-Z0-9]+(-[A-Z0-9]+)*$")]
    severity: Annotated[str, Meta(extra_json_schema={"enum": [str(level) for level in Severity]})]
    subject: str
    title: str
    detail: str
    reason: str
    fix: str
    fields: Annotated[
        dict[str, Any] | UnsetType, Meta(description="Plain values; which depends on the code.")
    ] = UNSET


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found."""

    kind: FindingKind
    subject: str
    """What it is about, in Kafka's spelling: `orders-3`, a segment id, a setting."""
    detail: str
    """What was seen there, with the numbers."""
    fix: str = ""
    """The way out for this very one, where it can be said better than by its kind."""
    fields: Mapping[str, object] = field(default_factory=dict)
    """The same for programs: plain values by name."""

    def view(self) -> dict[str, object]:
        """Return the fields of `FindingView` as plain values."""
        view = FindingView(
            code=self.kind.code,
            severity=str(self.kind.severity),
            subject=self.subject,
            title=self.kind.title,
            detail=self.detail,
            reason=self.kind.reason,
            fix=self.fix or self.kind.fix,
            fields=dict(self.fields) or UNSET,
        )
        shown: dict[str, object] = to_builtins(view, str_keys=True, enc_hook=str)
        return shown


def of_partition(
    kind: FindingKind, partition: TopicIdPartition, detail: str, **fields: object
) -> Finding:
    """A finding about a user partition."""
    where = {
        "topic": partition.topic,
        "topic_id": str(partition.topic_id),
        "partition": partition.partition,
    }
    label = f"{partition.topic}-{partition.partition}"
    return Finding(kind, label, detail, fields={**where, **fields})
