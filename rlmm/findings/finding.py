"""
A finding of a check: a stable code, the subject, why it matters, and what to do. Pure. Codes are an
interface: each is registered once and never changes its meaning.
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
    reason: str
    fix: str


class FindingView(Struct, forbid_unknown_fields=True):
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


def error(code: str, title: str, reason: str, fix: str) -> FindingKind:
    return FindingKind(code, Severity.ERROR, title, reason, fix)


def warning(code: str, title: str, reason: str, fix: str) -> FindingKind:
    return FindingKind(code, Severity.WARNING, title, reason, fix)


def note(code: str, title: str, reason: str, fix: str) -> FindingKind:
    return FindingKind(code, Severity.NOTE, title, reason, fix)


@dataclass(frozen=True, slots=True)
class Finding:
    kind: FindingKind
    subject: str
    """The subject in Kafka's spelling: `orders-3`, a segment id, a setting."""
    detail: str
    fix: str = ""
    """A remedy for this very case, in place of that of its kind."""
    fields: Mapping[str, object] = field(default_factory=dict)

    def view(self) -> dict[str, object]:
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
    where = {
        "topic": partition.topic,
        "topic_id": str(partition.topic_id),
        "partition": partition.partition,
    }
    label = f"{partition.topic}-{partition.partition}"
    return Finding(kind, label, detail, fields={**where, **fields})
