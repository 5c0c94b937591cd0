"""`rlmm segments list`: its memory while it lists, and its astray segments."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlmm.cli.queries.segments import list_answer, segments_of
from rlmm.inspection.moment import PartitionSummary
from rlmm.inspection.segment_search import SegmentFilter
from rlmm.log.protocol import LogIdentity
from rlmm.metadata.ids import Uuid
from tests.support.builders import segment_id, started, tp
from tests.support.cli.memory_source import document_of, looking_at, printed
from tests.support.cli.metadata_history import PLACES, History

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.metadata.shard import Shard

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
