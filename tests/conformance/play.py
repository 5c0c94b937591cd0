"""Scenarios written by hand, and engines that answer wrongly on purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm_conformance.corpus import Scenario, parse_corpus
from rlmm_conformance.model_engine import ModelEngine
from rlmm_conformance.runner import run_scenario

if TYPE_CHECKING:
    from rlmm_conformance.engine import EngineUnderTest
    from rlmm_conformance.fields import Json
    from rlmm_conformance.report import AnswerDifference
    from rlmm_conformance.rules import Rules
    from rlmm_conformance.steps import Operation

Step = dict[str, "Json"]

FINISHED = "COPY_SEGMENT_FINISHED"
DELETE_STARTED = "DELETE_SEGMENT_STARTED"
DELETE_FINISHED = "DELETE_SEGMENT_FINISHED"


def add(label: str, start: int, end: int, epochs: dict[str, Json] | None = None) -> Step:
    listed: dict[str, Json] = {"0": start} if epochs is None else epochs
    return {
        "op": "add", "id": label, "start": start, "end": end, "epochs": listed, "expect": "applied",
    }  # fmt: skip


def update(label: str, state: str, expect: Json = "applied") -> Step:
    return {"op": "update", "id": label, "state": state, "expect": expect}


def copied(label: str, start: int, end: int, epochs: dict[str, Json] | None = None) -> list[Step]:
    return [add(label, start, end, epochs), update(label, FINISHED)]


def deleted(label: str) -> list[Step]:
    return [update(label, DELETE_STARTED), update(label, DELETE_FINISHED)]


def ask(op: str, expect: Json, **arguments: Json) -> Step:
    return {"op": op, **arguments, "expect": expect}


def scenario(*steps: Step, level: str = "cache") -> Scenario:
    entry: Step = {"name": "by_hand", "level": level, "steps": list(steps)}
    if level == "cache":
        entry["initialized"] = True
    return parse_corpus("by_hand.json", [entry]).scenarios[0]


def differences(
    engine: EngineUnderTest, *steps: Step, level: str = "cache"
) -> list[AnswerDifference]:
    return list(run_scenario(engine, scenario(*steps, level=level)))


class Liar(ModelEngine):
    def __init__(self, rules: Rules, op: str, lie: Json) -> None:
        super().__init__(rules)
        self._op = op
        self._lie = lie

    def step(self, operation: Operation) -> Json:
        answer = super().step(operation)
        return self._lie if operation.op == self._op else answer
