"""`rlmm tier` with impossible input, and open windows: one line, and nothing published."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from rlmm.cli.main import cli
from rlmm.errors import EngineUnfit
from rlmm.metadata.assignment import Assignment
from spark_tiering.adopt.journal import AdoptionStep
from spark_tiering.adopt.journal_store import JournalBook
from spark_tiering.job_registry.job_store import JobStore, JobTopic
from spark_tiering.stores.opening import open_store
from spark_tiering.tier_metadata.settings import SidecarAccess
from tests.support.cli.tier_command import Command, said_on_stderr, trees
from tests.support.server.memory_service import ServedMetadata
from tests.support.stores.s3_stub_requests import BUCKET, Trouble
from tests.support.tier.job_folders import JOBS, ORDERS, PAYMENTS, TierPlace

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

    from spark_tiering.adopt.journal import AdoptionJournal
    from tests.support.stores.s3_stub import ObjectStub


pytestmark = pytest.mark.usefixtures("bare_environment")


@pytest.fixture
def tier(place: TierPlace) -> Command:
    return Command(place)


NO_JAVA: dict[str, str | None] = {"no_spark": None, "master": "local[1]"}
BAD: dict[str, tuple[int, str, dict[str, str | None]]] = {
    "no log folder": (2, "is no log folder of a broker", {"log_dir": "{folder}/empty"}),
    "partition as log folder": (2, "name the folder above it", {"log_dir": "{partition}"}),
    "absent log folder": (2, "config: ", {"log_dir": "{folder}/nowhere"}),
    "no folder for the store": (3, "store-absent: ", {"store": "{folder}/not/mounted"}),
    "unknown store": (2, "is no store", {"store": "gs://bucket/prefix"}),
    "two prefixes": (2, "two prefixes", {"store": "s3://bucket/one/", "prefix": "two/"}),
    "no source": (2, "name one of the two", {"log_dir": None}),
    "no metadata": (2, "name the metadata", {"embedded": None}),
    "two metadata": (2, "not in both", {"sidecar": "localhost:1"}),
    "offline and not": (2, "--offline", {"bootstrap_server": "localhost:1"}),
    "spark and not": (2, "contradict each other", {"master": "local[2]"}),
    "report that is there": (2, "File exists", {"report": "{folder}/report.json"}),
    "report nowhere": (2, "No such file", {"report": "{folder}/nowhere/report.json"}),
    "no plan": (2, "report.json: ", {"plan": "{folder}/report.json"}),
    "plan of another prefix": (2, "is for the prefix ''", {"plan": "{saved}", "prefix": "other/"}),
    "plan and a topic": (2, "about --topic", {"plan": "{saved}", "topic": "orders"}),
    "plan and dry run": (2, "contradict each other", {"plan": "{saved}", "dry_run": ""}),
    "no socket": (3, "sidecar-unavailable: ", {"embedded": None, "sidecar": "{folder}/socket"}),
    "no address": (2, "config: ", {"embedded": None, "sidecar": "somewhere"}),
    "foreign folder": (2, "which is no part of a metadata log", {"embedded": "{folder}/home"}),
    "no java": (3, "engine-unfit: ", NO_JAVA),
    "no java for a saved plan": (3, "engine-unfit: ", {"plan": "{saved}", **NO_JAVA}),
}


@pytest.mark.parametrize(("exit_code", "why", "changes"), BAD.values(), ids=BAD)
def test_bad_input_when_given_then_is_one_line_and_nothing_is_published(
    tier: Command,
    exit_code: int,
    why: str,
    changes: dict[str, str | None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bad input gives one line with its exit code, and nothing is published."""
    folder, saved = tier.place.folder, str(tier.place.folder / "plan.json")
    (folder / "empty").mkdir()
    (folder / "home" / "log").mkdir(parents=True)
    (folder / "home" / "log" / "notes").write_text("mine")
    (folder / "report.json").write_text("{}")
    if changes.get("plan") == "{saved}":
        assert tier.plan(save=saved).exit_code == 0
    named = {"folder": folder, "saved": saved, "partition": tier.place.file("")}
    changes = {flag: value and value.format_map(named) for flag, value in changes.items()}
    monkeypatch.setattr("spark_tiering.execution.session.find_java", _no_java)
    monkeypatch.setattr(
        "rlmm.cli.tier_common.options.SidecarAccess", partial(SidecarAccess, timeout_ms=200)
    )
    before = trees(tier.place)
    result = tier.run(**changes)
    assert result.exit_code == exit_code, result.output
    (line,) = said_on_stderr(result)
    assert line.startswith("rlmm: ")
    assert why in line
    assert not result.stdout
    assert trees(tier.place) == before


