"""Named rules, each shown by its smallest history, and the proofs that they allow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm_conformance.model_engine import ModelEngine
from rlmm_conformance.python_engine import PythonEngine
from rlmm_conformance.rules import RULE_TEXTS, ConformanceRule
from tests.conformance.play import (
    DELETE_STARTED,
    FINISHED,
    Liar,
    Step,
    add,
    ask,
    copied,
    deleted,
    differences,
    update,
)
from tests.support.engine.chosen import ChosenShard

if TYPE_CHECKING:
    from rlmm_conformance.fields import Json

KAFKA: frozenset[ConformanceRule] = frozenset()

LATE_SHORTER_COPY = [*copied("a", 0, 200), *copied("b", 0, 100)]
TAIL_PRESENT = [*copied("a", 0, 100), *copied("b", 101, 200), *copied("c", 0, 150)]
WITHOUT_TXN: dict[str, Json] = {"txn_empty": True}
REPEATED_WITH_OTHER_EPOCHS = [add("a", 0, 9, {"0": 0}), add("a", 0, 9, {"1": 0}), *deleted("a")]

EXAMPLES: dict[ConformanceRule, tuple[str, list[Step], Json]] = {
    ConformanceRule.KAFKA_20932: (
        "cache",
        [*TAIL_PRESENT, ask("list_epoch", ["c", "b"], epoch=0)],
        ["c", "a", "b"],
    ),
    ConformanceRule.COVER_LOOKUP: (
        "cache",
        [*LATE_SHORTER_COPY, ask("get", None, epoch=0, offset=150)],
        "a",
    ),
    ConformanceRule.COVER_NEXT_TXN: (
        "cache",
        [
            *copied("a", 0, 200),
            add("b", 0, 100) | WITHOUT_TXN,
            update("b", FINISHED),
            ask("next_txn", None, epoch=0, offset=50),
        ],
        "a",
    ),
    ConformanceRule.SHARD_HOLDS_ALL: (
        "store",
        [add("a", 0, 9) | {"expect": {"error": "illegal_state"}}],
        "applied",
    ),
    ConformanceRule.NO_DANGLING_IDS: (
        "cache",
        [*REPEATED_WITH_OTHER_EPOCHS, ask("list_epoch", {"error": "not_found"}, epoch=0)],
        [],
    ),
}
"""Smallest history of each rule, with Kafka's expectations, and the answer under the rule."""


@pytest.mark.parametrize("rule", ConformanceRule)
def test_rule_when_its_example_is_played_is_proved(rule: ConformanceRule) -> None:
    """The real engine follows each rule in its example, and the runner names exactly that rule."""
    level, steps, answer = EXAMPLES[rule]
    (found,) = differences(PythonEngine(ChosenShard), *steps, level=level)
    assert (found.step, found.actual, found.rule_names) == (len(steps), answer, rule)


@pytest.mark.parametrize("rule", ConformanceRule)
def test_rule_when_switched_on_alone_changes_its_example(rule: ConformanceRule) -> None:
    """Each rule alone changes its example in the model from Kafka's answer to the difference."""
    level, steps, answer = EXAMPLES[rule]
    assert not differences(ModelEngine(KAFKA), *steps, level=level)
    (found,) = differences(ModelEngine(frozenset({rule})), *steps, level=level)
    assert (found.actual, found.rule_names) == (answer, rule)


@pytest.mark.parametrize("rule", ConformanceRule)
def test_rule_when_documented_has_every_text(rule: ConformanceRule) -> None:
    """Every rule has title, both behaviours, reason and example."""
    text = RULE_TEXTS[rule]
    assert all((text.title, text.kafka, text.rlmm, text.reason, text.example))


@pytest.mark.parametrize("rule", ConformanceRule)
@pytest.mark.parametrize(
    "lie", ["zz", 7, True, ["zz"], {"error": "not_ready"}, {"answer": None}], ids=repr
)
def test_wrong_answer_when_no_rule_gives_it_fails(rule: ConformanceRule, lie: Json) -> None:
    """An answer that no set of rules gives fails, also where a rule allows another answer."""
    level, steps, _ = EXAMPLES[rule]
    op = str(steps[-1]["op"])
    found = differences(Liar(KAFKA, op, lie), *steps, level=level)[-1]
    assert found.step == len(steps)
    assert found.actual == lie
    assert found.rules is None


