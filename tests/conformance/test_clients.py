"""The corpus of Kafka's own answers, put to every kind of client."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.metadata.assignment import Assignment
from rlmm.metadata.segment import SegmentState
from rlmm_conformance.answers import agrees
from rlmm_conformance.corpus import load_packaged
from rlmm_conformance.python_engine import PythonEngine
from rlmm_conformance.steps import (
    EpochQuery,
    OffsetQuery,
    PartitionCall,
    SegmentQuery,
    StepOperation,
    UpdateFields,
    UpdateStep,
)
from tests.support.server.client_engine import BESIDE, NOT_ON_THE_WIRE, ClientEngine
from tests.support.server.metadata_clients import KINDS, cluster_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rlmm_conformance.corpus import Scenario, ScenarioStep
    from tests.support.server.metadata_clients import Cluster

CORPUS = load_packaged()
NAMED = {
    "never published": 7,
    "readiness is the gate's": 4,
    "equal start offsets by id": 7,
    "nothing was ever stored": 2,
    "no negative numbers": 3,
    "a deleted partition stays assigned": 4,
    "custom metadata outlives deletion": 1,
}


def reason_of(step: ScenarioStep, expected: Any, actual: Any) -> str:
    operation = step.operation
    match operation:
        case UpdateStep(update=UpdateFields(state=SegmentState.COPY_SEGMENT_STARTED)):
            # It would stop a stock broker's consumer, so nobody is let write it (F59).
            return "never published" if actual == {"error": "illegal_argument"} else ""
        case EpochQuery() | OffsetQuery() if actual == {"error": "illegal_argument"}:
            numbers = (operation.epoch, getattr(operation, "offset", 0))
            return "no negative numbers" if min(numbers) < 0 else ""
        case PartitionCall(op=StepOperation.IS_READY):
            return "readiness is the gate's" if (expected, actual) == (False, True) else ""
        case EpochQuery(op=StepOperation.LIST_EPOCH):
            is_same = isinstance(actual, list) and sorted(expected) == sorted(actual)
            return "equal start offsets by id" if is_same else ""
        case SegmentQuery():
            is_kept = {**expected, "custom": actual["custom"]} == actual
            return "custom metadata outlives deletion" if is_kept else ""
        case PartitionCall() if expected == []:
            return "nothing was ever stored" if actual == {"error": "not_found"} else ""
        case _ if expected == {"error": "not_found"}:
            return "a deleted partition stays assigned" if actual in (None, []) else ""
    return ""


async def answers(
    cluster: Cluster, scenario: Scenario
) -> AsyncIterator[tuple[ScenarioStep, Any, Any]]:
    reference = PythonEngine()
    reference.begin(scenario.name, scenario.level, initialized=scenario.initialized)
    engine = ClientEngine(
        cluster, cluster.store_beside, scenario.level, initialized=scenario.initialized
    )
    await engine.begin()
    for step in scenario.steps:
        expected = reference.step(step.operation)
        if step.op is StepOperation.EPOCH_STATE:
            continue
        actual = await engine.step(step.operation)
        if step.op not in NOT_ON_THE_WIRE:
            yield step, expected, actual
    await engine.close()


@pytest.mark.parametrize("kind", KINDS)
async def test_corpus_when_asked_by_a_client_then_answered_as_by_the_engine(kind: str) -> None:
    """A client gets the engine's answer for every step, but for a few with a reason named here."""
    counts: Counter[str] = Counter()
    differing = []
    async with cluster_of(kind, Assignment.everything()) as cluster:
        for scenario in CORPUS.scenarios:
            async for step, expected, actual in answers(cluster, scenario):
                if actual == BESIDE:
                    counts["beside"] += 1
                elif agrees(step.op, expected, actual):
                    counts["same"] += 1
                elif reason := reason_of(step, expected, actual):
                    counts[reason] += 1
                else:
                    differing.append((scenario.name, step.number, step.op, expected, actual))
    assert differing == []
    assert counts == {"same": 833, "beside": 17, **NAMED}
