"""The records of the demonstration, and the checksum that shows whether all were read."""

from __future__ import annotations

from rlmm_demo.world.records import CODECS, PARTITIONS, checksum_of, committed_rows, portions

ROWS = [(0, 0, b"a"), (0, 1, b"b"), (1, 0, b"c")]


def test_portions_are_200000_records_in_three_codecs_with_one_aborted_transaction() -> None:
    """Every run produces the same records, with the aborted ones between others."""
    sent = portions()
    assert sum(len(one.values) for one in sent) == 200_000
    assert {one.codec for one in sent} == set(CODECS)
    assert {one.partition for one in sent} == set(range(PARTITIONS))
    (aborted,) = (number for number, one in enumerate(sent) if one.is_aborted)
    assert 0 < aborted < len(sent) - 1
    assert portions() == sent


def test_committed_rows_when_some_were_aborted_then_are_the_others_in_order_of_offsets() -> None:
    """Committed rows are sorted by offset and hold no aborted record."""
    sent = portions()
    offsets, ends = [], dict.fromkeys(range(PARTITIONS), 0)
    for one in sent:
        offsets.append(list(range(ends[one.partition], ends[one.partition] + len(one.values))))
        ends[one.partition] += len(one.values) + one.is_aborted
    rows = list(committed_rows(sent, offsets))
    assert rows == sorted(rows)
    aborted = next(one for one in sent if one.is_aborted)
    assert len(rows) == 200_000 - len(aborted.values)
    assert not {value for _, _, value in rows} & set(aborted.values)


def test_checksum_when_partitions_come_in_another_order_then_is_the_same() -> None:
    """The checksum does not depend on the order of partitions."""
    assert checksum_of(ROWS).text == checksum_of([ROWS[2], *ROWS[:2]]).text


def test_checksum_when_anything_differs_then_is_another() -> None:
    """The checksum changes with a missing, moved, changed, doubled or split record."""
    others = [
        ROWS[:2],
        [(0, 0, b"a"), (0, 2, b"b"), (1, 0, b"c")],
        [(0, 0, b"a"), (0, 1, b"B"), (1, 0, b"c")],
        [(0, 0, b"a"), (0, 1, b"b"), (2, 0, b"c")],
        [*ROWS, ROWS[2]],
        [ROWS[1], ROWS[0], ROWS[2]],
        [],
    ]
    found = {checksum_of(rows).text for rows in others}
    assert len(found) == len(others)
    assert checksum_of(ROWS).text not in found
