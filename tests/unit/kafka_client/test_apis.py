"""Requests as bytes, and answers from bytes: both as Kafka's message definitions have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rlmm.kafka_messages.cluster import (
    BrokerAddress,
    DescribeClusterRequest,
    MetadataRequest,
    PartitionLeader,
)
from rlmm.kafka_messages.configs import (
    AlterTopicRequest,
    CreateTopicsRequest,
    DescribeBrokerRequest,
    DescribeTopicsRequest,
    TopicRequestOutcome,
)
from rlmm.kafka_messages.error_codes import ErrorCode
from rlmm.kafka_messages.fetch import FetchPartition, FetchRequest
from rlmm.kafka_messages.log_dirs import LogDirsRequest
from rlmm.kafka_messages.offsets import (
    EARLIEST,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    READ_COMMITTED,
    EpochEndsRequest,
    ListedOffset,
    ListOffsetsRequest,
)
from rlmm.kafka_messages.produce import InitProducerIdRequest, ProduceRequest, ProducerId
from rlmm.metadata.ids import Uuid
from tests.unit.kafka_client.conftest import read, written

if TYPE_CHECKING:
    from rlmm.kafka_messages.wire import Request

ID = Uuid(bytes(range(16)))
OTHER = Uuid(bytes(16))
ID_HEX = bytes(ID).hex()


PARTITIONS = {"a": [0, 2], "bc": [1]}
TIERED = ListOffsetsRequest(PARTITIONS, LATEST_TIERED, READ_COMMITTED)
CHANGE = {"retention.ms": "-1"}

REQUESTS: dict[str, tuple[Request[Any], int | None, str]] = {
    "metadata, never creating": (
        MetadataRequest(["t"]),
        None,
        "02" + "00" * 16 + "0274 00 00 00 00",
    ),
    "offsets": (
        ListOffsetsRequest({"t": (3,)}, EARLIEST),
        None,
        "ffffffff 00 02 0274 02 00000003 ffffffff fffffffffffffffe 00 00 00",
    ),
    "fetch": (
        FetchRequest(ID, [FetchPartition(3, 40, 100, 5, 4)], wait_ms=250, bytes_max=1000),
        None,
        f"ffffffff 000000fa 00000001 000003e8 00 00000000 ffffffff 02 {ID_HEX} 02"
        "00000003 00000005 0000000000000028 00000004 ffffffffffffffff 00000064 00 00 01 01 00",
    ),
    "append by topic id": (
        ProduceRequest("t", ID, 3, b"batch", 1000),
        13,
        f"00 ffff 000003e8 02 {ID_HEX} 02 00000003 06 6261746368 00 00 00",
    ),
    "append by name": (
        ProduceRequest("t", ID, 3, b"batch", 1000),
        9,
        "00 ffff 000003e8 02 0274 02 00000003 06 6261746368 00 00 00",
    ),
    "producer id": (InitProducerIdRequest(), None, "00 7fffffff 00"),
    "creation": (
        CreateTopicsRequest(
            "t", partition_count=50, replication_factor=3, settings={"a": "b"}, timeout_ms=1000
        ),
        None,
        "02 0274 00000032 0003 01 02 0261 0262 00 00 000003e8 00 00",
    ),
    "settings": (DescribeTopicsRequest(["t"], ["a"]), None, "02 02 0274 02 0261 00 00 00 00"),
    # As Kafka 4.3.1's own classes write them.
    "rights on the cluster": (DescribeClusterRequest(), None, "0100"),
    "rights on a topic": (
        MetadataRequest(["t"], has_operations=True),
        None,
        "0200000000000000000000000000000000027400000100",
    ),
    "log folders": (LogDirsRequest(), None, "0000"),
    "settings of a broker": (DescribeBrokerRequest(7), None, "020402370000000000"),
    "what is to be uploaded": (
        ListOffsetsRequest({"t": [3]}, EARLIEST_PENDING_UPLOAD),
        None,
        "ffffffff000202740200000003fffffffffffffffffffffffa00000000138800",
    ),
    "offsets of several topics, committed": (
        TIERED,
        None,
        "ffffffff010302610300000000fffffffffffffffffffffffb0000000002fffffffffffffffffffffffb"
        "00000362630200000001fffffffffffffffffffffffb000000",
    ),
    "ends of epochs": (
        EpochEndsRequest({"a": {3: 5}}),
        None,
        "ffffffff0202610200000003ffffffff00000005000000",
    ),
    "change": (
        AlterTopicRequest("t", CHANGE, ["x"]),
        None,
        "02020274030d726574656e74696f6e2e6d7300032d31000278010000000000",
    ),
    "change, only checked": (
        AlterTopicRequest("t", CHANGE, ["x"], is_only_checked=True),
        None,
        "02020274030d726574656e74696f6e2e6d7300032d31000278010000000100",
    ),
    "all settings": (DescribeTopicsRequest(["t"], None), None, "020202740000000000"),
    "metadata of nothing": (MetadataRequest([]), None, "01000000"),
}


@pytest.mark.parametrize(("request_", "version", "expected"), REQUESTS.values(), ids=REQUESTS)
def test_request_when_written_then_is_as_kafka_defines_it(
    request_: Request[Any], version: int | None, expected: str
) -> None:
    """Field by field the bytes of the message definition; no topic is ever created unasked."""
    assert written(request_, version) == expected.replace(" ", "")


def test_metadata_when_read_then_names_brokers_leaders_and_topic_id() -> None:
    """Racks, authorised operations and unknown tags are stepped over."""
    found = read(
        MetadataRequest(["t"]),
        "00000000"
        + "02 00000001 0268 00002384 00 00"
        + "0263 00000001"
        + f"02 0000 0274 {ID_HEX} 00 03"
        + "0000 00000000 00000001 00000007 02 00000001 02 00000001 01 00"
        + "0005 00000001 ffffffff 00000008 01 01 01 00"
        + "80000000 00"
        + "00",
    )
    assert found.brokers == (BrokerAddress(1, "h", 9092),)
    assert found.cluster_id == "c"
    (topic,) = found.topics
    assert (topic.code, topic.name, topic.topic_id) == (0, "t", ID)
    assert topic.partitions == (
        PartitionLeader(0, 0, 1, 7, (1,), (1,)),
        PartitionLeader(5, 1, -1, 8, ()),
    )


def test_offsets_when_read_then_only_what_is_named_is_told() -> None:
    """The answer has the offset or the code of each topic and partition in the response."""
    listed = "00000003 0000 ffffffffffffffff 0000000000000028 00000007 00"
    failed = "00000004 0006 ffffffffffffffff ffffffffffffffff ffffffff 00"
    found = read(
        ListOffsetsRequest({"t": (3, 4, 5)}, LATEST),
        f"00000000 03 0274 03 {listed} {failed} 00 0275 02 {listed} 00 00",
    )
    assert found == {
        "t": {3: ListedOffset(0, 40), 4: ListedOffset(6, -1)},
        "u": {3: ListedOffset(0, 40)},
    }


FETCHED = (
    "00000003 0000 0000000000000032 0000000000000031 0000000000000028"
    "02 0000000000000001 0000000000000002 00 ffffffff 04 616263"
)


def test_fetch_when_read_then_hands_on_the_bytes() -> None:
    """Aborted transactions are stepped over: reads are uncommitted."""
    found = read(
        FetchRequest(ID, [], wait_ms=0, bytes_max=1),
        f"00000000 0000 00000000 02 {ID_HEX} 02 {FETCHED} 00 00 00",
    )
    (fetched,) = found.partitions
    assert (found.code, fetched.partition, fetched.code) == (0, 3, 0)
    assert (fetched.high_watermark, fetched.log_start_offset, bytes(fetched.data)) == (
        50,
        40,
        b"abc",
    )
    assert not fetched.is_diverging


def test_fetch_when_the_history_diverges_then_says_so() -> None:
    """A broker names another history in tag 0."""
    tag = "01 00 0d 00000001 0000000000000005 00"
    found = read(
        FetchRequest(ID, [], wait_ms=0, bytes_max=1),
        f"00000000 0000 00000000 02 {ID_HEX} 02 {FETCHED} {tag} 00 00",
    )
    assert found.partitions[0].is_diverging


def test_fetch_when_of_another_topic_then_nothing_is_taken() -> None:
    """The reader ignores answers for topic ids that it did not request."""
    found = read(
        FetchRequest(OTHER, [], wait_ms=0, bytes_max=1),
        f"00000000 0064 00000000 02 {ID_HEX} 02 {FETCHED} 00 00 00",
    )
    assert (found.code, found.partitions) == (ErrorCode.UNKNOWN_TOPIC_ID, ())


PRODUCED = (
    "02 00000003 0057 0000000000000028 ffffffffffffffff 0000000000000000"
    "02 00000000 0462 6164 00 00 00 00 00000000 00"
)


@pytest.mark.parametrize(("version", "name"), [(13, ID_HEX), (9, "0274")], ids=["by-id", "by-name"])
def test_append_when_answered_then_code_offset_and_reason_are_read(version: int, name: str) -> None:
    """The reason comes from the record's error when the batch has none."""
    told = read(ProduceRequest("t", ID, 3, b"", 0), f"02 {name} {PRODUCED}", version)
    assert told is not None
    assert (told.code, told.base_offset, told.reason) == (ErrorCode.INVALID_RECORD, 40, "bad")
    assert told.is_by_topic_id == (version == 13)


