"""Options of the data source: values, defaults and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import ConfigError
from spark_tiering.data_source.bounds import (
    AtEdge,
    AtOffsets,
    AtTime,
    AtTimes,
    NoOffset,
    PartitionName,
    asked_of,
    require_named,
)
from spark_tiering.data_source.options import (
    KNOWN,
    PARTITION_BYTES_MAX,
    WINDOW_BYTES,
    Isolation,
    parse_options,
)
from spark_tiering.data_source.places import ListKind, TierLocation
from spark_tiering.stores.local_settings import LocalSettings
from spark_tiering.stores.s3_settings import S3Settings
from tests.support.repository import tree

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spark_tiering.data_source.options import DataSourceOptions

PLACE = {"store": "s3://bucket/kafka/"}
TOPIC = {"subscribe": "orders"}
ORDERS = {**PLACE, **TOPIC}


def parsed(**options: str) -> DataSourceOptions:
    return parse_options({**ORDERS, **options}, is_streaming=False)


def refusal(
    given: Mapping[str, str], base: Mapping[str, str] = ORDERS, *, is_streaming: bool = False
) -> str:
    with pytest.raises(ConfigError) as refused:
        parse_options({**base, **given}, is_streaming=is_streaming)
    return str(refused.value)


def test_options_when_only_topic_and_store_are_given_then_defaults_are_those_of_spark() -> None:
    """The defaults are Spark's: read everything, fail on loss, no headers."""
    options = parsed()
    place = TierLocation(ListKind.MANIFESTS, S3Settings("bucket"), "kafka/")
    assert (options.place, options.start, options.end) == (place, AtEdge(-2), AtEdge(-1))
    assert (options.fails_on_data_loss, options.checks_crc) == (True, True)
    assert (options.has_headers, options.pushes_down) == (False, False)
    assert options.isolation is Isolation.UNCOMMITTED
    sizes = (options.window_bytes, options.partition_bytes_max)
    assert sizes == (WINDOW_BYTES, PARTITION_BYTES_MAX)


def test_options_when_they_are_a_streams_then_it_begins_at_the_latest_and_has_no_end() -> None:
    """A stream begins at the latest offset, as Spark's own source, and an end is refused."""
    assert parse_options(ORDERS, is_streaming=True).start == AtEdge(-1)
    assert "a stream has no end" in refusal({"endingOffsets": "latest"}, is_streaming=True)


def test_options_when_names_are_in_any_case_then_they_are_found() -> None:
    """Option names are found in any case, since Spark passes them in lower case."""
    options = parse_options(
        {"STORE": "s3://b", "subscribe": "t", "failondataloss": "FALSE", "windowBytes": "1m"},
        is_streaming=False,
    )
    assert not options.fails_on_data_loss
    assert options.window_bytes == 1024 * 1024


