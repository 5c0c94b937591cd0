"""The packaged corpus over the engines of this package."""

from __future__ import annotations

import pytest

from rlmm_conformance.answers import agrees, same_answer
from rlmm_conformance.corpus import Scenario, load_packaged
from rlmm_conformance.python_engine import PythonEngine
from rlmm_conformance.record_vectors import load_record_vectors
from rlmm_conformance.rules import ConformanceRule
from rlmm_conformance.runner import model_answers, run_scenario
from tests.support.engine.chosen import ChosenShard

CORPUS = load_packaged()
BY_NAME = pytest.mark.parametrize("scenario", CORPUS.scenarios, ids=lambda one: str(one.name))


def test_packaged_corpus_when_counted_is_whole() -> None:
    """The package carries 115 scenarios with 969 steps, 13 of them with a fixed expectation."""
    steps = [step for scenario in CORPUS.scenarios for step in scenario.steps]
    assert len(CORPUS.scenarios) == 115
    assert len(steps) == 969
    assert sum(bool(step.base) for step in steps) == 13


@pytest.mark.parametrize(
    ("rules", "field"),
    [(frozenset(), "unfixed"), (frozenset({ConformanceRule.KAFKA_20932}), "expected")],
    ids=["kafka", "fixed-kafka"],
)
@BY_NAME
def test_model_when_played_answers_as_kafka_or_as_fixed_kafka(
    scenario: Scenario, rules: frozenset[ConformanceRule], field: str
) -> None:
    """The literal model gives Kafka's own answer to every step, with KAFKA-20932 fixed or not."""
    wrong = [
        (step.number, step.op, getattr(step, field), answer)
        for step, answer in zip(scenario.steps, model_answers(scenario, rules), strict=True)
        if not same_answer(step.op, getattr(step, field), answer)
    ]
    assert not wrong


@BY_NAME
def test_python_engine_when_scenario_is_played_never_fails(scenario: Scenario) -> None:
    """Every step passes or is proved, and is the model's answer under all rules."""
    engine = PythonEngine(ChosenShard)
    assert not [found for found in run_scenario(engine, scenario) if found.rules is None]
    assert not engine.violations()
    engine.begin(scenario.name, scenario.level, initialized=scenario.initialized)
    answers = model_answers(scenario, frozenset(ConformanceRule))
    for step, answer in zip(scenario.steps, answers, strict=True):
        assert agrees(step.op, answer, engine.step(step.operation)), step.number


def test_record_vectors_when_counted_are_whole() -> None:
    """The package carries golden records, decoder values, forbidden events, partitioner rows."""
    vectors = load_record_vectors()
    assert len(vectors.golden) == 21
    assert len(vectors.tolerance) == 76
    assert len(vectors.unpublishable) == 15
    assert len(vectors.partitioner) == 65


def test_golden_sizes_when_computed_from_the_layout_agree() -> None:
    """The length of every segment, update and partition-delete record follows from its fields."""
    for golden in load_record_vectors().golden:
        event = golden.event
        custom = event.get("custom")
        custom_bytes = len(custom) // 2 if isinstance(custom, str) else 0
        name_bytes = len(str(event.get("topic", "")).encode())
        # A length field takes one byte up to 126, and two from there on.
        size = name_bytes + (name_bytes > 126) + custom_bytes + (custom_bytes > 126)
        epochs = event.get("epochs")
        match event["kind"], epochs:
            case "segment", dict():
                size += 84 + 13 * len(epochs) + 1 + (4 if event["txn_empty"] else 1)
            case "update", _:
                size += 56 + 1
            case "partition_delete", _:
                size += 39
            case _:
                continue
        assert len(golden.value) == size, golden.name
