"""
The outcome of a run: what passed, which differences a named rule explains, and what failed, each
with its place.

Frozen facts only; how they are printed is the command's business.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm_conformance.rules import Rules, ordered

if TYPE_CHECKING:
    from rlmm_conformance.engine import Suite
    from rlmm_conformance.fields import Json


@dataclass(frozen=True, slots=True)
class AnswerDifference:
    """One answer that is not the expected one."""

    file: str
    case: str
    """The scenario or vector."""
    step: int | None
    """The number of the step in its scenario, from 1; None outside scenarios."""
    op: str
    expected: Json
    actual: Json
    rules: Rules | None = None
    """The named rules that are proved to explain it; None when nothing does, and it has failed."""

    @property
    def rule_names(self) -> str:
        """The rules as reports name them: several together explain one difference."""
        return " + ".join(ordered(self.rules or frozenset()))


@dataclass(frozen=True, slots=True)
class SuiteReport:
    """What one suite found."""

    suite: Suite
    cases: int
    """Scenarios or vectors."""
    checks: int
    """Answers compared: steps of scenarios, or calls for vectors."""
    differences: tuple[AnswerDifference, ...]
    not_asked: int = 0
    """White-box steps that the engine says it cannot answer."""

    @property
    def documented(self) -> tuple[AnswerDifference, ...]:
        """The differences that named rules explain."""
        return tuple(found for found in self.differences if found.rules is not None)

    @property
    def failed(self) -> tuple[AnswerDifference, ...]:
        """The differences that nothing explains."""
        return tuple(found for found in self.differences if found.rules is None)

    @property
    def passed(self) -> int:
        """How many answers were the expected ones."""
        return self.checks - len(self.differences)


@dataclass(frozen=True, slots=True)
class ConformanceReport:
    """One run of one engine."""

    engine: str
    suites: tuple[SuiteReport, ...]
    not_offered: tuple[Suite, ...] = ()
    """Suites of the corpus that the engine does not offer, and that nobody asked for by name."""

    @property
    def passed(self) -> int:
        """How many answers were the expected ones."""
        return sum(suite.passed for suite in self.suites)

    @property
    def documented(self) -> tuple[AnswerDifference, ...]:
        """Every difference that named rules explain."""
        return tuple(found for suite in self.suites for found in suite.documented)

    @property
    def failed(self) -> tuple[AnswerDifference, ...]:
        """Every difference that nothing explains."""
        return tuple(found for suite in self.suites for found in suite.failed)

    @property
    def documented_by_rule(self) -> dict[str, int]:
        """How many differences each rule, or set of rules together, explains."""
        return dict(sorted(Counter(found.rule_names for found in self.documented).items()))
