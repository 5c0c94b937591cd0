"""
What jobs ask beside the log, as bytes: each request and answer here was written once by the message
classes of Kafka 4.3.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rlmm.kafka_messages.cluster import MetadataRequest
from rlmm.kafka_messages.configs import (
    AlterTopicRequest,
    DescribeTopicsRequest,
    TopicRequestOutcome,
)
from rlmm.kafka_messages.error_codes import ErrorCode
from rlmm.kafka_messages.offsets import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    LATEST_TIERED,
    READ_COMMITTED,
    EpochEnd,
    EpochEndsRequest,
    ListedOffset,
    ListOffsetsRequest,
)
from rlmm.kafka_messages.wire import MessageReader, MessageWriter

if TYPE_CHECKING:
    from rlmm.kafka_messages.wire import Request

KEY, LOWEST = 2, 1
PARTITIONS = {"a": [0, 2], "bc": [1]}
TIERED = ListOffsetsRequest(PARTITIONS, LATEST_TIERED, READ_COMMITTED)
CHANGE = {"retention.ms": "-1"}


def written(request: Request[Any]) -> str:
    out = MessageWriter()
    request.write(out, request.api.versions[0])
    return out.done().hex()


def read(request: Request[Any], answer: str) -> Any:
    return request.read(MessageReader(bytes.fromhex(answer)), request.api.versions[0])


REQUESTS: dict[str, tuple[Request[Any], str]] = {
    "offsets of several topics, committed": (
        TIERED,
        "ffffffff010302610300000000fffffffffffffffffffffffb0000000002fffffffffffffffffffffffb"
        "00000362630200000001fffffffffffffffffffffffb000000",
    ),
    "ends of epochs": (
        EpochEndsRequest({"a": {3: 5}}),
        "ffffffff0202610200000003ffffffff00000005000000",
    ),
    "change": (
        AlterTopicRequest("t", CHANGE, ["x"]),
        "02020274030d726574656e74696f6e2e6d7300032d31000278010000000000",
    ),
    "change, only checked": (
        AlterTopicRequest("t", CHANGE, ["x"], is_only_checked=True),
        "02020274030d726574656e74696f6e2e6d7300032d31000278010000000100",
    ),
    "all settings": (DescribeTopicsRequest(["t"], None), "020202740000000000"),
    "metadata of nothing": (MetadataRequest([]), "01000000"),
}


@pytest.mark.parametrize(("request_", "expected"), REQUESTS.values(), ids=REQUESTS)
def test_request_when_written_then_is_as_kafka_writes_it(
    request_: Request[Any], expected: str
) -> None:
    """Byte for byte what Kafka's own class writes for the same question."""
    assert written(request_) == expected


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
    """In an older version the broker would take -4 and -5 for times, and answer something else."""
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
def test_change_when_answered_then_code_and_reason_are_read(
    answer: str, expected: TopicRequestOutcome
) -> None:
    """The cluster's own sentence is kept: it is what an operator needs."""
    assert read(AlterTopicRequest("t", CHANGE), answer) == expected
