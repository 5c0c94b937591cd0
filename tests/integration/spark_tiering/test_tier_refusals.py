"""`rlmm tier` with impossible input: one line, the exit code of its kind, and nothing published."""

from __future__ import annotations

from dataclasses import dataclass
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
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.stores.s3_stub import ObjectStub

pytestmark = pytest.mark.usefixtures("bare_environment")


@pytest.fixture
def tier(place: TierPlace) -> Command:
    return Command(place)


@dataclass(frozen=True)
class Bad:
    exit_code: int
    says: str
    changes: dict[str, str | None]
    more: tuple[str, ...] = ()


def no_log_folder(place: TierPlace) -> Bad:
    (place.folder / "empty").mkdir()
    return Bad(2, "is no log folder of a broker", {"log_dir": str(place.folder / "empty")})


def partition_instead_of_log_folder(place: TierPlace) -> Bad:
    return Bad(2, "name the folder above it", {"log_dir": str(place.file(""))})


def absent_log_folder(place: TierPlace) -> Bad:
    return Bad(2, "config: ", {"log_dir": str(place.folder / "nowhere")})


def no_such_folder_for_the_store(place: TierPlace) -> Bad:
    return Bad(3, "store-absent: ", {"store": str(place.folder / "not" / "mounted")})


def unknown_store(place: TierPlace) -> Bad:
    return Bad(2, "is no store", {"store": "gs://bucket/prefix"})


def two_prefixes(place: TierPlace) -> Bad:
    return Bad(2, "two prefixes", {"store": "s3://bucket/one/", "prefix": "two/"})


def no_source(place: TierPlace) -> Bad:
    return Bad(2, "name one of the two", {"log_dir": None})


def no_metadata(place: TierPlace) -> Bad:
    return Bad(2, "name the metadata", {"embedded": None})


def two_metadata(place: TierPlace) -> Bad:
    return Bad(2, "not in both", {"sidecar": "localhost:1"})


def offline_and_not(place: TierPlace) -> Bad:
    return Bad(2, "--offline", {"bootstrap_server": "localhost:1"})


def spark_and_not(place: TierPlace) -> Bad:
    return Bad(2, "contradict each other", {"master": "local[2]"})


def report_that_is_there(place: TierPlace) -> Bad:
    (place.folder / "report.json").write_text("somebody's")
    return Bad(2, "File exists", {"report": str(place.folder / "report.json")})


def report_nowhere(place: TierPlace) -> Bad:
    return Bad(2, "No such file", {"report": str(place.folder / "nowhere" / "report.json")})


def plan_that_is_none(place: TierPlace) -> Bad:
    (place.folder / "plan.json").write_text("{}")
    return Bad(2, "plan.json: ", {"plan": str(place.folder / "plan.json")})


def plan_of_another_prefix(place: TierPlace) -> Bad:
    return Bad(2, "is for the prefix ''", {"plan": _saved(place), "prefix": "other/"})


def plan_and_what_it_decides(place: TierPlace) -> Bad:
    return Bad(2, "about --topic", {"plan": _saved(place)}, ("--topic", "orders"))


def plan_and_dry_run(place: TierPlace) -> Bad:
    return Bad(2, "contradict each other", {"plan": _saved(place), "dry_run": ""})


def _saved(place: TierPlace) -> str:
    file = place.folder / "plan.json"
    assert Command(place).plan(save=str(file)).exit_code == 0
    return str(file)


def nobody_at_the_address(place: TierPlace) -> Bad:
    path = str(place.folder / "no-socket")
    return Bad(3, "sidecar-unavailable: ", {"embedded": None, "sidecar": path})


def no_address(place: TierPlace) -> Bad:
    return Bad(2, "config: ", {"embedded": None, "sidecar": "somewhere"})


def folder_of_something_else(place: TierPlace) -> Bad:
    (place.folder / "home" / "log").mkdir(parents=True)
    (place.folder / "home" / "log" / "notes").write_text("mine")
    return Bad(2, "which is no part of a metadata log", {"embedded": str(place.folder / "home")})


def no_java(place: TierPlace) -> Bad:
    return Bad(3, "engine-unfit: ", {"no_spark": None, "master": "local[1]"})