def _no_java(*_: object) -> None:
    raise EngineUnfit("no Java of version 17 or newer was found")


@pytest.mark.parametrize("kind", ["credentials-absent", "store-absent", "store-not-permitted"])
@pytest.mark.parametrize(
    ("command", "denied"),
    [("plan", "ListObjectsV2"), ("run", "ListObjectsV2"), ("run", "PutObject")],
)
def test_bucket_that_cannot_be_used_when_named_then_is_told_before_segments_are_read(
    tier: Command,
    stub: ObjectStub,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    command: str,
    denied: str,
) -> None:
    """An unusable bucket is one line of plan and run, before they read a segment or publish."""
    bucket = BUCKET
    if kind == "credentials-absent":
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    elif kind == "store-absent":
        bucket = "nobody-made-this"
    else:
        stub.befall(denied, *[Trouble.DENIED] * 9)
    if denied == "ListObjectsV2":
        for module in ("planning", "job"):
            monkeypatch.setattr(f"spark_tiering.copy_job.{module}.plan_now", None)
    before = trees(tier.place)
    more = ("--path-style", "--region", "us-east-1")
    ask = tier.plan if command == "plan" else tier.run
    result = ask(*more, store=f"s3://{bucket}/tier/", endpoint=stub.endpoint)
    assert result.exit_code == 3, result.output
    (line,) = said_on_stderr(result)
    assert line.startswith(f"rlmm: {kind}: s3://{bucket}")
    assert trees(tier.place) == before
    assert not stub.objects


@pytest.mark.parametrize("command", ["plan", "run"])
def test_f109_torn_segment_is_named_and_others_are_copied(tier: Command, command: str) -> None:
    """A torn segment is named in one line without events, and others are copied."""
    log = tier.place.file("00000000000000000000.log")
    log.write_bytes(log.read_bytes()[:-100])
    result = tier.run() if command == "run" else tier.plan()
    assert result.exit_code == (1 if command == "run" else 0)
    (line,) = said_on_stderr(result)
    assert "orders-3: 0 to 119 (1 segments" in line
    assert "cannot be copied, blocked: " in line
    if command == "run":
        assert "cannot be copied" in result.stdout
        assert "2 of 2 segments finished" in result.stdout
        assert [one.id.partition for one in tier.place.check()] == [PAYMENTS] * 2


@pytest.mark.parametrize("command", ["status", "sweep", "pause JOB"])
def test_command_about_jobs_when_the_store_is_mistyped_then_says_so(
    tmp_path: Path, command: str
) -> None:
    """A command that looks at jobs names a folder that does not exist, and makes none."""
    store = tmp_path / "nowhere"
    result = CliRunner().invoke(cli, ["tier", *command.split(), "--store", str(store)])
    assert (result.exit_code, "store-absent" in result.stderr) == (3, True), result.output
    assert not store.exists()


def test_metadata_when_the_default_service_is_absent_then_flags_are_named(tmp_path: Path) -> None:
    """A maintenance command without a source names the flags for one."""
    result = CliRunner().invoke(cli, ["tier", "verify", "--store", str(tmp_path), "--no-spark"])
    assert result.exit_code == 3
    assert "name the metadata: --sidecar, --bootstrap-server, --log-dirs or" in result.stderr