@pytest.mark.parametrize(
    ("option", "text", "topics"),
    [
        ("subscribe", "orders, payments,", ["orders-0", "orders-1", "payments-7"]),
        ("subscribePattern", "pay.*", ["payments-7"]),
        ("assign", '{"orders": [0, 2]}', ["orders-0"]),
    ],
)
def test_subscription_in_each_of_three_ways(option: str, text: str, topics: list[str]) -> None:
    """A subscription names topics, a pattern for whole names, or partitions."""
    wanted = parse_options({**PLACE, option: text}, is_streaming=False).subscription
    every = [("orders", 0), ("orders", 1), ("payments", 7)]
    assert [f"{topic}-{number}" for topic, number in every if wanted.wants(topic, number)] == topics


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (PLACE, "exactly one of subscribe, subscribePattern, assign has to be given, got none"),
        ({**PLACE, "subscribe": "a", "assign": '{"a": [0]}'}, "got subscribe and assign"),
        ({**PLACE, "subscribe": " , "}, "subscribe names no topic"),
        ({**PLACE, "subscribePattern": "("}, "is no regular expression"),
        ({**PLACE, "assign": '{"a": []}'}, 'another form than {"topic": [0, 1]}'),
        ({**PLACE, "assign": '{"a": [-1]}'}, "another form"),
        ({**PLACE, "assign": "[1]"}, "is a JSON object"),
        ({**PLACE, "assign": '{"a": [0], "a": [1]}'}, "twice"),
        ({**ORDERS, "startingOffsets": "latest"}, "latest is no start of a batch"),
        ({**ORDERS, "endingOffsets": "earliest"}, "earliest is no end of a batch"),
        ({**ORDERS, "startingOffsets": '{"orders": {"0": -1}}'}, "-1 (latest) of orders-0"),
        ({**ORDERS, "endingOffsets": '{"orders": {"0": -2}}'}, "-2 (earliest) of orders-0"),
        ({**ORDERS, "startingOffsets": '{"orders": {"0": -3}}'}, "has no offset -3"),
        ({**ORDERS, "startingOffsets": '{"orders": {"a": 3}}'}, "another form"),
        ({**ORDERS, "startingOffsets": '{"orders": {"0": 1.5}}'}, "another form"),
        ({**ORDERS, "startingOffsets": "soon"}, "is no JSON"),
        ({**ORDERS, "startingTimestamp": "-5"}, "a whole number from 0"),
        ({**ORDERS, "startingOffsetsByTimestamp": '{"orders": {"0": -1}}'}, "no time in millisec"),
        ({**ORDERS, "startingOffsetsByTimestampStrategy": "guess"}, "one of error, latest"),
        ({**ORDERS, "minPartitions": "0"}, "a whole number from 1"),
        ({**ORDERS, "maxRecordsPerPartition": "many"}, "a whole number from 1"),
        ({**ORDERS, "failOnDataLoss": "yes"}, "true or false"),
        ({**ORDERS, "isolationLevel": "serializable"}, "one of read_uncommitted, read_committed"),
        ({**ORDERS, "verify": "sha256"}, "one of crc, none"),
        ({**ORDERS, "windowBytes": "0"}, "a whole number from 1"),
        (
            {**ORDERS, "minOffsetsPerTrigger": "10", "maxOffsetsPerTrigger": "9"},
            "more than maxOffsetsPerTrigger 9",
        ),
        ({**ORDERS, "kafka.bootstrap.servers": "1"}, "brokers are never asked"),
        ({**ORDERS, "kafka.isolation.level": "1"}, "isolationLevel says it"),
        ({**ORDERS, "kafka.max.poll.records": "1"}, "no consumer of Kafka's"),
        ({**ORDERS, "groupIdPrefix": "1"}, "no consumer group"),
        ({**ORDERS, "kafkaConsumer.pollTimeoutMs": "1"}, "no consumer of Kafka's"),
        ({**ORDERS, "fetchOffset.numRetries": "1"}, "no broker is asked"),
        ({**ORDERS, "startingOfsets": "1"}, "startingOffsets is one"),
        ({**ORDERS, "frobnicate": "1"}, "docs/data-source.md"),
        ({**ORDERS, "plan": "p", "sidecar": "s"}, "plan and sidecar: one alone"),
        ({**ORDERS, "tokenFile": "f"}, "of a sidecar, and none is named"),
        ({**ORDERS, "planToken": "f"}, "of a plan, and none is named"),
        ({**ORDERS, "logDirs": "/x"}, "store says something of a store"),
        ({**ORDERS, "prefix": "other/"}, "two prefixes"),
        (TOPIC, "no segments are named"),
        ({**TOPIC, "path": "/x"}, "a path is not looked at"),
        ({**TOPIC, "logDirs": " , "}, "logDirs names no folder"),
        ({**TOPIC, "store": "/x", "region": "r"}, "region is for buckets"),
        ({**ORDERS, "store": "gs://x"}, "is no store"),
    ],
)
def test_options_when_one_is_impossible_name_it_in_words(given: dict[str, str], told: str) -> None:
    """A missing, wrong, contradicting or unknown option is refused in one line that names it."""
    assert told in refusal(given, {})


def test_bounds_when_several_are_given_then_times_come_before_offsets() -> None:
    """A time for all precedes times by partition, and those precede offsets, as in Spark."""
    offsets = '{"orders": {"0": 5}}'
    some = {"startingOffsets": offsets, "startingOffsetsByTimestamp": '{"orders": {"0": 77}}'}
    one = PartitionName("orders", 0)
    assert parsed(startingOffsets=offsets).start == AtOffsets("startingOffsets", {one: 5})
    assert parsed(**some).start == AtTimes("startingOffsetsByTimestamp", {one: 77}, NoOffset.ERROR)
    for strategy in NoOffset:
        found = parsed(
            **some, startingTimestamp="99", startingOffsetsByTimestampStrategy=strategy.value
        )
        assert found.start == AtTime("startingTimestamp", 99, strategy)
    assert parsed(endingTimestamp="99").end == AtTime("endingTimestamp", 99, NoOffset.LATEST)


