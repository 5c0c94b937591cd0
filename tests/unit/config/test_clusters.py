"""Several clusters in one configuration: own settings, shared ones, and refusals."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from rlmm.base.secret import Secret
from rlmm.cli.common.config_options import config
from rlmm.config.key_table import KEYS
from rlmm.config.loading import load
from rlmm.config.process import LogKind, ServiceMode
from rlmm.errors import ConfigError
from rlmm.partition_log.descriptors import open_files_max_by_limit
from rlmm.process.wiring import plans_of

if TYPE_CHECKING:
    from pathlib import Path

TWO = """
data_dir = "/data"
pump.read_bytes = 5

[kafka]
security.protocol = "SASL_SSL"
sasl.mechanism = "PLAIN"
sasl.username = "me"
sasl.password = "common"

[clusters.prod]
assignment = "cluster:3"
kafka.bootstrap-servers = "a:1"
kafka.sasl.password = "s3cret"

[clusters."eu.test"]
kafka.bootstrap.servers = "b:1"
mode = "serve"
pump.read_bytes = 7

[clusters.own]
log.kind = "files"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rlmm.toml"
    path.touch(0o600)
    return path


def refused(file: Path, text: str, **sources: dict[str, str]) -> str:
    """Return the one line of the refusal."""
    file.write_text(text)
    with pytest.raises(ConfigError) as error:
        load(file=file, **sources)  # type: ignore[arg-type]
    return str(error.value).replace(str(file), "FILE")


def test_clusters_when_named_then_each_has_a_whole_configuration(file: Path) -> None:
    """The settings of a cluster override the common ones for that cluster only."""
    file.write_text(TWO)
    clusters = load(file=file).clusters
    assert list(clusters) == ["prod", "eu.test", "own"]
    prod, test, own = clusters.values()
    assert prod.kafka is not None
    assert test.kafka is not None
    assert (prod.kafka.bootstrap_servers, test.kafka.bootstrap_servers) == (("a:1",), ("b:1",))
    assert prod.kafka.security.sasl_username == test.kafka.security.sasl_username == "me"
    assert prod.kafka.security.sasl_password == Secret("s3cret")
    assert test.kafka.security.sasl_password == Secret("common")
    assert (prod.process.mode, test.process.mode) == (ServiceMode.OBSERVER, ServiceMode.SERVE)
    assert (prod.process.assignment, test.process.assignment) == ("cluster:3", "all")
    assert [each.pump.read_bytes for each in clusters.values()] == [5, 7, 5]
    assert {str(each.process.data_dir) for each in clusters.values()} == {"/data"}
    assert (own.log.kind, own.kafka) == (LogKind.FILES, None)


def test_clusters_when_none_are_named_then_there_are_none(file: Path) -> None:
    """Without the table there is one configuration."""
    file.write_text("mode = 'observer'")
    loaded = load(file=file)
    assert loaded.clusters == {}
    assert {found.cluster for found in loaded.settings} == {None}


def test_value_of_a_cluster_when_given_everywhere_then_its_own_are_above(file: Path) -> None:
    """A cluster's variable and table override flags, variables and file for all clusters."""
    file.write_text(
        "[pump]\nread_bytes = 1\nslice_events = 1\nread_timeout_ms = 1\ndamage_reads = 1\n"
        "[clusters.a.pump]\nread_bytes = 4\nslice_events = 4\n[clusters.b]\n"
    )
    environ = {"RLMM_CLUSTERS_A_PUMP_READ_BYTES": "5", "RLMM_PUMP_READ_TIMEOUT_MS": "2"}
    flags = {"pump_read_bytes": "3", "pump_slice_events": "3", "log_kind": "memory"}
    loaded = load(flags, environ, file)
    a, b = (each.pump for each in loaded.clusters.values())
    assert (a.read_bytes, a.slice_events, a.read_timeout_ms, a.damage_reads) == (5, 4, 2, 1)
    assert (b.read_bytes, b.slice_events, b.read_timeout_ms, b.damage_reads) == (3, 3, 2, 1)
    sources = {found.path: found.source for found in loaded.settings}
    assert sources["clusters.a.pump.read_bytes"] == "environment [clusters.a]"
    assert sources["clusters.a.pump.slice_events"] == f"{file} [clusters.a]"
    assert sources["clusters.a.pump.damage_reads"] == str(file)
    assert sources["clusters.b.pump.read_bytes"] == "flag"
    assert "pump.read_bytes" not in sources


