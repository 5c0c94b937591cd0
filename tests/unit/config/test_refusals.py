"""The refusals before any part starts, and their texts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from rlmm.config.key_table import KEYS
from rlmm.config.loading import load
from rlmm.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

SERVERS = {"kafka_bootstrap_servers": "one:9092"}
NUMBERS = [name for name, key in KEYS.items() if key.kind is int]
MAY_BE_ZERO = {"files_retention_bytes", "files_retention_ms", "snapshot_free_bytes_min"}
MAY_BE_ZERO |= {"snapshot_niceness", "http_user_partitions_max"}
OUTSIDE = ["0", "-2", str(2**63), "inf"]
NO_NUMBERS = ["1e400", "nan", "9" * 5_000, "1.5", "true", "", "x", "0x1", "1_000", "٣", "5 parsec"]


def refused(
    flags: dict[str, str] | None = None,
    environ: dict[str, str] | None = None,
    file: Path | None = None,
    command_properties: tuple[str, ...] = (),
) -> str:
    """Return the one line of the refusal."""
    with pytest.raises(ConfigError) as error:
        load(flags, environ, file, command_properties)
    message = str(error.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("raw", OUTSIDE, ids=lambda raw: raw[:8] or "empty")
@pytest.mark.parametrize("name", NUMBERS)
def test_f97_number_when_it_means_nothing_then_is_refused_by_its_flag(name: str, raw: str) -> None:
    """Failure scenario F97: zero, negative, infinite, too large, no whole number, no number."""
    if raw == "0" and name in MAY_BE_ZERO:
        return
    others = SERVERS if name.startswith("kafka") else {}
    message = refused({**others, name: raw})
    assert re.match(rf"{KEYS[name].flag} \(flag\) must (not )?be ", message), message


@pytest.mark.parametrize("raw", NO_NUMBERS, ids=lambda raw: ascii(raw[:8]))
def test_f97_text_when_it_is_no_number_then_is_refused_with_what_is(raw: str) -> None:
    """Failure scenario F97: a number is digits with an optional unit of its key."""
    message = refused(environ={"RLMM_FILES_SEGMENT_MS": raw})
    assert message.startswith(
        "RLMM_FILES_SEGMENT_MS (environment) must be a whole number of 64 bits, or one with a unit "
        "of ms, s, m, h, d, got "
    )


@pytest.mark.parametrize("raw", ["inf", "-Infinity", "nan", "1e999", "true", ""])
def test_f97_share_when_it_is_not_finite_then_is_refused(raw: str) -> None:
    """Failure scenario F97: infinite and no number at all."""
    message = refused(environ={"RLMM_PUMP_UNDECODABLE_SHARE_MAX": raw})
    assert message.startswith(
        "RLMM_PUMP_UNDECODABLE_SHARE_MAX (environment) must be a finite number, got "
    )


TYPED = {
    "true for a number": ("[pump]\nread_bytes = true", "pump.read_bytes", "True"),
    "fraction": ("[pump]\nread_bytes = 1.0", "pump.read_bytes", "1.0"),
    "infinite": ("[pump]\nundecodable_share_max = inf", "pump.undecodable_share_max", "inf"),
    "no number": ("[pump]\nundecodable_share_max = nan", "pump.undecodable_share_max", "nan"),
    "true for a share": (
        "[pump]\nundecodable_share_max = true", "pump.undecodable_share_max", "True",
    ),
    "more than all": ("pump.undecodable_share_max = 1.5", "pump.undecodable_share_max", "1.5"),
    "number for a choice": ("mode = 1", "mode", "1"),
    "list for a text": ('assignment = ["all"]', "assignment", r"\['all'\]"),
    "number for true": ("kafka.topic.is_created = 1", "kafka.topic.is_created", "1"),
    "list of lists": ("partitions = [[1]]", "partitions", r"\[\[1\]\]"),
    "date for a path": ("data_dir = 2020-01-01", "data_dir", "datetime.date"),
    "no path": ('data_dir = " "', "data_dir", "' '"),
    "above 64 bits": ("write.pending_max = 9223372036854775808", "write.pending_max", "92233"),
    "unit of another kind": ('write.timeout_ms = "5 KiB"', "write.timeout_ms", "'5 KiB'"),
    "module without a level": ('logging.levels = ["rlmm"]', "logging.levels", "'rlmm'"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "key", "found"), TYPED.values(), ids=TYPED)
def test_f97_value_when_of_another_type_then_is_refused_by_the_key_in_the_file(
    text: str, key: str, found: str, tmp_path: Path
) -> None:
    """F97: the error has the key as written, the file, the allowed type and the value."""
    file = tmp_path / "rlmm.toml"
    file.write_text(text)
    message = refused(SERVERS if "kafka" in key else {}, file=file)
    assert re.match(rf"{re.escape(key)} \({re.escape(str(file))}\) must be .*got {found}", message)


CROSSED: dict[str, tuple[dict[str, str], str]] = {
    "pauses": (
        {"pump_retry_last_ms": "5"},
        "--pump-retry-last-ms (flag) must not be below pump.retry_first_ms, got 5 and 250",
    ),
    "first pause": (
        {"pump_retry_first_ms": "50000"},
        "--pump-retry-first-ms (flag): pump.retry_last_ms must not be below",
    ),
    "budget": (
        {"memory_alert_bytes": "2", "memory_limit_bytes": "1"},
        "--memory-alert-bytes (flag) must not be above memory.limit_bytes, got 2 and 1",
    ),
    "count of the other log": (
        {**SERVERS, "log_num_partitions": "5"},
        "--log-num-partitions (flag) is for an embedded log, and log.kind is kafka",
    ),
    "mechanism without its protocol": (
        {**SERVERS, "kafka_sasl_mechanism": "PLAIN"},
        "--kafka-sasl-mechanism (flag): sasl.mechanism is PLAIN, but security.protocol is",
    ),
    "two things at once": (
        {**SERVERS, "kafka_sasl_mechanism": "PLAIN", "kafka_fetch_max_bytes": "0"},
        "--kafka-sasl-mechanism (flag): sasl.mechanism is PLAIN, but security.protocol is",
    ),
    "protocol without its mechanism": (
        {**SERVERS, "kafka_security_protocol": "SASL_SSL"},
        "--kafka-security-protocol (flag): sasl.mechanism must be one of",
    ),
    "server without a port": (
        {"kafka_bootstrap_servers": "one"},
        "--bootstrap-server (flag) must be host:port, got 'one'",
    ),
    "no server": (
        {"kafka_bootstrap_servers": ","},
        "--bootstrap-server (flag) must name at least one host:port",
    ),
    "number of the topic": (
        {**SERVERS, "kafka_topic_num_partitions": "0"},
        "--kafka-topic-num-partitions (flag) must be a whole number from 1 to",
    ),
    "observer that creates": (
        {**SERVERS, "kafka_topic_is_created": "true"},
        "--kafka-topic-is-created (flag): an observer writes nothing",
    ),
    "kafka without servers": (
        {"log_kind": "kafka"},
        "kafka.bootstrap.servers must be set, because of --log-kind (flag)",
    ),
    "part of kafka": (
        {"kafka_node_id": "1"},
        "kafka.bootstrap.servers must be set, because of --kafka-node-id (flag)",
    ),
    "broker of no cluster": (
        {"assignment": "cluster:1"},
        "--assignment (flag) must not be cluster:1: only a Kafka cluster can be asked",
    ),
    "tokens from afar": (
        {**SERVERS, "kafka_sasl_oauthbearer_token_endpoint_url": "https://u:s3cret@host/token"},
        "--kafka-sasl-oauthbearer-token-endpoint-url (flag) must be a file: URL, got one of https",
    ),
    "no address": (
        {**SERVERS, "kafka_sasl_oauthbearer_token_endpoint_url": "http://[s3cret"},
        "--kafka-sasl-oauthbearer-token-endpoint-url (flag) must be a file: URL, got one of no",
    ),
}


@pytest.mark.parametrize(("flags", "said"), CROSSED.values(), ids=CROSSED)
def test_f97_values_when_contradictory_then_named(flags: dict[str, str], said: str) -> None:
    """Failure scenario F97: a section's own words, with the user's key in place of its own."""
    message = refused(flags)
    assert message.startswith(said)
    assert "s3cret" not in message


STUCK = {
    "pump alone": ({"pump_bounds_interval_ms": "21s"}, "--pump-bounds-interval-ms (flag): "),
    "http alone": ({"http_heartbeat_age_ms_max": "5s"}, "--http-heartbeat-age-ms-max (flag): "),
    "both": (
        {"http_heartbeat_age_ms_max": "29s", "pump_bounds_interval_ms": "10s"},
        "--http-heartbeat-age-ms-max (flag) and --pump-bounds-interval-ms (flag): ",
    ),
}


@pytest.mark.parametrize(("flags", "said"), STUCK.values(), ids=STUCK)
def test_f97_heartbeat_when_too_slow_then_is_refused(flags: dict[str, str], said: str) -> None:
    """The configuration refuses a watchdog time that a healthy service could miss."""
    message = refused(flags)
    assert message.startswith(said)
    assert "must be at least 3 times pump.bounds_interval_ms" in message


TWO_LOGS = {
    "kind and servers": ({"log_kind": "files", **SERVERS}, "--bootstrap-server (flag)"),
    "kind and a java file": (
        {"log_kind": "memory", "kafka_command_config": "x"},
        "--command-config (flag)",
    ),
    "kind and a folder's setting": (
        {"log_kind": "memory", "files_sync": "never"},
        "--files-sync (flag)",
    ),
    "kafka and a folder's setting": (
        {"log_kind": "kafka", **SERVERS, "files_sync": "never"},
        "--files-sync (flag)",
    ),
    "servers and a folder's setting": ({**SERVERS, "files_sync": "never"}, "--files-sync (flag)"),
}


@pytest.mark.parametrize(("flags", "key"), TWO_LOGS.values(), ids=TWO_LOGS)
def test_f97_logs_when_two_then_neither(flags: dict[str, str], key: str, tmp_path: Path) -> None:
    """Failure scenario F97: two storage backends at once are an error, whichever was meant."""
    if "kafka_command_config" in flags:
        java = tmp_path / "client.properties"
        java.write_text("")
        flags = {**flags, "kafka_command_config": str(java)}
    message = refused(flags)
    assert message.startswith(f"{key} is of another log than the one of --")
    assert message.endswith("set only one of them")


UNKNOWN: dict[str, tuple[dict[str, str], str]] = {
    "slip": (
        {"RLMM_LOG_KINDS": "files"},
        "RLMM_LOG_KINDS (environment) is not a key; did you mean RLMM_LOG_KIND?",
    ),
    "nonsense": ({"RLMM_ZZZZZZZZZZZZ": "1"}, "RLMM_ZZZZZZZZZZZZ (environment) is not a key"),
    "section alone": ({"RLMM_PUMP": "1"}, "RLMM_PUMP (environment) is not a key"),
    "derived": ({"RLMM_KAFKA_IS_OBSERVER": "true"}, "RLMM_KAFKA_IS_OBSERVER (environment)"),
}


@pytest.mark.parametrize(("environ", "said"), UNKNOWN.values(), ids=UNKNOWN)
def test_variable_when_it_is_no_key_then_is_refused(environ: dict[str, str], said: str) -> None:
    """A variable that begins with our prefix and means nothing is a slip, never ignored."""
    assert refused(environ=environ).startswith(said)


FILES = {
    "unknown key": (
        "[log]\nkinds = 'files'",
        r"log\.kinds \(.*\) is not a key; did you mean log\.kind\?",
    ),
    "unknown section": (
        "[pumps]\nread_bytes = 1",
        r"pumps\.read_bytes \(.*\) is not a key; did you mean pump\.read_bytes\?",
    ),
    "table for a value": ("[mode]\nx = 1", r"mode\.x \(.*\) is not a key"),
    "twice": (
        "[kafka]\nnode_id = 1\nnode.id = 2",
        r"kafka\.node\.id \(.*\) is given twice, also as kafka\.node_id",
    ),
    "no TOML": ("mode = ", "is no TOML: Invalid value"),
    "endless number": (f"pump.read_bytes = {'9' * 5_000}", "is no TOML: Exceeds the limit"),
    "endless hexadecimal number": (
        f"[clusters.a]\npump.read_bytes = 0x{'f' * 5_000}",
        r"clusters\.a\.pump\.read_bytes \(.*\) cannot be meant: Exceeds the limit",
    ),
    "endless number in a list": (
        f"logging.levels = [0x{'f' * 5_000}]",
        r"logging\.levels \(.*\) cannot be meant: Exceeds the limit",
    ),
    "too deep arrays": (f"mode = {'[' * 5_000}", "is no TOML: maximum recursion depth"),
    "too deep tables": (f"[{'a.' * 5_000}b]\nc = 1", "is no TOML: maximum recursion depth"),
    "too long": ("#" * (1 << 20) + "\n", "rlmm.toml cannot be read: File too large"),
    "key of a Java client only": ("[kafka]\nacks = 'all'", r"kafka\.acks \(.*\) is not a key"),
    "java store": (
        "[kafka]\nssl.truststore.type = 'BKS'",
        r"kafka\.ssl\.truststore\.type \(.*\) must be PEM, PKCS12 or JKS, got 'BKS'",
    ),
}


@pytest.mark.parametrize(("text", "said"), FILES.values(), ids=FILES)
def test_file_when_it_has_unknown_keys_then_refused(text: str, said: str, tmp_path: Path) -> None:
    """The file is refused with unknown keys, with keys given twice, and when it is no TOML."""
    file = tmp_path / "rlmm.toml"
    file.write_text(text)
    assert re.search(said, refused(file=file))


def test_java_file_when_it_has_no_end_then_is_refused() -> None:
    """A device is read up to a bound, like any other file."""
    message = refused({**SERVERS, "kafka_command_config": "/dev/zero"})
    assert message == "kafka.command_config: /dev/zero cannot be read: File too large"


def test_file_when_it_cannot_be_read_then_is_refused(tmp_path: Path) -> None:
    """A named file must be there, and be text."""
    assert "absent.toml cannot be read: No such file" in refused(file=tmp_path / "absent.toml")
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe")
    assert "is no TOML" in refused(file=binary)


PROPERTIES = {
    "no value": (("request.timeout.ms",), "--command-property (flag) must be KEY=VALUE"),
    "no equivalent": (("acks=all",), "--command-property acks (flag) has no equivalent here"),
    "out of range": (
        ("request.timeout.ms=0",),
        "--command-property request.timeout.ms (flag) must be a whole number from 1",
    ),
}


@pytest.mark.parametrize(("given", "said"), PROPERTIES.values(), ids=PROPERTIES)
def test_command_property_when_unknown_then_is_refused(given: tuple[str, ...], said: str) -> None:
    """A wrong property on the command line is refused, not ignored."""
    assert refused(SERVERS, command_properties=given).startswith(said)


def test_secret_when_it_is_of_no_use_then_is_not_shown(tmp_path: Path) -> None:
    """No error shows a password."""
    file = tmp_path / "rlmm.toml"
    file.touch(0o600)
    file.write_text("[kafka]\nsasl.password = ['s3cret']")
    message = refused(SERVERS, file=file)
    assert "s3cret" not in message
    assert message.endswith("must be a text, got ***")


def test_value_when_it_fills_pages_then_is_cut() -> None:
    """The error cuts a long value and stays one line."""
    assert len(refused({"mode": "x" * 100_000})) < 250


def test_message_when_a_path_has_line_breaks_then_is_one_line(tmp_path: Path) -> None:
    """The message is one line, even if a path has line breaks."""
    message = refused(file=tmp_path / "a\n\x1bb")
    assert message.endswith(r"a\n\x1bb cannot be read: No such file or directory")
