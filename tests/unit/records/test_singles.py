"""Runs of batches with one event each: the fast reader and its end."""

from __future__ import annotations

import pytest

from rlmm.records.batch import Batch, walk
from rlmm.records.compression import Compression
from rlmm.records.records import Record
from rlmm.records.singles import single_values
from rlmm.records.writer import build_batch

VALUES = [b"", b"x", bytes(57), bytes(58), bytes(300), bytes(range(256)) * 30]
FIRST = 40


def single(offset: int, value: bytes | None, key: bytes | None = None) -> bytes:
    return build_batch([Record(offset, 1_700_000_000_000, key, value)], offset)


def run_of(values: list[bytes]) -> bytes:
    return b"".join(single(offset, value) for offset, value in enumerate(values, FIRST))


def test_run_of_singles_gives_what_the_walk_gives() -> None:
    """Values of every length of varint are those that the batches themselves read."""
    data = run_of(VALUES[1:])
    walked = [
        value for batch in walk(data) if isinstance(batch, Batch) for _, value in batch.values()
    ]
    last = len(run_of(VALUES[1:-1]))
    assert single_values(data, 0, FIRST, 100) == (walked, last, len(data))


def test_run_when_enough_is_read_ends_before_the_next_batch() -> None:
    """The run returns at most the wanted values and the next byte."""
    data = run_of(VALUES[1:4])
    first, both = len(run_of(VALUES[1:2])), len(run_of(VALUES[1:3]))
    assert single_values(data, 0, FIRST, 2) == (VALUES[1:3], first, both)
    assert single_values(data, 0, FIRST, 0) == ([], 0, 0)


@pytest.mark.parametrize(
    "follower",
    [
        pytest.param(single(FIRST + 1, None), id="tombstone"),
        pytest.param(single(FIRST + 1, b"v", key=b"k"), id="key"),
        pytest.param(
            build_batch([Record(FIRST + 1, 1, None, b"v", (("h", b""),))], FIRST + 1), id="header"
        ),
        pytest.param(single(FIRST + 2, b"v"), id="gap"),
        pytest.param(single(FIRST, b"v"), id="the same offset"),
        pytest.param(single(FIRST + 1, bytes(10_000)), id="length of three bytes"),
        pytest.param(
            build_batch(
                [Record(FIRST + 1, 1, None, b"v")], FIRST + 1, compression=Compression.GZIP
            ),
            id="compressed",
        ),
        pytest.param(
            build_batch([Record(FIRST + 1 + at, 1, None, b"v") for at in range(2)], FIRST + 1),
            id="two records",
        ),
        pytest.param(single(FIRST + 1, b"value")[:-1], id="cut off"),
        pytest.param(single(FIRST + 1, b"value")[:-2] + b"E\x00", id="wrong CRC"),
        pytest.param(b"\xff" * 100, id="no batch"),
    ],
)
def test_run_ends_in_front_of_whatever_has_another_form(follower: bytes) -> None:
    """The fast reader stops before a batch of another form or a damaged one."""
    data = single(FIRST, b"first") + follower
    assert single_values(data, 0, FIRST, 100) == ([b"first"], 0, len(single(FIRST, b"first")))
    assert single_values(follower, 0, FIRST + 1, 100) == ([], 0, 0)