def test_variable_of_a_cluster_when_names_begin_alike_then_the_key_that_exists(file: Path) -> None:
    """Dots and dashes of a name are underscores, and the rest decides whose the variable is."""
    file.write_text('[clusters.a]\n[clusters.a-pump]\n[clusters."a.x"]\n')
    environ = {
        "RLMM_CLUSTERS_A_PUMP_READ_BYTES": "1",
        "RLMM_CLUSTERS_A_PUMP_PUMP_READ_BYTES": "2",
        "RLMM_CLUSTERS_A_X_PUMP_READ_BYTES": "3",
    }
    clusters = load(environ=environ, file=file).clusters
    assert [each.pump.read_bytes for each in clusters.values()] == [1, 2, 3]


def test_java_file_of_a_cluster_then_is_above_the_common(file: Path, tmp_path: Path) -> None:
    """A cluster's own `client.properties` counts only for it and replaces its common file."""
    own, common = tmp_path / "own.properties", tmp_path / "common.properties"
    own.write_text("bootstrap.servers=own:1\nrequest.timeout.ms=2\nacks=all\n")
    common.write_text("bootstrap.servers=common:1\nrequest.timeout.ms=3\nfetch.max.bytes=3\n")
    file.write_text(
        f'kafka.command.config = "{common}"\nkafka.request.timeout.ms = 1\n'
        f'[clusters.a]\nkafka.command.config = "{own}"\n[clusters.b]\n'
    )
    loaded = load(file=file)
    a, b = (each.kafka for each in loaded.clusters.values())
    assert a is not None
    assert b is not None
    assert (a.bootstrap_servers, a.request_timeout_ms) == (("own:1",), 2)
    assert (b.bootstrap_servers, b.request_timeout_ms, b.fetch_max_bytes) == (("common:1",), 1, 3)
    assert a.fetch_max_bytes == KEYS["kafka_fetch_max_bytes"].default
    assert loaded.notices == (
        f"{own}: 1 of its keys have no equivalent and are not used: acks",
    )  # fmt: skip


def test_kind_of_log_when_a_cluster_names_none_then_is_the_common_one(file: Path) -> None:
    """A cluster without a kind of log has the common one; other kinds' keys do not count."""
    file.write_text(
        "log.num_partitions = 2\nfiles.segment_ms = 5\nkafka.node.id = 1\n"
        "[clusters.a]\nkafka.bootstrap.servers = 'a:1'\n"
        "[clusters.b]\nfiles.sync = 'never'\n[clusters.c]\nlog.kind = 'memory'\n"
    )
    clusters = load(file=file).clusters
    assert [each.log.kind for each in clusters.values()] == ["kafka", "files", "memory"]
    assert [each.log.num_partitions for each in clusters.values()] == [None, 2, 2]


KAFKA = "[clusters.a.kafka]\nbootstrap.servers = 'a:1'\n"
REFUSED = {
    "no such key": (
        "clusters.prod.kafka.bootstrap-server = 'a:1'",
        "clusters.prod.kafka.bootstrap-server (FILE) is not a key; "
        "did you mean clusters.prod.kafka.bootstrap.servers?",
    ),
    "no number": (
        "clusters.prod.pump.read_bytes = 'x'",
        "clusters.prod.pump.read_bytes (FILE) must be a whole number",
    ),
    "cannot be meant": (
        "clusters.prod.pump.read_bytes = 0",
        "clusters.prod.pump.read_bytes (FILE) must be a whole number from 1 to",
    ),
    "twice": (
        "[clusters.a.kafka]\nnode.id = 1\nnode_id = 1",
        "clusters.a.kafka.node_id (FILE) is given twice, also as clusters.a.kafka.node.id",
    ),
    "cannot be meant for all": (
        "pump.read_bytes = 0\n[clusters.a]",
        "clusters.a: pump.read_bytes (FILE) must be a whole number from 1 to",
    ),
    "nobody's servers": (
        "clusters.a.kafka.node.id = 1",
        "clusters.a: kafka.bootstrap.servers must be set, because of clusters.a.kafka.node.id",
    ),
    "two logs": (
        f"{KAFKA}[clusters.a.files]\nsync = 'never'",
        "clusters.a.files.sync (FILE) is of another log than the one of "
        "clusters.a.kafka.bootstrap.servers (FILE), kafka",
    ),
    "data folder": (
        "clusters.a.data-dir = 'x'",
        "clusters.a.data-dir (FILE) cannot be set for a alone: data_dir belongs to the process",
    ),
    "log lines": (
        "clusters.a.logging.level = 'debug'",
        "clusters.a.logging.level (FILE) cannot be set for a alone",
    ),
    "stop": (
        "clusters.a.shutdown_timeout_ms = 5",
        "clusters.a.shutdown_timeout_ms (FILE) cannot be set for a alone",
    ),
    "memory": (
        "clusters.a.memory.limit_bytes = 5",
        "clusters.a.memory.limit_bytes (FILE) cannot be set for a alone",
    ),
    "for nobody": (
        f"files.sync = 'never'\n{KAFKA}",
        "files.sync (FILE) is for none of the clusters",
    ),
    "no table": ("clusters = 5", "clusters (FILE) must be tables, one for each cluster"),
    "no cluster": ("[clusters]", "clusters (FILE) must be tables, one for each cluster"),
    "no table within": ("clusters.a = 5", "clusters.a (FILE) must be a table, got int"),
    "path for a name": ("[clusters.'../x']", "clusters.../x (FILE) must have a name of at most"),
    "dots for a name": ("[clusters.'..']", "clusters... (FILE) must have a name of at most"),
    "space in a name": ("[clusters.'a b']", "clusters.a b (FILE) must have a name of at most"),
    "long name": (f"[clusters.{'a' * 101}]", f"clusters.{'a' * 101} (FILE) must have a name"),
    "names alike": (
        "[clusters.a-b]\n[clusters.A_B]",
        "clusters.A_B (FILE) must differ from clusters.a-b by more than capitals",
    ),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED)
