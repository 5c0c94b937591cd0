"""`rlmm tier` about topics whose copying is off: open windows and early refusals."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from spark_tiering.adopt.journal import AdoptionStep
from spark_tiering.adopt.journal_store import JournalBook
from spark_tiering.job_registry.job_store import JobStore, JobTopic
from spark_tiering.stores.opening import open_store
from tests.support.cli.tier_command import Command
from tests.support.tier.job_folders import ORDERS, TierPlace

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

    from spark_tiering.adopt.journal import AdoptionJournal

pytestmark = pytest.mark.usefixtures("bare_environment")
TOPIC = JobTopic(ORDERS.topic, ORDERS.topic_id)
TROUBLE = "brokers did not go on behind the last copies"


@pytest.fixture
def tier(tmp_path: Path) -> Command:
    found = Command(TierPlace(tmp_path))
    assert found.run().exit_code == 0
    return found


def shown(tier: Command) -> dict[str, list[dict[str, str]]]:
    told: dict[str, list[dict[str, str]]] = json.loads(status(tier, "--output", "json").stdout)
    return told


def status(tier: Command, *more: str) -> Result:
    return tier("status", *tier.store, *more)


def journal(
    tier: Command, *steps: AdoptionStep, newest: AdoptionJournal | None = None
) -> AdoptionJournal:
    (job_id,) = (one["jobId"] for one in shown(tier)["jobs"])
    with open_store(tier.place.store_settings) as store:
        kept = JobStore(store, "")
        book = JournalBook(kept, TOPIC)
        if newest is None:
            newest = book.first(None, "cluster", job_id, {"retention.ms": "1000"}, {0: 0})
            book.write(newest)
        for step in steps:
            newest = newest.to(step, job_id, kept.now_ms(), TROUBLE)
            book.write(newest)
    return newest


def test_status_when_a_window_was_left_open_then_names_it_until_it_is_closed(tier: Command) -> None:
    """The status of an open window shows topic, step, job and trouble with exit code 1."""
    assert status(tier).exit_code == 0
    left = journal(tier, AdoptionStep.OPEN)
    said = status(tier)
    assert said.exit_code == 1
    _, _, windows = said.stdout.partition("topics whose copying and retention are off\n")
    for word in (TOPIC.name, left.step.value, left.job_id, "ended"):
        assert word in windows
    assert f"{TOPIC.name}: {TROUBLE}\n" in windows
    (row,) = shown(tier)["windows"]
    assert (row["topic"], row["step"], row["jobId"]) == (TOPIC.name, "open", left.job_id)
    assert (row["standing"], row["trouble"]) == ("ended", TROUBLE)
    journal(tier, AdoptionStep.CLOSING, AdoptionStep.RESTORING, AdoptionStep.CLOSED, newest=left)
    said = status(tier)
    assert (said.exit_code, "copying and retention" in said.stdout) == (0, False)
    assert shown(tier)["windows"] == []


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("run", "--adopt"), "--topic"),
        (("run", "--adopt", "--topic", "orders"), "--bootstrap-server"),
        (("adopt", "resume", "orders"), "--bootstrap-server"),
        (("adopt", "abort", "orders"), "--bootstrap-server"),
    ],
    ids=["no-topic", "run-offline", "resume-offline", "abort-offline"],
)
def test_impossible_adoption_refused(tier: Command, arguments: tuple[str, ...], word: str) -> None:
    """An adoption without consent by topic name, or without a cluster, is refused in one line."""
    before = tier.place.objects()
    result = tier(*arguments, *tier.flags())
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.splitlines()
    assert word in line
    assert tier.place.objects() == before
