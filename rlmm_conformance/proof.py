"""
The proof that a differing answer is a documented difference, and by which named rules.

The model must give the expectation under the rules it stands on, and the answer under a larger set:
the smallest such set names the difference. Nothing else counts as documented.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from rlmm_conformance.answers import agrees, same_answer
from rlmm_conformance.model_engine import ModelEngine
from rlmm_conformance.rules import ConformanceRule, Rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlmm_conformance.corpus import Scenario, ScenarioStep
    from rlmm_conformance.fields import Json


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
    """Give every proper superset of *base*, smallest first."""
    others = [rule for rule in ConformanceRule if rule not in base]
    for count in range(1, len(others) + 1):
        for added in combinations(others, count):
            yield base | frozenset(added)
