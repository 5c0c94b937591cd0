"""
Aborted transactions: the bytes of index entries, the search for them, and the batches they drop.
"""

from __future__ import annotations

import struct

import pytest

from spark_tiering.decoding import AbortedSearch, AbortedTransaction, DecodingFault, read_txn_index
from spark_tiering.decoding.aborted import AbortedRanges

# Producer 4001, offsets 240 to 250, last stable offset 245.
LITERAL = bytes.fromhex("00000000000000000fa100000000000000f000000000000000fa00000000000000f5")
ENTRY = AbortedTransaction(4001, 240, 250, 245)


def packed(*entry: int) -> bytes:
    return struct.pack(">hqqqq", *entry)


def test_index_when_a_broker_wrote_it_then_entries_are_what_it_says() -> None:
    """An index gives its literal bytes' entries, and an empty one means no aborts."""
    assert read_txn_index(LITERAL) == (ENTRY,)
    assert read_txn_index(memoryview(LITERAL + packed(0, 7, 251, 252, 253))) == (
        ENTRY,
        AbortedTransaction(7, 251, 252, 253),
    )
    assert read_txn_index(b"") == ()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (LITERAL[:-1], "33 bytes are no whole entries"),
        (LITERAL + b"\x00", "35 bytes"),
        (packed(1, 7, 1, 2, 3), "version 1"),
        (packed(0, 7, -1, 2, 3), "offsets -1 to 2"),
        (packed(0, 7, 3, 2, 3), "offsets 3 to 2"),
        (LITERAL + LITERAL, "last offset 250 behind 250"),
        (LITERAL + bytes(34), "last offset 0 behind 250"),
    ],
)
def test_index_when_it_is_none_then_is_a_fault_that_says_why(content: bytes, said: str) -> None:
    """A broken index is refused with its reason; half of it would let aborted records through."""
    found = read_txn_index(content)
    assert isinstance(found, DecodingFault)
    assert said in found.detail


def test_search_when_an_entry_says_that_all_is_decided_then_no_index_is_needed_any_more() -> None:
    """An entry that decides the whole range ends the search, wherever its transaction lies."""
    search = AbortedSearch(100, 200)
    search.take([AbortedTransaction(1, 10, 99, 50), AbortedTransaction(2, 90, 100, 90)])
    assert not search.is_complete
    search.take([AbortedTransaction(3, 199, 300, 199), AbortedTransaction(4, 200, 310, 200)])
    assert search.is_complete
    search.take([AbortedTransaction(5, 150, 320, 321)])
    assert [entry.producer_id for entry in search.found] == [2, 3]


def test_search_when_nothing_is_asked_for_then_nothing_is_needed() -> None:
    """A search for an empty range needs no index."""
    assert AbortedSearch(5, 5).is_complete
    assert not AbortedSearch(5, 6).is_complete


def test_ranges_when_a_producer_aborted_often_then_each_batch_meets_its_own() -> None:
    """An aborted range reaches from its first offset to its marker, both inclusive."""
    ranges = AbortedRanges(
        [AbortedTransaction(1, 10 * at, 10 * at + 3, 0) for at in (4, 0, 8, 7, 3, 5, 1, 6, 2)]
    )
    for offset in range(-1, 95):
        assert ranges.cover(1, offset) == (0 <= offset < 90 and offset % 10 <= 3)
    assert not ranges.cover(2, 10)
    assert ranges
    assert not AbortedRanges([])
