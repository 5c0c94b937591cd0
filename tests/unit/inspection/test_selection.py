"""The texts that a person types for a time, a moment, a partition or a segment."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import InvalidArgument, UnknownPartition
from rlmm.inspection.selectors import (
    CLOCKS_DIFFER_MS,
    MomentSelector,
    PartitionLabel,
    parse_at,
    parse_partition,
    parse_position,
    parse_segment,
    parse_time,
    parse_topic_partitions,
    partition_filter,
    resolve,
    topic_pattern,
)
from rlmm.metadata.ids import TopicIdPartition, Uuid
from tests.support.builders import TOPIC_ID, tp

if TYPE_CHECKING:
    from collections.abc import Callable

DIGITS = "9" * 5_000
"""Python refuses to read a number of so many."""
NOW_MS = 1_800_000_000_000
OTHER_ID = Uuid(bytes(range(16)))


@pytest.mark.parametrize(
    ("text", "time_ms"),
    [
        ("now", NOW_MS),
        ("-7d", NOW_MS - 7 * 86_400_000),
        ("-1.5h", NOW_MS - 5_400_000),
        ("-250ms", NOW_MS - 250),
        ("-99999w", 0),
        ("1700000000000", 1_700_000_000_000),
        ("0", 0),
        ("2023-11-14T22:13:20.250Z", 1_700_000_000_250),
        ("2023-11-14T22:13:20", 1_700_000_000_000),
        ("2023-11-14 23:13:20+01:00", 1_700_000_000_000),
        ("2023-11-14", 1_699_920_000_000),
        (" 2023-11-14T22:13:20Z ", 1_700_000_000_000),
    ],
)
def test_time_when_written_in_any_form_is_milliseconds(text: str, time_ms: int) -> None:
    """The parser takes ISO 8601 with UTC by default, milliseconds, an age, and now."""
    assert parse_time(text, NOW_MS) == time_ms


def test_time_when_no_zone_is_said_is_utc_wherever_the_machine_stands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A time without a zone means the same moment on every machine."""
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        assert parse_time("2023-11-14T22:13:20", NOW_MS) == 1_700_000_000_000
    finally:
        monkeypatch.undo()
        time.tzset()


REFUSED: dict[Callable[[str], object], tuple[str, tuple[str, ...]]] = {
    lambda text: parse_time(text, NOW_MS): (
        "-7d or now", ("", "yesterday", "7d", "-7", "-7y", "2023-13-01", "1e3", "٣", DIGITS,
                       f"-{DIGITS}w")
    ),
    lambda text: parse_at(text, NOW_MS): (
        "", ("-5", "7:", ":5", "7:1500,7:2", "7:-1", "x:1", "", DIGITS, f"7:{DIGITS}")
    ),
    parse_topic_partitions: ("", ("t1:a", "t1:1-2-3", "t1:1:2", "t1: 1", "(:1", f"t1:{DIGITS}")),
    parse_partition: (
        "orders-3", ("orders", "orders-", "-3", "orders-x", "orders-99999999999", "")
    ),
    parse_position: (
        "", ("orders-3", "orders-3@", "orders-3@-1", f"orders-3@{2**63}", "@5", f"t-3@{DIGITS}")
    ),
    parse_segment: ("", ("", "orders-3/", "x" * 23, "a b", "orders/AAAA")),
}  # fmt: skip


@pytest.mark.parametrize(
    ("parse", "text", "said"),
    [(parse, text, said) for parse, (said, texts) in REFUSED.items() for text in texts],
)
def test_text_when_it_means_nothing_is_refused(
    parse: Callable[[str], object], text: str, said: str
) -> None:
    """Each parser refuses texts of no form of its own, with an example where there is one."""
    with pytest.raises(InvalidArgument, match=said or None):
        parse(text)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("1500", MomentSelector(offset=1_500)),
        ("0", MomentSelector(offset=0)),
        ("99999999999", MomentSelector(offset=99_999_999_999)),
        ("100000000000", MomentSelector(time_ms=100_000_000_000)),
        ("7:1500", MomentSelector(offsets={7: 1_500})),
        ("7:1500, 8:0", MomentSelector(offsets={7: 1_500, 8: 0})),
        ("-1h", MomentSelector(time_ms=NOW_MS - 3_600_000)),
        ("2023-11-14T22:13:20Z", MomentSelector(time_ms=1_700_000_000_000)),
    ],
)
def test_moment_when_written_is_offset_offsets_or_time(text: str, at: MomentSelector) -> None:
    """Numbers of twelve digits and more are times, as no topic has so many records."""
    assert parse_at(text, NOW_MS) == at


@pytest.mark.parametrize("later_ms", [CLOCKS_DIFFER_MS + 1, 10**12], ids=["a minute", "decades"])
def test_moment_when_it_lies_in_the_future_then_is_refused(later_ms: int) -> None:
    """A time to come is refused, and one within the difference of clocks is taken."""
    with pytest.raises(InvalidArgument, match="lies in the future"):
        parse_at(str(NOW_MS + later_ms), NOW_MS)
    at = parse_at(str(NOW_MS + CLOCKS_DIFFER_MS), NOW_MS)
    assert at == MomentSelector(time_ms=NOW_MS + CLOCKS_DIFFER_MS)


