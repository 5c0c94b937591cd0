"""
What is asked of a cluster for people, as bytes: each request and answer here was written once by
the message classes of Kafka 4.3.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rlmm.kafka_messages.cluster import (
    ClusterRights,
    DescribeClusterRequest,
    MetadataRequest,
    PartitionLeader,
    operations_of,
)
from rlmm.kafka_messages.configs import BrokerSetting, DescribeBrokerRequest
from rlmm.kafka_messages.error_codes import ErrorCode
from rlmm.kafka_messages.log_dirs import DescribedLogDir, DescribedLogDirs, LogDirsRequest
from rlmm.kafka_messages.offsets import EARLIEST_PENDING_UPLOAD, ListOffsetsRequest
from rlmm.kafka_messages.wire import MessageReader, MessageWriter

if TYPE_CHECKING:
    from rlmm.kafka_messages.wire import Request

REQUESTS: dict[str, tuple[Request[Any], str]] = {
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
}


@pytest.mark.parametrize(("request_", "expected"), REQUESTS.values(), ids=REQUESTS)
def test_request_when_written_then_is_as_kafka_writes_it(
    request_: Request[Any], expected: str
) -> None:
    """Byte for byte what Kafka's own class writes for the same question, in its best version."""
    out = MessageWriter()
    request_.write(out, request_.api.versions[0])
    assert out.done().hex() == expected


def read(request: Request[Any], answer: str, version: int | None = None) -> Any:
    version = request.api.versions[0] if version is None else version
    return request.read(MessageReader(bytes.fromhex(answer)), version)


def test_cluster_when_it_tells_our_rights_then_they_are_named_in_kafkas_words() -> None:
    """One bit for each operation; nobody was asked, or nothing is allowed, are two things."""
    told = read(
        DescribeClusterRequest(),
        "0000000000000002630000000102000000010268000023840272000000050000",
    )
    assert operations_of(told.operations) == frozenset({"DESCRIBE", "DESCRIBE_CONFIGS"})
    untold = read(
        DescribeClusterRequest(),
        "0000000000000002630000000102000000010268000023840272008000000000",
    )
    assert operations_of(untold.operations) is None
    assert operations_of(0) == frozenset()
    denied = read(DescribeClusterRequest(), "00000000001f036e6f01ffffffff018000000000")
    assert denied == ClusterRights(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, None)


def test_topic_when_rights_were_asked_for_then_they_are_told_with_it() -> None:
    """They stand behind its partitions; where nobody asked, there are none."""
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
    """What a disk does not tell is unknown, and a folder that failed has its code."""
    told = read(LogDirsRequest(), answer, version)
    offline = DescribedLogDir(ErrorCode.KAFKA_STORAGE_ERROR, "/e", {}, None, None)
    assert told == DescribedLogDirs(0, (expected, offline))


def test_log_folders_when_denied_then_the_code_says_so() -> None:
    """There are no folders in such an answer."""
    denied = DescribedLogDirs(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ())
    assert read(LogDirsRequest(), "00000000001f0100") == denied


def test_settings_of_a_broker_when_told_then_those_set_for_it_alone_are_explicit() -> None:
    """Its file and its own changes; not what was set for all brokers, or by Kafka. No secrets."""
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
def test_uploads_when_the_broker_does_not_know_them_then_no_version_fits(
    highest: int, expected: int | None
) -> None:
    """In an older version the broker would take -6 for a time, and answer something else."""
    api = ListOffsetsRequest({}, EARLIEST_PENDING_UPLOAD).api
    assert api.choose({2: (1, highest)}) == expected
    assert api.since == "4.3"
