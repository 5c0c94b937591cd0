"""`rlmm segments`: lists, descriptions and look-ups, for people and for programs."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.cli.queries.segments import list_answer, segments_of
from rlmm.inspection.moment import PartitionSummary
from rlmm.inspection.segment_search import SegmentFilter
from rlmm.log.protocol import LogIdentity
from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid
from tests.support.builders import TOPIC_ID, delete_started, finished, segment_id, started, tp
from tests.support.cli.json_schemas import require_valid
from tests.support.cli.memory_source import command_on, document_of, looking_at, printed
from tests.support.cli.metadata_history import PLACES, History
from tests.support.cli.recorded_outputs import require_golden

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.metadata.shard import Shard

NEW_ID = Uuid(bytes(range(16)))
"""Of the topic `orders` when it was made again."""
DASHED = Uuid(b"\xf8" + bytes(15))
"""Its text begins with a dash."""
CUSTOM = bytes.fromhex("030002c8010105057066782f020404666f6f")
"""The plugin's fields: 100 bytes, prefix `pfx/`, key `foo`."""
MS = 1_700_000_000_000

EVENTS = (
    started("a", 0, 99, {0: 0}, size_bytes=5_000, max_timestamp_ms=MS, event_timestamp_ms=MS + 500),
    finished("a", event_timestamp_ms=MS + 1_000, broker_id=2, custom_metadata=CUSTOM),
    started("b", 100, 199, {0: 100, 2: 150}, size_bytes=1_500_000, max_timestamp_ms=MS + 60_000),
    finished("b", broker_id=2),
    started("c", 200, 299, {2: 200}, event_timestamp_ms=MS),
    started(segment_id("d", tp("payments.eu", 0)), 0, 9, {0: 0}, custom_metadata=b"\x01"),
    finished(segment_id("d", tp("payments.eu", 0))),
    delete_started(segment_id("d", tp("payments.eu", 0)), broker_id=3),
    started(SegmentId(tp("orders", 7, NEW_ID), DASHED), 0, 9, {0: 0}, txn_index_empty=True),
    finished(SegmentId(tp("orders", 7, NEW_ID), DASHED), event_timestamp_ms=MS),
)  # fmt: skip
OLD = f"{TOPIC_ID}:orders-7"


def document(*words: str, events: Any = EVENTS) -> Any:
    result = command_on(events, "segments", *words, "--output", "json")
    assert result.exit_code in {0, 1}, result.stderr
    found = json.loads(result.stdout)
    require_valid(found)
    return found


def listed(*words: str) -> list[str]:
    names = {str(segment_id(label).uuid): label for label in "abcd"} | {str(DASHED): "dashed"}
    return [names[item["segment_id"]] for item in document("list", *words)["items"]]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("segments-list", ["list"]),
        ("segments-describe", ["describe", str(segment_id("b").uuid)]),
        ("segments-describe-stored", ["describe", str(segment_id("a").uuid), "--prefix", "now/"]),
        ("segments-find", ["find", OLD, "--offset", "160", "--prefix", "tier/"]),
        ("segments-find-nothing", ["find", OLD, "--offset", "250"]),
    ],
)
def test_command_when_asked_prints_what_it_printed_before(name: str, words: list[str]) -> None:
    """The table and the document of each command, to the letter; the document by its schema."""
    table = command_on(EVENTS, "segments", *words, "--output", "table")
    require_golden(f"{name}.txt", table.stdout)
    document(*words)
    whole = command_on(EVENTS, "segments", *words, "--output", "json")
    require_golden(f"{name}.json", whole.stdout)


