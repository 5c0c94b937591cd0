"""
Runner: it puts the corpus to an engine and judges every answer.

An answer passes, a named rule is proved for it, or it has failed; only white-box questions that the
engine lacks are left out, and counted. A proof: the model gives the expectation under the rules it
stands on, and the answer under a larger set. The smallest such set names the difference.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING

from rlmm.errors import ConfigError, EngineFailed
from rlmm_conformance.answers import agrees, identical, same_answer
from rlmm_conformance.engine import Suite
from rlmm_conformance.model_engine import ModelEngine
from rlmm_conformance.record_vectors import PACKAGED
from rlmm_conformance.report import AnswerDifference, ConformanceReport, SuiteReport
from rlmm_conformance.rules import ConformanceRule, Rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rlmm_conformance.corpus import Corpus, Scenario, ScenarioStep
    from rlmm_conformance.engine import EngineUnderTest
    from rlmm_conformance.fields import Json
    from rlmm_conformance.record_vectors import RecordVectors

    Check = tuple[str, str, Callable[[], Json], Json]
    """One question outside scenarios: vector, operation, how to ask, expectation."""


def run(
    engine: EngineUnderTest,
    corpora: Sequence[Corpus],
    vectors: RecordVectors,
    suites: Iterable[Suite],
    *,
    skip_missing: bool,
) -> ConformanceReport:
    """Run *suites*; a missing one is a `ConfigError`, or with *skip_missing* part of the report."""
    wanted = [suite for suite in Suite if suite in set(suites)]
    missing = tuple(suite for suite in wanted if suite not in engine.suites)
    if missing and not skip_missing:
        names = ", ".join(missing)
        raise ConfigError(f"engine {engine.name} does not offer {names}")
    reports = []
    for suite in wanted:
        if suite in missing:
            continue
        if suite is Suite.SCENARIOS:
            reports.append(run_scenarios(engine, corpora))
        elif suite is Suite.RECORDS:
            reports.append(_run_checks(suite, record_checks(engine, vectors)))
        else:
            reports.append(_run_checks(suite, partitioner_checks(engine, vectors)))
    return ConformanceReport(engine.name, tuple(reports), missing)


def run_scenarios(engine: EngineUnderTest, corpora: Sequence[Corpus]) -> SuiteReport:
    scenarios = [scenario for corpus in corpora for scenario in corpus.scenarios]
    ops = Counter(step.op for scenario in scenarios for step in scenario.steps)
    not_asked = sum(ops[op] for op in engine.without)
    return SuiteReport(
        suite=Suite.SCENARIOS,
        cases=len(scenarios),
        checks=ops.total() - not_asked,
        differences=tuple(found for one in scenarios for found in run_scenario(engine, one)),
        not_asked=not_asked,
    )


def run_scenario(engine: EngineUnderTest, scenario: Scenario) -> Iterator[AnswerDifference]:
    """Run *scenario* from an empty state; give every answer that differs, proved or failed."""
    where = f"{scenario.file}: scenario '{scenario.name}'"
    prover = Prover(scenario)
    try:
        engine.begin(scenario.name, scenario.level, initialized=scenario.initialized)
        for step in scenario.steps:
            where = f"{scenario.file}: scenario '{scenario.name}': step {step.number} ({step.op})"
            if step.op in engine.without:
                continue
            actual = engine.step(step.operation)
            if agrees(step.op, step.expected, actual):
                continue
            yield AnswerDifference(
                file=scenario.file,
                case=scenario.name,
                step=step.number,
                op=str(step.op),
                expected=step.expected,
                actual=actual,
                rules=prover.rules_for(step, actual),
            )
    except EngineFailed as error:
        raise EngineFailed(f"{where}: {error}") from error


def record_checks(engine: EngineUnderTest, vectors: RecordVectors) -> Iterator[Check]:
    """Give golden records both ways, tolerated values, and events that must not be written."""
    refused: Json = {"refused": "not publishable"}
    for golden in vectors.golden:
        name, event = f"golden/{golden.name}", golden.event
        written: Json = {"value": golden.value.hex()}
        yield name, "decode", partial(engine.decode, golden.value), {"event": event}
        yield name, "encode", partial(engine.encode, event, publish=False), written
        published = written if golden.publishable else refused
        yield name, "publish", partial(engine.encode, event, publish=True), published
    for vector in vectors.tolerance:
        read: Json = {"undecodable": vector.undecodable}
        if vector.event is not None:
            read = {"event": vector.event}
        yield f"tolerance/{vector.name}", "decode", partial(engine.decode, vector.value), read
    for forbidden in vectors.unpublishable:
        publish = partial(engine.encode, forbidden.event, publish=True)
        yield f"unpublishable/{forbidden.name}", "publish", publish, refused


def partitioner_checks(engine: EngineUnderTest, vectors: RecordVectors) -> Iterator[Check]:
    for vector in vectors.partitioner:
        expected: Json = vector.metadata_partition
        if expected is None:
            expected = {"refused": "no such count"}
        ask = partial(engine.partition_for, vector.topic_id, vector.partition, vector.count)
        yield vector.name, "partition", ask, expected


def _run_checks(suite: Suite, checks: Iterable[Check]) -> SuiteReport:
    names: set[str] = set()
    count = 0
    differences = []
    for name, op, ask, expected in checks:
        names.add(name)
        count += 1
        try:
            actual = ask()
        except EngineFailed as error:
            raise EngineFailed(f"{PACKAGED}: {name} ({op}): {error}") from error
        if not _meets(expected, actual):
            differences.append(AnswerDifference(PACKAGED, name, None, op, expected, actual))
    return SuiteReport(suite, len(names), count, tuple(differences))


def _meets(expected: Json, actual: Json) -> bool:
    """Whether a vector's answer is the expected one; the reason of a refusal may differ."""
    if isinstance(expected, dict) and len(expected) == 1:
        (key,) = expected
        if key in {"undecodable", "refused"}:
            return isinstance(actual, dict) and set(actual) == {key}
    return identical(expected, actual)


def model_answers(scenario: Scenario, rules: Rules) -> tuple[Json, ...]:
    engine = ModelEngine(rules)
    engine.begin(scenario.name, scenario.level, initialized=scenario.initialized)
    return tuple(engine.answer(step.operation) for step in scenario.steps)


class Prover:
    """The judge of the differing steps of one scenario; it runs each set of rules at most once."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._answers: dict[Rules, tuple[Json, ...]] = {}

    def rules_for(self, step: ScenarioStep, actual: Json) -> Rules | None:
        """
        Return the fewest rules that turn the expectation into *actual*, the first by order.

        None without a proof; the rules of the expectation itself are not part of the answer.
        """
        if not same_answer(step.op, step.expected, self._answer(step, step.base)):
            return None
        for rules in _larger_sets(step.base):
            if agrees(step.op, self._answer(step, rules), actual):
                return rules - step.base
        return None

    def _answer(self, step: ScenarioStep, rules: Rules) -> Json:
        if rules not in self._answers:
            self._answers[rules] = model_answers(self._scenario, rules)
        return self._answers[rules][step.number - 1]


def _larger_sets(base: Rules) -> Iterator[Rules]:
    others = [rule for rule in ConformanceRule if rule not in base]
    for count in range(1, len(others) + 1):
        for added in combinations(others, count):
            yield base | frozenset(added)
