"""Leader epochs of a partition."""

from __future__ import annotations

import pytest

from rlmm.partition_log.epochs import EpochStarts


def test_epoch_when_larger_then_begins_where_it_first_wrote() -> None:
    """Each larger epoch is stored once, with its first offset; of two with one start the later."""
    epochs = EpochStarts()
    assert epochs.assign(0, 0)
    assert not epochs.assign(0, 5)
    assert epochs.assign(3, 10)
    assert not epochs.assign(2, 12)
    assert not epochs.assign(-1, 12)
    assert epochs.entries == ((0, 0), (3, 10))
    assert epochs.latest == 3
    assert EpochStarts([(1, 0), (2, 7), (5, 7)]).entries == ((1, 0), (5, 7))


@pytest.mark.parametrize(("offset", "epoch"), [(-1, -1), (0, 1), (6, 1), (7, 4), (99, 4)])
def test_epoch_when_asked_by_offset_then_is_the_one_in_force(offset: int, epoch: int) -> None:
    """An epoch holds from its first offset to the next one's."""
    assert EpochStarts([(1, 0), (4, 7)]).epoch_at(offset) == epoch


def test_epochs_when_the_end_is_cut_then_those_behind_are_forgotten() -> None:
    """A log that ends earlier knows only the epochs that still have a record."""
    epochs = EpochStarts([(1, 0), (2, 5), (3, 9)])
    assert epochs.truncate_from(5)
    assert epochs.entries == ((1, 0),)
    assert not epochs.truncate_from(5)


@pytest.mark.parametrize(
    ("log_start", "expected"),
    [
        pytest.param(0, ((1, 0), (2, 5)), id="unmoved"),
        pytest.param(3, ((1, 3), (2, 5)), id="within-the-first"),
        pytest.param(5, ((2, 5),), id="at-the-second"),
        pytest.param(8, ((2, 8),), id="within-the-second"),
    ],
)
def test_epochs_when_the_start_moves_then_the_one_in_force_begins_there(
    log_start: int, expected: tuple[tuple[int, int], ...]
) -> None:
    """Below the log's start no epoch is remembered, as Kafka does."""
    epochs = EpochStarts([(1, 0), (2, 5)])
    assert epochs.advance_to(log_start) == (expected != ((1, 0), (2, 5)))
    assert epochs.entries == expected