def test_list_when_written_as_csv_has_every_column_and_raw_values() -> None:
    """CSV has the names of JSON, sizes in bytes and times in milliseconds."""
    text = command_on(EVENTS, "segments", "list", "--output", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 5
    of_b = next(row for row in rows if row["segment_id"] == str(segment_id("b").uuid))
    assert (of_b["topic"], of_b["partition"], of_b["epochs"]) == ("orders", "7", "0:100 2:150")
    assert (of_b["size_bytes"], of_b["max_timestamp_ms"]) == ("1500000", str(MS + 60_000))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], ["a", "b", "c", "dashed", "d"]),
        (["--topic", "ord.*"], ["a", "b", "c", "dashed"]),
        (["--topic", "ord"], []),
        (["--topic-partitions", "payments.*:-1"], ["d"]),
        (["--topic-partitions", "orders:0-7"], []),
        (["--state", "copy_segment_started"], ["c"]),
        (["--state", "COPY_SEGMENT_STARTED", "--state", "DELETE_SEGMENT_STARTED"], ["c", "d"]),
        (["--from", str(MS)], ["a", "b"]),
        (["--from", "2023-11-14T22:13:21Z"], ["b"]),
        (["--to", str(MS)], ["a"]),
        (["--min-size", "5KB"], ["a", "b"]),
        (["--max-size", "5000"], ["a", "c", "dashed", "d"]),
        (["--broker", "2"], ["a", "b"]),
        (["--broker", "2", "--broker", "3"], ["a", "b", "d"]),
        (["--epoch", "2"], ["b", "c"]),
        (["--with-custom-metadata"], ["a"]),
        (["--without-custom-metadata"], ["b", "c", "dashed", "d"]),
        (["--sort=-size"], ["b", "a", "c", "dashed", "d"]),
        (["--sort", "size", "--limit", "2"], ["c", "dashed"]),
        (["--limit", "2"], ["a", "b"]),
        (["--at", "2:1"], ["a", "dashed", "d"]),
    ],
)
def test_list_when_filtered_has_what_is_meant(words: list[str], expected: list[str]) -> None:
    """Each flag filters alone, and the order is topic, partition, topic id and offset."""
    found = listed(*words)
    assert sorted(found) == sorted(expected)
    if "--sort=-size" in words or "--limit" in words:
        assert found == expected


def test_list_when_sorted_and_limited_is_the_beginning_of_the_sorted_list() -> None:
    """The limit takes the first items of the sorted list."""
    events = [started(n, n, n, {0: n}, size_bytes=(n * 7_919) % 4_001) for n in range(3_000)]
    whole = document("list", "--sort", "size", events=events)["items"]
    first = document("list", "--sort", "size", "--limit", "7", events=events)["items"]
    assert [one["size_bytes"] for one in whole] == sorted(one["size_bytes"] for one in whole)
    assert first == whole[:7]


def test_list_when_totals_are_made_counts_what_is_listed() -> None:
    """The totals are those of the filtered segments."""
    totals = document("list", "--topic", "orders", "--limit", "2")["totals"]
    assert (totals["segments"], totals["size_bytes"]) == (2, 1_505_000)


@pytest.mark.parametrize(
    ("words", "exit_code", "said"),
    [
        (["list", "--at", "3"], 2, "--at PARTITION:3"),
        (["describe"], 2, ""),
        (["describe", str(Uuid(bytes(16)))], 1, "rlmm history"),
        (["find", OLD], 2, ""),
        (["find", OLD, "--offset", "1", "--time", "now"], 2, ""),
        (["find", "absent-0", "--offset", "1"], 1, "rlmm: unknown-partition: absent-0"),
        (["find", "orders-7", "--offset", "5"], 2, str(TOPIC_ID)),
        (["find", "orders-7", "--offset", "5"], 2, str(NEW_ID)),
    ],
)
def test_question_that_cannot_be_answered_is_refused_in_one_line(
    words: list[str], exit_code: int, said: str
) -> None:
    """An offset alone, an unknown name, both or none of two flags, and two topics of a name."""
    result = command_on(EVENTS, "segments", *words)
    assert (result.exit_code, result.stdout) == (exit_code, "")
    assert said in result.stderr
    if exit_code == 1:
        assert len(result.stderr.splitlines()) == 1


def test_segment_when_described_by_what_its_id_begins_with_is_found() -> None:
    """A beginning of an id is enough while no other segment has it."""
    whole = str(segment_id("a").uuid)
    assert document("describe", whole[:6])["items"][0]["segment_id"] == whole
    found = document("describe", f"{OLD}/{whole[:6]}")["items"]
    assert found[0]["segment_id"] == whole


def test_segment_when_several_begin_alike_is_refused_with_their_names() -> None:
    """The refusal lists the ids with their partitions."""
    events = [started(1, 0, 9), started(2, 10, 19)]
    result = command_on(events, "segments", "describe", "AAAA")
    assert result.exit_code == 2
    assert result.stderr.count("orders-7/AAAA") == 2


def test_segment_whose_id_begins_with_a_dash_is_described() -> None:
    """An id with a leading dash works behind a double dash or as the value of a flag."""
    for words in (["--", str(DASHED)], [f"--segment-id={DASHED}"], ["--segment-id=-AAA"]):
        result = command_on(EVENTS, "segments", "describe", "--output", "json", *words)
        assert result.exit_code == 0, result.stderr
        assert json.loads(result.stdout)["items"][0]["segment_id"] == str(DASHED)


def test_segment_with_an_offset_alone_is_described_as_it_was() -> None:
    """The segment's own partition gives the metadata partition of the offset."""
    label = f"{OLD}/{segment_id('a').uuid}"
    assert document("describe", label, "--at", "0")["items"][0]["state"] == "COPY_SEGMENT_STARTED"
    assert document("describe", label)["items"][0]["state"] == "COPY_SEGMENT_FINISHED"


