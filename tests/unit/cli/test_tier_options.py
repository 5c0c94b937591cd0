"""From flags of `rlmm tier` to the request of a job."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest
from click.testing import CliRunner

from rlmm.cli.tier_common.object_store import StoreChoice
from rlmm.cli.tier_common.options import (
    DECIDED_BY_PLANS,
    adopting,
    flags_given,
    job_options,
    only_looking,
    store_options,
)
from rlmm.errors import ConfigError
from spark_tiering.copy_job.request import NO_BROKER, ClusterAccess, JobRequest
from spark_tiering.copy_plan.reasons import CopyMode
from spark_tiering.copy_plan.rules import OBJECTS_MAX, Budgets, SegmentSelection
from spark_tiering.execution.settings import SUBMITTED, ExecutionSettings
from spark_tiering.executor.tasks import CopyOptions
from spark_tiering.executor.throttle import UNBOUND, PaceLimits
from spark_tiering.segment_sources.settings import LogDirSettings, SidecarSourceSettings
from spark_tiering.stores.local_settings import LocalSettings
from spark_tiering.stores.s3_settings import BucketEncryption, S3Settings
from spark_tiering.tier_metadata.settings import EmbeddedAccess, SidecarAccess

if TYPE_CHECKING:
    from collections.abc import Callable

FEWEST = ("--log-dir", "/kafka", "--offline", "--embedded", "/archive", "--store", "/objects")


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("RLMM_", "PYSPARK_"))]:
        monkeypatch.delenv(name)


def handed_over(options: Callable[[Any], Any], *flags: str) -> Any:
    given: list[Any] = []

    @click.command()
    @options
    def command(value: Any) -> None:
        given.append(value)

    result = CliRunner().invoke(command, flags)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return given[0]


def request(*flags: str, fewest: tuple[str, ...] = FEWEST) -> JobRequest:
    found = handed_over(job_options, *fewest, *flags)
    assert isinstance(found, JobRequest)
    return found


def without(*names: str) -> tuple[str, ...]:
    left: list[str] = []
    flags = iter(FEWEST)
    for flag in flags:
        pair = [flag] if flag == "--offline" else [flag, next(flags)]
        left += [] if flag in names else pair
    return tuple(left)


def test_job_when_only_what_must_be_said_is_said_then_is_an_archive_of_everything() -> None:
    """The defaults are an archive of all topics: plain, without limits and without a broker."""
    found = request()
    archive = EmbeddedAccess(folder=Path("/archive/log"), snapshots=Path("/archive/snapshots"))
    assert (found.mode, found.source) == (CopyMode.ARCHIVE, LogDirSettings(("/kafka",)))
    assert (found.metadata, found.cluster) == (archive, None)
    assert (found.store, found.prefix) == (LocalSettings(Path("/objects")), "")
    assert (found.filters, found.budgets) == (SegmentSelection(), Budgets(None, OBJECTS_MAX, None))
    assert (found.options, found.pace, found.broker_id) == (CopyOptions(), UNBOUND, NO_BROKER)
    assert (found.stop_file, found.time_limit_s) == ("", None)
    assert (found.engine.master or "").startswith("local[")


def test_job_when_everything_is_said_then_is_as_it_was_said() -> None:
    """Amounts with units, patterns more than once, limits of the whole."""
    found = request(
        *("--topic", "orders", "--topic", "logs-*", "--without-topic", "logs-debug"),
        *("--min-age", "12h", "--keep-local", "10GiB", "--max-bytes", "1TB"),
        *("--max-objects", "300", "--max-requests", "1000", "--broker-id", "7"),
        *("--compress", "--chunk-size", "1MiB", "--max-mb-per-s", "80"),
        *("--max-requests-per-s", "50", "--stop-file", "/stop", "--time-limit", "2h"),
        *("--segment-timeout", "90s", "--no-spark"),
    )
    assert found.filters == SegmentSelection(
        ("orders", "logs-*"), ("logs-debug",), 12 * 3_600_000, 10 * 2**30
    )
    assert found.budgets == Budgets(10**12, 300, 1000)
    assert found.broker_id == 7
    assert found.options == CopyOptions(is_compressed=True, chunk_bytes=2**20)
    assert found.pace == PaceLimits(80e6, 50.0)
    assert (found.stop_file, found.time_limit_s, found.waits.unit_s) == ("/stop", 7_200.0, 90.0)
    assert found.engine == ExecutionSettings()


def test_log_folders_when_they_are_relative_then_executors_find_them_as_well() -> None:
    """The job turns relative log folders into absolute paths, because executors run elsewhere."""
    found = request("--log-dir", "data", fewest=without("--log-dir"))
    assert found.source == LogDirSettings((str(Path("data").absolute()),))


def test_sidecars_as_source_when_named_then_with_what_they_are_reached_by() -> None:
    """Addresses, the token's file, authorities, our certificate and its key."""
    found = request(
        *("--source-sidecar", "https://a:1", "--source-sidecar", "https://b:2"),
        *("--source-token-file", "/token", "--source-ca-file", "/ca"),
        *("--source-cert-file", "/cert", "--source-key-file", "/key"),
        fewest=without("--log-dir"),
    )
    assert found.source == SidecarSourceSettings(
        ("https://a:1", "https://b:2"), "/ca", "/cert", "/key", "/token"
    )


