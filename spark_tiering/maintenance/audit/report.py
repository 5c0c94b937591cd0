"""The report of an audit: as values, as lines for people, and as a JSON document. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from rlmm.base.time_text import moment_text
from rlmm.findings import tier_findings as kinds
from rlmm.findings.finding import Severity
from spark_tiering.copy_plan.summary import size_text
from spark_tiering.maintenance.audit.object_set_verdict import AuditVerdict, SetVerdict
from spark_tiering.maintenance.audit.shard_join import OrphanAmount, finding_sample
from spark_tiering.maintenance.audit.topic_sums import cost
from spark_tiering.reporting.report import FindingSample, first_lines
from spark_tiering.store_listing.key_names import OtherKey
from spark_tiering.store_listing.listing_tasks import UnrecognizedKeys

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlmm.findings.finding import FindingKind
    from spark_tiering.maintenance.audit.orphan_deletion import OrphanDeletionResult
    from spark_tiering.maintenance.audit.topic_sums import TopicSums

FORMAT: Final = "rlmm-tier-audit"
VERSION: Final = 1
HARMLESS: Final = (kinds.OBJECT_ARCHIVED, kinds.EXTENT_OVERLAP)
"""Warnings that do not mean leftovers: archived data, and offsets that leaders copied twice."""
OF_KEYS: Final = {
    OtherKey.UNKNOWN: SetVerdict.UNKNOWN_KEY,
    OtherKey.LOCAL_TIERED: SetVerdict.UNKNOWN_LAYOUT,
}


@dataclass(frozen=True, slots=True)
class OpenUploads:
    """*why* says why uploads could not be listed."""

    count: int = 0
    old: int = 0
    examples: tuple[str, ...] = ()
    why: str = ""


@dataclass(slots=True)
class AuditReport:
    """Lists the audit's findings; *notes* say which checks were left out, and why."""

    source: str
    """The source of the objects: a listing, or an inventory with its date."""
    store: str
    prefixes: tuple[str, ...]
    began_ms: int
    seen_ms: int
    is_archive: bool
    price: float | None = None
    ended_ms: int = 0
    objects: int = 0
    topics: list[TopicSums] = field(default_factory=list)
    findings: FindingSample = field(default_factory=finding_sample)
    others: dict[OtherKey, UnrecognizedKeys] = field(default_factory=dict)
    noncurrent: UnrecognizedKeys = field(default_factory=UnrecognizedKeys)
    uploads: OpenUploads = field(default_factory=OpenUploads)
    notes: list[str] = field(default_factory=list)
    stopped: str = ""
    orphans_file: str = ""
    deletions: OrphanDeletionResult | None = None

    @property
    def overall(self) -> AuditVerdict:
        return self._overall([kind for kind, count in self.findings.counts.items() if count])

    def _overall(self, counted: list[FindingKind]) -> AuditVerdict:
        if self.is_archive:
            counted = [kind for kind in counted if kind is not kinds.EXTENT_GAP]
        if any(kind.severity is Severity.ERROR for kind in counted):
            return AuditVerdict.CORRUPT
        if self.stopped:
            return AuditVerdict.UNFINISHED
        is_left = any(
            kind.severity is Severity.WARNING and kind not in HARMLESS for kind in counted
        )
        if is_left or any(self.others.get(one) for one in OF_KEYS):
            return AuditVerdict.DIRTY
        return AuditVerdict.CLEAN

    @property
    def is_fine(self) -> bool:
        """Return whether an operator has nothing to look at; deleted orphans no longer count."""
        counted = [kind for kind, count in self.findings.counts.items() if count]
        if self.deletions is not None:
            if not self.deletions.is_fine:
                return False
            counted = [kind for kind in counted if kind is not kinds.ORPHAN]
        return self._overall(counted) is AuditVerdict.CLEAN

    def amount(self, verdict: SetVerdict) -> OrphanAmount:
        amounts = [one.amounts[verdict] for one in self.topics if verdict in one.amounts]
        for key, of in OF_KEYS.items():
            if of is verdict and key in self.others:
                found = self.others[key]
                amounts.append(OrphanAmount(0, found.count, found.size_bytes))
        return OrphanAmount.total(amounts)

    @property
    def all(self) -> OrphanAmount:
        return OrphanAmount.total(map(self.amount, SetVerdict))

    def document(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "version": VERSION,
            "verdict": self.overall.value,
            "source": self.source,
            "store": self.store,
            "prefixes": list(self.prefixes),
            "beganMs": self.began_ms,
            "seenMs": self.seen_ms,
            "endedMs": self.ended_ms,
            "stopped": self.stopped,
            "isFine": self.is_fine,
            "objects": self.all.objects,
            "bytes": self.all.size_bytes,
            "monthlyCost": self._cost(self.all),
            "verdicts": {
                verdict.value: {
                    "sets": found.sets,
                    "objects": found.objects,
                    "bytes": found.size_bytes,
                    "monthlyCost": self._cost(found),
                }
                for verdict in SetVerdict
                for found in (self.amount(verdict),)
            },
            "topics": [one.document(self.price) for one in self.topics],
            "otherKeys": {
                kind.value: {"count": one.count, "bytes": one.size_bytes, "examples": one.examples}
                for kind, one in sorted(self.others.items())
            },
            "noncurrentVersions": {
                "count": self.noncurrent.count,
                "bytes": self.noncurrent.size_bytes,
            },
            "openUploads": {
                "count": self.uploads.count,
                "old": self.uploads.old,
                "examples": list(self.uploads.examples),
                "notSeen": self.uploads.why,
            },
            "findingCounts": self.findings.by_code(),
            "findings": [one.view() for one in self.findings.ranked()],
            "notes": self.notes,
            "orphansFile": self.orphans_file,
            "deletions": None if self.deletions is None else self.deletions.document(),
        }

    def _cost(self, amount: OrphanAmount) -> float | None:
        return None if self.price is None else cost(amount.size_bytes, self.price)

    def lines(self) -> Iterator[str]:
        yield f"{self.overall.value}: {self._said(self.all)} by {self.source}"
        if self.stopped:
            yield f"  stopped: {self.stopped}"
        for verdict in SetVerdict:
            found = self.amount(verdict)
            if found.objects:
                yield f"  {verdict.value}: {self._said(found)}"
        yield from self._topic_lines()
        yield from self.findings.lines()
        yield from self._other_lines()
        yield from (f"  note: {text}" for text in self.notes)
        if self.orphans_file:
            yield f"  the orphans are in {self.orphans_file}: look at it before they are deleted"
        if self.deletions is not None:
            yield from self.deletions.lines()

    def _said(self, amount: OrphanAmount) -> str:
        text = f"{amount.objects} objects, {size_text(amount.size_bytes)}"
        price = self._cost(amount)
        return text if price is None else f"{text}, {price} a month"

    def _topic_lines(self) -> Iterator[str]:
        worth = [one for one in self.topics if one.all.objects or one.segments]
        worth.sort(key=lambda one: -one.all.size_bytes)
        if worth:
            yield "topics, the largest first:"
        lines = []
        for one in worth:
            waste = [
                f"{verdict.value} {size_text(found.size_bytes)}"
                for verdict, found in sorted(one.amounts.items())
                if verdict is not SetVerdict.REFERENCED
            ]
            if one.duplicate_bytes:
                waste.append(f"copied twice {size_text(one.duplicate_bytes)}")
            text = f"  {one.topic} ({one.topic_id}): {self._said(one.all)}"
            lines.append(f"{text}; {', '.join(waste)}" if waste else text)
        yield from first_lines(lines, "topics")

    def _other_lines(self) -> Iterator[str]:
        if self.noncurrent.count:
            yield (
                f"  {self.noncurrent.count} versions that others have followed take"
                f" {size_text(self.noncurrent.size_bytes)}: a lifecycle rule ends them"
            )
        if self.uploads.count:
            yield f"  {self.uploads.count} uploads are open, {self.uploads.old} of them for long"


def inventory_text(where: str, created_ms: int) -> str:
    return f"the inventory {where} of {moment_text(created_ms)}"