def test_service_that_is_not_assigned_when_asked_then_is_one_line(tmp_path: Path) -> None:
    """A service that is not assigned the partitions is one line, and nothing is written."""
    with ServedMetadata(Assignment.of_metadata([])) as served:
        tier = Command(TierPlace(tmp_path))
        result = tier.run(embedded=None, sidecar=served.address)
    assert result.exit_code == 3
    (line,) = said_on_stderr(result)
    assert line.startswith("rlmm: not-assigned: ")
    assert not tier.place.objects(JOBS)


def test_archive_that_another_process_has_when_asked_for_then_is_one_line(tier: Command) -> None:
    """The second job on an embedded log begins nothing and names the process that holds it."""
    with tier.place.opened():
        before = trees(tier.place)
        result = tier.run()
        assert trees(tier.place) == before
    assert result.exit_code == 2
    (line,) = said_on_stderr(result)
    assert line.startswith("rlmm: folder-in-use: ")
    assert not tier.place.objects(JOBS)


TOPIC = JobTopic(ORDERS.topic, ORDERS.topic_id)
TROUBLE = "brokers did not go on behind the last copies"


@pytest.fixture
def copied_tier(tmp_path: Path) -> Command:
    found = Command(TierPlace(tmp_path))
    assert found.run().exit_code == 0
    return found


def shown(copied_tier: Command) -> dict[str, list[dict[str, str]]]:
    told: dict[str, list[dict[str, str]]] = json.loads(
        status(copied_tier, "--output", "json").stdout
    )
    return told


def status(copied_tier: Command, *more: str) -> Result:
    return copied_tier("status", *copied_tier.store, *more)


def journal(
    copied_tier: Command, *steps: AdoptionStep, newest: AdoptionJournal | None = None
) -> AdoptionJournal:
    (job_id,) = (one["jobId"] for one in shown(copied_tier)["jobs"])
    with open_store(copied_tier.place.store_settings) as store:
        kept = JobStore(store, "")
        book = JournalBook(kept, TOPIC)
        if newest is None:
            newest = book.first(None, "cluster", job_id, {"retention.ms": "1000"}, {0: 0})
            book.write(newest)
        for step in steps:
            newest = newest.to(step, job_id, kept.now_ms(), TROUBLE)
            book.write(newest)
    return newest


def test_status_when_a_window_was_left_open_then_names_it(copied_tier: Command) -> None:
    """The status of an open window shows topic, step, job and trouble with exit code 1."""
    assert status(copied_tier).exit_code == 0
    left = journal(copied_tier, AdoptionStep.OPEN)
    said = status(copied_tier)
    assert said.exit_code == 1
    _, _, windows = said.stdout.partition("topics whose copying and retention are off\n")
    for word in (TOPIC.name, left.step.value, left.job_id, "ended"):
        assert word in windows
    assert f"{TOPIC.name}: {TROUBLE}\n" in windows
    (row,) = shown(copied_tier)["windows"]
    assert (row["topic"], row["step"], row["jobId"]) == (TOPIC.name, "open", left.job_id)
    assert (row["standing"], row["trouble"]) == ("ended", TROUBLE)
    journal(
        copied_tier, AdoptionStep.CLOSING, AdoptionStep.RESTORING, AdoptionStep.CLOSED, newest=left
    )
    said = status(copied_tier)
    assert (said.exit_code, "copying and retention" in said.stdout) == (0, False)
    assert shown(copied_tier)["windows"] == []


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
def test_impossible_adoption(copied_tier: Command, arguments: tuple[str, ...], word: str) -> None:
    """An adoption without consent by topic name, or without a cluster, is refused in one line."""
    before = copied_tier.place.objects()
    result = copied_tier(*arguments, *copied_tier.flags())
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.splitlines()
    assert word in line
    assert copied_tier.place.objects() == before