def test_metadata_when_a_service_has_it_then_is_asked_by_its_address() -> None:
    """A socket or TCP, a token in a file, and certificates."""
    fewest = without("--embedded")
    found = request("--sidecar", "host:7420", "--sidecar-ca-file", "/ca", fewest=fewest)
    assert found.metadata == SidecarAccess("host:7420", ca_file="/ca")
    found = request("--sidecar", "/run/s", "--sidecar-token-file", "/token", fewest=fewest)
    assert found.metadata == SidecarAccess("/run/s", token_file="/token")


def test_cluster_when_named_alone_then_has_the_metadata_as_well() -> None:
    """The job reads the cluster's metadata topic itself unless a service or a folder is given."""
    fewest = without("--embedded", "--offline")
    flags = ("--bootstrap-server", "a:9092", "--command-config", "/client.properties")
    found = request(*flags, fewest=fewest)
    assert found.cluster == ClusterAccess("a:9092", "/client.properties")
    assert found.metadata == EmbeddedAccess(
        bootstrap_servers="a:9092", command_config=Path("/client.properties")
    )
    found = request(*flags, fewest=without("--offline"))
    assert isinstance(found.metadata, EmbeddedAccess)
    assert found.metadata.folder == Path("/archive/log")


def test_bucket_when_named_then_with_everything_that_is_said_of_it() -> None:
    """The prefix behind the bucket goes into keys unchanged."""
    choice = handed_over(
        store_options,
        *("--store", "s3://bucket/kafka/", "--endpoint", "http://e:1", "--region", "eu"),
        *("--profile", "p", "--path-style", "--store-ca-file", "/ca"),
        *("--encryption", "sse-kms", "--kms-key-id", "k", "--requester-pays"),
        *("--storage-class", "STANDARD_IA", "--no-conditional-puts"),
    )
    assert choice == StoreChoice(
        S3Settings(
            "bucket",
            endpoint="http://e:1",
            region="eu",
            profile="p",
            is_path_style=True,
            ca_file="/ca",
            encryption=BucketEncryption.KMS,
            kms_key_id="k",
            is_requester_pays=True,
            storage_class="STANDARD_IA",
            has_conditional_puts=False,
        ),
        "kafka/",
    )


def test_spark_when_asked_for_then_with_its_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A master, settings by name, a log; under spark-submit it is spark-submit's."""
    found = request("--master", "yarn", "--spark-conf", "a.b=c=d", "--spark-log", "/log")
    assert found.engine == ExecutionSettings("yarn", conf={"a.b": "c=d"}, log_file="/log")
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert request().engine.master == SUBMITTED


