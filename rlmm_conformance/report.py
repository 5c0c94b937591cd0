"""The outcome of a run: passed answers, differences that a named rule explains, and failures."""

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
    step: int | None
    """The number of the step in its scenario, from 1; None outside scenarios."""
    op: str
    expected: Json
    actual: Json
    rules: Rules | None = None
    """The named rules that are proved to explain it; None makes it a failure."""

    @property
    def rule_names(self) -> str:
        """Return the rules as reports name them: several together explain one difference."""
        return " + ".join(ordered(self.rules or frozenset()))


@dataclass(frozen=True, slots=True)
class SuiteReport:
    suite: Suite
    cases: int
    checks: int
    """Answers compared: steps of scenarios, or calls for vectors."""
    differences: tuple[AnswerDifference, ...]
    not_asked: int = 0
    """White-box steps that the engine cannot answer."""

    @property
    def documented(self) -> tuple[AnswerDifference, ...]:
        return tuple(found for found in self.differences if found.rules is not None)

    @property
    def failed(self) -> tuple[AnswerDifference, ...]:
        return tuple(found for found in self.differences if found.rules is None)

    @property
    def passed(self) -> int:
        return self.checks - len(self.differences)


@dataclass(frozen=True, slots=True)
class ConformanceReport:
    engine: str
    suites: tuple[SuiteReport, ...]
    not_offered: tuple[Suite, ...] = ()
    """Suites that the engine does not offer, and that the caller left to the default."""

    @property
    def passed(self) -> int:
        return sum(suite.passed for suite in self.suites)

    @property
    def documented(self) -> tuple[AnswerDifference, ...]:
        return tuple(found for suite in self.suites for found in suite.documented)

    @property
    def failed(self) -> tuple[AnswerDifference, ...]:
        return tuple(found for suite in self.suites for found in suite.failed)

    @property
    def documented_by_rule(self) -> dict[str, int]:
        return dict(sorted(Counter(found.rule_names for found in self.documented).items()))
