"""Values on the wire, also of operators' queries."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import InvalidArgument, LogUnavailable, NotReady, ProtocolError, UnsupportedVersion
from rlmm.metadata.ids import NAME_BYTES_MAX, TopicIdPartition, Uuid, trusted_segment_id
from rlmm.metadata.paging import Page, PageKey
from rlmm.metadata.row import row_of
from rlmm.metadata.segment import PartitionDeleteState, SegmentMetadata
from rlmm.wire import rows, values
from rlmm.wire.errors import error_value
from rlmm.wire.hello import (
    VERSIONS,
    ClientHello,
    HelloAnswer,
    ServiceLimits,
    agree,
    hello_answer_value,
    hello_value,
    read_hello,
    read_hello_answer,
)
from rlmm.wire.messages import packed, read_answer
from rlmm.wire.methods import METHODS
from rlmm.wire.operator_queries import (
    KEY_BYTES_MAX,
    ImageHead,
    LogEnds,
    LogPiece,
    PartitionCounts,
    SummaryPage,
    image_head_value,
    log_ends_value,
    log_piece_value,
    read_image_head,
    read_log_ends,
    read_log_piece,
    read_places,
    read_summary_key,
    read_summary_page,
    summary_page_value,
)
from rlmm.wire.options import (
    READ_DEFAULTS,
    WRITE_DEFAULTS,
    FreshnessOptions,
    WriteOptions,
    read_options_value,
    read_read_options,
    read_wait_options,
    read_write_options,
    wait_options_value,
    write_options_value,
)
from rlmm.wire.queries import (
    next_value,
    page_key_value,
    read_lookups,
    read_page_key,
    read_segment_answers,
)
from rlmm.wire.rows import packed_row, row_value
from tests.support.builders import partition_delete, segment_id, started, tp
from tests.support.server.recorded_frames import SEGMENTS

if TYPE_CHECKING:
    from collections.abc import Callable


def test_partition_when_it_comes_again_is_the_same_object() -> None:
    """A repeated partition is the same object."""
    first = values.read_partition([bytes(16), "again", 1])
    assert values.read_partition([bytes(16), "again", 1]) is first


@pytest.mark.parametrize("number", [True, 1.0], ids=repr)
def test_partition_when_its_number_only_equals_a_known_one_is_refused(number: object) -> None:
    """True and 1.0 are found in a table as 1: they are no partition all the same."""
    values.read_partition([bytes(16), "equal", 1])
    with pytest.raises(InvalidArgument, match="the number of a partition"):
        values.read_partition([bytes(16), "equal", number])


def test_partitions_when_too_many_come_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache of partitions is bounded."""
    monkeypatch.setattr(values, "PARTITIONS_KEPT", 10)
    partitions = values._Partitions()
    for number in range(1_000):
        read = partitions.read([bytes(16), "t", number])
        assert read == TopicIdPartition(Uuid(bytes(16)), "t", number)
        assert len(partitions._known) <= 10
    partitions.read([bytes(16), "n" * 250, 1])
    assert all(len(one.topic) < 250 for one in partitions._known.values())


@pytest.mark.parametrize("name", SEGMENTS)
def test_segment_when_made_from_its_row_is_the_same_value(name: str) -> None:
    """The fast way from a row gives the same value as the slow one."""
    segment = SEGMENTS[name]
    assert row_value(segment.id.uuid, row_of(segment)) == values.segment_value(segment)


@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 16_384])
def test_custom_metadata_of_any_size_is_the_same_by_the_short_way(size: int) -> None:
    """The fast way writes custom metadata of any length as the slow one does."""
    segment = started(1, custom_metadata=bytes(size))
    assert row_value(segment.id.uuid, row_of(segment)) == values.segment_value(segment)