@pytest.mark.parametrize(
    ("flags", "fewest", "says"),
    [
        ((), without("--log-dir"), "name one of the two"),
        (("--source-sidecar", "https://a:1"), FEWEST, "name one of the two"),
        (("--bootstrap-server", "a:9092"), FEWEST, "--offline"),
        ((), without("--offline"), "--bootstrap-server"),
        (("--sidecar", "a:1"), FEWEST, "not in both"),
        ((), without("--embedded"), "name the metadata"),
        (("--no-spark", "--master", "yarn"), FEWEST, "contradict"),
        (("--spark-conf", "nothing"), FEWEST, "NAME=VALUE"),
        (("--spark-conf", "=x"), FEWEST, "NAME=VALUE"),
        (("--store", "s3://b/one/", "--prefix", "two/"), without("--store"), "two prefixes"),
        (("--store", "s3://me:secret@b/"), without("--store"), "neither user, password"),
        (("--topic", "a b"), FEWEST, "a b"),
    ],
)
def test_flags_that_contradict_when_given_then_are_refused(
    flags: tuple[str, ...], fewest: tuple[str, ...], says: str
) -> None:
    """The error comes before any I/O and shows no secret."""
    with pytest.raises(Exception, match=says) as raised:
        request(*flags, fewest=fewest)
    assert getattr(raised.value, "exit_code", None) == 2
    assert "secret" not in str(raised.value)


def test_flags_of_a_job_when_listed_then_none_takes_a_secret() -> None:
    """Secrets are in files, or where boto3 looks for them."""
    options = click.command()(job_options(lambda value: None)).params
    takes_a_value = [one.name or "" for one in options if not getattr(one, "is_flag", False)]
    secrets = re.compile(r".*(token|password|secret|key).*(?<!_file)(?<!_id)")
    assert not [name for name in takes_a_value if secrets.fullmatch(name)]
    assert set(DECIDED_BY_PLANS) < {one.name or "" for one in options}


def test_job_that_only_looks_when_made_of_another_then_makes_no_folder() -> None:
    """A dry run keeps all other options, and never creates a bucket or a folder."""
    found = only_looking(request())
    assert found.store == LocalSettings(Path("/objects"), is_made=False)
    assert isinstance(found.metadata, EmbeddedAccess)
    assert not found.metadata.is_begun
    elsewhere = request("--sidecar", "a:1", fewest=without("--embedded"))
    assert only_looking(elsewhere).metadata == elsewhere.metadata


def test_job_for_brokers_when_made_of_another_then_needs_the_cluster() -> None:
    """A job that brokers adopt needs the cluster for its plan."""
    with pytest.raises(ConfigError, match="need the cluster"):
        adopting(request())
    found = adopting(request("--bootstrap-server", "a:9092", fewest=without("--offline")))
    assert found.mode is CopyMode.ADOPT


def test_flags_given_when_asked_for_then_are_those_of_the_command_line() -> None:
    """The list of given flags leaves out defaults and variables."""
    told: list[list[str]] = []

    @click.command(context_settings={"auto_envvar_prefix": "JOB"})
    @job_options
    def command(value: Any) -> None:
        told.append(flags_given(DECIDED_BY_PLANS))

    runner = CliRunner(env={"JOB_MIN_AGE": "7d"})
    runner.invoke(command, [*FEWEST, "--topic", "a", "--max-bytes", "1GB"])
    assert told == [["--topic", "--max-bytes"]]


@pytest.mark.parametrize(
    "flags",
    [
        ("--endpoint", "http://minio:9000"),
        ("--path-style",),
        ("--encryption", "sse-kms"),
        ("--storage-class", "STANDARD_IA"),
        ("--requester-pays",),
    ],
    ids=lambda flags: flags[0],
)
def test_folder_when_something_is_said_of_a_bucket_then_is_refused(flags: tuple[str, ...]) -> None:
    """Bucket options without `s3://` are refused, so no folder is made by mistake."""
    with pytest.raises(ConfigError, match=r"the store my-bucket is a folder.*s3://BUCKET"):
        handed_over(store_options, "--store", "my-bucket", *flags)
    assert isinstance(handed_over(store_options, "--store", "s3://b/", *flags), StoreChoice)