@pytest.mark.parametrize(
    ("pattern", "allowed", "refused"),
    [
        ("t1:1", ["t1-1"], ["t1-0", "t1-2", "t11-1"]),
        ("t2:0-3", ["t2-0", "t2-2"], ["t2-3"]),
        ("t3", ["t3-0", "t3-99"], ["at3-0", "t33-0"]),
        ("t4:5-", ["t4-5", "t4-99"], ["t4-4"]),
        ("t5:-3", ["t5-0", "t5-2"], ["t5-3"]),
        (":2", ["t1-2", "anything-2"], ["t1-1"]),
        ("t.*:", ["t1-0", "topic-7"], ["x-0"]),
        ("t6:-", ["t6-0", "t6-9"], []),
        ("t1:1,t2:2", ["t1-1", "t2-2"], ["t1-2", "t2-1"]),
        ("t1:1,", ["t1-1"], ["t1-0"]),
        ("", ["t1-0"], []),
        ("t1:1,,t2", ["x-9"], []),
    ],
)
def test_topic_partitions_when_written_as_kafkas_tool_has_them_mean_the_same(
    pattern: str, allowed: list[str], refused: list[str]
) -> None:
    """Rules are read as kafka-get-offsets reads them, also empty ones."""
    found = parse_topic_partitions(pattern)
    assert all(found.allows(_partition(one)) for one in allowed)
    assert not any(found.allows(_partition(one)) for one in refused)


@pytest.mark.parametrize(
    ("pattern", "names"),
    [("orders", ["orders"]), ("a, b", ["a", "b"]), ("'a.*'", ["abc"]), ('"a"', ["a"])],
)
def test_topic_pattern_when_written_is_read_as_kafkas_tools_read_it(
    pattern: str, names: list[str]
) -> None:
    """Commas say or; blanks, and quotes around it, do not count."""
    assert all(topic_pattern(pattern).fullmatch(name) for name in names)


def test_filter_when_both_flags_are_given_is_refused() -> None:
    """Two of them would leave open which one counts."""
    with pytest.raises(InvalidArgument, match="one of them"):
        partition_filter("a", "b:1")
    assert partition_filter(None, None).allows(tp())
    assert partition_filter("ord.*", None).allows(tp("orders"))
    assert not partition_filter("ord", None).allows(tp("orders"))
    assert not partition_filter(None, "orders:6").allows(tp("orders", 7))


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("orders-3", PartitionLabel("orders", 3)),
        ("a-b-c-0", PartitionLabel("a-b-c", 0)),
        (f"{TOPIC_ID}:orders-3", PartitionLabel("orders", 3, TOPIC_ID)),
        (f"{OTHER_ID}:3", PartitionLabel(None, 3, OTHER_ID)),
    ],
)
def test_partition_when_written_as_kafka_prints_it_is_understood(
    text: str, label: PartitionLabel
) -> None:
    """`orders-3`, with the topic id before it, and the id without the name; shown as written."""
    assert parse_partition(text) == label
    assert str(label) == text


def test_position_when_written_has_a_partition_and_an_offset() -> None:
    """`orders-3@1500`."""
    assert parse_position("orders-3@1500") == (PartitionLabel("orders", 3), 1_500)


def test_partition_when_only_one_is_known_is_that_one() -> None:
    """A topic name alone selects the partition when only one topic has it."""
    assert resolve(parse_partition("orders-7"), [tp(), tp("orders", 8)]) == tp()
    assert resolve(parse_partition(f"{TOPIC_ID}:7"), [tp(), tp("orders", 8)]) == tp()


def test_partition_when_several_topics_had_the_name_is_refused_with_each_id() -> None:
    """A topic that was made again: both are named, so that either can be asked for."""
    known = [tp(), tp(topic_id=OTHER_ID)]
    with pytest.raises(InvalidArgument) as caught:
        resolve(parse_partition("orders-7"), known)
    assert f"{TOPIC_ID}:orders-7" in str(caught.value)
    assert f"{OTHER_ID}:orders-7" in str(caught.value)
    assert resolve(parse_partition(f"{OTHER_ID}:orders-7"), known) == known[1]


def test_partition_when_nothing_is_known_of_it_says_which_there_are() -> None:
    """The error distinguishes an unknown partition number from an unknown topic name."""
    known = [tp("orders", number) for number in range(12)]
    with pytest.raises(UnknownPartition, match=r"there are partitions 0, 1, .* and 2 more"):
        resolve(parse_partition("orders-99"), known)
    with pytest.raises(UnknownPartition) as caught:
        resolve(parse_partition("order-1"), known)
    assert "there are" not in str(caught.value)


def test_segment_when_written_is_an_id_or_its_beginning() -> None:
    """The parser takes 22 characters as an id and fewer as its beginning, dashes included."""
    uuid = Uuid(b"\xf8" + bytes(15))
    assert str(uuid).startswith("-")
    whole, beginning = parse_segment(str(uuid)), parse_segment("-A")
    assert (whole.uuid, beginning.uuid) == (uuid, None)
    assert whole.names(uuid)
    assert beginning.names(uuid)
    assert not beginning.names(OTHER_ID)
    assert parse_segment(f"orders-3/{uuid}").partition == PartitionLabel("orders", 3)


def _partition(label: str) -> TopicIdPartition:
    topic, _, number = label.rpartition("-")
    return tp(topic, int(number))
