"""Requests as bytes and answers from bytes, as Kafka defines them and its classes write them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rlmm.kafka_messages.cluster import (
    BrokerAddress,
    ClusterMetadata,
    ClusterRights,
    DescribeClusterRequest,
    MetadataRequest,
    PartitionLeader,
    TopicMetadata,
    operations_of,
)
from rlmm.kafka_messages.configs import (
    AlterTopicRequest,
    BrokerSetting,
    CreateTopicsRequest,
    DescribeBrokerRequest,
    DescribedBroker,
    DescribedTopic,
    DescribeTopicsRequest,
    TopicRequestOutcome,
    TopicSetting,
)
from rlmm.kafka_messages.error_codes import ErrorCode
from rlmm.kafka_messages.fetch import FetchAnswer, FetchedPartition, FetchPartition, FetchRequest
from rlmm.kafka_messages.log_dirs import DescribedLogDir, DescribedLogDirs, LogDirsRequest
from rlmm.kafka_messages.offsets import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    READ_COMMITTED,
    EpochEnd,
    EpochEndsRequest,
    ListedOffset,
    ListOffsetsRequest,
)
from rlmm.kafka_messages.produce import (
    InitProducerIdRequest,
    ProduceRequest,
    ProduceResult,
    ProducerId,
)
from rlmm.kafka_messages.wire import MessageReader, MessageWriter
from rlmm.metadata.ids import Uuid

ID = Uuid(bytes(range(16)))
OTHER = Uuid(bytes(16))
ID_HEX = bytes(ID).hex()


PARTITIONS = {"a": [0, 2], "bc": [1]}
TIERED = ListOffsetsRequest(PARTITIONS, LATEST_TIERED, READ_COMMITTED)
CHANGE = AlterTopicRequest("t", {"retention.ms": "-1"}, ["x"])
FETCH = FetchRequest(ID, [], wait_ms=0, bytes_max=1)
APPEND = ProduceRequest("t", ID, 3, b"batch", 1000)
CREATION = CreateTopicsRequest(
    "t", partition_count=50, replication_factor=3, settings={"a": "b"}, timeout_ms=1000
)

REQUESTS: dict[str, tuple[Any, ...]] = {
    "metadata, never creating": (MetadataRequest(["t"]), "02" + "00" * 16 + "0274 00 00 00 00"),
    "offsets": (
        ListOffsetsRequest({"t": (3,)}, EARLIEST),
        "ffffffff 00 02 0274 02 00000003 ffffffff fffffffffffffffe 00 00 00",
    ),
    "offsets of a leader epoch": (
        ListOffsetsRequest({"t": (3,)}, EARLIEST, leader_epochs={3: 7}),
        "ffffffff 00 02 0274 02 00000003 00000007 fffffffffffffffe 00 00 00",
    ),
    "fetch": (
        FetchRequest(ID, [FetchPartition(3, 40, 100, 5, 4)], wait_ms=250, bytes_max=1000),
        f"ffffffff 000000fa 00000001 000003e8 00 00000000 ffffffff 02 {ID_HEX} 02"
        "00000003 00000005 0000000000000028 00000004 ffffffffffffffff 00000064 00 00 01 01 00",
    ),
    "append by topic id": (
        APPEND,
        f"00 ffff 000003e8 02 {ID_HEX} 02 00000003 06 6261746368 00 00 00",
        13,
    ),
    "append by name": (APPEND, "00 ffff 000003e8 02 0274 02 00000003 06 6261746368 00 00 00", 9),
    "producer id": (InitProducerIdRequest(), "00 7fffffff 00"),
    "creation": (CREATION, "02 0274 00000032 0003 01 02 0261 0262 00 00 000003e8 00 00"),
    "settings": (DescribeTopicsRequest(["t"], ["a"]), "02 02 0274 02 0261 00 00 00 00"),
    # As Kafka 4.3.1's own classes write them.
    "rights on the cluster": (DescribeClusterRequest(), "0100"),
    "rights on a topic": (
        MetadataRequest(["t"], has_operations=True),
        "0200000000000000000000000000000000027400000100",
    ),
    "log folders": (LogDirsRequest(), "0000"),
    "settings of a broker": (DescribeBrokerRequest(7), "020402370000000000"),
    "what is to be uploaded": (
        ListOffsetsRequest({"t": [3]}, EARLIEST_PENDING_UPLOAD),
        "ffffffff000202740200000003fffffffffffffffffffffffa00000000138800",
    ),
    "offsets of several topics, committed": (
        TIERED,
        "ffffffff010302610300000000fffffffffffffffffffffffb0000000002fffffffffffffffffffffffb"
        "00000362630200000001fffffffffffffffffffffffb000000",
    ),
    "ends of epochs": (
        EpochEndsRequest({"a": {3: 5}}),
        "ffffffff0202610200000003ffffffff00000005000000",
    ),
    "change": (CHANGE, "02020274030d726574656e74696f6e2e6d7300032d31000278010000000000"),
    "change, only checked": (
        replace(CHANGE, is_only_checked=True),
        "02020274030d726574656e74696f6e2e6d7300032d31000278010000000100",
    ),
    "all settings": (DescribeTopicsRequest(["t"], None), "020202740000000000"),
    "metadata of nothing": (MetadataRequest([]), "01000000"),
}


@pytest.mark.parametrize("case", REQUESTS.values(), ids=REQUESTS)
def test_request_when_written_then_is_as_kafka_defines_it(case: tuple[Any, ...]) -> None:
    """Field by field the bytes of the message definition; no topic is ever created unasked."""
    request_, expected, *version = case
    out = MessageWriter()
    request_.write(out, (version or request_.api.versions)[0])
    assert out.done().hex() == expected.replace(" ", "")


LISTED = "00000003 0000 ffffffffffffffff 0000000000000028 00000007 00"
NOT_LISTED = "00000004 0006 ffffffffffffffff ffffffffffffffff ffffffff 00"
FETCHED = (
    "00000003 0000 0000000000000032 0000000000000031 0000000000000028"
    "02 0000000000000001 0000000000000002 00 ffffffff 04 616263"
)
PRODUCED = (
    "02 00000003 0057 0000000000000028 ffffffffffffffff 0000000000000000"
    "02 00000000 0462 6164 00 00 00 00 00000000 00"
)
SETTINGS = "0261 0262 00 01 00 02 0263 0264 05 00 02 00 000265 00 00 05 00 01 02 00 00"
TOPIC = (
    "000000000102630000000102000002740000000000000000000000000000000000020000000000000000000100"
    "00000703000000010000000202000000010100"
)
LOG_DIR = "000000000000030000032f64020274020000000300000000000003e8"
OFFLINE = DescribedLogDir(ErrorCode.KAFKA_STORAGE_ERROR, "/e", {}, None, None)
BAD = ErrorCode.INVALID_RECORD, 40, "bad"


def described(operations: int | None) -> ClusterMetadata:
    leaders = (PartitionLeader(0, 0, 1, 7, (1, 2), (1,)),)
    topic = TopicMetadata(0, "t", OTHER, leaders, is_internal=False, operations=operations)
    return ClusterMetadata((), "c", (topic,))


def fetched(*, is_diverging: bool = False) -> FetchAnswer:
    data = memoryview(b"abc")
    return FetchAnswer(0, (FetchedPartition(3, 0, 50, 40, data, is_diverging=is_diverging),))


def log_dir(*disk: int | None) -> DescribedLogDirs:
    return DescribedLogDirs(0, (DescribedLogDir(0, "/d", {("t", 3): 1000}, *disk), OFFLINE))


ANSWERS: dict[str, tuple[Any, ...]] = {
    "metadata, racks, rights and unknown tags stepped over": (
        MetadataRequest(["t"]),
        "00000000 02 00000001 0268 00002384 00 00 0263 00000001"
        f"02 0000 0274 {ID_HEX} 00 03 0000 00000000 00000001 00000007 02 00000001 02 00000001 01 00"
        "0005 00000001 ffffffff 00000008 01 01 01 00 80000000 00 00",
        ClusterMetadata(
            (BrokerAddress(1, "h", 9092),),
            "c",
            (
                TopicMetadata(
                    0,
                    "t",
                    ID,
                    (PartitionLeader(0, 0, 1, 7, (1,), (1,)), PartitionLeader(5, 1, -1, 8, ())),
                ),
            ),
        ),
    ),
    "metadata with rights": (
        MetadataRequest(["t"], has_operations=True),
        f"{TOPIC}000001080000",
        described(0x108),
    ),
    "metadata without rights": (
        MetadataRequest(["t"], has_operations=True),
        f"{TOPIC}800000000000",
        described(None),
    ),
    "offsets, by topic and partition": (
        ListOffsetsRequest({"t": (3, 4, 5)}, LATEST),
        f"00000000 03 0274 03 {LISTED} {NOT_LISTED} 00 0275 02 {LISTED} 00 00",
        {"t": {3: ListedOffset(0, 40), 4: ListedOffset(6, -1)}, "u": {3: ListedOffset(0, 40)}},
    ),
    "offsets of the tier, where -1 is an answer": (
        TIERED,
        "0000000003026103000000000000ffffffffffffffff00000000000000280000000700000000020006ffffffff"
        "ffffffffffffffffffffffffffffffff000003626302000000010000ffffffffffffffffffffffffffffffff"
        "ffffffff000000",
        {
            "a": {0: ListedOffset(0, 40), 2: ListedOffset(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)},
            "bc": {1: ListedOffset(0, -1)},
        },
    ),
    "fetch, aborted transactions stepped over": (
        FETCH,
        f"00000000 0000 00000000 02 {ID_HEX} 02 {FETCHED} 00 00 00",
        fetched(),
    ),
    "fetch of a diverging history, by tag 0": (
        FETCH,
        f"00000000 0000 00000000 02 {ID_HEX} 02 {FETCHED}"
        "01 00 0d 00000001 0000000000000005 00 00 00",
        fetched(is_diverging=True),
    ),
    "fetch of another topic": (
        replace(FETCH, topic_id=OTHER),
        f"00000000 0064 00000000 02 {ID_HEX} 02 {FETCHED} 00 00 00",
        FetchAnswer(ErrorCode.UNKNOWN_TOPIC_ID, ()),
    ),
    "append by topic id, its reason from a record": (
        APPEND,
        f"02 {ID_HEX} {PRODUCED}",
        ProduceResult(*BAD, is_by_topic_id=True),
        13,
    ),
    "append by name": (APPEND, f"02 0274 {PRODUCED}", ProduceResult(*BAD, is_by_topic_id=False), 9),
    "append of another partition": (
        replace(APPEND, partition=9),
        f"02 {ID_HEX} {PRODUCED}",
        None,
        13,
    ),
    "append to another topic": (
        replace(APPEND, topic_id=OTHER),
        f"02 {ID_HEX} {PRODUCED}",
        None,
        13,
    ),
    "producer id": (
        InitProducerIdRequest(),
        "00000000 0000 00000000000003e8 0001 00",
        ProducerId(0, 1000, 1),
    ),
    "creation, with topic id": (
        CREATION,
        f"00000000 02 0274 {ID_HEX} 0024 0462 6164 00000001 0001 02 0261 0262 00 05 00 00 00 00",
        TopicRequestOutcome(ErrorCode.TOPIC_ALREADY_EXISTS, "bad"),
        7,
    ),
    "creation, without": (
        CREATION,
        "00000000 02 0274 0024 0462 6164 00000001 0001 02 0261 0262 00 05 00 00 00 00",
        TopicRequestOutcome(ErrorCode.TOPIC_ALREADY_EXISTS, "bad"),
        5,
    ),
    "settings, synonyms stepped over": (
        DescribeTopicsRequest(["t"], ["a", "e"]),
        f"00000000 02 0000 00 02 0274 03 {SETTINGS} 00 00",
        [
            DescribedTopic(
                0, None, "t", {"a": TopicSetting("b", False), "e": TopicSetting(None, True)}
            )
        ],
    ),
    "ends of epochs": (
        EpochEndsRequest({"a": {3: 5}}),
        "0000000002026102000000000003000000040000000000000064000000",
        {"a": {3: EpochEnd(0, 4, 100)}},
    ),
    "change refused": (
        CHANGE,
        "00000000020028046261640202740000",
        TopicRequestOutcome(ErrorCode.INVALID_CONFIG, "bad"),
    ),
    "change taken": (
        CHANGE,
        "00000000020000000202740000",
        TopicRequestOutcome(ErrorCode.NONE, None),
    ),
    "rights on the cluster": (
        DescribeClusterRequest(),
        "0000000000000002630000000102000000010268000023840272000000050000",
        ClusterRights(0, 0x500),
    ),
    "rights on the cluster, not requested": (
        DescribeClusterRequest(),
        "0000000000000002630000000102000000010268000023840272008000000000",
        ClusterRights(0, None),
    ),
    "rights on the cluster, denied": (
        DescribeClusterRequest(),
        "00000000001f036e6f01ffffffff018000000000",
        ClusterRights(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, None),
    ),
    "log folders with the disk, one failed": (
        LogDirsRequest(),
        f"{LOG_DIR}000000000000000000000000000000000013880000000000000028000038032f6501"
        f"{'ff' * 16}0000",
        log_dir(5000, 40),
        4,
    ),
    "log folders of an older broker": (
        LogDirsRequest(),
        f"{LOG_DIR}0000000000000000000000000038032f65010000",
        log_dir(None, None),
        3,
    ),
    "log folders denied": (
        LogDirsRequest(),
        "00000000001f0100",
        DescribedLogDirs(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ()),
    ),
    "settings of a broker, explicit ones its own, secrets left out": (
        DescribeBrokerRequest(7),
        "000000000200000104023706096c6f672e64697273032f64000400010201000261023100020001020100026202"
        "3200030001020100026302330005000102010002700273000401010201000000",
        DescribedBroker(
            ErrorCode.NONE,
            "",
            {
                "log.dirs": BrokerSetting("/d", True),
                "a": BrokerSetting("1", True),
                "b": BrokerSetting("2", False),
                "c": BrokerSetting("3", False),
                "p": BrokerSetting(None, True),
            },
        ),
    ),
    "settings of a broker, denied": (
        DescribeBrokerRequest(7),
        "0000000002001f036e6f040237010000",
        DescribedBroker(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "no", {}),
    ),
}


@pytest.mark.parametrize("case", ANSWERS.values(), ids=ANSWERS)
def test_answer_when_read_then_has_every_field(case: tuple[Any, ...]) -> None:
    """Values, codes and reasons are read; fields that the answer lacks are absent."""
    request_, data, expected, *version = case
    reader = MessageReader(bytes.fromhex(data.replace(" ", "")))
    assert request_.read(reader, (version or request_.api.versions)[0]) == expected


@pytest.mark.parametrize(
    ("bits", "expected"),
    [
        (None, None),
        (0, set()),
        (0x108, {"READ", "DESCRIBE"}),
        (0x500, {"DESCRIBE", "DESCRIBE_CONFIGS"}),
    ],
    ids=["not requested", "none allowed", "of a topic", "of the cluster"],
)
def test_operations_when_named_then_have_kafkas_words(
    bits: int | None, expected: set[str] | None
) -> None:
    """The rights come from a bit mask, and "not requested" differs from "none allowed"."""
    assert operations_of(bits) == expected


VERSIONS = {
    "log start, of the oldest": (EARLIEST, 6, 6, ""),
    "log end, of the newest": (LATEST, 11, 6, ""),
    "local start, of one without": (EARLIEST_LOCAL, 7, None, "3.6"),
    "local start": (EARLIEST_LOCAL, 8, 8, "3.6"),
    "end of the tier, of one without": (LATEST_TIERED, 8, None, "3.9"),
    "end of the tier": (LATEST_TIERED, 9, 9, "3.9"),
    "uploads, of one without": (EARLIEST_PENDING_UPLOAD, 10, None, "4.3"),
    "uploads": (EARLIEST_PENDING_UPLOAD, 11, 11, "4.3"),
}


@pytest.mark.parametrize(("end", "highest", "expected", "since"), VERSIONS.values(), ids=VERSIONS)
def test_offsets_when_the_broker_does_not_know_the_question_then_no_version_fits(
    end: int, highest: int, expected: int | None, since: str
) -> None:
    """No version fits an older broker, which would take -4, -5 and -6 for times."""
    api = ListOffsetsRequest({}, end).api
    assert api.choose({2: (1, highest)}) == expected
    assert api.since == since
