"""The report of a job: the parts that all reports share. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, Protocol

from rlmm.findings.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rlmm.findings.finding import Finding, FindingKind
    from rlmm.metadata.ids import TopicIdPartition

LINES_MAX: Final = 20
"""Lines of one kind that people are shown; the document has more."""
FINDINGS_MAX: Final = 10_000
"""Findings that a document lists; all of them are counted."""


class OutcomeReport(Protocol):
    """The outcome of a job, as a document for programs and as lines for people."""

    @property
    def is_fine(self) -> bool:
        """Return whether all is done and an operator has nothing to look at."""
        ...

    def document(self) -> dict[str, Any]: ...

    def lines(self) -> Iterator[str]: ...


@dataclass(slots=True)
class FindingSample:
    """The first findings, and the number of all of them by kind."""

    most_of_kind: int = FINDINGS_MAX
    counts: Counter[FindingKind] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    _kept: Counter[FindingKind] = field(default_factory=Counter)

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> FindingSample:
        sample = cls()
        for one in findings:
            sample.add(one)
        return sample

    def add(self, finding: Finding, times: int = 1) -> None:
        """Add a finding that stands for several."""
        self.counts[finding.kind] += times
        self._keep(finding)

    def add_unlisted(self, kind: FindingKind, times: int) -> None:
        """Count findings that are not listed."""
        if times > 0:
            self.counts[kind] += times

    def join(self, other: FindingSample) -> None:
        self.counts.update(other.counts)
        for one in other.findings:
            self._keep(one)

    def _keep(self, finding: Finding) -> None:
        if len(self.findings) < FINDINGS_MAX and self._kept[finding.kind] < self.most_of_kind:
            self._kept[finding.kind] += 1
            self.findings.append(finding)

    @property
    def worst(self) -> Severity:
        return max((kind.severity for kind, n in self.counts.items() if n), default=Severity.NOTE)

    def by_code(self) -> dict[str, int]:
        return dict(sorted((kind.code, count) for kind, count in self.counts.items()))

    def ranked(self) -> list[Finding]:
        """Return the findings, the worst first, then by code."""
        return sorted(self.findings, key=lambda one: (-one.kind.severity, one.kind.code))

    def lines(self) -> Iterator[str]:
        """Yield the findings for people, the worst first; the first ones of each kind."""
        for kind, of_kind in groupby(self.ranked(), lambda one: one.kind):
            listed, count = list(of_kind), self.counts[kind]
            yield f"{kind.severity} {kind.code} ({count}): {kind.title}"
            yield from (f"  {one.subject}: {one.detail}" for one in listed[:LINES_MAX])
            if count > LINES_MAX:
                yield f"  ... and {count - LINES_MAX} more, see --report"
            yield f"  why: {kind.reason}"
            yield from (
                f"  fix: {fix}" for fix in dict.fromkeys(one.fix or kind.fix for one in listed)
            )


def first_lines(lines: Sequence[str], of: str = "", most: int = 0) -> Iterator[str]:
    """Yield the first of *lines*, and how many more there are."""
    most = most or LINES_MAX
    yield from lines[:most]
    if len(lines) > most:
        yield f"  ... and {len(lines) - most} more{of and ' '}{of}"


def partition_fields(partition: TopicIdPartition) -> dict[str, Any]:
    """Return a user partition, as the rows of documents name it."""
    return {
        "topic": partition.topic,
        "topicId": str(partition.topic_id),
        "partition": partition.partition,
    }