def test_f97_cluster_when_malformed_then_by_its_key(text: str, message: str, file: Path) -> None:
    """F97: the error has the key as written, its cluster, and the allowed values."""
    assert refused(file, text).startswith(message)


VARIABLES = {
    "of no cluster": (
        "RLMM_CLUSTERS_B_MODE", "RLMM_CLUSTERS_B_MODE (environment) is not a key",
    ),
    "no such key": (
        "RLMM_CLUSTERS_A_MOOD",
        "RLMM_CLUSTERS_A_MOOD (environment) is not a key; did you mean RLMM_CLUSTERS_A_MODE?",
    ),
    "bad value": ("RLMM_CLUSTERS_A_MODE", "RLMM_CLUSTERS_A_MODE (environment) must be one of"),
    "of the process": (
        "RLMM_CLUSTERS_A_DATA_DIR",
        "RLMM_CLUSTERS_A_DATA_DIR (environment) cannot be set for a alone",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("variable", "message"), VARIABLES.values(), ids=VARIABLES)
def test_f97_variable_of_a_cluster_when_it_cannot_be_meant_then_is_refused(
    variable: str, message: str, file: Path
) -> None:
    """Failure scenario F97: a cluster is named by the file alone, and its variables are judged."""
    assert refused(file, "[clusters.a]", environ={variable: "x"}).startswith(message)


def test_show_when_there_are_clusters_then_shows_each_of_them_and_no_secret(file: Path) -> None:
    """Every value of every cluster with its source, secrets masked; nothing is cut off."""
    file.write_text(TWO)
    table, document = (
        CliRunner().invoke(config, ["show", "--config", str(file), "--output", output])
        for output in ("table", "json")
    )
    for result in (table, document):
        assert result.exit_code == 0, result.output
        assert "s3cret" not in result.output
        assert "common" not in result.output
        assert "…" not in result.output
    found = {each["key"]: each["value"] for each in json.loads(document.stdout)["settings"]}
    assert (found["data_dir"], found["clusters.prod.kafka.sasl.password"]) == ("/data", "***")
    assert found["clusters.eu.test.pump.read_bytes"] == 7
    assert found["clusters.own.log.kind"] == "files"
    assert not {"mode", "log.kind", "clusters.own.data_dir"} & found.keys()


def test_open_files_when_several_logs_are_embedded_then_are_shared_out(file: Path) -> None:
    """Embedded logs share the limit of open files, and a set value counts."""
    file.write_text(
        "[clusters.a]\n[clusters.b]\n[clusters.c.files]\nopen_files_max = 7\n"
        "[clusters.d.log]\nkind = 'memory'\n"
    )
    openers = {plan.name: plan.open_log for plan in plans_of(load(file=file))}
    settings = {name: openers[name].args[2] for name in "abc"}  # type: ignore[attr-defined]
    most = [found.open_files_max for found in settings.values()]
    assert most == [open_files_max_by_limit() // 3, open_files_max_by_limit() // 3, 7]
