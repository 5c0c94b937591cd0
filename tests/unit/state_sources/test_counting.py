"""How many partitions a topic has, by where its records were found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlmm.metadata.assignment import place_of
from rlmm.metadata.ids import TopicIdPartition, Uuid
from rlmm.state_sources.folders_source import fitting_count
from tests.support.logs.copied_folders import user_partition

PARTITIONS = [user_partition(number) for number in range(40)]


def found_in(count: int) -> list[tuple[TopicIdPartition, int]]:
    """Return the metadata partition of every user partition's events in a topic of so many."""
    return [(one, place_of(one, count)) for one in PARTITIONS]


@pytest.mark.parametrize("count", [1, 2, 3, 7, 49, 50, 51, 60, 100, 1_000])
def test_count_when_all_partitions_lie_where_it_puts_them_then_it_is_that(count: int) -> None:
    """The count follows from forty user partitions, whatever it is."""
    found = found_in(count)
    assert fitting_count(found, max(place for _, place in found) + 1) == count


def test_count_when_kafkas_default_fits_then_it_is_taken_before_smaller_ones() -> None:
    """Of several fitting counts the source takes 50, Kafka's default, first."""
    one = next(one for one in PARTITIONS if place_of(one, 50) == place_of(one, 25))
    found = [(one, place_of(one, 50))]
    assert fitting_count(found, 1) == 50
    assert fitting_count(found, 51) not in {None, 50}
    assert fitting_count([], 1) == 50
    assert fitting_count([], 51) == 51


def test_count_when_the_topic_was_enlarged_then_none_fits() -> None:
    """Some events were written by one number and some by another."""
    before, after = found_in(50)[:20], found_in(60)[20:]
    assert fitting_count([*before, *after], 60) is None


@given(
    ids=st.lists(st.binary(min_size=16, max_size=16), min_size=1, max_size=12, unique=True),
    count=st.integers(1, 120),
)
def test_count_when_it_is_found_then_everything_fits_and_none_smaller_does(
    ids: list[bytes], count: int
) -> None:
    """Held against the definition: the smallest number that does not contradict any record."""
    partitions = [TopicIdPartition(Uuid(one), "t", number) for number, one in enumerate(ids)]
    found = [(one, place_of(one, count)) for one in partitions]
    least = max(place for _, place in found) + 1

    def fits(number: int) -> bool:
        return all(place_of(one, number) == place for one, place in found)

    told = fitting_count(found, least)
    assert told is not None
    assert fits(told)
    if told != 50:
        assert told == next(number for number in range(least, count + 1) if fits(number))
