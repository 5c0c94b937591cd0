"""
The admin requests of jobs as bytes: each request and answer here was written once by the message
classes of Kafka 4.3.1.
"""

from __future__ import annotations

import pytest

from rlmm.kafka_messages.cluster import (
    ClusterRights,
    DescribeClusterRequest,
    MetadataRequest,
    PartitionLeader,
    operations_of,
)
from rlmm.kafka_messages.configs import (
    AlterTopicRequest,
    BrokerSetting,
    DescribeBrokerRequest,
    TopicRequestOutcome,
)
from rlmm.kafka_messages.error_codes import ErrorCode
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
from tests.unit.kafka_client.conftest import read

KEY, LOWEST = 2, 1
PARTITIONS = {"a": [0, 2], "bc": [1]}
TIERED = ListOffsetsRequest(PARTITIONS, LATEST_TIERED, READ_COMMITTED)
CHANGE = {"retention.ms": "-1"}


def test_offsets_when_answered_then_are_told_by_topic_and_partition() -> None:
    """An offset, a code, and an offset of -1 that is an answer like others."""
    found = read(
        TIERED,
        "0000000003026103000000000000ffffffffffffffff00000000000000280000000700000000020006ffffffff"
        "ffffffffffffffffffffffffffffffff000003626302000000010000ffffffffffffffffffffffffffffffff"
        "ffffffff000000",
    )
    assert found == {
        "a": {0: ListedOffset(0, 40), 2: ListedOffset(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)},
        "bc": {1: ListedOffset(0, -1)},
    }


VERSIONS = {
    "log start, of the oldest": (EARLIEST, 6, 6),
    "log end, of the newest": (LATEST, 11, 6),
    "local start, of one without": (EARLIEST_LOCAL, 7, None),
    "local start": (EARLIEST_LOCAL, 8, 8),
    "end of the tier, of one without": (LATEST_TIERED, 8, None),
    "end of the tier": (LATEST_TIERED, 9, 9),
}


@pytest.mark.parametrize(("end", "highest", "expected"), VERSIONS.values(), ids=VERSIONS)
def test_offsets_when_the_broker_does_not_know_the_question_then_no_version_fits(
    end: int, highest: int, expected: int | None
) -> None:
    """No version fits an older broker, which would take -4 and -5 for times."""
    api = ListOffsetsRequest({}, end).api
    assert api.choose({KEY: (LOWEST, highest)}) == expected
    assert bool(api.since) == (end in {EARLIEST_LOCAL, LATEST_TIERED})


def test_ends_of_epochs_when_answered_then_epoch_and_offset_are_told() -> None:
    """The leader's largest epoch that is not above the one asked for, and where it ends."""
    answer = "0000000002026102000000000003000000040000000000000064000000"
    assert read(EpochEndsRequest({"a": {3: 5}}), answer) == {"a": {3: EpochEnd(0, 4, 100)}}


OUTCOMES = {
    "refused": (
        "00000000020028046261640202740000",
        TopicRequestOutcome(ErrorCode.INVALID_CONFIG, "bad"),
    ),
    "taken": ("00000000020000000202740000", TopicRequestOutcome(ErrorCode.NONE, None)),
}


@pytest.mark.parametrize(("answer", "expected"), OUTCOMES.values(), ids=OUTCOMES)
def test_change_when_answered_then_is_read(answer: str, expected: TopicRequestOutcome) -> None:
    """The answer keeps the error code and the broker's own message."""
    assert read(AlterTopicRequest("t", CHANGE), answer) == expected


def test_cluster_when_it_tells_our_rights_then_they_are_named_in_kafkas_words() -> None:
    """The rights come from a bit mask, and "not requested" differs from "none allowed"."""
    told = read(
        DescribeClusterRequest(), "0000000000000002630000000102000000010268000023840272000000050000"
    )
    assert operations_of(told.operations) == frozenset({"DESCRIBE", "DESCRIBE_CONFIGS"})
    untold = read(
        DescribeClusterRequest(), "0000000000000002630000000102000000010268000023840272008000000000"
    )
    assert operations_of(untold.operations) is None
    assert operations_of(0) == frozenset()
    denied = read(DescribeClusterRequest(), "00000000001f036e6f01ffffffff018000000000")
    assert denied == ClusterRights(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, None)


def test_topic_when_rights_were_asked_for_then_they_are_told_with_it() -> None:
    """Rights stand behind the partitions, and only when the caller requests them."""
    topic = (
        "000000000102630000000102000002740000000000000000000000000000000000020000000000000000000100"
        "0000070300000001000000020200000001"
    )
    request = MetadataRequest(["t"], has_operations=True)
    for bits, expected in (("00000108", {"READ", "DESCRIBE"}), ("80000000", None)):
        (told,) = read(request, f"{topic}0100{bits}0000").topics
        assert told.partitions == (PartitionLeader(0, 0, 1, 7, (1, 2), (1,)),)
        assert operations_of(told.operations) == expected


SIZES = {("t", 3): 1000}
FOLDERS = {
    "with the disk": (
        4,
        "000000000000030000032f64020274020000000300000000000003e8000000000000000000000000000000"
        "000013880000000000000028000038032f6501ffffffffffffffffffffffffffffffff0000",
        DescribedLogDir(0, "/d", SIZES, 5000, 40),
    ),
    "of an older broker": (
        3,
        "000000000000030000032f64020274020000000300000000000003e8000000000000000000000000003803"
        "2f65010000",
        DescribedLogDir(0, "/d", SIZES, None, None),
    ),
}


@pytest.mark.parametrize(("version", "answer", "expected"), FOLDERS.values(), ids=FOLDERS)
def test_log_folders_when_told_then_have_sizes_and_the_disk_where_it_is_known(
    version: int, answer: str, expected: DescribedLogDir
) -> None:
    """Unknown disk sizes stay unknown, and a failed folder has its error code."""
    told = read(LogDirsRequest(), answer, version)
    offline = DescribedLogDir(ErrorCode.KAFKA_STORAGE_ERROR, "/e", {}, None, None)
    assert told == DescribedLogDirs(0, (expected, offline))


def test_log_folders_when_denied_then_the_code_says_so() -> None:
    """A denied answer has a code and no folders."""
    denied = DescribedLogDirs(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ())
    assert read(LogDirsRequest(), "00000000001f0100") == denied


def test_settings_of_a_broker_when_told_then_those_set_for_it_alone_are_explicit() -> None:
    """Explicit settings are the broker's own, and secrets are left out."""
    told = read(
        DescribeBrokerRequest(7),
        "000000000200000104023706096c6f672e64697273032f64000400010201000261023100020001020100026202"
        "32000300010201000263023300050001020100027000000401010201000000",
    )
    assert told.code == ErrorCode.NONE
    assert told.settings == {
        "log.dirs": BrokerSetting("/d", True),
        "a": BrokerSetting("1", True),
        "b": BrokerSetting("2", False),
        "c": BrokerSetting("3", False),
        "p": BrokerSetting(None, True),
    }
    denied = read(DescribeBrokerRequest(7), "0000000002001f036e6f040237010000")
    assert (denied.code, denied.settings) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, {})


@pytest.mark.parametrize(("highest", "expected"), [(10, None), (11, 11)])
def test_uploads_when_unknown_then_no_version_fits(highest: int, expected: int | None) -> None:
    """No version fits an older broker, which would take -6 for a time."""
    api = ListOffsetsRequest({}, EARLIEST_PENDING_UPLOAD).api
    assert api.choose({2: (1, highest)}) == expected
    assert api.since == "4.3"