def test_wrong_answer_when_scenario_is_marked_quirk_still_fails() -> None:
    """A wrong answer fails in a scenario marked as a quirk too, since only a proof excuses it."""
    steps = [*LATE_SHORTER_COPY, ask("get", "b", epoch=0, offset=50)]
    (found,) = differences(Liar(KAFKA, "get", "a"), *steps)
    assert found.rules is None


@pytest.mark.parametrize("lie", [True, 1.0, "1"], ids=["bool", "float", "text"])
def test_right_answer_when_given_of_the_wrong_type_fails(lie: bool | float | str) -> None:
    """An answer of the wrong type fails, as True for 1 or text for a number."""
    steps = [*copied("a", 0, 1), ask("highest", 1, epoch=0)]
    assert not differences(ModelEngine(), *steps)
    (found,) = differences(Liar(KAFKA, "highest", lie), *steps)
    assert found.rules is None


def test_expectation_when_the_model_does_not_give_it_is_never_proved() -> None:
    """A wrong expectation is explained by no rule, even if the engine's answer is a rule's."""
    steps = [*LATE_SHORTER_COPY, ask("get", "zz", epoch=0, offset=150)]
    (found,) = differences(PythonEngine(ChosenShard), *steps)
    assert (found.actual, found.rules) == ("a", None)


def test_difference_when_two_rules_are_needed_names_both() -> None:
    """Where one rule alone does not give the answer, the smallest set that does is named."""
    illegal: Step = {"expect": {"error": "illegal_state"}}
    steps = [
        *[step | illegal for step in LATE_SHORTER_COPY],
        ask("load", "ok"),
        ask("mark_initialized", "ok"),
        ask("get", None, epoch=0, offset=150),
    ]
    found = differences(PythonEngine(ChosenShard), *steps, level="store")[-1]
    assert found.actual == "a"
    assert found.rule_names == "cover-lookup + shard-holds-all"


def test_fixed_expectation_when_met_passes_and_kafka_s_own_answer_fails() -> None:
    """A fixed expectation is the only accepted answer, and Kafka's own fails there."""
    listing = ask("list_epoch", ["c", "b"], epoch=0) | {"expect_fixed": ["c", "a", "b"]}
    steps = [*TAIL_PRESENT, listing]
    assert not differences(ModelEngine(frozenset({ConformanceRule.KAFKA_20932})), *steps)
    (found,) = differences(ModelEngine(KAFKA), *steps)
    assert found.expected == ["c", "a", "b"]
    assert found.rules is None


def test_fixed_expectation_when_another_rule_differs_names_only_that_rule() -> None:
    """A difference names only the differing rule, not those that the expectation includes."""
    steps = [*LATE_SHORTER_COPY, ask("get", None, epoch=0, offset=150) | {"expect_fixed": None}]
    (found,) = differences(PythonEngine(ChosenShard), *steps)
    assert found.rule_names == "cover-lookup"


def test_step_when_an_earlier_one_differs_is_still_played() -> None:
    """Steps after a failed one are played and judged as well."""
    steps = [
        *copied("a", 0, 9),
        ask("get", "zz", epoch=0, offset=5),
        ask("highest", 8, epoch=0),
        ask("list", ["a"]),
    ]
    assert [found.op for found in differences(ModelEngine(), *steps)] == ["get", "highest"]


def test_listing_when_ids_tie_may_come_in_any_order() -> None:
    """A listing may have ids with equal offsets in any order."""
    ties = [add("s0", 0, 10), add("s1", 0, 20), add("s2", 5, 30, {"0": 5})]
    listing = ask("list_epoch", {"error": "not_found"}, epoch=0)
    again = [add("d", 0, 9, {"0": 0}), add("d", 0, 9, {"1": 0}), update("d", DELETE_STARTED)]
    steps = [*ties, *again, update("d", "DELETE_SEGMENT_FINISHED"), listing]
    right: list[Json] = [["s0", "s1", "s2"], ["s1", "s0", "s2"]]
    wrong: list[Json] = [["s2", "s0", "s1"], ["s0", "s0", "s2"]]
    for order in right:
        (found,) = differences(Liar(KAFKA, "list_epoch", order), *steps)
        assert found.rule_names == "no-dangling-ids"
    for order in wrong:
        (found,) = differences(Liar(KAFKA, "list_epoch", order), *steps)
        assert found.rules is None
