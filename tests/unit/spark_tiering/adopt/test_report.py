"""Reports of adoptions, as text and as JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec import structs

from spark_tiering.adopt.outcomes import AdoptionRefusal, RefusedTopic, TopicOutcome, TopicStatus
from spark_tiering.adopt.report import AdoptionReport
from spark_tiering.copy_job.report import CopyFate
from spark_tiering.executor.tasks import UnitOutcome
from tests.support.builders import tp
from tests.support.tier.copy_plans import cut, source
from tests.support.tier.simulated_adoption import AdoptedWorld

if TYPE_CHECKING:
    from collections.abc import Sequence


def report(*topics: TopicOutcome, stopped: str = "") -> AdoptionReport:
    return AdoptionReport("job", "adopt", 1_000, 11_000, topics, (), stopped)


def outcome_of_adoption() -> TopicOutcome:
    one = source(
        cut(0, 10, 20, is_active=True), partition=tp("orders", 0), is_tiered=True, log_start=0
    )
    return AdoptedWorld([one]).adopt()


def outcome_of_trouble() -> TopicOutcome:
    """Return an outcome in which one copy fails for good at each try."""
    one = source(
        cut(0, 10, 20, 30, is_active=True), partition=tp("orders", 0), is_tiered=True, log_start=0
    )
    found = AdoptedWorld([one])
    found.outcomes[10] = UnitOutcome.CONFLICT
    return found.adopt()


def said(topics: Sequence[TopicOutcome]) -> str:
    return "\n".join(report(*topics).lines())


def test_report_when_all_went_well_then_fine_and_says_for_how_long_copying_was_off() -> None:
    """The report of a successful adoption is fine and tells how long copying was off."""
    outcome = outcome_of_adoption()
    assert report(outcome).is_fine
    text = said([outcome])
    assert text.startswith("topic orders: adopted, 2 segments with ")
    assert "copying was off for" in text


def test_report_when_a_window_is_left_open_then_is_not_fine_and_says_what_to_do() -> None:
    """A report with a window left open is not fine and names the command to run."""
    why = RefusedTopic(AdoptionRefusal.NOT_TAKEN_UP, "within 60000 ms")
    outcome = TopicOutcome("orders", TopicStatus.LEFT_OPEN, why, window_ms=5_000)
    found = report(outcome)
    assert not found.is_fine
    assert found.left_open == ["orders"]
    assert "not-taken-up: within 60000 ms" in said([outcome])
    assert "until it is resumed or aborted" in said([outcome])


def test_report_when_a_topic_was_refused_or_not_begun_then_is_not_fine() -> None:
    """A report with a refused topic, a topic not begun or a finding is not fine."""
    refused = TopicOutcome("a", TopicStatus.REFUSED, RefusedTopic(AdoptionRefusal.NOT_TIERED, ""))
    nothing = TopicOutcome("b", TopicStatus.NOTHING_TO_DO)
    assert not report(refused).is_fine
    assert report(nothing).is_fine
    assert not report(nothing, stopped="paused").is_fine
    assert not report(TopicOutcome("c", TopicStatus.ADOPTED, findings=("moved",))).is_fine
    assert "there is no topic to adopt" in said([])


def test_report_when_a_copy_failed_then_is_not_fine_and_names_it_once() -> None:
    """A failed copy makes the report not fine and is named once, with its last reason."""
    outcome = outcome_of_trouble()
    assert outcome.standing is TopicStatus.ADOPTED
    assert not report(replace(outcome, stopped="")).is_fine
    assert [one.start_offset for one in outcome.not_copied] == [10, 20]
    lines = said([outcome]).splitlines()
    assert len([line for line in lines if "orders-0 10-19, " in line and "ended" in line]) == 1


def test_report_when_a_copy_failed_and_was_made_by_the_next_round_then_is_fine() -> None:
    """A copy that failed and succeeded in the next round leaves the report fine."""
    outcome = outcome_of_trouble()
    again = tuple(structs.replace(one, fate=CopyFate.FINISHED) for one in outcome.not_copied)
    mended = replace(outcome, receipts=(*outcome.receipts, *again), stopped="")
    assert report(mended).is_fine


def test_report_when_copying_of_a_topic_was_stopped_then_is_not_fine() -> None:
    """A report of a topic whose copying was stopped is not fine."""
    outcome = TopicOutcome("orders", TopicStatus.ADOPTED, stopped="paused", window_ms=1_000)
    assert not report(outcome).is_fine
    assert "copying ended early: paused" in said([outcome])


def test_report_when_nothing_is_wrong_but_busy_topics_then_says_so() -> None:
    """A report of busy topics alone advises a retry, unless another topic needs an operator."""
    busy = TopicOutcome(
        "a", TopicStatus.REFUSED, RefusedTopic(AdoptionRefusal.TOPIC_BUSY, "job x works on it")
    )
    other = TopicOutcome("b", TopicStatus.REFUSED, RefusedTopic(AdoptionRefusal.NOT_TIERED, ""))
    fine = TopicOutcome("c", TopicStatus.NOTHING_TO_DO)
    assert report(busy, fine).is_busy
    assert not report(busy, fine).is_fine
    for topics in ((fine,), (busy, other), ()):
        assert not report(*topics).is_busy
    assert not report(busy, stopped="paused").is_busy


def test_document_when_made_then_is_json_with_every_copy() -> None:
    """The JSON document lists every copy and the same facts as the text."""
    document = json.loads(json.dumps(report(outcome_of_adoption()).document()))
    (topic,) = document["topics"]
    assert (topic["topic"], topic["standing"], topic["why"]) == ("orders", "adopted", None)
    assert [copy["start"] for copy in topic["copies"]] == [0, 10]
    assert document["isFine"] is True
