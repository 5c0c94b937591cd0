"""Findings as an answer: for programs an object each, for people a block of text each kind."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rlmm.cli.common.answer_header import note_lines
from rlmm.cli.common.exit_codes import EXIT_FOUND
from rlmm.cli.printing.answer import Column, CommandAnswer
from rlmm.findings.finding import Severity
from rlmm.views.values import ViewObject

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rlmm.findings.finding import Finding
    from rlmm.views.values import View


class FindingTotals(ViewObject):
    errors: int
    warnings: int
    notes: int


class FindingsFoot(ViewObject):
    totals: FindingTotals


COLUMNS = (
    Column("severity", "SEVERITY"),
    Column("code", "CODE"),
    Column("subject", "SUBJECT"),
    Column("detail", "DETAIL"),
    Column("fix", "FIX", is_extra=True),
)
_SHOWN_MAX = 20


def finding_answer(
    kind: str, findings: Iterable[Finding], head: ViewObject, *, is_strict: bool = False
) -> CommandAnswer:
    """Return *findings*, the worst first; exit code 1 for a warning, or a note if *is_strict*."""
    ordered = sorted(findings, key=lambda one: (-one.kind.severity, one.kind.code))
    worst = max((one.kind.severity for one in ordered), default=None)
    least = Severity.NOTE if is_strict else Severity.WARNING
    return CommandAnswer(
        kind,
        COLUMNS,
        [one.view() for one in ordered],
        head=head,
        foot=lambda: FindingsFoot(_totals(ordered)),
        text=_text,
        exit_code=EXIT_FOUND if worst is not None and worst >= least else 0,
    )


def _totals(findings: Sequence[Finding]) -> FindingTotals:
    counts = Counter(one.kind.severity for one in findings)
    return FindingTotals(counts[Severity.ERROR], counts[Severity.WARNING], counts[Severity.NOTE])


def _text(document: View) -> Iterator[str]:
    items = document["items"]
    by_code: dict[str, list[View]] = {}
    for item in items:
        by_code.setdefault(str(item["code"]), []).append(item)
    yield from note_lines(document)
    for code, those in by_code.items():
        yield from _block(code, those)
    totals = document["totals"]
    said = ", ".join(
        f"{count} {name if count > 1 else name.removesuffix('s')}"
        for name, count in totals.items()
        if count
    )
    yield said or "nothing found"


def _block(code: str, those: Sequence[View]) -> Iterator[str]:
    first = those[0]
    yield f"{str(first['severity']).upper()} {code}: {first['title']}"
    for item in those[:_SHOWN_MAX]:
        yield f"  {item['subject']}: {item['detail']}"
    if len(those) > _SHOWN_MAX:
        yield f"  and {len(those) - _SHOWN_MAX} more, see --output json"
    yield f"  why: {first['reason']}"
    for fix in dict.fromkeys(str(item["fix"]) for item in those[:_SHOWN_MAX]):
        yield f"  fix: {fix}"
    yield ""
