"""`rlmm tier` with impossible input: one line, the exit code of its kind, and nothing published."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import EngineUnfit
from rlmm.metadata.assignment import Assignment
from spark_tiering.tier_metadata.settings import SidecarAccess
from tests.support.cli.tier_command import Command, said_on_stderr, trees
from tests.support.server.memory_service import ServedMetadata
from tests.support.stores.s3_stub_requests import BUCKET, Trouble
from tests.support.tier.job_folders import JOBS, PAYMENTS, TierPlace

if TYPE_CHECKING:
    from pathlib import Path

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