@pytest.mark.parametrize(
    "subscription",
    [{"subscribe": "orders"}, {"subscribePattern": "orders?"}, {"assign": '{"orders": [1]}'}],
)
def test_topic_ids_when_their_topic_is_not_read_are_refused(subscription: dict[str, str]) -> None:
    """A topic id for a topic that is not read is refused, since it would select nothing."""
    given = {**subscription, "topicIds": '{"orderz": "an-id"}'}
    assert "topicIds names orderz, which is not read" in refusal(given, PLACE)
    right = parse_options(
        {**PLACE, **subscription, "topicIds": '{"orders": "an-id"}'}, is_streaming=False
    )
    assert right.subscription.topic_ids == {"orders": "an-id"}


SECRETS = (
    "secretKey", "aws.secret.access.key", "fs.s3a.access.key", "accessKeyId", "password",
    "sessionToken", "credentials", "kafka2.sasl.jaas.config",
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        *((name, "hunter2", "looks like a secret") for name in SECRETS),
        ("store", "s3://user:hunter2@bucket/x", ""),
        ("endpoint", "http://user:hunter2@host", ""),
    ],
)
def test_options_when_one_looks_like_a_secret_are_refused(name: str, value: str, told: str) -> None:
    """An option or address with a secret is refused, and not repeated in Spark's logs."""
    message = refusal({name: value})
    assert told in message
    assert "hunter2" not in message


def test_places_when_a_bucket_is_described_then_all_of_it_is_in_the_settings() -> None:
    """The settings of a bucket hold every option for boto3 and no credential."""
    shared: dict[str, Any] = {"endpoint": "http://127.0.0.1:9000", "region": "eu-1", "profile": "p"}
    flags = {"pathStyle": "true", "requesterPays": "true"}
    place = parsed(**shared, **flags, storeCaFile="/ca.pem", keyRing="/ring.json").place
    assert place.store == S3Settings(
        "bucket", **shared, is_path_style=True, ca_file="/ca.pem", is_requester_pays=True
    )
    assert place.key_ring == "/ring.json"


def test_places_when_the_store_is_a_folder_then_it_is_never_made() -> None:
    """A store in a folder gets an absolute path for workers, and the reader never creates it."""
    place = parse_options({"store": "tier", "prefix": "p/", "subscribe": "t"}, is_streaming=False)
    assert place.place.store == LocalSettings(Path("tier").absolute(), is_made=False)
    assert place.place.prefix == "p/"


def test_places_when_a_plan_is_named_then_no_topic_needs_to_be() -> None:
    """A read of a named plan needs no topic option."""
    options = parse_options({**PLACE, "plan": "/p.json", "planToken": "t"}, is_streaming=False)
    assert (options.place.plan, options.place.plan_token) == ("/p.json", "t")
    assert options.subscription.wants("anything", 3)


def test_places_when_a_sidecar_is_named_then_its_files_travel_as_paths() -> None:
    """The token of a sidecar travels as the path of its file, never as its content."""
    place = parsed(sidecar="host:7420", tokenFile="/t", tls="true", cluster="c").place
    assert place.kind is ListKind.SIDECAR
    assert place.sidecar is not None
    assert (place.sidecar.token_file, place.sidecar.is_tls) == ("/t", True)


def test_tables_when_spark_adds_properties_of_its_own_then_they_are_passed_over() -> None:
    """Options that `CREATE TABLE ... USING` doubles, and the catalog's own, are ignored."""
    table = {"provider": "rlmm", "owner": "root", "option.store": "s3://b/kafka/", "path": "/w"}
    assert parsed(**table) == parsed()


def test_bounds_when_partitions_are_named_then_all_and_no_others_have_to_be() -> None:
    """Bounds by partition must name exactly the partitions that are read."""
    bound = parsed(startingOffsets='{"orders": {"0": 5, "2": -2}}').start
    partitions = [PartitionName("orders", 0), PartitionName("orders", 1)]
    with pytest.raises(ConfigError) as refused:
        require_named(bound, partitions)
    assert "it lacks orders-1 and names orders-2, which is not read" in str(refused.value)
    require_named(bound, [PartitionName("orders", 0), PartitionName("orders", 2)])
    require_named(AtEdge(-2), partitions)
    assert asked_of(bound, PartitionName("orders", 0)).offset == 5


def test_document_has_every_option() -> None:
    """The documentation describes exactly the options of the data source."""
    text = (tree.ROOT / "docs" / "data-source.md").read_text()
    assert not [name for name in KNOWN if f"`{name}`" not in text]
