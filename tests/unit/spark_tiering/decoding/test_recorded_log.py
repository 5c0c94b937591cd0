"""The segments that a broker of 4.3.1 left: five codecs, markers, aborts over several segments."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from rlmm.records.batch import Batch, walk
from rlmm.records.control import ControlType, control_type
from rlmm.records.records import Record
from spark_tiering.decoding import AbortedSearch, AbortedTransaction, DecodingFault, read_txn_index
from tests.support.datasource.decoded_rows import decode, in_small, parsed_by_aiokafka, wanted
from tests.support.partitions.segments import recorded_partition

if TYPE_CHECKING:
    from collections.abc import Iterator

FILES = recorded_partition().contents
LOGS = {int(name[:20]): content for name, content in FILES.items() if name.endswith(".log")}
NEXT_OFFSET = 139


def entries_of(base_offset: int) -> tuple[AbortedTransaction, ...]:
    found = read_txn_index(FILES[f"{base_offset:020}.txnindex"])
    assert not isinstance(found, DecodingFault)
    return found


def aborted_offsets() -> Iterator[int]:
    pending: dict[int, list[int]] = {}
    for log in LOGS.values():
        for batch in walk(log):
            assert isinstance(batch, Batch)
            if not batch.is_transactional:
                continue
            for record in batch.records():
                assert isinstance(record, Record)
                if not batch.is_control:
                    pending.setdefault(batch.producer_id, []).append(record.offset)
                    continue
                ended = pending.pop(batch.producer_id, [])
                if control_type(record.key) is ControlType.ABORT:
                    yield from ended


@pytest.mark.parametrize("base_offset", LOGS)
@pytest.mark.parametrize("piece_bytes", [1 << 20, 300])
def test_recorded_segment_decoded_has_aiokafkas_rows(base_offset: int, piece_bytes: int) -> None:
    """The decoder's rows of a recorded segment are aiokafka's, for many records and for few."""
    log = LOGS[base_offset]
    found = decode(log, piece_bytes=piece_bytes)
    assert found.fault is None
    assert found.rows == parsed_by_aiokafka(log)
    with in_small():
        assert decode(log, piece_bytes=piece_bytes) == found


def test_recorded_segments_when_decoded_then_rows_are_those_that_were_produced() -> None:
    """The first decoded rows and all counts are those that were produced."""
    found = [decode(log) for log in LOGS.values()]
    assert [len(each.rows) for each in found] == [56, 44, 16]
    assert [each.counts.markers for each in found] == [6, 6, 11]
    assert [each.counts.batches for each in found] == [32, 15, 27]
    first = found[0].rows[0]
    assert (first.offset, first.topic, first.partition) == (0, "orders", 3)
    assert first.timestamp_type == 0
    assert first.headers is None


def test_recorded_aborts_when_all_is_read_then_only_committed_rows_come() -> None:
    """For any range the broker's recorded indexes leave exactly the committed rows."""
    gone = set(aborted_offsets())
    assert gone
    log = b"".join(LOGS.values())
    everything = decode(log).rows
    bases = [*LOGS, NEXT_OFFSET]
    for first in range(0, NEXT_OFFSET, 9):
        for behind in range(first, NEXT_OFFSET + 1, 13):
            search = AbortedSearch(first, behind)
            for base, next_base in pairwise(bases):
                if next_base > first and not search.is_complete:
                    search.take(entries_of(base))
            asked = wanted(first_offset=first, next_offset=behind, aborted=search.found)
            found = decode(log, asked)
            assert found.fault is None
            inside = [row for row in everything if first <= row.offset < behind]
            assert found.rows == [row for row in inside if row.offset not in gone]
            assert found.counts.aborted >= len(inside) - len(found.rows)


def test_recorded_transaction_when_it_lies_over_segments_then_the_later_index_is_needed() -> None:
    """A transaction over several segments has its abort in the later segment's index."""
    later = [
        (base, entry)
        for base in LOGS
        for entry in entries_of(base)
        if entry.first_offset < base and base > 0
    ]
    assert later
    base, entry = later[0]
    before = max(each for each in LOGS if each < base)
    search = AbortedSearch(entry.first_offset, base)
    search.take(entries_of(before))
    assert not search.is_complete
    assert entry not in search.found
    search.take(entries_of(base))
    assert entry in search.found