@pytest.mark.parametrize("label", [f"{NEW_ID}:orders-7", f"{NEW_ID}:7"])
def test_partition_whose_topic_was_made_again_is_found_by_its_id(label: str) -> None:
    """Each of two topics of one name is found by its id, with or without the name."""
    (item,) = document("find", label, "--offset", "5")["items"]
    assert item["segment_id"] == str(DASHED)


@pytest.mark.parametrize(
    ("words", "exit_code", "epochs"),
    [
        (["--offset", "160"], 0, [[2]]),
        (["--offset", "120"], 0, [[0]]),
        (["--offset", "160", "--epoch", "0"], 1, [[]]),
        (["--offset", "160", "--epoch", "2"], 0, [[2]]),
        (["--offset", "250"], 1, [[]]),
        (["--offset", "999"], 1, []),
        (["--time", str(MS)], 0, [[0]]),
        (["--time", str(MS + 1)], 0, [[0, 2]]),
        (["--time", "now"], 1, []),
    ],
)
def test_offset_or_time_when_looked_for_is_found_in_its_epochs(
    words: list[str], exit_code: int, epochs: list[list[int]]
) -> None:
    """Exit code 1 where no look-up finds it, also where a copy under way holds it."""
    result = command_on(EVENTS, "segments", "find", OLD, *words, "--output", "json")
    found = json.loads(result.stdout)
    require_valid(found)
    assert result.exit_code == exit_code
    assert found["is_found"] is (exit_code == 0)
    assert [item["found_in_epochs"] for item in found["items"]] == epochs


def test_objects_of_a_topic_that_no_broker_has_are_not_named() -> None:
    """A name with a slash would be another place in the store."""
    odd = segment_id("x", TopicIdPartition(TOPIC_ID, "a/b", 0))
    (item,) = document("describe", str(odd.uuid), events=[started(odd, 0, 9)])["items"]
    assert item["objects"] is None


PAGES = 5


class PagedMoment:
    """A moment with two user partitions that counts requested pages."""

    identity = LogIdentity("cluster", Uuid(bytes(16)), PLACES)

    def __init__(self) -> None:
        self.positions: dict[int, int] = {}
        self.taken = 0
        self.asked: list[TopicIdPartition] = []

    async def user_partitions(self) -> list[PartitionSummary]:
        return [
            PartitionSummary(tp("orders", 0), 0, 10, 0, 0, 1),
            PartitionSummary(tp("orders", 1), 1, 0, 10, 0, 1),
        ]

    async def segments(
        self, partition: TopicIdPartition, epoch: int | None = None
    ) -> AsyncIterator[list[SegmentMetadata]]:
        assert epoch is None
        self.asked.append(partition)
        for page in range(PAGES):
            self.taken += 1
            ids = (segment_id(2 * page + one, partition) for one in range(2))
            yield [started(one, 10 * page, 10 * page + 9) for one in ids]

    async def state(self, partition: TopicIdPartition) -> Shard:
        raise AssertionError(partition)


async def test_list_when_it_begins_has_taken_one_page() -> None:
    """The first segment is printed before the second page is requested."""
    moment = PagedMoment()
    found = segments_of(moment, SegmentFilter())
    await anext(found)
    await anext(found)
    assert moment.taken == 1
    await anext(found)
    assert moment.taken == 2
    await found.aclose()


async def test_list_when_a_partition_cannot_hold_what_is_meant_does_not_ask_for_it() -> None:
    """The command skips partitions whose figures exclude a match."""
    moment = PagedMoment()
    open_ones = replace(
        SegmentFilter(), states=frozenset(one for one in SegmentFilter().states if one == 0)
    )
    async for _ in segments_of(moment, open_ones):
        pass
    assert moment.asked == [tp("orders", 0)]


async def test_segments_whose_events_lie_where_nobody_looks_are_named_and_not_listed() -> None:
    """The number of metadata partitions was changed: an answer without a word would be a lie."""
    history = History()
    await history.add(started("a", 0, 9))
    looking = looking_at(history)
    astray = tp("orders", 8)
    wrong = (await looking.place_of(astray) + 1) % PLACES
    await history.add(started(segment_id("b", astray), 0, 9), place=wrong)
    answer = await list_answer(looking, wanted=SegmentFilter(), order=None, limit=None)
    document = await document_of(answer)
    assert [one["partition"] for one in document["items"]] == [7]
    assert document["astray"] == [str(astray)]
    answer = await list_answer(looking, wanted=SegmentFilter(), order=None, limit=None)
    text = await printed(answer)
    assert "1 user partitions are not listed" in text
    assert "rlmm verify" in text