def no_java_for_a_saved_plan(place: TierPlace) -> Bad:
    changes: dict[str, str | None] = {"plan": _saved(place), "no_spark": None}
    return Bad(3, "engine-unfit: ", {**changes, "master": "local[1]"})


CASES: list[Callable[[TierPlace], Bad]] = [
    no_log_folder,
    partition_instead_of_log_folder,
    absent_log_folder,
    no_such_folder_for_the_store,
    unknown_store,
    two_prefixes,
    no_source,
    no_metadata,
    two_metadata,
    offline_and_not,
    spark_and_not,
    report_that_is_there,
    report_nowhere,
    plan_that_is_none,
    plan_of_another_prefix,
    plan_and_what_it_decides,
    plan_and_dry_run,
    nobody_at_the_address,
    no_address,
    folder_of_something_else,
    no_java,
    no_java_for_a_saved_plan,
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_bad_input_when_given_then_is_one_line_and_nothing_is_published(
    tier: Command, case: Callable[[TierPlace], Bad], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bad input gives one line with its exit code, and nothing is published."""
    bad = case(tier.place)
    monkeypatch.setattr("spark_tiering.execution.session.find_java", _no_java)
    monkeypatch.setattr(
        "rlmm.cli.tier_common.options.SidecarAccess", partial(SidecarAccess, timeout_ms=200)
    )
    before = trees(tier.place)
    result = tier.run(*bad.more, **bad.changes)
    assert result.exit_code == bad.exit_code, result.output
    (line,) = said_on_stderr(result)
    assert line.startswith("rlmm: ")
    assert bad.says in line
    assert not result.stdout
    assert trees(tier.place) == before


def _no_java(*_: object) -> None:
    raise EngineUnfit("no Java of version 17 or newer was found")


@pytest.mark.parametrize("kind", ["credentials-absent", "store-absent", "store-not-permitted"])
@pytest.mark.parametrize("command", ["plan", "run"])
def test_bucket_that_cannot_be_used_when_named_then_is_told_before_segments_are_read(
    tier: Command, stub: ObjectStub, monkeypatch: pytest.MonkeyPatch, kind: str, command: str
) -> None:
    """An unusable bucket is refused by plan and run before any segment is read."""
    bucket = BUCKET
    if kind == "credentials-absent":
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    elif kind == "store-absent":
        bucket = "nobody-made-this"
    else:
        stub.befall("ListObjectsV2", *[Trouble.DENIED] * 9)
    monkeypatch.setattr("spark_tiering.copy_job.planning.plan_now", _nothing_is_planned)
    monkeypatch.setattr("spark_tiering.copy_job.job.plan_now", _nothing_is_planned)
    more = ("--path-style", "--region", "us-east-1")
    ask = tier.plan if command == "plan" else tier.run
    result = ask(*more, store=f"s3://{bucket}/tier/", endpoint=stub.endpoint)
    assert result.exit_code == 3, result.output
    (line,) = said_on_stderr(result)
    assert line.startswith(f"rlmm: {kind}: s3://{bucket}")


def _nothing_is_planned(*_: object, **__: object) -> None:
    pytest.fail("segments were read for it")


@pytest.mark.parametrize("kind", ["credentials-absent", "store-absent", "store-not-permitted"])
def test_bucket_that_cannot_be_used_when_named_then_is_one_line_and_nothing_is_published(
    tier: Command, stub: ObjectStub, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Missing credentials, bucket or rights give one line before the first event."""
    bucket = BUCKET
    if kind == "credentials-absent":
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    elif kind == "store-absent":
        bucket = "nobody-made-this"
    else:
        stub.befall("PutObject", *[Trouble.DENIED] * 9)
    before = trees(tier.place)
    more = ("--path-style", "--region", "us-east-1")
    result = tier.run(*more, store=f"s3://{bucket}/tier/", endpoint=stub.endpoint)
    assert result.exit_code == 3
    (line,) = said_on_stderr(result)
    assert line.startswith(f"rlmm: {kind}: s3://{bucket}")
    assert trees(tier.place) == before
    assert not stub.objects


@pytest.mark.parametrize("command", ["plan", "run"])
def test_f109_segment_that_is_torn_when_met_then_is_named_and_others_are_copied(
    tier: Command, command: str
) -> None:
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