@pytest.mark.parametrize("name", SEGMENTS)
def test_segment_when_it_was_sent_before_then_is_sent_as_it_is_now(name: str) -> None:
    """A changed segment is sent with its present values, not with cached ones."""
    segment = SEGMENTS[name]
    uuid, row = segment.id.uuid, row_of(segment)
    for _ in range(2):
        assert packed_row(uuid, row) == packed(values.segment_value(segment))
    changed = replace(segment, size_bytes=segment.size_bytes ^ 1)
    assert packed_row(uuid, row_of(changed)) == packed(values.segment_value(changed))


def test_segments_sent_when_many_then_fill_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache holds a bounded number of small segments and no large one."""
    monkeypatch.setattr(rows, "ROWS_KEPT", 10)
    kept = rows._Rows()
    row = row_of(started(1))
    for number in range(100):
        kept.packed(number.to_bytes(16), row)
        assert 1 <= len(kept._known) <= 10
    size = len(kept._known)
    large = row_of(started(1, custom_metadata=bytes(rows.ROW_BYTES_KEPT)))
    assert kept.packed(bytes(16), large) == packed(row_value(bytes(16), large))
    assert len(kept._known) == size


def test_segment_that_is_read_is_like_one_that_was_made() -> None:
    """Types are those of the constructor, not only equal ones."""
    made = SEGMENTS["many-epochs"]
    wire = [
        [list(pair) for pair in one] if isinstance(one, tuple) else one
        for one in values.segment_value(made)
    ]
    wire[9] = int(made.state)
    read = values.read_segment(made.id.partition, wire)
    assert isinstance(read, SegmentMetadata)
    assert (read, type(read.state), type(read.id.uuid)) == (
        made,
        type(made.state),
        type(made.id.uuid),
    )
    assert read.id == trusted_segment_id(made.id.partition, made.id.uuid)
    assert hash(read) == hash(made)


def test_next_page_when_the_first_had_nothing_yet_is_asked_for_from_the_start() -> None:
    """An empty page with a continuation is not the end, and only nil is."""
    assert next_value(Page((), None, is_last=True)) is None
    again = next_value(Page((), None, is_last=False))
    assert again == b""
    assert read_page_key(again) is None
    key = PageKey(7, segment_id(1).uuid)
    assert read_page_key(page_key_value(key)) == key


def test_answers_to_look_ups_when_one_is_missing_are_refused() -> None:
    """The client refuses another number of answers than of look-ups."""
    with pytest.raises(InvalidArgument, match="an array of 2"):
        read_segment_answers([tp(), tp()], [[None, None]])


def test_options_when_they_say_nothing_are_not_sent() -> None:
    """Defaults are nil on the wire, and nil is read as the defaults."""
    assert read_options_value(READ_DEFAULTS) is None
    assert write_options_value(WRITE_DEFAULTS) is None
    assert wait_options_value(None) is None
    assert (read_read_options(None), read_write_options(None)) == (READ_DEFAULTS, WRITE_DEFAULTS)
    assert (read_read_options({}), read_write_options({})) == (READ_DEFAULTS, WRITE_DEFAULTS)
    assert read_wait_options({}) is None


def test_option_when_it_is_not_known_is_named() -> None:
    """A misspelt wish for freshness is not passed over; its name is shown, shortened."""
    with pytest.raises(InvalidArgument, match="'at_last' is no option of a read, known are at_"):
        read_read_options({"at_last": {0: 1}})
    with pytest.raises(InvalidArgument) as refusal:
        read_read_options({"x" * 100_000: 1})
    assert len(str(refusal.value)) < 200


def test_read_waits_only_where_it_asks_for_more_than_is_there() -> None:
    """A time-out alone, or an empty token, keeps no answer back."""
    assert not FreshnessOptions(timeout_ms=5).waits
    assert not FreshnessOptions({}).waits
    assert FreshnessOptions({0: -1}).waits
    assert FreshnessOptions(linearizable=True).waits
    assert WriteOptions().unassigned == "refuse"


def test_hello_when_it_says_more_than_is_known_is_read() -> None:
    """A newer client may say more of itself."""
    said = ClientHello((1,), "c", "secret")
    assert read_hello({**hello_value(said), "colour": "blue", "nested": [1]}) == said


def test_hello_when_answered_by_an_earlier_service_then_it_said_nothing_of_newer_limits() -> None:
    """A missing newer limit in hello is 0, and a missing original one is refused."""
    limits = ServiceLimits(1, 2, 3, 4, 5, 6, timeout_ms_max=7, assign_max=8)
    answer = HelloAnswer(1, "s", None, None, None, "admin", "serve", limits)
    said: Any = hello_answer_value(answer)
    assert read_hello_answer(said) == answer
    del said["limits"]["timeout_ms_max"], said["limits"]["assign_max"]
    earlier = replace(answer, limits=replace(limits, timeout_ms_max=0, assign_max=0))
    assert read_hello_answer(said) == earlier
    assert hello_answer_value(earlier) == said
    del said["limits"]["page_max"]
    with pytest.raises(InvalidArgument, match="page_max"):
        read_hello_answer(said)


@pytest.mark.parametrize(
    "read",
    [read_read_options, read_write_options, read_wait_options],
    ids=lambda read: read.__name__,
)
def test_timeout_when_over_the_limit_then_cut_or_refused(read: Callable[..., object]) -> None:
    """Clients of version 1 may say any number of 31 bits, and are not refused for it."""
    for said, counts in ((0, 0), (499, 499), (500, 500), (501, 500), (2**31 - 1, 500)):
        assert read({"timeout_ms": said}, 500) == read({"timeout_ms": counts})
    for wrong in (2**31, -1, True, 5.0, "5"):
        with pytest.raises(InvalidArgument, match="timeout_ms must be a number from 0 to 2147"):
            read({"timeout_ms": wrong}, 500)


def test_look_ups_when_too_many_then_refused_before_any_is_looked_at() -> None:
    """A megabyte of nonsense costs no more than its count."""
    with pytest.raises(InvalidArgument, match="the look-ups must be an array of at most 3, got"):
        read_lookups([None] * 4, 3)
    with pytest.raises(InvalidArgument, match="a look-up must be an array of 3"):
        read_lookups([None] * 3, 3)


def test_token_is_not_printed() -> None:
    """The text of a hello in a log line does not show its token."""
    assert "secret" not in repr(ClientHello((1,), "c", "secret"))


def test_version_is_the_newest_that_both_sides_speak() -> None:
    """Order and numbers that are not known do not matter; without a common one both are named."""
    assert agree([9, VERSIONS[-1], 1]) == VERSIONS[-1]
    with pytest.raises(UnsupportedVersion, match=r"speaks the versions 2, 3 .* the service 1"):
        agree([2, 3])


def test_arguments_when_there_are_too_many_are_named() -> None:
    """The refusal names the surplus arguments."""
    message = r"segment_for takes 3 or 4 arguments \(partition, epoch, offset, options\), got 5"
    with pytest.raises(InvalidArgument, match=message):
        METHODS["segment_for"].require_count([1, 2, 3, 4, 5])
    with pytest.raises(InvalidArgument, match=r"ping takes 0 arguments \(none\), got 1"):
        METHODS["ping"].require_count([None])


def test_methods_that_store_are_never_sent_twice_by_themselves() -> None:
    """Writes, and nothing else, are not safe to repeat; none is open to readers."""
    for method in METHODS.values():
        assert method.is_safe_to_repeat is not method.is_write
        assert method.role != "reader" or not method.is_write


TOPIC = Uuid(b"t" * 16)
DELETE = partition_delete(PartitionDeleteState.DELETE_PARTITION_MARKED, tp("b"))
PAGE = SummaryPage(
    7,
    True,
    [PartitionCounts(tp("a"), 1, 2, 3, -4, None), PartitionCounts(tp("b"), 0, 0, 0, 2**62, DELETE)],
    b"k",
)


def sent(value: object) -> Any:
    return read_answer(b"\x93\x01\xc0" + packed(value)).result


def test_values_then_are_read_as_they_were_written() -> None:
    """Every form is read as written, with and without optional fields."""
    for page in (PAGE, PAGE._replace(after=None, is_whole=False, summaries=[])):
        assert read_summary_page(sent(summary_page_value(page))) == page
    head = ImageHead(1, 2, b"xy")
    assert read_image_head(sent(image_head_value(head))) == head
    piece = LogPiece(b"", 9, 0)
    assert read_log_piece(sent(log_piece_value(piece))) == piece
    assert read_log_piece(sent(log_piece_value(None))) is None
    topic_id, ends = read_log_ends(
        sent(log_ends_value(TOPIC, [LogEnds(1, 2), LogUnavailable("away")])), 2
    )
    assert (topic_id, ends[0], str(ends[1])) == (TOPIC, LogEnds(1, 2), "away")
    assert isinstance(ends[1], LogUnavailable)


def test_summary_when_sent_then_is_no_larger_than_it_is_reckoned_with() -> None:
    """The size estimate of a summary is never below its size on the wire."""
    widest = Uuid(b"\xff" * 16)
    for name in ("", "orders", "\u00e9" * 100, "n" * NAME_BYTES_MAX):
        one = TopicIdPartition(widest, name, 2**31 - 1)
        most, least = 2**63 - 1, -(2**63)
        delete = partition_delete(
            PartitionDeleteState.DELETE_PARTITION_FINISHED, one,
            broker_id=-(2**31), event_timestamp_ms=least,
        )  # fmt: skip
        summary = PartitionCounts(one, most, most, most, least, delete)
        page: Any = summary_page_value(PAGE._replace(summaries=[summary]))
        assert len(packed(page[2][0])) <= summary.wire_bytes


def test_key_when_of_any_partition_then_is_taken() -> None:
    """The longest name makes the longest key."""
    longest = TopicIdPartition(TOPIC, "n" * NAME_BYTES_MAX, 2**31 - 1).key
    assert read_summary_key(longest) == longest
    assert read_summary_key(None) is None
    assert len(longest) <= KEY_BYTES_MAX
    for odd in ("key", 1, bytes(KEY_BYTES_MAX + 1)):
        with pytest.raises(InvalidArgument):
            read_summary_key(odd)


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (read_summary_page, [1, True, []]),
        (read_summary_page, [-1, True, [], None]),
        (read_summary_page, [1, 1, [], None]),
        (read_summary_page, [1, True, [[None] * 6], None]),
        (read_summary_page, [1, True, [], "next"]),
        (read_image_head, [1, 2, "xy"]),
        (read_image_head, [1, None, b"xy"]),
        (read_log_piece, [b"", 1]),
        (read_log_piece, [None, 1, 0]),
        (read_log_piece, [b"", 1, -1]),
        (lambda value: read_log_ends(value, 1), [TOPIC, []]),
        (lambda value: read_log_ends(value, 1), [b"short", [[None, 0, 0]]]),
        (lambda value: read_log_ends(value, 1), [TOPIC, [[None, 0, None]]]),
        (lambda value: read_places(value, 2), [1, 2, 3]),
        (lambda value: read_places(value, 2), [True]),
    ],
)
def test_values_when_of_another_form_then_are_refused(read: Any, value: object) -> None:
    """A value of another form is refused with the reason."""
    with pytest.raises(InvalidArgument):
        read(value)


def test_bounds_when_they_tell_what_no_log_says_then_are_no_answer() -> None:
    """An error of another kind has no place there."""
    with pytest.raises(ProtocolError, match="of a log 'not-ready' is said"):
        read_log_ends([TOPIC, [[error_value(NotReady("no")), 0, 0]]], 1)
