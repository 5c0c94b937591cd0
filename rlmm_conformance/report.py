"""The outcome of a run, printed as tables or as JSON, whose keys are an interface and are kept."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from rlmm.cli.common.output import print_table
from rlmm_conformance.rules import RULE_TEXTS, Rules, ordered

if TYPE_CHECKING:
    from rlmm_conformance.engine import Suite
    from rlmm_conformance.fields import Json

_SHOWN_CHARACTERS_MAX = 400


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


def print_report(report: ConformanceReport, output: str) -> None:
    """Print the outcome of a run, as JSON where *output* is `json`, else as tables."""
    if output == "json":
        click.echo(json.dumps(_document(report), indent=2))
    else:
        _print_tables(report)


def _print_tables(report: ConformanceReport) -> None:
    print_table(
        f"engine {report.engine}",
        ("suite", "cases", "answers", "passed", "documented", "failed"),
        [(suite.suite, *_counts(suite).values()) for suite in report.suites],
    )
    if report.documented:
        print_table(
            "documented differences",
            ("rule", "answers", "what differs from Kafka"),
            [
                (names, answers, _titles(report, names))
                for names, answers in report.documented_by_rule.items()
            ],
        )
    for suite in report.not_offered:
        click.echo(f"not offered by the engine: {suite}")
    for asked in report.suites:
        if asked.not_asked:
            click.echo(f"{asked.suite}: {asked.not_asked} white-box steps not asked")
    for found in report.failed:
        click.echo(f"FAILED {_one_line(found)}")
    click.echo(
        f"{report.passed} passed, {len(report.documented)} documented differences, "
        f"{len(report.failed)} failed"
    )


def _document(report: ConformanceReport) -> dict[str, Json]:
    return {
        "engine": report.engine,
        "passed": report.passed,
        "documented": len(report.documented),
        "failed": len(report.failed),
        "documented_by_rule": dict(report.documented_by_rule),
        "suites": [
            {"suite": str(suite.suite), **_counts(suite), "not_asked": suite.not_asked}
            for suite in report.suites
        ],
        "not_offered": [str(suite) for suite in report.not_offered],
        "differences": [_difference(found) for found in report.documented],
        "failures": [_difference(found) for found in report.failed],
    }


def _counts(suite: SuiteReport) -> dict[str, int]:
    return {
        "cases": suite.cases,
        "answers": suite.checks,
        "passed": suite.passed,
        "documented": len(suite.documented),
        "failed": len(suite.failed),
    }


def _titles(report: ConformanceReport, names: str) -> str:
    found = next(found for found in report.documented if found.rule_names == names)
    return "; ".join(RULE_TEXTS[rule].title for rule in ordered(found.rules or frozenset()))


def _one_line(found: AnswerDifference) -> str:
    where = f"{found.file}: {found.case} ({found.op})"
    if found.step is not None:
        where = f"{found.file}: scenario '{found.case}': step {found.step} ({found.op})"
    return f"{where}: expected {_shown(found.expected)}, actual {_shown(found.actual)}"


def _shown(value: Json) -> str:
    text = json.dumps(value)
    return text if len(text) <= _SHOWN_CHARACTERS_MAX else f"{text[:_SHOWN_CHARACTERS_MAX]}..."


def _difference(found: AnswerDifference) -> dict[str, Json]:
    return {
        "file": found.file,
        "case": found.case,
        "step": found.step,
        "op": found.op,
        "rules": [str(rule) for rule in ordered(found.rules or frozenset())],
        "expected": found.expected,
        "actual": found.actual,
    }