def test_append_when_the_answer_lacks_the_partition_then_there_is_none() -> None:
    """An answer without the partition gives none."""
    assert read(ProduceRequest("t", ID, 9, b"", 0), f"02 {ID_HEX} {PRODUCED}", 13) is None
    assert read(ProduceRequest("t", OTHER, 3, b"", 0), f"02 {ID_HEX} {PRODUCED}", 13) is None


def test_producer_id_when_answered_then_is_read() -> None:
    """Id and epoch, or the code instead."""
    answer = "00000000 0000 00000000000003e8 0001 00"
    assert read(InitProducerIdRequest(), answer) == ProducerId(0, 1000, 1)


@pytest.mark.parametrize(("version", "topic_id"), [(7, ID_HEX), (5, "")])
def test_creation_when_answered_then_code_and_reason_are_read(version: int, topic_id: str) -> None:
    """Both versions of the answer, with and without the topic id, are read."""
    request = CreateTopicsRequest(
        "t", partition_count=1, replication_factor=1, settings={}, timeout_ms=1
    )
    setting = "02 0261 0262 00 05 00 00"
    answer = f"00000000 02 0274 {topic_id} 0024 0462 6164 00000001 0001 {setting} 00 00"
    assert read(request, answer, version) == TopicRequestOutcome(
        ErrorCode.TOPIC_ALREADY_EXISTS, "bad"
    )


def test_settings_when_answered_then_values_and_defaults_are_told_apart() -> None:
    """A setting of the topic and one of the broker; synonyms are stepped over."""
    mine = "0261 0262 00 01 00 02 0263 0264 05 00 02 00 00"
    default = "0265 00 00 05 00 01 02 00 00"
    (found,) = read(
        DescribeTopicsRequest(["t"], ["a", "e"]),
        f"00000000 02 0000 00 02 0274 03 {mine} {default} 00 00",
    )
    assert {name: (one.value, one.is_default) for name, one in found.settings.items()} == {
        "a": ("b", False),
        "e": (None, True),
    }
